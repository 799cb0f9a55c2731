package io.kvcache.tiers.disk;

/// How a [DiskLog] makes room.
///
/// @param freeRegions reclaims while fewer are free, at least 2: one is always held back for what is kept
/// @param keptPercent share of a region that can be kept, 0 to 75: what is kept is written again, and a log
///     that kept more would write mostly for itself
/// @param rewriteBytes memory for what is kept, whole pages; a larger block cannot be kept
/// @param discard whether the bytes of a free region are given back to the file system or the disk
public record ReclaimConfig(int freeRegions, int keptPercent, int rewriteBytes, boolean discard) {

    /// What is kept alive of a region that is reclaimed is at most half of it; an eighth in reserve keeps it below
    /// that in the traces that we know.
    public static final int DEFAULT_RESERVE_PERCENT = 12;

    /// Of a region: heads of groups and the trailer, more than blocks of 16 KiB take.
    private static final int METADATA_PERCENT = 2;

    private static final int MAX_KEPT_PERCENT = 75;

    private static final int DEFAULT_KEPT_PERCENT = 50;

    public ReclaimConfig {
        if (freeRegions < 2) {
            throw new IllegalArgumentException("freeRegions must be at least 2, is " + freeRegions);
        }
        if (keptPercent < 0 || keptPercent > MAX_KEPT_PERCENT) {
            throw new IllegalArgumentException("keptPercent must be 0 to " + MAX_KEPT_PERCENT + ", is " + keptPercent);
        }
        if (rewriteBytes < DiskGeometry.PAGE_BYTES || rewriteBytes % DiskGeometry.PAGE_BYTES != 0) {
            throw new IllegalArgumentException("rewriteBytes must be whole pages of " + DiskGeometry.PAGE_BYTES
                    + " bytes, at least one, is " + rewriteBytes);
        }
    }

    /// Two free regions, half of a region kept at most, 16 MiB for rewriting, no discards.
    public static ReclaimConfig defaults() {
        return new ReclaimConfig(2, DEFAULT_KEPT_PERCENT, 16 << 20, false);
    }

    /// The same with three quarters of a region kept at most, for stores that keep only what was used
    /// since it was written: the more is kept, the more was found on disk.
    public ReclaimConfig withMaxKeptPercent() {
        return new ReclaimConfig(freeRegions, Math.max(keptPercent, MAX_KEPT_PERCENT), rewriteBytes, discard);
    }

    /// How many bytes of blocks may be alive on a device, each block in whole pages, so that reclaiming always
    /// finds something that is not.
    ///
    /// What is not alive is the open region, those that are kept free, the tables, and a reserve: the
    /// larger it is, the less of a region is still alive when its turn comes, and the less is written
    /// again.
    ///
    /// @param reservePercent 0 to 90
    public long liveBytes(DiskGeometry geometry, int reservePercent) {
        if (reservePercent < 0 || reservePercent > 90) {
            throw new IllegalArgumentException("reservePercent is " + reservePercent + "; it takes 0 to 90");
        }
        long regions = Math.max(1, geometry.regions() - freeRegions - 1L);
        return regions * (geometry.regionBytes() * (100 - METADATA_PERCENT) / 100) / 100 * (100 - reservePercent);
    }
}
