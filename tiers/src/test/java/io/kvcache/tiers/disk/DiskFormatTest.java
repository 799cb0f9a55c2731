package io.kvcache.tiers.disk;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.kvcache.core.codec.StoredLayout;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.tiers.disk.DiskSet.Membership;
import io.kvcache.tiers.disk.Region.RegionEpoch;
import io.kvcache.tiers.disk.RegionTrailer.RegionFooter;
import io.kvcache.tiers.disk.RegionTrailer.RegionPredecessor;
import io.kvcache.tiers.disk.Superblock.Kind;
import io.kvcache.tiers.disk.Superblock.SuperblockCopy;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Collections;
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
    private static final RegionEpoch LIFE = new RegionEpoch(77, 3, 42);

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
                        65_536 + random.nextInt(200_000),
                        random.nextInt(),
                        StoredLayout.ofBits(random.nextBoolean() ? 0 : 257 + random.nextInt(3)),
                        random.nextLong()))
                .toList();
    }

    private MemorySegment pages(int count) {
        return arena.allocate((long) count * DiskGeometry.PAGE_BYTES, DiskGeometry.PAGE_BYTES);
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 62, 63})
    void givenABatch_whenWrittenAndRead_thenTheSame(int count) {
        WriteBatchHeader batchHeader = WriteBatchHeader.of(LIFE, 17, entries(count));
        MemorySegment head = pages(WriteBatchHeader.HEAD_PAGES);
        batchHeader.write(head);
        assertThat(WriteBatchHeader.read(head)).isEqualTo(batchHeader);
    }

    @Test
    void givenABatch_whenLaidOut_thenBlocksFollowTheHeadWithoutGaps() {
        WriteBatchHeader batchHeader = WriteBatchHeader.of(LIFE, 10, entries(50));
        int at = 10 + WriteBatchHeader.HEAD_PAGES;
        for (DiskEntry entry : batchHeader.entries()) {
            assertThat(entry.page()).isEqualTo(at);
            at += entry.pages();
        }
        assertThat(batchHeader.pages()).isEqualTo(at - 10);
    }

    @Test
    void givenAHeadWhoseBlocksDoNotFollowEachOther_whenRead_thenItIsNone() {
        MemorySegment head = pages(WriteBatchHeader.HEAD_PAGES);
        new WriteBatchHeader(LIFE, 10, 9, entries(2)).write(head);
        assertThat(WriteBatchHeader.read(head)).isNull();
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1, 64, 65, 500})
    void givenATrailer_whenWrittenAndRead_thenTheSame(int count) {
        RegionTrailer trailer = new RegionTrailer(LIFE, entries(count), 9, new RegionPredecessor(7, false));
        MemorySegment span = pages(RegionTrailer.pages(count));
        trailer.write(span, REGION_PAGES);
        RegionFooter footer = RegionFooter.read(span.asSlice(span.byteSize() - DiskGeometry.PAGE_BYTES), REGION_PAGES);
        assertThat(footer).isNotNull();
        assertThat(footer.epoch()).isEqualTo(LIFE);
        assertThat(footer.isFree()).isFalse();
        assertThat(footer.endedEpoch()).isEqualTo(9);
        assertThat(footer.tablePage()).isEqualTo(REGION_PAGES - RegionTrailer.pages(count));
        MemorySegment table = span.asSlice(0, footer.tableBytes());
        assertThat(MetadataCrc.of(table)).isEqualTo(footer.tableChecksum());
        assertThat(IntStream.range(0, footer.entries()).mapToObj(i -> DiskEntry.read(table, i)))
                .isEqualTo(trailer.entries());
    }

    @Test
    void givenTheFooterOfAFreeRegion_whenWrittenAndRead_thenTheSame() {
        MemorySegment page = pages(1);
        RegionFooter.free(LIFE, 41).write(page);
        assertThat(RegionFooter.read(page, REGION_PAGES)).isEqualTo(RegionFooter.free(LIFE, 41));
    }

    @Test
    void givenAnyFlippedBit_whenRead_thenNothingComesBack() {
        WriteBatchHeader batchHeader = WriteBatchHeader.of(LIFE, 0, entries(60));
        MemorySegment head = pages(WriteBatchHeader.HEAD_PAGES);
        RegionTrailer trailer = new RegionTrailer(LIFE, entries(90), 9, RegionPredecessor.UNKNOWN);
        MemorySegment span = pages(RegionTrailer.pages(90));
        for (int round = 0; round < 500; round++) {
            batchHeader.write(head);
            flip(head);
            assertThat(WriteBatchHeader.read(head)).isNull();
            trailer.write(span, REGION_PAGES);
            flip(span);
            RegionFooter footer =
                    RegionFooter.read(span.asSlice(span.byteSize() - DiskGeometry.PAGE_BYTES), REGION_PAGES);
            assertThat(footer != null && MetadataCrc.of(span.asSlice(0, footer.tableBytes())) == footer.tableChecksum())
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
        DiskGeneration generation = DiskGeneration.NONE;
        for (long id = 1; id < 100; id++) {
            generation = generation.next(id, Collections.nCopies(16, new DiskGeneration.Member(id, -id)));
        }
        assertThat(generation.line()).hasSize(DiskGeneration.MAX_LINE);
        Superblock block = new Superblock(
                99, 5, DiskGeometry.of(10L << 30), List.of(blocks, objects), new Membership(generation, 3, 4, 5));
        MemorySegment span = arena.allocate(DiskGeometry.SUPERBLOCK_BYTES);
        assertThat(Superblock.read(span).kind()).isEqualTo(Kind.BLANK);
        span.set(ValueLayout.JAVA_BYTE, 100_000, (byte) 1);
        assertThat(Superblock.read(span).kind()).isEqualTo(Kind.FOREIGN);
        block.write(span);
        assertThat(Superblock.read(span)).isEqualTo(new SuperblockCopy(Kind.INTACT, block, Superblock.FORMAT_VERSION));
        span.set(ValueLayout.JAVA_BYTE, 100, (byte) (span.get(ValueLayout.JAVA_BYTE, 100) ^ 1));
        assertThat(Superblock.read(span).kind()).isEqualTo(Kind.DAMAGED);
    }

    @Test
    void givenATableFullOfNamespaces_whenOneMoreComes_thenThereIsNoRoom() {
        Superblock block = new Superblock(1, 1, DiskGeometry.of(1L << 30), List.of(), Membership.NONE);
        int count = 0;
        Superblock next = block.withNamespace(longNamespace(count));
        while (next != null) {
            block = next;
            count++;
            next = block.withNamespace(longNamespace(count));
        }
        assertThat(count).isBetween(280, 300);
        MemorySegment span = arena.allocate(DiskGeometry.SUPERBLOCK_BYTES);
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
        MemorySegment span = arena.allocate(DiskGeometry.SUPERBLOCK_BYTES);
        new Superblock(99, 5, DiskGeometry.of(10L << 30), List.of(), Membership.NONE).write(span);
        span.set(DiskEntry.INT32, 12, 9);
        MetadataCrc.write(span);
        assertThat(Superblock.read(span)).isEqualTo(new SuperblockCopy(Kind.OTHER_VERSION, null, 9));
    }

    @Test
    void givenTwoCopies_whenOneIsNotSound_thenTheOtherCounts() {
        DiskGeometry geometry = DiskGeometry.of(1L << 30);
        SuperblockCopy sound =
                new SuperblockCopy(Kind.INTACT, new Superblock(9, 5, geometry, List.of(), Membership.NONE), 1);
        SuperblockCopy later =
                new SuperblockCopy(Kind.INTACT, new Superblock(9, 6, geometry, List.of(), Membership.NONE), 1);
        assertThat(Superblock.selectNewer(sound, later)).isSameAs(later);
        assertThat(Superblock.selectNewer(later, sound)).isSameAs(later);
        for (Kind kind : Kind.values()) {
            if (kind != Kind.INTACT) {
                SuperblockCopy other = SuperblockCopy.invalid(kind);
                assertThat(Superblock.selectNewer(other, sound)).isSameAs(sound);
                assertThat(Superblock.selectNewer(sound, other)).isSameAs(sound);
            }
        }
        SuperblockCopy blank = SuperblockCopy.invalid(Kind.BLANK);
        SuperblockCopy damaged = SuperblockCopy.invalid(Kind.DAMAGED);
        assertThat(Superblock.selectNewer(blank, damaged)).isSameAs(damaged);
        assertThat(Superblock.selectNewer(damaged, blank)).isSameAs(damaged);
    }

    @Test
    void givenDevicesOfAnySize_whenLaidOut_thenRegionsAreSmallAndInside() {
        for (long bytes : new long[] {64L << 20, 1L << 30, 100L << 30, 1L << 40}) {
            DiskGeometry geometry = DiskGeometry.of(bytes);
            long last = geometry.regionOffset(geometry.regions() - 1) + geometry.regionBytes();
            assertThat(last).isLessThanOrEqualTo(bytes);
            assertThat(geometry.regionBytes())
                    .isLessThanOrEqualTo(Math.max(bytes / 200, DiskGeometry.MIN_REGION_BYTES));
        }
        assertThatIllegalArgumentException()
                .isThrownBy(() -> DiskGeometry.of(3L << 20))
                .withMessageContaining("3145728")
                .withMessageContaining("6291456");
    }

    @Test
    void givenACodedBlockThatTakesMoreThanAPlainOne_whenRead_thenTheEntryIsNotTaken() {
        StoredLayout layout = new StoredLayout(StoredLayout.EXPONENT_CODEC, 5);
        DiskEntry entry = new DiskEntry(1, 2, 0, 0, 0, 0, 1, 65_536, 3, layout, 0);
        assertThat(entry.isValid()).isFalse();
        assertThat(entry.withLayout(new StoredLayout(StoredLayout.EXPONENT_CODEC, 4))
                        .isValid())
                .isTrue();
    }

    @Test
    void givenADescriptorOfALaterVersion_whenRead_thenTheEntryIsNotTaken() {
        MemorySegment table = pages(1);
        new DiskEntry(1, 2, 0, 0, 0, 0, 1, 65_536, 3, StoredLayout.PLAIN, 0).write(table, 0);
        assertThat(DiskEntry.read(table, 0).isValid()).isTrue();
        for (int descriptor : new int[] {2, 0x1_0000, 0x100_0000, 1}) {
            table.set(DiskEntry.INT32, 52, descriptor);
            assertThat(DiskEntry.read(table, 0).isValid()).as("%x", descriptor).isFalse();
        }
    }

    @Test
    void givenAPlace_whenTakenApart_thenItsPartsComeBack() {
        StoredLayout layout = new StoredLayout(StoredLayout.EXPONENT_CODEC, StoredLayout.MAX_HEAD_PAGES);
        long address = LogAddress.of(layout, (1 << 11) - 1, LogAddress.MAX_REGIONS - 1, (1 << 17) - 1);
        assertThat(address).isEqualTo((1L << LogAddress.BITS) - 1);
        assertThat(StoredLayout.ofAddress(address)).isEqualTo(layout);
        assertThat(LogAddress.BITS).isEqualTo(59);
        assertThat(LogAddress.region(address)).isEqualTo(LogAddress.MAX_REGIONS - 1);
        assertThat(LogAddress.page(address)).isEqualTo((1 << 17) - 1);
        assertThat(LogAddress.of(StoredLayout.PLAIN, 1 << 11, 5, 6))
                .as("generations wrap")
                .isEqualTo(LogAddress.of(StoredLayout.PLAIN, 0, 5, 6));
    }
}
