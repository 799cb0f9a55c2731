package io.kvcache.server.config;

import java.nio.file.Path;
import java.time.Duration;
import java.util.regex.Pattern;

/// Leases on values for clients on this host, which read them through a file in memory that both map.
///
/// @param sharedMemory name of the file below `/dev/shm`; empty for no leases
/// @param maxDuration longest time that a lease may be asked for
/// @param percent of host memory that may be leased at one time
public record LeaseConfig(String sharedMemory, Duration maxDuration, int percent) {

    private static final Pattern NAME = Pattern.compile("[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}");
    private static final Path SHM_DIRECTORY = Path.of("/dev/shm");
    private static final Duration MAX_LEASE_DURATION = Duration.ofHours(1);

    public LeaseConfig {
        if (!sharedMemory.isEmpty() && !NAME.matcher(sharedMemory).matches()) {
            throw new IllegalArgumentException("lease.shared_memory is '" + sharedMemory
                    + "'; it takes 1 to 100 letters, digits, dots, dashes and underscores");
        }
        if (!maxDuration.isPositive() || maxDuration.compareTo(MAX_LEASE_DURATION) > 0) {
            throw new IllegalArgumentException(
                    "lease.longest is " + maxDuration.toSeconds() + "s; it takes 1s to 3600s");
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
    public boolean isEnabled() {
        return !sharedMemory.isEmpty();
    }

    /// Where the file is.
    public Path sharedMemoryFile() {
        return SHM_DIRECTORY;
    }

    static LeaseConfig read(Settings from, LeaseConfig defaultValue) {
        String sharedMemory = from.get("lease.shared_memory", defaultValue.sharedMemory(), String::strip);
        Duration longest = from.get("lease.longest", defaultValue.maxDuration(), SettingParsers::parseDuration);
        int percent = from.get("lease.percent", defaultValue.percent(), SettingParsers.integerParser(1, 90));
        return from.getValid(defaultValue, () -> new LeaseConfig(sharedMemory, longest, percent));
    }
}
