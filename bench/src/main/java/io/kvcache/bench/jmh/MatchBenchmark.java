package io.kvcache.bench.jmh;

import io.kvcache.bench.jmh.BenchChains.RandomIndexes;
import io.kvcache.core.identity.BlockChain;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;

/// How long does it take to learn how much of a chain of 8,192 blocks is here, when all of it is, half, or nothing?
///
/// Budget: 5 µs for a whole chain, 300 ns for one that misses at once, no allocation for each block; two threads do
/// 1.7 times as much as one. `./kvcache bench core --filter match`
@BenchmarkMode(Mode.SampleTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class MatchBenchmark {

    /// Matches in an invocation: some 30 µs, a thousand times what the clock costs.
    public static final int BATCH = 64;

    /// Blocks of a chain.
    public static final int BLOCKS = BenchChains.BLOCKS;

    @Benchmark
    public long whole(ResidentCache state, RandomIndexes random) {
        return matched(state, state.residentChains, random);
    }

    @Benchmark
    public long miss(ResidentCache state, RandomIndexes random) {
        return matched(state, state.absentChains, random);
    }

    private static long matched(ResidentCache state, BlockChain[] chains, RandomIndexes random) {
        long blocks = 0;
        for (int i = 0; i < BATCH; i++) {
            BlockChain chain = chains[random.next(chains.length, blocks)];
            blocks += state.cache.match(chain).blocks();
        }
        return blocks;
    }
}
