package io.kvcache.core.memory;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.check.BlockContent;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.zip.CRC32C;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class ChunkedCrcTest {

    private static final BlockContent CONTENT = new BlockContent(42);

    /// The definition, word by word.
    private static int naive(byte[] bytes) {
        CRC32C whole = new CRC32C();
        for (int at = 0; at < bytes.length; at += 65_536) {
            CRC32C chunk = new CRC32C();
            chunk.update(bytes, at, Math.min(65_536, bytes.length - at));
            ByteBuffer sum = ByteBuffer.allocate(4).order(ByteOrder.LITTLE_ENDIAN);
            whole.update(sum.putInt((int) chunk.getValue()).flip());
        }
        return (int) whole.getValue();
    }

    private static MemorySegment content(int bytes) {
        MemorySegment segment = Arena.ofAuto().allocate(bytes);
        CONTENT.fill(segment);
        return segment;
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 4095, 4096, 65_535, 65_536, 65_537, 131_072, 1_000_003})
    void givenAnySize_whenSummed_thenAsDefined(int bytes) {
        MemorySegment segment = content(bytes);
        int expected = naive(segment.toArray(ValueLayout.JAVA_BYTE));
        assertThat(ChunkedCrc.of(segment)).isEqualTo(expected);
        for (int split : new int[] {0, 1, 4096, 65_536, 100_000}) {
            ChunkedCrc pieces = new ChunkedCrc();
            pieces.update(segment.asSlice(0, Math.min(split, bytes)));
            pieces.update(segment.asSlice(Math.min(split, bytes)));
            assertThat(pieces.value()).as("split at %d", split).isEqualTo(expected);
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 65_536, 65_537, 200_000})
    void givenASource_whenCopied_thenTheBytesArriveAndTheSumIsThatOfThem(int bytes) {
        MemorySegment target = Arena.ofAuto().allocate(bytes);
        ChunkedCrc crc = new ChunkedCrc();
        int half = bytes / 2;
        crc.copy(CONTENT.toHeapSegment(bytes), 0, target.asSlice(0, half));
        crc.copy(CONTENT.toHeapSegment(bytes), half, target.asSlice(half));
        CONTENT.requireEqual(target);
        assertThat(crc.value()).isEqualTo(ChunkedCrc.of(target));
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 65_535, 65_536, 99_999})
    void givenOneFlippedBit_whenSummed_thenTheSumDiffers(int place) {
        MemorySegment segment = content(100_000);
        int before = ChunkedCrc.of(segment);
        segment.set(ValueLayout.JAVA_BYTE, place, (byte) (segment.get(ValueLayout.JAVA_BYTE, place) ^ 4));
        assertThat(ChunkedCrc.of(segment)).isNotEqualTo(before);
    }
}
