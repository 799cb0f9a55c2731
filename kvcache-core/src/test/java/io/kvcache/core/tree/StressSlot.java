package io.kvcache.core.tree;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/// A slot in heap memory, filled with one word or another.
final class StressSlot {

    static final long OLD = 0x01D01D01D01D01DL;
    static final long NEW = 0x3E33E33E33E33EL;

    private static final int WORDS = 16;

    private final MemorySegment memory = MemorySegment.ofArray(new long[WORDS]);

    StressSlot() {
        fill(OLD);
    }

    void fill(long word) {
        for (int i = 0; i < WORDS; i++) {
            memory.setAtIndex(ValueLayout.JAVA_LONG, i, word);
        }
    }

    /// One letter for a copy of all: the old word, the new one, or a torn mixture.
    char copy() {
        long[] words = memory.toArray(ValueLayout.JAVA_LONG);
        for (long word : words) {
            if (word != words[0]) {
                return 'T';
            }
        }
        return words[0] == OLD ? 'O' : 'N';
    }
}
