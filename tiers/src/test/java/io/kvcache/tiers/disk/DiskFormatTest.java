package io.kvcache.tiers.disk;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Everything that is written reads back the same, and nothing that was damaged reads back at all.
final class DiskFormatTest {

    private static final long SEED = 7;
    private static final int REGION_PAGES = 1024;

    private final Arena arena = Arena.ofConfined();
    private final Random random = new Random(SEED);

    @AfterEach
    void close() {
        arena.close();
    }

    private List<DiskEntry> entries(int count) {
        return IntStream.range(0, count)
                .mapToObj(i -> new DiskEntry(
                        random.nextLong(),
                        random.nextLong(),
                        random.nextLong(),
                        random.nextLong(),
                        random.nextInt(),
                        i,
                        0,
                        1 + random.nextInt(20_000),
                        random.nextInt(),
                        random.nextLong()))
                .toList();
    }

    private MemorySegment pages(int count) {
        return arena.allocate((long) count * Geometry.PAGE_BYTES, Geometry.PAGE_BYTES);
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 63, 64, 65, 200})
    void givenAGroup_whenWrittenAndRead_thenTheSame(int count) {
        Group group = Group.of(42, 17, entries(count));
        MemorySegment head = pages(group.headPages());
        group.write(head);
        assertThat(Group.headPagesAt(head, REGION_PAGES)).isEqualTo(group.headPages());
        assertThat(Group.read(head, 42, 17)).isEqualTo(group);
        assertThat(Group.read(head, 41, 17))
                .as("of an earlier life of the region")
                .isNull();
        assertThat(Group.read(head, 42, 18)).as("somewhere else").isNull();
    }

    @Test
    void givenAGroup_whenLaidOut_thenBlocksFollowTheHeadWithoutGaps() {
        Group group = Group.of(1, 10, entries(100));
        int at = 10 + group.headPages();
        for (DiskEntry entry : group.entries()) {
            assertThat(entry.page()).isEqualTo(at);
            at += entry.pages();
        }
        assertThat(group.pages()).isEqualTo(at - 10);
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1, 64, 65, 500})
    void givenATrailer_whenWrittenAndRead_thenTheSame(int count) {
        Trailer trailer = new Trailer(9, entries(count));
        int tablePage = REGION_PAGES - Trailer.pages(count);
        MemorySegment span = pages(Trailer.pages(count));
        trailer.write(span, tablePage);
        MemorySegment last = span.asSlice(span.byteSize() - Geometry.PAGE_BYTES);
        Trailer.Footer footer = Trailer.readFooter(last, REGION_PAGES);
        assertThat(footer).isNotNull();
        assertThat(footer.tablePage()).isEqualTo(tablePage);
        assertThat(Trailer.readTable(footer, span.asSlice(0, footer.tableBytes())))
                .isEqualTo(trailer);
    }

    @Test
    void givenAnyFlippedBit_whenRead_thenNothingComesBack() {
        Group group = Group.of(42, 0, entries(90));
        MemorySegment head = pages(group.headPages());
        Trailer trailer = new Trailer(9, entries(90));
        MemorySegment span = pages(Trailer.pages(90));
        for (int round = 0; round < 500; round++) {
            group.write(head);
            flip(head);
            boolean recognised = Group.headPagesAt(head, REGION_PAGES) == group.headPages();
            assertThat(recognised ? Group.read(head, 42, 0) : null).isNull();
            trailer.write(span, REGION_PAGES - Trailer.pages(90));
            flip(span);
            MemorySegment last = span.asSlice(span.byteSize() - Geometry.PAGE_BYTES);
            Trailer.Footer footer = Trailer.readFooter(last, REGION_PAGES);
            assertThat(footer == null ? null : Trailer.readTable(footer, span.asSlice(0, footer.tableBytes())))
                    .isNull();
        }
    }

    private void flip(MemorySegment span) {
        long at = random.nextLong(span.byteSize());
        byte was = span.get(ValueLayout.JAVA_BYTE, at);
        span.set(ValueLayout.JAVA_BYTE, at, (byte) (was ^ 1 << random.nextInt(8)));
    }

    @Test
    void givenASuperblock_whenWrittenAndRead_thenTheSame() {
        Namespace blocks = Namespace.of("llama-3-8b", BlockShape.kv(32, 8, 128, 16, Dtype.BF16));
        Namespace objects = Namespace.objects("objects", "tenant ü");
        Superblock block = new Superblock(5, Geometry.of(10L << 30), List.of(blocks, objects));
        MemorySegment span = arena.allocate(Geometry.SUPERBLOCK_BYTES);
        assertThat(Superblock.read(span).kind()).isEqualTo(Superblock.Kind.FOREIGN);
        block.write(span);
        assertThat(Superblock.read(span)).isEqualTo(new Superblock.Found(Superblock.Kind.SOUND, block, 1));
        span.set(ValueLayout.JAVA_BYTE, 100, (byte) (span.get(ValueLayout.JAVA_BYTE, 100) ^ 1));
        assertThat(Superblock.read(span).kind()).isEqualTo(Superblock.Kind.DAMAGED);
    }

    @Test
    void givenAnotherFormatVersion_whenRead_thenItIsToldAndNotGuessedAt() {
        MemorySegment span = arena.allocate(Geometry.SUPERBLOCK_BYTES);
        new Superblock(5, Geometry.of(10L << 30), List.of()).write(span);
        span.set(EntryTable.INT32, 12, 2);
        Seal.close(span);
        assertThat(Superblock.read(span)).isEqualTo(new Superblock.Found(Superblock.Kind.OTHER_VERSION, null, 2));
    }

    @Test
    void givenTwoCopies_whenOneIsTorn_thenTheOtherCounts() {
        Geometry geometry = Geometry.of(1L << 30);
        var sound = new Superblock.Found(Superblock.Kind.SOUND, new Superblock(5, geometry, List.of()), 1);
        var later = new Superblock.Found(Superblock.Kind.SOUND, new Superblock(6, geometry, List.of()), 1);
        var torn = new Superblock.Found(Superblock.Kind.DAMAGED, null, 0);
        var foreign = new Superblock.Found(Superblock.Kind.FOREIGN, null, 0);
        assertThat(Superblock.newer(sound, later)).isSameAs(later);
        assertThat(Superblock.newer(later, sound)).isSameAs(later);
        assertThat(Superblock.newer(torn, sound)).isSameAs(sound);
        assertThat(Superblock.newer(sound, torn)).isSameAs(sound);
        assertThat(Superblock.newer(foreign, torn)).isSameAs(torn);
        assertThat(Superblock.newer(torn, foreign)).isSameAs(torn);
    }

    @Test
    void givenDevicesOfAnySize_whenLaidOut_thenRegionsAreSmallAndInside() {
        for (long bytes : new long[] {64L << 20, 1L << 30, 100L << 30, 1L << 40}) {
            Geometry geometry = Geometry.of(bytes);
            long last = geometry.regionOffset(geometry.regions() - 1) + geometry.regionBytes();
            assertThat(last).isLessThanOrEqualTo(bytes);
            assertThat(geometry.regionBytes()).isLessThanOrEqualTo(Math.max(bytes / 200, Geometry.MIN_REGION_BYTES));
        }
        assertThatIllegalArgumentException()
                .isThrownBy(() -> Geometry.of(3L << 20))
                .withMessageContaining("3145728")
                .withMessageContaining("6291456");
    }
}
