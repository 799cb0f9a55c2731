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
import io.kvcache.core.spi.HostMemory;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.tiers.memory.MappedMemorySource;
import io.kvcache.tiers.options.MemoryOptions;
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

/// How much of the speed of a copy is left when a block of 2 MiB comes out of the store, and when a new one
/// goes into a full store, checksum and eviction included?
///
/// Out: random blocks of 512 MiB into 64 MiB in turn. In: out of 64 MiB in turn into 512 MiB in turn, which
/// is the order in which slots come free. By the store and by `MemorySegment.copy` from and to the same
/// places. Budget: 90 % out, 76 % in. `./kvcache bench core --filter get`, `--filter put`
@BenchmarkMode(Mode.SampleTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class BlockCopyBenchmark {

    /// Bytes in an invocation: 16 tokens of a model with 32 layers and 8 K/V heads of 128, as Llama-3-8B.
    public static final int BYTES = 2 << 20;

    /// Sixteen times the largest cache of the machines we know.
    private static final int RESIDENT_BLOCKS = 256;

    /// At the other end, so that this end misses the cache as well.
    private static final int OUTSIDE_BLOCKS = 32;

    private static final int BLOCK_TOKENS = 16;
    private static final Namespace NAMESPACE =
            Namespace.of("bench", BlockShape.kv(32, 8, 128, BLOCK_TOKENS, Dtype.BF16));

    @Benchmark
    public int get(ResidentBlocks state, RandomIndexes random) {
        try (BlockTable table = state.cache.acquire(state.chains[random.next(RESIDENT_BLOCKS, 0)])) {
            table.copyTo(0, state.outside());
            return table.readyBlocks();
        }
    }

    @Benchmark
    public int copyOut(ResidentBlocks state, RandomIndexes random) {
        MemorySegment.copy(state.places[random.next(RESIDENT_BLOCKS, 0)], 0, state.outside(), 0, BYTES);
        return 1;
    }

    @Benchmark
    public SealOutcome put(FullStore state) {
        try (BlockWriter writer = state.cache.put(chain(state.number++), 0, 0, KvCache.NO_WAIT)) {
            writer.copyFrom(state.outside());
            return writer.seal();
        }
    }

    @Benchmark
    public void copyIn(PlainMemory state) {
        MemorySegment.copy(state.outside(), 0, state.place(), 0, BYTES);
    }

    /// A sequence of one block, another one for each number.
    private static BlockChain chain(int number) {
        int[] tokens = new int[BLOCK_TOKENS];
        tokens[0] = number;
        return BlockChain.of(NAMESPACE, tokens);
    }

    /// Memory for `count` blocks as the store has it, every page touched.
    private static HostMemory memory(int count) {
        HostMemory memory = new MappedMemorySource(MemoryOptions.defaults()).reserve("blocks", (long) count * BYTES);
        memory.segment().fill((byte) 7);
        return memory;
    }

    private static MemorySegment slice(HostMemory memory, int block) {
        return memory.segment().asSlice((long) block * BYTES, BYTES);
    }

    /// The other end of the copies.
    @State(Scope.Thread)
    public static class OutsideBlocks {

        private final HostMemory memory = memory(OUTSIDE_BLOCKS);
        private int turn;

        final MemorySegment outside() {
            turn = (turn + 1) % OUTSIDE_BLOCKS;
            return slice(memory, turn);
        }

        @TearDown
        public void closeOutside() {
            memory.close();
        }
    }

    /// A store full of blocks, every byte written.
    @State(Scope.Thread)
    public static class FullStore extends OutsideBlocks {

        final TieredKvCache cache = TieredKvCache.builder()
                .hostBytes((long) RESIDENT_BLOCKS * BYTES)
                .prefaultInBackground(false)
                .checkSegments(false)
                .build();
        int number;

        public FullStore() {
            cache.register(NAMESPACE);
            while (number < RESIDENT_BLOCKS) {
                cache.putAll(chain(number++), 0, List.of(outside()), KvCache.NO_WAIT);
            }
        }

        @TearDown
        public void closeCache() {
            cache.close();
        }
    }

    /// The same with the places of its blocks, which stay there, as nothing is put.
    @State(Scope.Thread)
    public static class ResidentBlocks extends FullStore {

        final BlockChain[] chains = new BlockChain[RESIDENT_BLOCKS];
        final MemorySegment[] places = new MemorySegment[RESIDENT_BLOCKS];

        public ResidentBlocks() {
            Arrays.setAll(chains, BlockCopyBenchmark::chain);
            Arrays.setAll(places, i -> place(chains[i]));
        }

        private MemorySegment place(BlockChain chain) {
            try (BlockTable table = cache.acquire(chain)) {
                return table.segment(0);
            }
        }
    }

    /// As much memory, without a store.
    @State(Scope.Thread)
    public static class PlainMemory extends OutsideBlocks {

        private final HostMemory inside = memory(RESIDENT_BLOCKS);
        private int turn;

        final MemorySegment place() {
            turn = (turn + 1) % RESIDENT_BLOCKS;
            return slice(inside, turn);
        }

        @TearDown
        public void closeInside() {
            inside.close();
        }
    }
}
