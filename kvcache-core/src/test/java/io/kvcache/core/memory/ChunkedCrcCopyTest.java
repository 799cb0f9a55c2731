package io.kvcache.core.memory;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Random;
import java.util.zip.CRC32C;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class ChunkedCrcCopyTest {

    private static final int PAD = 64;

    private final Arena arena = Arena.ofConfined();

    @AfterEach
    void close() {
        arena.close();
    }

    /// The definition, word by word.
    private static int naive(byte[] bytes) {
        CRC32C whole = new CRC32C();
        for (int at = 0; at < bytes.length; at += ChunkedCrc.CHUNK_BYTES) {
            CRC32C chunk = new CRC32C();
            chunk.update(bytes, at, Math.min(ChunkedCrc.CHUNK_BYTES, bytes.length - at));
            byte[] sum = ByteBuffer.allocate(Integer.BYTES)
                    .order(ByteOrder.LITTLE_ENDIAN)
                    .putInt((int) chunk.getValue())
                    .array();
            whole.update(sum);
        }
        return (int) whole.getValue();
    }

    private static byte[] random(int size) {
        byte[] bytes = new byte[size];
        new Random(size).nextBytes(bytes);
        return bytes;
    }

    private MemorySegment offHeap(byte[] bytes) {
        return arena.allocate(Math.max(1, bytes.length))
                .asSlice(0, bytes.length)
                .copyFrom(MemorySegment.ofArray(bytes));
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1, 8 << 10, (8 << 10) + 1, 64 << 10, (64 << 10) + 8, 200_000, 1 << 20})
    void givenAnySize_whenSummed_thenItIsTheSumOfItsChunksSums(int size) {
        byte[] bytes = random(size);
        assertThat(ChunkedCrc.of(offHeap(bytes))).isEqualTo(naive(bytes));
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 8, 8 << 10, (8 << 10) + 8, 64 << 10, (64 << 10) + 8, 200_000, 1 << 20})
    void givenAnyKindOfSource_whenCopied_thenBytesAndSumAreTheSame(int size) {
        byte[] bytes = random(size);
        MemorySegment onHeap = MemorySegment.ofArray(new byte[size + 2 * PAD]);
        MemorySegment asLongs = MemorySegment.ofArray(new long[(size + 2 * PAD) / Long.BYTES]);
        MemorySegment inNative = arena.allocate(size + 2L * PAD);
        for (MemorySegment source : new MemorySegment[] {onHeap, asLongs, inNative, onHeap.asReadOnly()}) {
            if (!source.isReadOnly()) {
                MemorySegment.copy(MemorySegment.ofArray(bytes), 0, source, PAD, size);
            }
            MemorySegment target = arena.allocate(size + 1L).asSlice(0, size);
            ChunkedCrc crc = new ChunkedCrc();
            crc.copy(source, PAD, target);
            assertThat(crc.value()).isEqualTo(naive(bytes));
            assertThat(target.mismatch(MemorySegment.ofArray(bytes))).isEqualTo(-1);
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 5_000, 64 << 10, 70_000, 131_000})
    void givenTwoPieces_whenCopiedOneAfterTheOther_thenTheSumIsThatOfTheWhole(int first) {
        byte[] bytes = random(150_000);
        ChunkedCrc crc = new ChunkedCrc();
        crc.copy(offHeap(bytes), 0, arena.allocate(first));
        crc.copy(MemorySegment.ofArray(bytes), first, arena.allocate(bytes.length - first));
        assertThat(crc.value()).isEqualTo(naive(bytes));
    }
}
