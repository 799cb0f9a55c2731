package io.kvcache.bench.jmh;

import io.kvcache.bench.jmh.BenchChains.RandomIndexes;
import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.KvCache;
import io.kvcache.core.SealOutcome;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.identity.Part;
import io.kvcache.core.identity.PartKind;
import io.kvcache.core.identity.RopeOrigin;
import io.kvcache.tiers.TieredKvCache;
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
        return matched(state.cache, state.residentChains, random);
    }

    @Benchmark
    public long miss(ResidentCache state, RandomIndexes random) {
        return matched(state.cache, state.absentChains, random);
    }

    private static long matched(KvCache cache, BlockChain[] chains, RandomIndexes random) {
        long blocks = 0;
        for (int i = 0; i < BATCH; i++) {
            BlockChain chain = chains[random.next(chains.length, blocks)];
            blocks += cache.match(chain).blocks();
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

    /// The same of a whole chain with a window of 128 tokens and a state: nine look-ups more. Budget: 1 µs.
    @Benchmark
    public long hybrid(HybridChains state, RandomIndexes random) {
        return matched(state.cache, state.whole, random);
    }

    /// The worst case: all blocks, and not one entry of a window. Budget: 1 ms.
    @Benchmark
    public long hybridBare(HybridChains state, RandomIndexes random) {
        return state.cache.match(state.bare[random.next(state.bare.length, 0)]).fullBlocks();
    }

    /// Chains of blocks with a window and a state, of which some have entries behind their ends and others have
    /// none.
    @State(Scope.Benchmark)
    public static class HybridChains {

        private static final int CHAINS = 8;

        /// Blocks of the last window.
        private static final int WINDOW_BLOCKS = 8;

        private static final Namespace NAMESPACE = Namespace.builder("hybrid")
                .part(part(0, PartKind.FULL, 0, 16))
                .part(part(1, PartKind.WINDOW, 128, 16))
                .part(part(2, PartKind.STATE, 0, BLOCKS * 16 / 64))
                .build();

        final TieredKvCache cache = TieredKvCache.builder()
                .hostBytes(2L * CHAINS * (BLOCKS + 64) * ResidentCache.SLOT_BYTES + (256 << 20))
                .records(2 * CHAINS * (BLOCKS + 64))
                .prefaultInBackground(false)
                .checkSegments(false)
                .build();
        final BlockChain[] whole = BenchChains.of(NAMESPACE, 3, CHAINS);
        final BlockChain[] bare = BenchChains.of(NAMESPACE, 4, CHAINS);

        public HybridChains() {
            cache.register(NAMESPACE);
            BenchChains.forEachBlockInterleaved(whole, this::putWithEntries);
            BenchChains.forEachBlockInterleaved(bare, (chain, index) -> put(chain, index, 0));
        }

        private static Part part(int group, PartKind kind, int window, int blockTokens) {
            BlockShape shape = BlockShape.kv(1, 1, 64, blockTokens, Dtype.BF16);
            return new Part(group, 0, kind, window, shape, RopeOrigin.FROM_ZERO);
        }

        private void putWithEntries(BlockChain chain, int index) {
            put(chain, index, 0);
            if (index >= BLOCKS - WINDOW_BLOCKS) {
                put(chain, index, 1);
            }
            if (index == BLOCKS - 1) {
                put(chain, index, 2);
            }
        }

        private void put(BlockChain chain, int index, int part) {
            try (BlockWriter writer = cache.put(chain, index, part, KvCache.NO_WAIT)) {
                if (writer.seal() != SealOutcome.SEALED) {
                    throw new IllegalStateException("part " + part + " of block " + index + " was not sealed");
                }
            }
        }

        @TearDown
        public void close() {
            cache.close();
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
