package io.kvcache.gpu.tier;

import io.kvcache.core.tier.TierBlock;
import io.kvcache.core.tier.Tombstone;
import io.kvcache.gpu.driver.DeviceSpan;

/// A block in a region.
///
/// @param offset within the region, in bytes
/// @param sequence of the region when the block came there
record DeviceEntry(TierBlock block, DeviceRegion region, long sequence, long offset) {

    /// Offsets in pages get this many bits of a place: regions of up to 64 GiB.
    private static final int OFFSET_BITS = 24;

    static long sequenceOf(long place) {
        return place >>> OFFSET_BITS;
    }

    static long offsetOf(long place) {
        return (place & ((1L << OFFSET_BITS) - 1)) * DeviceGeometry.PAGE;
    }

    /// The number that the store knows it by; of no other block ever.
    long place() {
        return sequence << OFFSET_BITS | offset / DeviceGeometry.PAGE;
    }

    /// Whether a burial means it.
    boolean isCoveredBy(Tombstone burial) {
        return burial.isNamespace()
                ? burial.namespaceId() == block.namespaceId()
                : burial.keyHi() == block.keyHi() && burial.keyLo() == block.keyLo();
    }

    DeviceSpan span() {
        return region.span(offset, block.bytes());
    }
}
