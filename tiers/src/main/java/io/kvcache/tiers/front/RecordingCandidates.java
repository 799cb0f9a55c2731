package io.kvcache.tiers.front;

import io.kvcache.core.tier.ReclaimCandidates;
import java.util.BitSet;

/// An offer that remembers what was kept.
record RecordingCandidates(ReclaimCandidates offer, BitSet kept) implements ReclaimCandidates {

    @Override
    public int size() {
        return offer.size();
    }

    @Override
    public long keyHi(int index) {
        return offer.keyHi(index);
    }

    @Override
    public long keyLo(int index) {
        return offer.keyLo(index);
    }

    @Override
    public long address(int index) {
        return offer.address(index);
    }

    @Override
    public boolean keep(int index) {
        boolean kept = offer.keep(index);
        if (kept) {
            this.kept.set(index);
        }
        return kept;
    }
}
