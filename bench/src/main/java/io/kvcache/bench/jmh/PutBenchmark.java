package io.kvcache.bench.jmh;

import io.kvcache.core.BlockWriter;
import io.kvcache.core.KvCache;
import io.kvcache.core.SealOutcome;
import io.kvcache.core.memory.HostMemory;
import io.kvcache.tiers.TieredKvCache;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;

/// How much of the speed of a copy is left when a new block of 2 MiB goes into a full store, checksum and eviction
/// included?
///
/// Out of 64 MiB in turn into 512 MiB in turn, which is the order in which slots come free; by the store and by
/// `MemorySegment.copy`. Budget: 76 %. `./kvcache bench core --filter put`
@BenchmarkMode(Mode.SampleTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class PutBenchmark {

    /// Bytes in an invocation.
    public static final long BYTES = BenchBlocks.BLOCK_BYTES;

    @Benchmark
    public SealOutcome put(FullStore state) {
        try (BlockWriter writer = state.cache.put(BenchBlocks.chain(state.number++), 0, 0, KvCache.NO_WAIT)) {
            writer.copyFrom(state.source());
            return writer.seal();
        }
    }

    @Benchmark
    public void copy(PlainMemory state) {
        MemorySegment.copy(state.source(), 0, state.place(), 0, BenchBlocks.BLOCK_BYTES);
    }

    /// The source of the blocks to copy.
    @State(Scope.Thread)
    public static class SourceBlocks {

        private final HostMemory memory = BenchBlocks.memory(BenchBlocks.SOURCE_BLOCKS);
        private int turn;

        final MemorySegment source() {
            turn = (turn + 1) % BenchBlocks.SOURCE_BLOCKS;
            return BenchBlocks.slice(memory, turn);
        }

        @TearDown
        public void closeOutside() {
            memory.close();
        }
    }

    /// A store full of blocks.
    @State(Scope.Thread)
    public static class FullStore extends SourceBlocks {

        final TieredKvCache cache = TieredKvCache.builder()
                .hostBytes(BenchBlocks.RESIDENT_BYTES)
                .prefaultInBackground(false)
                .checkSegments(false)
                .build();
        int number;

        public FullStore() {
            cache.register(BenchBlocks.NAMESPACE);
            while (number < BenchBlocks.RESIDENT_BLOCKS) {
                cache.putAll(BenchBlocks.chain(number++), 0, List.of(source()), KvCache.NO_WAIT);
            }
        }

        @TearDown
        public void closeCache() {
            cache.close();
        }
    }

    /// As much memory, without a store.
    @State(Scope.Thread)
    public static class PlainMemory extends SourceBlocks {

        private final HostMemory inside = BenchBlocks.memory(BenchBlocks.RESIDENT_BLOCKS);
        private int turn;

        final MemorySegment place() {
            turn = (turn + 1) % BenchBlocks.RESIDENT_BLOCKS;
            return BenchBlocks.slice(inside, turn);
        }

        @TearDown
        public void closeInside() {
            inside.close();
        }
    }
}
