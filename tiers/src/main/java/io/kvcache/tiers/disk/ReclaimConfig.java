package io.kvcache.tiers.disk;

/// How a [DiskLog] makes room.
///
/// @param freeRegions reclaims while fewer are free, at least 2: one is always held back for what is kept
/// @param keptPercent share of a region that can be kept, 0 to 75: what is kept is written again, and a log
///     that kept more would write mostly for itself
/// @param rewriteBytes memory for what is kept, whole pages; a larger block cannot be kept
/// @param discard whether the bytes of a free region are given back to the file system or the disk
public record ReclaimConfig(int freeRegions, int keptPercent, int rewriteBytes, boolean discard) {

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
}
