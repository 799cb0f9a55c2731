package io.kvcache.tiers.disk;

import static io.kvcache.tiers.disk.DiskEntry.INT32;
import static io.kvcache.tiers.disk.DiskEntry.INT64;

import java.lang.foreign.MemorySegment;

/// One filling of one region, from its opening to its being free again. Every page of metadata in a region
/// names the life it belongs to, so what an earlier life left behind, or a device that was formatted anew, or
/// a write that went astray, is known for what it is.
///
/// @param device the number that the device got when it was formatted
/// @param number counts lives over the whole device and is never given twice: of two lives the higher is
///     later
record RegionEpoch(long device, int region, long number) {

    /// Where it lies in every kind of page, behind magic, checksum and count.
    private static final long NUMBER = 16;

    private static final long DEVICE = 24;
    private static final long REGION = 32;

    void write(MemorySegment page) {
        page.set(INT64, NUMBER, number);
        page.set(INT64, DEVICE, device);
        page.set(INT32, REGION, region);
    }

    static RegionEpoch read(MemorySegment page) {
        return new RegionEpoch(page.get(INT64, DEVICE), page.get(INT32, REGION), page.get(INT64, NUMBER));
    }
}
