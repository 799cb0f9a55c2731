package io.kvcache.bench.disk;

import java.util.SplittableRandom;

/// Which pieces of a file are touched, in which order.
public enum AccessPattern {
    /// Blocks that an onboard reads: any, with the same seed each time.
    RANDOM_READ,
    /// Regions of 64 MiB that an offload writes, one after the other, front to back. As regions lie side by
    /// side and pieces fill them, this is the file from its front to its end, again and again.
    REGION_WRITE;

    static final long SEED = 42;

    boolean isWrite() {
        return this == REGION_WRITE;
    }

    /// Numbers of pieces, one a call.
    OffsetSequence offsets(long pieces) {
        return switch (this) {
            case RANDOM_READ -> {
                SplittableRandom random = new SplittableRandom(SEED);
                yield () -> random.nextLong(pieces);
            }
            case REGION_WRITE -> {
                long[] next = new long[1];
                yield () -> next[0]++ % pieces;
            }
        };
    }

    /// The number of the next piece.
    @FunctionalInterface
    interface OffsetSequence {
        long next();
    }
}
