package io.kvcache.bench.jmh;

import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.State;

/// Random numbers, a sequence of its own for each thread, the same in every run.
@State(Scope.Thread)
public class RandomIndexes {

    private static final long GOLDEN = 0x9E3779B97F4A7C15L;

    private long state = GOLDEN;

    /// A number from 0 to `bound`, exclusive.
    ///
    /// @param after a result that this number shall wait for, so that the processor cannot begin with the next
    ///     operation before it has finished the last one; nothing else comes of it
    int next(int bound, long after) {
        state += GOLDEN + (after & 1);
        long mixed = (state ^ (state >>> 32)) * 0xD6E8FEB86659FD93L;
        mixed = (mixed ^ (mixed >>> 32)) * 0xD6E8FEB86659FD93L;
        return (int) Math.unsignedMultiplyHigh(mixed ^ (mixed >>> 32), bound);
    }
}
