package io.kvcache.tiers.disk;

import io.kvcache.core.codec.StoredLayout;

/// Address of a block in a [DiskLog], as a number of 59 bits:
/// `layout << 50 | generation << 39 | region << 17 | page`. A record's field of 64 bits has four left for the number of
/// the disk. The layout is where [StoredLayout#ofAddress] finds it, so that how much a block takes and how it is read
/// are known without the disk.
///
/// The generation counts the reclaims of the region since the log was opened. So an address from before a reclaim
/// is known to be stale when it is used. One would have to be kept for two thousand reclaims of its region to be
/// mistaken. Addresses do not survive the process: the next opening hands out its own.
public final class LogAddress {

    /// No place.
    public static final long NONE = -1;

    /// The pages of [DiskGeometry#MAX_REGION_BYTES]: 2^17.
    private static final int PAGE_BITS = 17;

    /// Regions enough for 4 TiB of the smallest and 2 PiB of the largest.
    private static final int REGION_BITS = 22;

    /// A region that is reclaimed every second gets to two thousand in half an hour; a place is kept while one read
    /// takes.
    private static final int GENERATION_BITS = 11;

    /// Bits of a place; those above are 0.
    public static final int BITS = StoredLayout.ADDRESS_SHIFT + StoredLayout.BITS;

    static final int MAX_REGIONS = 1 << REGION_BITS;

    private LogAddress() {}

    static long of(StoredLayout layout, int generation, int region, int page) {
        long upper = (long) (generation & (1 << GENERATION_BITS) - 1) << REGION_BITS | region;
        return layout.toAddress(upper << PAGE_BITS | page);
    }

    /// Number of the region.
    public static int region(long address) {
        return (int) (address >>> PAGE_BITS) & MAX_REGIONS - 1;
    }

    /// Page within the region.
    public static int page(long address) {
        return (int) address & (1 << PAGE_BITS) - 1;
    }
}
