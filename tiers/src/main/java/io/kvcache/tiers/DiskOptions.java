package io.kvcache.tiers;

import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.tiers.directory.DiskDirectory.DirectoryOptions;
import io.kvcache.tiers.disk.DiskGeometry;
import io.kvcache.tiers.disk.DiskLogConfig.ReclaimConfig;
import io.kvcache.tiers.movement.WriteBudget;
import io.kvcache.tiers.options.OnIncompatible;
import java.nio.file.Path;
import java.util.Objects;

/// One disk below host memory.
///
/// @param directory holds the tier's file and lock; made when it is missing
/// @param bytes of the file
/// @param maxLiveBytes blocks, in whole pages, that are alive at most, though the reserve would leave room for
///     more
/// @param bytesPerSecond and `bytesPerDay`: written at most, or [WriteBudget#UNLIMITED]
/// @param onIncompatible whether a file in the directory is discarded that is not a tier of this format and size
/// @param coding whether bf16 values are written in three quarters of their bytes, see [DirectoryOptions#coding]
public record DiskOptions(
        Path directory,
        long bytes,
        long maxLiveBytes,
        long bytesPerSecond,
        long bytesPerDay,
        OnIncompatible onIncompatible,
        boolean coding) {

    /// @throws IllegalArgumentException when it is smaller than a tier can be
    public DiskOptions {
        Objects.requireNonNull(directory, "a disk takes a directory");
        if (bytes < DiskGeometry.MIN_DEVICE_BYTES) {
            throw new IllegalArgumentException("a disk at " + directory + " of " + bytes + " bytes; it takes "
                    + DiskGeometry.MIN_DEVICE_BYTES + " and up");
        }
    }

    /// Refuses what is incompatible; no limit on writes.
    public static DiskOptions of(Path directory, long bytes) {
        return new DiskOptions(
                directory,
                bytes,
                Long.MAX_VALUE,
                WriteBudget.UNLIMITED,
                WriteBudget.UNLIMITED,
                OnIncompatible.REFUSE,
                true);
    }

    /// Limits what is written.
    public DiskOptions withWriteBudget(long newBytesPerSecond, long newBytesPerDay) {
        return new DiskOptions(
                directory, bytes, maxLiveBytes, newBytesPerSecond, newBytesPerDay, onIncompatible, coding);
    }

    /// Keeps no more than this alive.
    public DiskOptions withMaxLiveBytes(long most) {
        return new DiskOptions(directory, bytes, most, bytesPerSecond, bytesPerDay, onIncompatible, coding);
    }

    /// Rejects or discards a file in the directory that is not a tier of this format and size.
    public DiskOptions withOnIncompatible(OnIncompatible change) {
        return new DiskOptions(directory, bytes, maxLiveBytes, bytesPerSecond, bytesPerDay, change, coding);
    }

    /// Writes bf16 values in three quarters of their bytes or as they are, see [DirectoryOptions#coding].
    public DiskOptions withCoding(boolean change) {
        return new DiskOptions(directory, bytes, maxLiveBytes, bytesPerSecond, bytesPerDay, onIncompatible, change);
    }

    /// Bytes of blocks that may be alive, each in whole pages.
    public long liveBytes() {
        return Math.min(
                maxLiveBytes,
                ReclaimConfig.defaults().liveBytes(DiskGeometry.of(bytes), ReclaimConfig.DEFAULT_RESERVE_PERCENT));
    }

    /// How a store with this rule of admission opens the directory.
    DirectoryOptions toDirectoryOptions(AdmissionKind admission) {
        ReclaimConfig usual = ReclaimConfig.defaults();
        return DirectoryOptions.of(
                onIncompatible, admission == AdmissionKind.VALUE ? usual.withMaxKeptPercent() : usual, coding);
    }
}
