package io.kvcache.tiers.disk;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.tiers.disk.Superblock.Found;
import io.kvcache.tiers.disk.Superblock.Kind;
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
    private static final Life LIFE = new Life(77, 3, 42);

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
                        random.nextInt() << 8 | DiskEntry.OBJECT,
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
    @ValueSource(ints = {1, 2, 62, 63})
    void givenAGroup_whenWrittenAndRead_thenTheSame(int count) {
        Group group = Group.of(LIFE, 17, entries(count));
        MemorySegment head = pages(Group.HEAD_PAGES);
        group.write(head);
        assertThat(Group.read(head)).isEqualTo(group);
    }

    @Test
    void givenAGroup_whenLaidOut_thenBlocksFollowTheHeadWithoutGaps() {
        Group group = Group.of(LIFE, 10, entries(50));
        int at = 10 + Group.HEAD_PAGES;
        for (DiskEntry entry : group.entries()) {
            assertThat(entry.page()).isEqualTo(at);
            at += entry.pages();
        }
        assertThat(group.pages()).isEqualTo(at - 10);
    }

    @Test
    void givenAHeadWhoseBlocksDoNotFollowEachOther_whenRead_thenItIsNone() {
        MemorySegment head = pages(Group.HEAD_PAGES);
        new Group(LIFE, 10, 9, entries(2)).write(head);
        assertThat(Group.read(head)).isNull();
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1, 64, 65, 500})
    void givenATrailer_whenWrittenAndRead_thenTheSame(int count) {
        Trailer trailer = new Trailer(LIFE, entries(count), 9, new Predecessor(7, false));
        MemorySegment span = pages(Trailer.pages(count));
        trailer.write(span, REGION_PAGES);
        Footer footer = Footer.read(span.asSlice(span.byteSize() - Geometry.PAGE_BYTES), REGION_PAGES);
        assertThat(footer).isNotNull();
        assertThat(footer.life()).isEqualTo(LIFE);
        assertThat(footer.isFree()).isFalse();
        assertThat(footer.over()).isEqualTo(9);
        assertThat(footer.tablePage()).isEqualTo(REGION_PAGES - Trailer.pages(count));
        MemorySegment table = span.asSlice(0, footer.tableBytes());
        assertThat(Checksum.of(table)).isEqualTo(footer.tableChecksum());
        assertThat(IntStream.range(0, footer.entries()).mapToObj(i -> EntryTable.read(table, i)))
                .isEqualTo(trailer.entries());
    }

    @Test
    void givenTheFooterOfAFreeRegion_whenWrittenAndRead_thenTheSame() {
        MemorySegment page = pages(1);
        Footer.free(LIFE, 41).write(page);
        assertThat(Footer.read(page, REGION_PAGES)).isEqualTo(Footer.free(LIFE, 41));
    }

    @Test
    void givenAnyFlippedBit_whenRead_thenNothingComesBack() {
        Group group = Group.of(LIFE, 0, entries(60));
        MemorySegment head = pages(Group.HEAD_PAGES);
        Trailer trailer = new Trailer(LIFE, entries(90), 9, Predecessor.UNKNOWN);
        MemorySegment span = pages(Trailer.pages(90));
        for (int round = 0; round < 500; round++) {
            group.write(head);
            flip(head);
            assertThat(Group.read(head)).isNull();
            trailer.write(span, REGION_PAGES);
            flip(span);
            Footer footer = Footer.read(span.asSlice(span.byteSize() - Geometry.PAGE_BYTES), REGION_PAGES);
            assertThat(footer != null && Checksum.of(span.asSlice(0, footer.tableBytes())) == footer.tableChecksum())
                    .isFalse();
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
        Superblock block = new Superblock(99, 5, Geometry.of(10L << 30), List.of(blocks, objects));
        MemorySegment span = arena.allocate(Geometry.SUPERBLOCK_BYTES);
        assertThat(Superblock.read(span).kind()).isEqualTo(Kind.BLANK);
        span.set(ValueLayout.JAVA_BYTE, 100_000, (byte) 1);
        assertThat(Superblock.read(span).kind()).isEqualTo(Kind.FOREIGN);
        block.write(span);
        assertThat(Superblock.read(span)).isEqualTo(new Found(Kind.SOUND, block, 1));
        span.set(ValueLayout.JAVA_BYTE, 100, (byte) (span.get(ValueLayout.JAVA_BYTE, 100) ^ 1));
        assertThat(Superblock.read(span).kind()).isEqualTo(Kind.DAMAGED);
    }

    @Test
    void givenATableFullOfNamespaces_whenOneMoreComes_thenThereIsNoRoom() {
        Superblock block = new Superblock(1, 1, Geometry.of(1L << 30), List.of());
        int count = 0;
        Superblock next = block.with(longNamespace(count));
        while (next != null) {
            block = next;
            count++;
            next = block.with(longNamespace(count));
        }
        assertThat(count).isBetween(280, 300);
        MemorySegment span = arena.allocate(Geometry.SUPERBLOCK_BYTES);
        block.write(span);
        assertThat(Superblock.read(span).superblock()).isEqualTo(block);
    }

    private static Namespace longNamespace(int number) {
        String text = "n".repeat(500);
        return Namespace.builder(text + number)
                .revision(text)
                .dtype(text)
                .layout(text)
                .adapter(text)
                .tenant(text)
                .salt(text)
                .build();
    }

    @Test
    void givenAnotherFormatVersion_whenRead_thenItIsToldAndNotGuessedAt() {
        MemorySegment span = arena.allocate(Geometry.SUPERBLOCK_BYTES);
        new Superblock(99, 5, Geometry.of(10L << 30), List.of()).write(span);
        span.set(EntryTable.INT32, 12, 2);
        Seal.close(span);
        assertThat(Superblock.read(span)).isEqualTo(new Found(Kind.OTHER_VERSION, null, 2));
    }

    @Test
    void givenTwoCopies_whenOneIsNotSound_thenTheOtherCounts() {
        Geometry geometry = Geometry.of(1L << 30);
        Found sound = new Found(Kind.SOUND, new Superblock(9, 5, geometry, List.of()), 1);
        Found later = new Found(Kind.SOUND, new Superblock(9, 6, geometry, List.of()), 1);
        assertThat(Superblock.newer(sound, later)).isSameAs(later);
        assertThat(Superblock.newer(later, sound)).isSameAs(later);
        for (Kind kind : Kind.values()) {
            if (kind != Kind.SOUND) {
                Found other = Found.nothing(kind);
                assertThat(Superblock.newer(other, sound)).isSameAs(sound);
                assertThat(Superblock.newer(sound, other)).isSameAs(sound);
            }
        }
        Found blank = Found.nothing(Kind.BLANK);
        Found damaged = Found.nothing(Kind.DAMAGED);
        assertThat(Superblock.newer(blank, damaged)).isSameAs(damaged);
        assertThat(Superblock.newer(damaged, blank)).isSameAs(damaged);
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

    @Test
    void givenAPlace_whenTakenApart_thenItsPartsComeBack() {
        long place = DiskPlace.of((1 << 20) - 1, DiskPlace.MAX_REGIONS - 1, (1 << 17) - 1);
        assertThat(place).isEqualTo((1L << DiskPlace.BITS) - 1);
        assertThat(DiskPlace.BITS).isEqualTo(59);
        assertThat(DiskPlace.region(place)).isEqualTo(DiskPlace.MAX_REGIONS - 1);
        assertThat(DiskPlace.page(place)).isEqualTo((1 << 17) - 1);
        assertThat(DiskPlace.of(1 << 20, 5, 6)).as("generations wrap").isEqualTo(DiskPlace.of(0, 5, 6));
    }
}
