package io.kvcache.core.codec;

import static java.util.Objects.requireNonNull;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.core.check.BlockContent;
import io.kvcache.core.codec.BlockCodec.CodedBlock;
import io.kvcache.core.memory.ChunkedCrc;
import io.kvcache.core.memory.Pages;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

final class StoredRangeTest {

    private static final int CHUNK = ChunkCoder.CHUNK_BYTES;

    /// Its lowest bit decides whether the content codes.
    private static final BlockContent PLAIN = new BlockContent(0x1234);

    private static final BlockContent CODABLE = new BlockContent(0x1235);

    private final Arena arena = Arena.ofConfined();
    private final SplittableRandom random = new SplittableRandom(11);

    @AfterEach
    void free() {
        arena.close();
    }

    /// A block as it is stored.
    private record Stored(StoredLayout layout, MemorySegment bytes, int plainBytes, int checksum) {

        private MemorySegment head() {
            return bytes.asSlice(0, Pages.offset(layout.headPages()));
        }

        private boolean extract(int from, int to, MemorySegment target) {
            StoredRange range = new StoredRange(layout, plainBytes, from, to);
            MemorySegment body = bytes.asSlice(Pages.offset(range.firstPage()), Pages.offset(range.pages()));
            return new BlockCodec().extract(range, head(), false, body, checksum, target);
        }

        /// With the body read to the place in the target that the range names.
        private boolean extractInPlace(StoredRange range, MemorySegment target, boolean isHeadProved) {
            MemorySegment body = requireNonNull(range.bodyIn(target));
            body.copyFrom(bytes.asSlice(Pages.offset(range.firstPage()), Pages.offset(range.pages())));
            return new BlockCodec().extract(range, head(), isHeadProved, body, checksum, target);
        }
    }

    private Stored store(BlockContent content, int bytes) {
        MemorySegment plain = arena.allocate(Pages.roundUp(bytes), Pages.BYTES);
        content.fill(plain.asSlice(0, bytes));
        int checksum = ChunkedCrc.of(plain.asSlice(0, bytes));
        if (content.equals(CODABLE)) {
            MemorySegment staging = arena.allocate(BlockCodec.encodeBytes(bytes), Pages.BYTES);
            CodedBlock coded = requireNonNull(new BlockCodec().encode(List.of(plain), bytes, staging));
            return new Stored(coded.layout(), coded.bytes(), bytes, checksum);
        }
        int headPages = PageSums.headPages(bytes);
        MemorySegment stored = arena.allocate(Pages.offset(headPages) + plain.byteSize(), Pages.BYTES);
        PageSums.write(List.of(plain), bytes, stored.asSlice(0, Pages.offset(headPages)));
        stored.asSlice(Pages.offset(headPages)).copyFrom(plain);
        return new Stored(new StoredLayout(StoredLayout.PLAIN_CODEC, headPages), stored, bytes, checksum);
    }

    private static MemorySegment target(int bytes) {
        return MemorySegment.ofArray(new byte[bytes]);
    }

    @Test
    void givenPageSumsOfAnyLength_whenProved_thenTheyGiveTheBlocksChecksum() {
        for (int bytes = 1; bytes <= 3 * CHUNK; bytes += 1 + random.nextInt(700)) {
            Stored stored = store(PLAIN, bytes);
            assertThat(PageSums.prove(stored.head(), bytes, stored.checksum))
                    .as("%d bytes", bytes)
                    .isTrue();
            long at = random.nextLong(4L * Math.ceilDiv(bytes, Pages.BYTES));
            flip(stored.bytes, at);
            assertThat(PageSums.prove(stored.head(), bytes, stored.checksum)).isFalse();
        }
    }

    private static void flip(MemorySegment bytes, long at) {
        bytes.set(ValueLayout.JAVA_BYTE, at, (byte) (bytes.get(ValueLayout.JAVA_BYTE, at) ^ 0x10));
    }

    @Test
    void givenAnyRange_whenExtracted_thenItIsThatOfTheBlock() {
        for (BlockContent content : List.of(PLAIN, CODABLE)) {
            for (int bytes : List.of(CHUNK, 4 * CHUNK, 5 * CHUNK + 12_345, 1 << 20)) {
                Stored stored = store(content, bytes);
                for (int round = 0; round < 200; round++) {
                    int from = random.nextInt(bytes);
                    int to = from + 1 + random.nextInt(bytes - from);
                    MemorySegment target = target(to - from);
                    assertThat(stored.extract(from, to, target)).isTrue();
                    content.requireEqual(from, target);
                }
            }
        }
    }

