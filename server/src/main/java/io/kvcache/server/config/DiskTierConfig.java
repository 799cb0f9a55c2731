package io.kvcache.server.config;

import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.core.tree.DiskAddress;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/// The disks, and what they are used for.
///
/// @param disks that take turns; none for a server that keeps everything in memory
/// @param admission which values are written
/// @param readTimeout how long a request waits for a value that is on disk before it is told that there is none
/// @param prefetch whether chunks that a client is likely to read next are brought into memory
///     ahead of it
/// @param recompute when clients are told to compute what is there
public record DiskTierConfig(
        List<DiskConfig> disks,
        AdmissionKind admission,
        Duration readTimeout,
        boolean prefetch,
        RecomputeConfig recompute) {

    private static final Duration MAX_READ_TIMEOUT = Duration.ofMinutes(1);

    /// Disks that are read when somebody asks.
    public DiskTierConfig(List<DiskConfig> disks, AdmissionKind admission, Duration readTimeout) {
        this(disks, admission, readTimeout, false, RecomputeConfig.defaults());
    }

    public DiskTierConfig {
        disks = List.copyOf(disks);
        if (disks.size() > DiskAddress.MAX_DISKS) {
            throw new IllegalArgumentException("disks are " + disks.size() + "; there may be " + DiskAddress.MAX_DISKS);
        }
        Set<Path> directories = new HashSet<>();
        for (DiskConfig disk : disks) {
            if (!directories.add(disk.directory().toAbsolutePath().normalize())) {
                throw new IllegalArgumentException("disks name the directory " + disk.directory() + " twice");
            }
        }
        if (readTimeout.isNegative() || readTimeout.isZero() || readTimeout.compareTo(MAX_READ_TIMEOUT) > 0) {
            throw new IllegalArgumentException(
                    "disk_read_timeout is " + readTimeout.toMillis() + "ms; it takes 1ms to 60s");
        }
    }

    /// How long a value may take to arrive from disk; zero when there is none.
    public Duration fetchTimeout() {
        return disks.isEmpty() ? Duration.ZERO : readTimeout;
    }

    /// No disks; where there are some, chunks come ahead of their readers.
    public static DiskTierConfig defaults() {
        return new DiskTierConfig(
                List.of(), AdmissionKind.SECOND_HIT, Duration.ofSeconds(5), true, RecomputeConfig.defaults());
    }
}
