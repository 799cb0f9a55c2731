package io.kvcache.tiers.disk;

import io.kvcache.core.tier.ReclaimCandidates;

/// A region's offer as a tier's.
record Offer(RegionOffer offer) implements ReclaimCandidates {

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
    public long place(int index) {
        return offer.place(index);
    }

    @Override
    public boolean keep(int index) {
        return offer.keep(index);
    }
}
