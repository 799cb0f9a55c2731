package io.kvcache.tiers.disk;

/// How many bytes of blocks may be alive on a device, so that reclaiming always finds something that is not.
///
/// What is not alive is the open region, those that are kept free, the tables, and a reserve: the
/// larger it is, the less of a region is still alive when its turn comes, and the less is written
/// again.
public final class UsableCapacity {

    /// Of a region: heads of groups and the trailer, more than blocks of 16 KiB take.
    private static final int METADATA_PERCENT = 2;

    /// What is kept alive of a region that is reclaimed is at most half of it, see [ReclaimConfig]; an eighth in
    /// reserve keeps it below that in the traces that we know.
    public static final int DEFAULT_RESERVE_PERCENT = 12;

    private UsableCapacity() {}

    /// Bytes that may be alive, each block in whole pages.
    ///
    /// @param reservePercent 0 to 90
    public static long liveBytes(DiskGeometry geometry, ReclaimConfig rules, int reservePercent) {
        if (reservePercent < 0 || reservePercent > 90) {
            throw new IllegalArgumentException("reservePercent is " + reservePercent + "; it takes 0 to 90");
        }
        long regions = Math.max(1, geometry.regions() - rules.freeRegions() - 1L);
        return regions * (geometry.regionBytes() * (100 - METADATA_PERCENT) / 100) / 100 * (100 - reservePercent);
    }
}
