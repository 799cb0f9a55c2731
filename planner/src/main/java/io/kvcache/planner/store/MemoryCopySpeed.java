package io.kvcache.planner.store;

import io.kvcache.planner.Median;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Random;

/// How fast this machine copies memory right now: the limit that serving from host memory is compared with.
///
/// Copies blocks from random places of a pool larger than the caches into one buffer, which is what serving does.
public final class MemoryCopySpeed {

    private static final long POOL_BYTES = 256L << 20;
    private static final int ROUNDS = 5;
    private static final long SEED = 42;

    private MemoryCopySpeed() {}

    /// Median over a few rounds, in gigabytes (10^9 bytes) a second.
    ///
    /// @param blockBytes size of each copy
    public static double gigabytesPerSecond(int blockBytes) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment pool = arena.allocate(Math.max(POOL_BYTES, 4L * blockBytes), 4096);
            MemorySegment out = arena.allocate(blockBytes, 4096);
            pool.fill((byte) 1);
            Random random = new Random(SEED);
            double[] speeds = new double[ROUNDS];
            measureRound(pool, out, random);
            for (int i = 0; i < ROUNDS; i++) {
                speeds[i] = measureRound(pool, out, random);
            }
            return Median.of(speeds);
        }
    }

    private static double measureRound(MemorySegment pool, MemorySegment out, Random random) {
        int blocks = (int) (pool.byteSize() / out.byteSize());
        long nanos = 0;
        for (int i = 0; i < blocks; i++) {
            long from = random.nextInt(blocks) * out.byteSize();
            long start = System.nanoTime();
            MemorySegment.copy(pool, from, out, 0, out.byteSize());
            nanos += System.nanoTime() - start;
        }
        return (double) blocks * out.byteSize() / nanos;
    }
}
