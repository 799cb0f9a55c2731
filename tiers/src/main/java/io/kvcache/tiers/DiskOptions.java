package io.kvcache.tiers;

import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.tiers.directory.DirectoryOptions;
import io.kvcache.tiers.disk.DiskGeometry;
import io.kvcache.tiers.disk.DiskLogConfig.OnIncompatible;
import io.kvcache.tiers.disk.DiskLogConfig.ReclaimConfig;
import io.kvcache.tiers.movement.WriteBudget;
import java.nio.file.Path;
import java.util.Objects;

/// One disk below host memory.
///
/// @param directory holds the tier's file and lock; made when it is missing
/// @param bytes of the file
/// @param reservePercent of it that holds nothing alive, see [DiskLogConfig.ReclaimConfig#liveBytes]
/// @param maxLiveBytes blocks, in whole pages, that are alive at most, though the reserve would leave room for
///     more
/// @param bytesPerSecond and `bytesPerDay`: written at most, or [WriteBudget#UNLIMITED]
/// @param files how the file is opened
public record DiskOptions(
        Path directory,
        long bytes,
        int reservePercent,
        long maxLiveBytes,
        long bytesPerSecond,
        long bytesPerDay,
        DirectoryOptions files) {

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
                ReclaimConfig.DEFAULT_RESERVE_PERCENT,
                Long.MAX_VALUE,
                WriteBudget.UNLIMITED,
                WriteBudget.UNLIMITED,
                DirectoryOptions.defaults());
    }

    /// Limits what is written.
    public DiskOptions withWriteBudget(long newBytesPerSecond, long newBytesPerDay) {
        return new DiskOptions(
                directory, bytes, reservePercent, maxLiveBytes, newBytesPerSecond, newBytesPerDay, files);
    }

    /// Keeps another share of the disk without anything alive.
    public DiskOptions withReservePercent(int percent) {
        return new DiskOptions(directory, bytes, percent, maxLiveBytes, bytesPerSecond, bytesPerDay, files);
    }

    /// Keeps no more than this alive.
    public DiskOptions withMaxLiveBytes(long most) {
        return new DiskOptions(directory, bytes, reservePercent, most, bytesPerSecond, bytesPerDay, files);
    }

    /// Bytes of blocks that may be alive, each in whole pages.
    public long liveBytes() {
        return Math.min(maxLiveBytes, files.reclaim().liveBytes(DiskGeometry.of(bytes), reservePercent));
    }

    /// Rejects or discards a file in the directory that is not a tier of this format and size.
    public DiskOptions withOnIncompatible(OnIncompatible change) {
        return withFiles(files.withOnIncompatible(change));
    }

    /// Writes bf16 values in three quarters of their bytes or as they are, see [DirectoryOptions#coding].
    public DiskOptions withCoding(boolean change) {
        return withFiles(files.withCoding(change));
    }

    /// As a store with this rule of admission opens it.
    DiskOptions forAdmission(AdmissionKind admission) {
        return admission == AdmissionKind.VALUE
                ? withFiles(files.withReclaim(files.reclaim().withMaxKeptPercent()))
                : this;
    }

    /// Opens the file in another way.
    public DiskOptions withFiles(DirectoryOptions change) {
        return new DiskOptions(directory, bytes, reservePercent, maxLiveBytes, bytesPerSecond, bytesPerDay, change);
    }
}
