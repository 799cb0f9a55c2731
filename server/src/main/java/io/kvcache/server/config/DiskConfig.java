package io.kvcache.server.config;

import io.kvcache.tiers.DiskOptions;
import io.kvcache.tiers.disk.DiskGeometry;
import io.kvcache.tiers.disk.DiskLogConfig.OnIncompatible;
import io.kvcache.tiers.movement.WriteBudget;
import java.nio.file.Path;

/// One disk below host memory.
///
/// @param name as messages call it, `disks.0`
/// @param directory holds its file; made when it is missing
/// @param bytes of that file
/// @param bytesPerSecond and `bytesPerDay`: written at most; 0 for no limit
/// @param onIncompatible what becomes of a file there that is no disk of this format and size
public record DiskConfig(
        String name, Path directory, long bytes, long bytesPerSecond, long bytesPerDay, OnIncompatible onIncompatible) {

    public DiskConfig {
        if (bytes < DiskGeometry.MIN_DEVICE_BYTES) {
            throw new IllegalArgumentException(
                    name + ".bytes is " + bytes + "; it takes " + DiskGeometry.MIN_DEVICE_BYTES + " and up");
        }
    }

    /// Values of this size and more stay in memory alone: a little is kept beside what lies in a region.
    public long regionBytes() {
        return DiskGeometry.of(bytes).regionBytes();
    }

    /// As the store takes it.
    public DiskOptions toDiskOptions() {
        return DiskOptions.of(directory, bytes)
                .withWriteBudget(limit(bytesPerSecond), limit(bytesPerDay))
                .withOnIncompatible(onIncompatible);
    }

    private static long limit(long bytes) {
        return bytes == 0 ? WriteBudget.UNLIMITED : bytes;
    }
}
