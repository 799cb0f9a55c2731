package io.kvcache.gpu.tier;

/// How a device's memory is cut: into regions that are written front to back and reclaimed whole.
///
/// @param regions how many
/// @param regionBytes of each, in whole pages; no block is larger
public record DeviceGeometry(int regions, long regionBytes) {

    static final long PAGE = 4096;

    /// One is written to, one is kept free for what a reclaim keeps, one is being reclaimed, and the ends
    /// of regions are as good as one more.
    private static final int SPARE_REGIONS = 4;

    private static final int FEWEST = 16;
    private static final int MOST = 256;
    private static final long USUAL_REGION_BYTES = 64L << 20;
    private static final long LEAST_BYTES = FEWEST * 16 * PAGE;

    /// For so many bytes, or a little less.
    ///
    /// @throws IllegalArgumentException for less than 1 MiB
    public static DeviceGeometry of(long bytes) {
        if (bytes < LEAST_BYTES) {
            throw new IllegalArgumentException(
                    "a device tier of " + bytes + " bytes; it takes " + LEAST_BYTES + " and up");
        }
        int regions = Math.clamp(bytes / USUAL_REGION_BYTES, FEWEST, MOST);
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

    static long pages(long bytes) {
        return (bytes + PAGE - 1) / PAGE * PAGE;
    }
}
