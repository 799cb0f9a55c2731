package io.kvcache.gpu.tier;

/// How a device's memory is cut: into regions that are written front to back and reclaimed whole.
///
/// @param regions how many at first
/// @param regionBytes of each, in whole pages; no block is larger
/// @param maxRegions how many at most
/// @param canResize whether it may have another number of regions later
public record DeviceGeometry(int regions, long regionBytes, int maxRegions, boolean canResize) {

    static final long PAGE = 4096;

    /// One is written to, one is kept free for what a reclaim keeps, one is being reclaimed, the ends of regions
    /// are as good as one more, and the first is for [DeviceStaging].
    private static final int SPARE_REGIONS = 5;

    private static final int LEAST_REGIONS = SPARE_REGIONS + 1;
    private static final int MIN_REGIONS = 16;
    private static final int MAX_REGIONS = 256;
    private static final long DEFAULT_REGION_BYTES = 64L << 20;
    private static final long MIN_BYTES = MIN_REGIONS * 16 * PAGE;

    /// The unit in which devices give memory and take it back.
    private static final long GROWTH_BYTES = 2L << 20;

    /// The geometry for this many bytes, or a little less.
    ///
    /// @throws IllegalArgumentException for less than 1 MiB
    public static DeviceGeometry of(long bytes) {
        if (bytes < MIN_BYTES) {
            throw new IllegalArgumentException(
                    "a device tier of " + bytes + " bytes; it takes " + MIN_BYTES + " and up");
        }
        int regions = Math.clamp(bytes / DEFAULT_REGION_BYTES, MIN_REGIONS, MAX_REGIONS);
        return new DeviceGeometry(regions, bytes / regions / PAGE * PAGE, regions, false);
    }

    /// The geometry of memory that grows, for these bytes or a little less.
    ///
    /// @param maxBytes 32 MiB and up, or as many as `bytes` for memory that does not grow
    /// @throws IllegalArgumentException for bytes that are more than those, or fewer than six of 16 to 256 parts
    public static DeviceGeometry of(long bytes, long maxBytes) {
        if (maxBytes == bytes) {
            return of(bytes);
        }
        int most = Math.clamp(maxBytes / DEFAULT_REGION_BYTES, MIN_REGIONS, MAX_REGIONS);
        long regionBytes = maxBytes / most / GROWTH_BYTES * GROWTH_BYTES;
        if (regionBytes == 0 || bytes > maxBytes || bytes < LEAST_REGIONS * regionBytes) {
            throw new IllegalArgumentException(
                    "a device tier of %s bytes that grows to %s; it takes %s and up, and %s bytes and up to begin with"
                            .formatted(bytes, maxBytes, MIN_REGIONS * GROWTH_BYTES, LEAST_REGIONS * regionBytes));
        }
        return new DeviceGeometry((int) (bytes / regionBytes), regionBytes, most, true);
    }

    /// Returns how many regions have these bytes.
    ///
    /// @throws IllegalArgumentException for fewer bytes than it takes, or more
    int regionsFor(long bytes) {
        long least = canResize ? LEAST_REGIONS * regionBytes : bytes();
        if (bytes < least || bytes > maxBytes()) {
            throw new IllegalArgumentException(
                    "%s bytes for a device tier; it takes %s to %s".formatted(bytes, least, maxBytes()));
        }
        return (int) (bytes / regionBytes);
    }

    /// Bytes of all regions at first.
    public long bytes() {
        return regions * regionBytes;
    }

    /// Bytes of all regions at most.
    public long maxBytes() {
        return maxRegions * regionBytes;
    }

    /// Bytes of blocks, in whole pages, that may be alive at most, so that a reclaim finds something to
    /// free.
    public long aliveBytes() {
        return (maxRegions - SPARE_REGIONS) * regionBytes;
    }

    /// Regions that pages of sequences may have, so that other blocks still come and go.
    int maxPageRegions() {
        return Math.max(0, regions - SPARE_REGIONS - 2);
    }

    static long pages(long bytes) {
        return (bytes + PAGE - 1) / PAGE * PAGE;
    }
}
