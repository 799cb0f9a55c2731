package io.kvcache.bench.jmh;

import io.kvcache.bench.jmh.BenchChains.RandomIndexes;
import io.kvcache.core.BlockTable;
import io.kvcache.core.identity.BlockChain;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;

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

    /// Where does a chain end, anywhere in it? The binary search in full: 13 look-ups more than [#whole].
    /// Budget: 5 µs.
    @Benchmark
    public long part(PartialChains state, RandomIndexes random) {
        long blocks = 0;
        for (int i = 0; i < BATCH; i++) {
            BlockChain chain = state.chains[random.next(state.chains.length, blocks)];
            blocks += state.resident.store.lookup().match(chain, chain.length());
        }
        return blocks;
    }

    /// Chains of which the store has a part, of any length.
    @State(Scope.Benchmark)
    public static class PartialChains {

        final BlockChain[] chains = BenchChains.of(1, 2 * ResidentCache.CHAINS);
        final ResidentStore resident = new ResidentStore();

        public PartialChains() {
            RandomIndexes random = new RandomIndexes();
            BlockChain[] parts = Arrays.stream(chains)
                    .map(chain -> chain.prefix(1 + random.next(chain.length() - 2, 0)))
                    .toArray(BlockChain[]::new);
            BenchChains.forEachBlockInterleaved(parts, resident::put);
        }

        @TearDown
        public void close() {
            resident.close();
        }
    }

    /// Tables in an invocation: as many as a touch ring holds, so that draining it is in every one.
    public static final int ACQUIRE_BATCH = 256;

    /// What does it cost to take and give back the table of a resident chain? Budget: 500 ns for both,
    /// unchecked. `./kvcache bench core --filter acquire`
    @Benchmark
    public long acquire(ResidentCache state, RandomIndexes random) {
        long blocks = 0;
        for (int i = 0; i < ACQUIRE_BATCH; i++) {
            try (BlockTable table =
                    state.cache.acquire(state.residentChains[random.next(state.residentChains.length, blocks)])) {
                blocks += table.readyBlocks();
            }
        }
        return blocks;
    }
}
