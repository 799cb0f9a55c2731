package io.kvcache.tiers.front;

import io.kvcache.core.tier.ReclaimCandidates;
import java.util.List;

/// An offer that remembers what was kept, of blocks that were written in the order of their keys.
///
/// @param room whether any can be kept
record ListedCandidates(List<Long> addresses, List<Long> kept, boolean room) implements ReclaimCandidates {

    ListedCandidates(List<Long> addresses, List<Long> kept) {
        this(addresses, kept, true);
    }

    /// An offer of which nothing can be kept.
    static ListedCandidates withoutRoom(List<Long> addresses) {
        return new ListedCandidates(addresses, List.of(), false);
    }

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
        return room && kept.add(addresses.get(index));
    }
}
