package io.kvcache.tiers.disk;

/// Layout of a device.
///
/// ```
/// 0                superblock, first copy       SUPERBLOCK_BYTES
/// 1 MiB            superblock, second copy
/// 2 MiB            region 0, region 1, …        regionBytes each
/// ```
///
/// A region is written front to back: batches, each a page or more of entries and then the blocks themselves,
/// and at its end a trailer with the entries of all batches. It is reclaimed whole.
///
/// @param deviceBytes bytes of the device
/// @param regionBytes bytes of a region, whole pages
public record DiskGeometry(long deviceBytes, long regionBytes) {

    /// The unit of everything on disk: what direct I/O asks for.
    public static final int PAGE_BYTES = 4096;

    /// Room for one copy of the superblock with its table of namespaces: a few thousand of usual length.
    public static final int SUPERBLOCK_BYTES = 1 << 20;

    /// A region holds the largest object (256 MiB) beside its tables in the largest case, and many blocks in
    /// the smallest.
    public static final long MIN_REGION_BYTES = 1 << 20;

    public static final long MAX_REGION_BYTES = 512L << 20;

    /// Regions of a tier when its size allows: reclaiming one frees half a percent.
    private static final int DEFAULT_REGIONS = 200;

    private static final long DEFAULT_MAX_REGION_BYTES = 256L << 20;

    /// The open region, one to reclaim into, and two that hold something.
    private static final int MIN_REGIONS = 4;

    /// Two copies of the superblock, and as few regions as there can be, as small as they can be.
    public static final long MIN_DEVICE_BYTES = 2L * SUPERBLOCK_BYTES + MIN_REGIONS * MIN_REGION_BYTES;

    public DiskGeometry {
        if (regionBytes < MIN_REGION_BYTES || regionBytes > MAX_REGION_BYTES || regionBytes % PAGE_BYTES != 0) {
            throw new IllegalArgumentException("a region of " + regionBytes + " bytes; it takes " + MIN_REGION_BYTES
                    + " to " + MAX_REGION_BYTES + ", in whole pages of " + PAGE_BYTES);
        }
        if ((deviceBytes - 2L * SUPERBLOCK_BYTES) / regionBytes < MIN_REGIONS) {
            throw new IllegalArgumentException("a device of " + deviceBytes + " bytes; regions of " + regionBytes
                    + " bytes take at least " + (2L * SUPERBLOCK_BYTES + MIN_REGIONS * regionBytes));
        }
        if ((deviceBytes - 2L * SUPERBLOCK_BYTES) / regionBytes > LogAddress.MAX_REGIONS) {
            throw new IllegalArgumentException("a device of " + deviceBytes + " bytes in regions of " + regionBytes
                    + " bytes; it takes at most " + LogAddress.MAX_REGIONS + " regions");
        }
    }

    /// Regions of half a percent of the device, between 1 and 256 MiB.
    public static DiskGeometry of(long deviceBytes) {
        long wanted = deviceBytes / DEFAULT_REGIONS / PAGE_BYTES * PAGE_BYTES;
        return new DiskGeometry(deviceBytes, Math.clamp(wanted, MIN_REGION_BYTES, DEFAULT_MAX_REGION_BYTES));
    }

    /// Regions on the device.
    public int regions() {
        return (int) ((deviceBytes - 2L * SUPERBLOCK_BYTES) / regionBytes);
    }

    /// Returns the offset of a copy of the superblock.
    ///
    /// @param copy 0 or 1
    public long superblockOffset(int copy) {
        return (long) copy * SUPERBLOCK_BYTES;
    }

    /// Returns the offset of a region.
    public long regionOffset(int region) {
        if (region < 0 || region >= regions()) {
            throw new IndexOutOfBoundsException("region " + region + " of " + regions());
        }
        return 2L * SUPERBLOCK_BYTES + region * regionBytes;
    }

    /// The largest block or object that a region holds beside head and trailer.
    public long maxEntryBytes() {
        return (long) (regionPages() - WriteBatchHeader.HEAD_PAGES - RegionTrailer.pages(1)) * PAGE_BYTES;
    }

    /// Pages of a region.
    public int regionPages() {
        return (int) (regionBytes / PAGE_BYTES);
    }
}
