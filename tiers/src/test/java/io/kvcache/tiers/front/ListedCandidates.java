package io.kvcache.tiers.front;

import io.kvcache.core.tier.ReclaimCandidates;
import java.util.List;

/// An offer that remembers what was kept, of blocks that were written in the order of their keys.
record ListedCandidates(List<Long> addresses, List<Long> kept) implements ReclaimCandidates {

    @Override
    public int size() {
        return addresses.size();
    }

    @Override
    public long keyHi(int index) {
        return addresses.get(index) - ScriptedTier.FIRST_ADDRESS;
    }

    @Override
    public long keyLo(int index) {
        return 1;
    }

    @Override
    public long address(int index) {
        return addresses.get(index);
    }

    @Override
    public boolean keep(int index) {
        return kept.add(addresses.get(index));
    }
}
