package io.kvcache.tiers.disk;

import io.kvcache.core.tier.ReclaimCandidates;

/// A region's offer as a tier's.
record RegionCandidatesAdapter(RegionCandidates offer) implements ReclaimCandidates {

    @Override
    public int size() {
        return offer.size();
    }

    @Override
    public long keyHi(int index) {
        return offer.entry(index).keyHi();
    }

    @Override
    public long keyLo(int index) {
        return offer.entry(index).keyLo();
    }

    @Override
    public long address(int index) {
        return offer.address(index);
    }

    @Override
    public boolean keep(int index) {
        return offer.keep(index);
    }
}
