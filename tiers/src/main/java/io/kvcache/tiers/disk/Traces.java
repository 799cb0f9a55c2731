package io.kvcache.tiers.disk;

import java.lang.foreign.MemorySegment;

/// Where a device without a superblock shows that it holds a log all the same: the footers and first heads of its
/// first regions, which are used first.
final class Traces {

    /// More are not looked at: as many pages as a superblock has.
    private static final int MOST_REGIONS = Geometry.SUPERBLOCK_BYTES / Geometry.PAGE_BYTES;

    private Traces() {}

    /// How many regions are looked at, from the first on.
    static int regions(Geometry geometry) {
        return Math.min(geometry.regions(), MOST_REGIONS);
    }

    static long head(Geometry geometry, int region) {
        return geometry.regionOffset(region);
    }

    static long footer(Geometry geometry, int region) {
        return geometry.regionOffset(region) + geometry.regionBytes() - Geometry.PAGE_BYTES;
    }

    /// Whether a page is a footer or a head, of whichever log.
    static boolean in(MemorySegment page, Geometry geometry) {
        return Footer.read(page, geometry.regionPages()) != null || Group.read(page) != null;
    }
}
