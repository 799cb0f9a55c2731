package io.kvcache.gpu.tier;

import io.kvcache.core.tier.ReclaimCandidates;
import io.kvcache.gpu.tier.DeviceRegions.DeviceEntry;
import java.util.List;
import java.util.function.Predicate;

/// Blocks that are about to go, and what is done to keep one.
///
/// @param keep answers whether it is kept
record OfferedEntries(List<DeviceEntry> entries, Predicate<DeviceEntry> keep) implements ReclaimCandidates {

    @Override
    public int size() {
        return entries.size();
    }

    @Override
    public long keyHi(int index) {
        return entries.get(index).block().keyHi();
    }

    @Override
    public long keyLo(int index) {
        return entries.get(index).block().keyLo();
    }

    @Override
    public long address(int index) {
        return entries.get(index).place();
    }

    @Override
    public boolean keep(int index) {
        return keep.test(entries.get(index));
    }
}
