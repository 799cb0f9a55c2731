package io.kvcache.tiers.disk;

import java.lang.foreign.MemorySegment;

/// Where a device without a superblock shows that it holds a log all the same: the footers and first heads of its
/// first regions, which are used first.
final class LogDetector {

    /// More are not looked at: as many pages as a superblock has.
    private static final int MAX_REGIONS = DiskGeometry.SUPERBLOCK_BYTES / DiskGeometry.PAGE_BYTES;

    private LogDetector() {}

    /// How many regions are looked at, from the first on.
    static int regionsToProbe(DiskGeometry geometry) {
        return Math.min(geometry.regions(), MAX_REGIONS);
    }

    static long headOffset(DiskGeometry geometry, int region) {
        return geometry.regionOffset(region);
    }

    static long footerOffset(DiskGeometry geometry, int region) {
        return geometry.regionOffset(region) + geometry.regionBytes() - DiskGeometry.PAGE_BYTES;
    }

    /// Whether a page is a footer or a head, of whichever log.
    static boolean isLogPage(MemorySegment page, DiskGeometry geometry) {
        return RegionFooter.read(page, geometry.regionPages()) != null || WriteBatchHeader.read(page) != null;
    }
}
