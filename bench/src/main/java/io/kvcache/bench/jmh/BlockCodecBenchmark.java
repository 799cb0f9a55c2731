package io.kvcache.bench.jmh;

import io.kvcache.bench.jmh.SyntheticKv.Content;
import io.kvcache.core.codec.BlockCodec;
import io.kvcache.core.codec.BlockCodec.CodedBlock;
import io.kvcache.core.codec.ChunkCoder;
import io.kvcache.core.codec.StoredVerifier;
import io.kvcache.core.memory.ChunkedCrc;
import java.lang.foreign.Arena;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;

/// How fast are blocks coded for disks and decoded, how much smaller do they get, and what is that beside a copy?
///
/// Budget: 6 GB/s a core each way; a third more blocks.
/// `./kvcache bench codec`
@BenchmarkMode(Mode.SampleTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class BlockCodecBenchmark {

    /// Plain bytes of an invocation: eight blocks of 2 MiB, more than the caches hold.
    public static final int BYTES = 16 << 20;

    private static final int BLOCK_BYTES = 2 << 20;
    private static final int CHUNKS = BYTES / ChunkCoder.CHUNK_BYTES;

    @Benchmark
    public long encode(Chunks chunks) {
        long heads = 0;
        for (int i = 0; i < CHUNKS; i++) {
            heads += chunks.encode(i);
        }
        return heads;
    }

    @Benchmark
    public void decode(Chunks chunks) {
        for (int i = 0; i < CHUNKS; i++) {
            chunks.coder.decode(
                    chunks.heads[i],
                    chunks.bodies,
                    (long) i * ChunkCoder.BODY_BYTES,
                    chunks.escapes,
                    (long) i * Chunks.ROOM,
                    chunks.plain,
                    (long) i * ChunkCoder.CHUNK_BYTES);
        }
    }

    /// The reference.
    @Benchmark
    public void copy(Chunks chunks) {
        for (int i = 0; i < CHUNKS; i++) {
            long at = (long) i * ChunkCoder.CHUNK_BYTES;
            MemorySegment.copy(chunks.plain, at, chunks.copy, at, ChunkCoder.CHUNK_BYTES);
        }
    }

    /// A block as a disk's writer codes it, with its sums.
    @Benchmark
    public int encodeBlocks(Blocks blocks) {
        int pages = 0;
        for (MemorySegment block : blocks.plain) {
            pages += blocks.encode(block).layout().headPages();
        }
        return pages;
    }

    /// A block as it is proved when it is read.
    @Benchmark
    public boolean decodeBlocks(Blocks blocks) {
        boolean good = true;
        for (int i = 0; i < blocks.coded.length; i++) {
            // In place, as after a read: what is coded is brought back to the end of the block first.
            MemorySegment target = blocks.plain.get(i);
            MemorySegment stored = blocks.coded[i].bytes();
            target.asSlice(target.byteSize() - stored.byteSize()).copyFrom(stored);
            good &= blocks.codec.decode(blocks.coded[i].layout(), List.of(target), BLOCK_BYTES, blocks.sums[i]);
        }
        return good;
    }

    /// Chunks, plain and coded.
    @State(Scope.Thread)
    public static class Chunks {

        static final int ROOM = 8192;

        final int[] heads = new int[CHUNKS];
        private final Arena arena = Arena.ofShared();
        final MemorySegment plain = arena.allocate(BYTES, 64);
        final MemorySegment copy = arena.allocate(BYTES, 64);
        final MemorySegment bodies = arena.allocate((long) CHUNKS * ChunkCoder.BODY_BYTES, 64);
        final MemorySegment escapes = arena.allocate((long) CHUNKS * ROOM, 64);
        final ChunkCoder coder = new ChunkCoder();

        @Setup
        public void fill() {
            SyntheticKv.fill(plain, Content.STRUCTURED, 8, 256, 128);
            for (int i = 0; i < CHUNKS; i++) {
                heads[i] = encode(i);
            }
        }

        int encode(int chunk) {
            return coder.encode(
                    plain,
                    (long) chunk * ChunkCoder.CHUNK_BYTES,
                    bodies,
                    (long) chunk * ChunkCoder.BODY_BYTES,
                    escapes,
                    (long) chunk * ROOM,
                    ROOM);
        }

        @TearDown
        public void free() {
            arena.close();
        }
    }

    /// Whole blocks.
    @State(Scope.Thread)
    public static class Blocks {

        private final Arena arena = Arena.ofShared();
        final BlockCodec codec = new BlockCodec();
        private final MemorySegment staging = arena.allocate(BlockCodec.encodeBytes(BLOCK_BYTES), 4096);
        final List<MemorySegment> plain = arena.allocate(BYTES, 4096)
                .elements(MemoryLayout.sequenceLayout(BLOCK_BYTES, ValueLayout.JAVA_BYTE))
                .toList();
        final CodedBlock[] coded = new CodedBlock[plain.size()];
        final int[] sums = new int[plain.size()];

        @Setup
        public void fill() {
            for (int i = 0; i < coded.length; i++) {
                SyntheticKv.fill(plain.get(i), Content.STRUCTURED, 8, 256, 128);
                sums[i] = ChunkedCrc.of(plain.get(i));
                CodedBlock block = encode(plain.get(i));
                MemorySegment kept = arena.allocate(block.bytes().byteSize(), 4096);
                kept.copyFrom(block.bytes());
                coded[i] = new CodedBlock(block.layout(), kept);
            }
        }

        CodedBlock encode(MemorySegment block) {
            return Objects.requireNonNull(codec.encode(List.of(block), BLOCK_BYTES, staging));
        }

        @TearDown
        public void free() {
            arena.close();
        }
    }

    /// Returns how many times as many blocks of 2 MiB fit on a disk, in whole pages.
    ///
    /// @throws IllegalStateException when one does not come back
    public static double gain(Content content) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment plain = arena.allocate(BYTES, 4096);
            SyntheticKv.fill(plain, content, 8, 256, 128);
            MemorySegment staging = arena.allocate(BlockCodec.encodeBytes(BLOCK_BYTES), 4096);
            StoredVerifier verifier = new StoredVerifier();
            long stored = 0;
            for (long at = 0; at < BYTES; at += BLOCK_BYTES) {
                MemorySegment block = plain.asSlice(at, BLOCK_BYTES);
                CodedBlock coded =
                        Objects.requireNonNull(new BlockCodec().encode(List.of(block), BLOCK_BYTES, staging));
                verifier.begin(coded.layout(), BLOCK_BYTES, ChunkedCrc.of(block));
                verifier.add(coded.bytes());
                if (!verifier.isGood()) {
                    throw new IllegalStateException("a block of " + content + " came back otherwise");
                }
                stored += coded.bytes().byteSize();
            }
            return (double) BYTES / stored;
        }
    }
}
