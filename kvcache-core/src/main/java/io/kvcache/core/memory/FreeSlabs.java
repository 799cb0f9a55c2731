package io.kvcache.core.memory;

import java.util.BitSet;

/// The slabs that no class holds. Taken lowest first, which keeps runs of adjacent slabs whole for as long as
/// possible.
final class FreeSlabs {

    private final BitSet bits;

    FreeSlabs(int count) {
        bits = new BitSet(count);
        bits.set(0, count);
    }

    /// Takes `length` adjacent slabs and answers the first, or -1.
    int allocateRun(int length) {
        int start = bits.nextSetBit(0);
        while (start >= 0) {
            int end = bits.nextClearBit(start);
            if (end - start >= length) {
                bits.clear(start, start + length);
                return start;
            }
            start = bits.nextSetBit(end);
        }
        return -1;
    }

    void release(int index) {
        bits.set(index);
    }

    int count() {
        return bits.cardinality();
    }
}
