package io.kvcache.server.config;

import java.nio.file.Path;
import java.time.Duration;
import java.util.regex.Pattern;

/// Leases on values for clients on this host, which read them through a file in memory that both map.
///
/// @param sharedMemory name of the file below `/dev/shm`; empty for no leases
/// @param longest longest time that a lease may be asked for
/// @param percent of host memory that may be leased at one time
public record LeaseConfig(String sharedMemory, Duration longest, int percent) {

    private static final Pattern NAME = Pattern.compile("[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}");
    private static final Path FOLDER = Path.of("/dev/shm");
    private static final Duration MOST = Duration.ofHours(1);

    public LeaseConfig {
        if (!sharedMemory.isEmpty() && !NAME.matcher(sharedMemory).matches()) {
            throw new IllegalArgumentException("lease.shared_memory is '" + sharedMemory
                    + "'; it takes 1 to 100 letters, digits, dots, dashes and underscores");
        }
        if (!longest.isPositive() || longest.compareTo(MOST) > 0) {
            throw new IllegalArgumentException("lease.longest is " + longest.toSeconds() + "s; it takes 1s to 3600s");
        }
        if (percent < 1 || percent > 90) {
            throw new IllegalArgumentException("lease.percent is " + percent + "; it takes 1 to 90");
        }
    }

    /// None; where there are some, five minutes at the most, a quarter.
    public static LeaseConfig defaults() {
        return new LeaseConfig("", Duration.ofMinutes(5), 25);
    }

    /// Whether there are leases.
    public boolean on() {
        return !sharedMemory.isEmpty();
    }

    /// Where the file is.
    public Path folder() {
        return FOLDER;
    }

    static LeaseConfig read(Settings from, LeaseConfig otherwise) {
        String sharedMemory = from.get("lease.shared_memory", otherwise.sharedMemory(), String::strip);
        Duration longest = from.get("lease.longest", otherwise.longest(), Values::duration);
        int percent = from.get("lease.percent", otherwise.percent(), Values.integer(1, 90));
        return from.checked(otherwise, () -> new LeaseConfig(sharedMemory, longest, percent));
    }
}
