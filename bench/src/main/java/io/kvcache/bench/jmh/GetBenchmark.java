package io.kvcache.bench.jmh;

import io.kvcache.bench.jmh.BenchChains.RandomIndexes;
import io.kvcache.core.BlockTable;
import io.kvcache.core.KvCache;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.memory.HostMemory;
import io.kvcache.tiers.TieredKvCache;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;

/// How much of the speed of a copy is left when a block of 2 MiB comes out of the store?
///
/// Random blocks of 512 MiB into 64 MiB in turn, by the store and by `MemorySegment.copy` from the same places.
/// Budget: 90 %. `./kvcache bench core --filter get`
@BenchmarkMode(Mode.SampleTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class GetBenchmark {

    /// Bytes in an invocation.
    public static final long BYTES = BenchBlocks.BLOCK_BYTES;

    @Benchmark
    public int get(FullStore state, RandomIndexes random) {
        try (BlockTable table = state.cache.acquire(state.chains[random.next(BenchBlocks.RESIDENT_BLOCKS, 0)])) {
            table.copyTo(0, state.target());
            return table.readyBlocks();
        }
    }

    @Benchmark
    public int copy(FullStore state, RandomIndexes random) {
        MemorySegment block = state.places[random.next(BenchBlocks.RESIDENT_BLOCKS, 0)];
        MemorySegment.copy(block, 0, state.target(), 0, BenchBlocks.BLOCK_BYTES);
        return 1;
    }

    /// A store full of blocks, every byte written, and a place to copy them to.
    @State(Scope.Thread)
    public static class FullStore {

        final BlockChain[] chains = new BlockChain[BenchBlocks.RESIDENT_BLOCKS];
        final MemorySegment[] places = new MemorySegment[BenchBlocks.RESIDENT_BLOCKS];
        final TieredKvCache cache = TieredKvCache.builder()
                .hostBytes(BenchBlocks.RESIDENT_BYTES)
                .prefaultInBackground(false)
                .checkSegments(false)
                .build();
        private final HostMemory outside = BenchBlocks.memory(BenchBlocks.SOURCE_BLOCKS);
        private final BlockTable[] open;
        private int turn;

        public FullStore() {
            cache.register(BenchBlocks.NAMESPACE);
            Arrays.setAll(chains, BenchBlocks::chain);
            for (BlockChain chain : chains) {
                cache.putAll(chain, 0, List.of(target()), KvCache.NO_WAIT);
            }
            open = Arrays.stream(chains).map(cache::acquire).toArray(BlockTable[]::new);
            Arrays.setAll(places, i -> open[i].segment(0));
        }

        final MemorySegment target() {
            turn = (turn + 1) % BenchBlocks.SOURCE_BLOCKS;
            return BenchBlocks.slice(outside, turn);
        }

        @TearDown
        public void close() {
            Arrays.stream(open).forEach(BlockTable::close);
            cache.close();
            outside.close();
        }
    }
}