    @Test
    void givenWholeChunks_whenReadIntoTheirPlace_thenTheyAreExtractedThere() {
        for (BlockContent content : List.of(PLAIN, CODABLE)) {
            for (int bytes : List.of(4 * CHUNK, 5 * CHUNK + 2 * Pages.BYTES, 1 << 20)) {
                Stored stored = store(content, bytes);
                for (int round = 0; round < 100; round++) {
                    int from = random.nextInt(bytes / CHUNK) * CHUNK;
                    int to = Math.min(bytes, from + (1 + random.nextInt(4)) * CHUNK);
                    StoredRange range = new StoredRange(stored.layout, bytes, from, to);
                    MemorySegment target = arena.allocate(to - from, Pages.BYTES);
                    boolean isHeadProved = round % 2 == 0;
                    assertThat(stored.extractInPlace(range, target, isHeadProved))
                            .isTrue();
                    content.requireEqual(from, target);
                    long at = Pages.offset(range.firstPage())
                            + random.nextLong(to - from) * range.pages() / Math.ceilDiv(to - from, Pages.BYTES);
                    flip(stored.bytes, at);
                    if (stored.extractInPlace(range, target, isHeadProved)) {
                        content.requireEqual(from, target);
                    }
                    flip(stored.bytes, at);
                }
            }
        }
    }

    @Test
    void givenBytesThatEndWithinAPage_whenWanted_thenTheBodyNeedsMemoryOfItsOwn() {
        Stored stored = store(PLAIN, 4 * CHUNK);
        MemorySegment target = arena.allocate(CHUNK, Pages.BYTES);
        assertThat(new StoredRange(stored.layout, 4 * CHUNK, 100, 100 + CHUNK).bodyIn(target))
                .isNull();
        assertThat(new StoredRange(stored.layout, 4 * CHUNK, 0, 1000).bodyIn(target.asSlice(0, 1000)))
                .isNull();
        assertThat(new StoredRange(stored.layout, 4 * CHUNK, 0, CHUNK).bodyIn(target(CHUNK)))
                .isNull();
    }

    @Test
    void givenOneFlippedBitAnywhere_whenExtracted_thenOnlyRangesThatItTouchesAreRefused() {
        int bytes = 5 * CHUNK + 5_000;
        for (BlockContent content : List.of(PLAIN, CODABLE)) {
            Stored stored = store(content, bytes);
            for (int round = 0; round < 1000; round++) {
                int from = random.nextInt(bytes);
                int to = Math.min(bytes, from + 1 + random.nextInt(100_000));
                StoredRange range = new StoredRange(stored.layout, bytes, from, to);
                long first = Pages.offset(range.firstPage());
                long end = first + Pages.offset(range.pages());
                long at = random.nextLong(stored.bytes.byteSize());
                flip(stored.bytes, at);
                MemorySegment target = target(to - from);
                boolean good = stored.extract(from, to, target);
                if (good) {
                    content.requireEqual(from, target);
                }
                boolean touched = at < stored.head().byteSize() || (at >= first && at < end);
                assertThat(good || touched)
                        .as("bit at %d, range %d to %d", at, from, to)
                        .isTrue();
                flip(stored.bytes, at);
            }
        }
    }

    @Test
    void givenSixtyFourKibibytesOfFourMebibytes_whenRead_thenFewPagesAre() {
        StoredLayout plain = new StoredLayout(StoredLayout.PLAIN_CODEC, PageSums.headPages(4 << 20));
        StoredLayout coded = new StoredLayout(StoredLayout.EXPONENT_CODEC, 1);
        for (int from = 0; from < (4 << 20) - CHUNK; from += 1000) {
            int plainPages = plain.headPages() + new StoredRange(plain, 4 << 20, from, from + CHUNK).pages();
            assertThat(Pages.offset(plainPages)).isLessThanOrEqualTo(80 << 10);
            assertThat(new StoredRange(coded, 4 << 20, from, from + CHUNK).pages())
                    .isLessThanOrEqualTo(2 * ChunkCoder.BODY_BYTES / Pages.BYTES);
        }
    }

    @Test
    void givenNoHeadOrNoSuchBytes_whenARangeIsMade_thenItIsRefused() {
        assertThatThrownBy(() -> new StoredRange(StoredLayout.PLAIN, 100, 0, 1)).hasMessageContaining("head");
        StoredLayout layout = new StoredLayout(StoredLayout.PLAIN_CODEC, 1);
        assertThatThrownBy(() -> new StoredRange(layout, 100, 50, 101)).hasMessageContaining("50 to 101");
        assertThatThrownBy(() -> new StoredRange(layout, 100, 50, 50)).isInstanceOf(IllegalArgumentException.class);
    }
}
