package io.kvcache.gpu.tier;

/// How a device's memory is cut: into regions that are written front to back and reclaimed whole.
///
/// @param regions how many
/// @param regionBytes of each, in whole pages; no block is larger
public record DeviceGeometry(int regions, long regionBytes) {

    static final long PAGE = 4096;

    /// One is written to, one is kept free for what a reclaim keeps, one is being reclaimed, the ends of regions
    /// are as good as one more, and the last is for [DeviceStaging].
    private static final int SPARE_REGIONS = 5;

    private static final int MIN_REGIONS = 16;
    private static final int MAX_REGIONS = 256;
    private static final long DEFAULT_REGION_BYTES = 64L << 20;
    private static final long MIN_BYTES = MIN_REGIONS * 16 * PAGE;

    /// The geometry for this many bytes, or a little less.
    ///
    /// @throws IllegalArgumentException for less than 1 MiB
    public static DeviceGeometry of(long bytes) {
        if (bytes < MIN_BYTES) {
            throw new IllegalArgumentException(
                    "a device tier of " + bytes + " bytes; it takes " + MIN_BYTES + " and up");
        }
        int regions = Math.clamp(bytes / DEFAULT_REGION_BYTES, MIN_REGIONS, MAX_REGIONS);
        return new DeviceGeometry(regions, bytes / regions / PAGE * PAGE);
    }

    /// Bytes of all regions.
    public long bytes() {
        return regions * regionBytes;
    }

    /// Bytes of blocks, in whole pages, that may be alive at most, so that a reclaim finds something to
    /// free.
    public long aliveBytes() {
        return (regions - SPARE_REGIONS) * regionBytes;
    }

    /// Where the region for [DeviceStaging] begins.
    long stagingOffset() {
        return bytes() - regionBytes;
    }

    static long pages(long bytes) {
        return (bytes + PAGE - 1) / PAGE * PAGE;
    }
}
