package io.kvcache.tiers.front;

import io.kvcache.core.tier.ReclaimCandidates;
import java.util.List;

/// An offer that remembers what was kept, of blocks that were written in the order of their keys.
record Offered(List<Long> places, List<Long> kept) implements ReclaimCandidates {

    @Override
    public int size() {
        return places.size();
    }

    @Override
    public long keyHi(int index) {
        return places.get(index) - HeldFront.FIRST_PLACE;
    }

    @Override
    public long keyLo(int index) {
        return 1;
    }

    @Override
    public long place(int index) {
        return places.get(index);
    }

    @Override
    public boolean keep(int index) {
        return kept.add(places.get(index));
    }
}
