package io.kvcache.core.contract;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.core.CacheStats;
import io.kvcache.core.KvCache;
import io.kvcache.core.ObjectView;
import io.kvcache.core.ObjectWriter;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.SealOutcome;
import io.kvcache.core.check.BlockContent;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.memory.ChunkedCrc;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Opaque objects by byte-string key.
public abstract class ObjectContract extends KvCacheContract {

    private static final byte[] KEY = {1, 2, 3};

    protected ObjectContract(CacheUnderTest.Factory factory) {
        super(factory);
    }

    private static BlockContent version(int number) {
        return content(OBJECTS, KEY).withVersion(number);
    }

    private ObjectWriter reserve(byte[] key, long bytes) {
        return cache().putObject(OBJECTS, key, bytes, KvCache.NO_WAIT);
    }

    @ParameterizedTest
    @ValueSource(
            ints = {
                1,
                2,
                4093, // the key's 3 bytes fill the page
                4095,
                4096,
                4097,
                16 * 4096,
                (64 << 10) - 1,
                64 << 10,
                (64 << 10) + 1,
                (1 << 20) - 1,
                1 << 20,
                (1 << 20) + 1,
                (5 << 20) + 12_345,
                (31 << 20) + (15 << 16) + (15 << 12) + 1
            })
    @Tag(ESSENTIAL)
    void givenAnObjectOfAnySize_whenRead_thenExactlyWhatWasPut(int bytes) {
        assertThat(putObject(KEY, version(1), bytes)).isEqualTo(SealOutcome.SEALED);
        try (ObjectView view = view(KEY)) {
            requireContent(view, version(1), bytes);
            view.segments().forEach(piece -> assertThat(piece.isReadOnly()).isTrue());
        }
        assertThat(putObject(KEY, version(2), bytes)).as("written over").isEqualTo(SealOutcome.SEALED);
        try (ObjectView view = view(KEY)) {
            requireContent(view, version(2), bytes);
        }
        subject().settle();
        assertThat(cache().stats().records().live()).isEqualTo(1);
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 100_000, 3 << 20})
    void givenBytesAtHand_whenStored_thenTheyAreReadAndWrittenOver(int bytes) {
        assertThat(cache().storeObject(OBJECTS, KEY, version(1).toHeapSegment(bytes), KvCache.NO_WAIT))
                .isTrue();
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment value = arena.allocate(bytes);
            version(2).fill(value);
            assertThat(cache().storeObject(OBJECTS, KEY, value, KvCache.NO_WAIT))
                    .isTrue();
        }
        try (ObjectView view = view(KEY)) {
            requireContent(view, version(2), bytes);
        }
        assertThatIllegalArgumentException()
                .isThrownBy(
                        () -> cache().storeObject(OBJECTS, KEY, MemorySegment.ofArray(new byte[0]), KvCache.NO_WAIT));
    }

    @Test
    @Tag("slow")
    void givenTheLargestObject_whenRead_thenExactlyWhatWasPut() {
        try (CacheUnderTest large = open(CacheSetup.SMALL.withHostBytes(320L << 20))) {
            large.cache().register(OBJECTS);
            try (ObjectWriter writer =
                    large.cache().putObject(OBJECTS, KEY, KvCache.MAX_OBJECT_BYTES, KvCache.NO_WAIT)) {
                long at = 0;
                for (MemorySegment piece : writer.segments()) {
                    version(1).fill(at, piece);
                    at += piece.byteSize();
                }
                assertThat(writer.seal()).isEqualTo(SealOutcome.SEALED);
            }
            ObjectView view = large.cache().getObject(OBJECTS, KEY);
            assertThat(view).isNotNull();
            requireContent(view, version(1), KvCache.MAX_OBJECT_BYTES);
            view.close();
            large.validate();
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 5000, 70_000, 3_000_000})
    void givenAnObjectSealedInAnyWay_whenViewed_thenItsChecksumIsOverValueAndKey(int bytes) {
        int sum = checksum(version(1).toHeapSegment(bytes).toArray(ValueLayout.JAVA_BYTE));
        putObject(KEY, version(1), bytes);
        try (ObjectView view = view(KEY)) {
            assertThat(view.checksum()).isEqualTo(sum);
        }
        try (ObjectWriter writer = reserve(new byte[] {9}, bytes)) {
            long at = 0;
            for (MemorySegment piece : writer.segments()) {
                version(1).fill(at, piece);
                at += piece.byteSize();
            }
            int other = checksum(version(1).toHeapSegment(bytes).toArray(ValueLayout.JAVA_BYTE), new byte[] {9});
            assertThat(writer.seal(other)).isEqualTo(SealOutcome.SEALED);
            assertThatIllegalStateException().isThrownBy(() -> writer.seal(other));
        }
        ObjectView view = view(new byte[] {9});
        try (view) {
            requireContent(view, version(1), bytes);
            assertThat(view.checksum()).isNotEqualTo(sum);
        }
        assertThatIllegalStateException().isThrownBy(view::checksum);
    }

    private static int checksum(byte[] value) {
        return checksum(value, KEY);
    }

    private static int checksum(byte[] value, byte[] key) {
        byte[] all = Arrays.copyOf(value, value.length + key.length);
        System.arraycopy(key, 0, all, value.length, key.length);
        return ChunkedCrc.of(MemorySegment.ofArray(all));
    }

    @Test
    @Tag(ESSENTIAL)
    void givenARangeOfAnObject_whenVisited_thenItsBytesInOrder() {
        int bytes = (1 << 20) + (64 << 10) + 5000;
        putObject(KEY, version(1), bytes);
        int[] cuts = {0, 1, 4096, (1 << 20) - 1, 1 << 20, (1 << 20) + (64 << 10), bytes - 1, bytes};
        try (ObjectView view = view(KEY)) {
            for (int from : cuts) {
                for (int to : cuts) {
                    if (from <= to) {
                        assertThat(visited(view, from, to)).isEqualTo(to);
                    }
                }
            }
            assertThatThrownBy(() -> view.visit(1, bytes, (_, _, _) -> {}))
                    .isInstanceOf(IndexOutOfBoundsException.class);
        }
    }

    private static long visited(ObjectView view, long from, long to) {
        long[] at = {from};
        view.visit(from, to - from, (memory, start, length) -> {
            version(1).requireEqual(at[0], memory.asSlice(start, length));
            assertThat(memory.isReadOnly()).isTrue();
            at[0] += length;
        });
        return at[0];
    }

    @Test
    void givenAnObjectThatArrivesInParts_whenSaidSo_thenItIsStoredAsIfNot() {
        int bytes = (1 << 20) + 5000;
        try (ObjectWriter writer = cache().putObject(OBJECTS, KEY, bytes, KvCache.NO_WAIT)) {
            long at = 0;
            for (MemorySegment piece : writer.segments()) {
                version(1).fill(at, piece);
                at += piece.byteSize();
            }
            writer.advance(0);
            writer.advance(70_001);
            writer.advance(900_000);
            assertThatThrownBy(() -> writer.advance(bytes)).isInstanceOf(IndexOutOfBoundsException.class);
            assertThat(writer.seal()).isEqualTo(SealOutcome.SEALED);
            assertThatThrownBy(() -> writer.advance(1)).isInstanceOf(IllegalStateException.class);
        }
        try (ObjectView view = view(KEY)) {
            requireContent(view, version(1), bytes);
        }
    }

    @Test
    @Tag(ESSENTIAL)
    void givenKeysOfAnyLength_whenStored_thenEachFindsItsOwn() {
        int[] lengths = {1, 2, 16, 255, 4095, 4096};
        for (int length : lengths) {
            byte[] key = new byte[length];
            putObject(key, content(OBJECTS, key), 100 + length);
        }
        for (int length : lengths) {
            byte[] key = new byte[length];
            try (ObjectView view = view(key)) {
                requireContent(view, content(OBJECTS, key), 100 + length);
            }
        }
        assertThat(cache().containsObject(OBJECTS, new byte[3])).isFalse();
    }

    @Test
    void givenAnObjectBeingWritten_whenLookedUp_thenInvisibleUntilSealed() {
        try (ObjectWriter writer = reserve(KEY, 5000)) {
            assertThat(writer.outcome()).isEqualTo(PutOutcome.RESERVED);
            assertThat(cache().containsObject(OBJECTS, KEY)).isFalse();
            assertThat(cache().getObject(OBJECTS, KEY)).isNull();
            writer.copyFrom(version(1).toHeapSegment(5000));
            assertThat(writer.seal()).isEqualTo(SealOutcome.SEALED);
            assertThatIllegalStateException().isThrownBy(writer::seal);
            assertThatIllegalStateException().isThrownBy(writer::segments);
        }
        assertThat(cache().containsObject(OBJECTS, KEY)).isTrue();
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    @Tag(ESSENTIAL)
    void givenTwoWritersOfAnObject_whenEachSeals_thenTheLastSealedStands(boolean begunFirst) {
        try (ObjectWriter first = reserve(KEY, 5000);
                ObjectWriter second = reserve(KEY, 70_000)) {
            assertThat(second.outcome()).isEqualTo(PutOutcome.RESERVED);
            first.copyFrom(version(1).toHeapSegment(5000));
            second.copyFrom(version(2).toHeapSegment(70_000));
            assertThat((begunFirst ? first : second).seal()).isEqualTo(SealOutcome.SEALED);
            requireValue(begunFirst ? 1 : 2, begunFirst ? 5000 : 70_000);
            assertThat((begunFirst ? second : first).seal()).isEqualTo(SealOutcome.SEALED);
        }
        requireValue(begunFirst ? 2 : 1, begunFirst ? 70_000 : 5000);
        subject().settle();
        assertThat(cache().stats().records().live()).isEqualTo(1);
        assertThat(cache().stats().removals().replaced()).isEqualTo(1);
    }

    @Test
    void givenThreeWritersOfAnObject_whenOneGivesUp_thenTheOthersDoNotNotice() {
        putObject(KEY, version(1), 100);
        ObjectWriter first = reserve(KEY, 6000);
        try (ObjectWriter second = reserve(KEY, 5000)) {
            ObjectWriter third = reserve(KEY, 70_000);
            first.close();
            requireValue(1, 100);
            second.copyFrom(version(2).toHeapSegment(5000));
            assertThat(second.seal()).isEqualTo(SealOutcome.SEALED);
            requireValue(2, 5000);
            third.close();
        }
        requireValue(2, 5000);
        subject().settle();
        assertThat(cache().stats().records().live()).isEqualTo(1);
    }

    @Test
    void givenTwoWritersOfAnObject_whenItIsDropped_thenNeitherValueComes() {
        try (ObjectWriter first = reserve(KEY, 10);
                ObjectWriter second = reserve(KEY, 10)) {
            assertThat(cache().dropObject(OBJECTS, KEY)).isFalse();
            assertThat(first.seal()).isEqualTo(SealOutcome.DROPPED);
            assertThat(second.seal()).isEqualTo(SealOutcome.DROPPED);
        }
        assertThat(cache().containsObject(OBJECTS, KEY)).isFalse();
        subject().settle();
        assertThat(cache().stats().host().heldBytes()).isZero();
    }

    private void requireValue(int number, int bytes) {
        try (ObjectView view = view(KEY)) {
            requireContent(view, version(number), bytes);
        }
    }

    @Test
    @Tag(ESSENTIAL)
    void givenAnAbandonedObject_whenLookedUp_thenNothingIsLeftAndAllBytesAreBack() {
        ObjectWriter writer = reserve(KEY, (3 << 20) + 70_000);
        writer.close();
        writer.close();
        assertThatIllegalStateException().isThrownBy(writer::segments);
        subject().settle();
        CacheStats stats = cache().stats();
        assertThat(stats.host().heldBytes()).isZero();
        assertThat(stats.records().live()).isZero();
        assertThat(stats.puts().abandoned()).isEqualTo(1);
        assertThat(cache().containsObject(OBJECTS, KEY)).isFalse();
    }

    @Test
    void givenAnObject_whenWrittenOver_thenTheOldIsThereUntilTheNewIsSealed() {
        putObject(KEY, version(1), 70_000);
        ObjectView old = view(KEY);
        try (ObjectWriter writer = reserve(KEY, 130_000)) {
            writer.copyFrom(version(2).toHeapSegment(130_000));
            try (ObjectView meanwhile = view(KEY)) {
                requireContent(meanwhile, version(1), 70_000);
            }
            assertThat(writer.seal()).isEqualTo(SealOutcome.SEALED);
        }
        try (ObjectView young = view(KEY)) {
            requireContent(young, version(2), 130_000);
        }
        requireContent(old, version(1), 70_000);
        old.close();
        subject().settle();
        assertThat(cache().stats().records().live()).isEqualTo(1);
        assertThat(cache().stats().removals().replaced()).isEqualTo(1);
    }

    @Test
    @Tag(ESSENTIAL)
    void givenASmallObject_whenStoredAgain_thenAnOpenViewKeepsItsBytesAndLaterReadersGetTheNewOnes() {
        for (int round = 1; round <= 20; round++) {
            int bytes = 10 + round % 3;
            assertThat(cache().storeObject(OBJECTS, KEY, version(round).toHeapSegment(bytes), KvCache.NO_WAIT))
                    .isTrue();
            requireValue(round, bytes);
            if (round % 2 == 0) {
                try (ObjectView view = view(KEY)) {
                    assertThat(cache().storeObject(OBJECTS, KEY, version(-round).toHeapSegment(bytes), KvCache.NO_WAIT))
                            .isTrue();
                    requireContent(view, version(round), bytes);
                }
                requireValue(-round, bytes);
            }
        }
        subject().settle();
        assertThat(cache().stats().records().live()).isEqualTo(1);
        assertThat(cache().stats().removals().replaced()).isEqualTo(29);
    }

    @Test
    void givenAnObject_whenAnOverwriteIsAbandoned_thenTheOldStays() {
        putObject(KEY, version(1), 70_000);
        reserve(KEY, 10).close();
        try (ObjectView view = view(KEY)) {
            requireContent(view, version(1), 70_000);
        }
    }

    @Test
    @Tag(ESSENTIAL)
    void givenAnObject_whenDropped_thenGoneOnceAndAnOpenViewKeepsItsBytes() {
        putObject(KEY, version(1), 70_000);
        try (ObjectView view = view(KEY)) {
            assertThat(cache().dropObject(OBJECTS, KEY)).isTrue();
            assertThat(cache().dropObject(OBJECTS, KEY)).isFalse();
            assertThat(cache().getObject(OBJECTS, KEY)).isNull();
            putObject(KEY, version(2), 70_000);
            requireContent(view, version(1), 70_000);
        }
        try (ObjectView view = view(KEY)) {
            requireContent(view, version(2), 70_000);
        }
    }

    @Test
    void givenAnObjectDroppedWhileItIsWritten_whenItSeals_thenDropped() {
        try (ObjectWriter writer = reserve(KEY, 10)) {
            assertThat(cache().dropObject(OBJECTS, KEY))
                    .as("nothing was there yet")
                    .isFalse();
            assertThat(writer.seal()).isEqualTo(SealOutcome.DROPPED);
        }
        assertThat(cache().containsObject(OBJECTS, KEY)).isFalse();
        subject().settle();
        assertThat(cache().stats().host().heldBytes()).isZero();
    }

    @Test
    @Tag(ESSENTIAL)
    void givenRanges_whenCopied_thenAnyPartOfTheObject() {
        long seed = 3;
        int bytes = (1 << 20) + (64 << 10) + 5000;
        putObject(KEY, version(1), bytes);
        SplittableRandom random = new SplittableRandom(seed);
        try (ObjectView view = view(KEY);
                Arena arena = Arena.ofConfined()) {
            for (int i = 0; i < 200; i++) {
                int offset = random.nextInt(bytes + 1);
                int length = random.nextInt(Math.min(bytes - offset, 200_000) + 1);
                MemorySegment target =
                        i % 2 == 0 ? MemorySegment.ofArray(new byte[length + 7]) : arena.allocate(length + 7);
                view.copyTo(offset, length, target);
                version(1).requireEqual(offset, target.asSlice(0, length));
                assertThat(target.asSlice(length).mismatch(MemorySegment.ofArray(new byte[7])))
                        .as("nothing behind the range is touched, seed %d", seed)
                        .isEqualTo(-1);
            }
        }
    }

    @Test
    void givenARangeOutside_whenCopied_thenRefused() {
        putObject(KEY, version(1), 5000);
        long[][] ranges = {{-1, 10}, {0, 5001}, {5000, 1}, {5001, 0}, {0, -1}, {Long.MAX_VALUE, 1}, {1, Long.MAX_VALUE}
        };
        try (ObjectView view = view(KEY)) {
            for (long[] range : ranges) {
                assertThatExceptionOfType(IndexOutOfBoundsException.class)
                        .as(Arrays.toString(range))
                        .isThrownBy(() -> view.copyTo(range[0], range[1], MemorySegment.ofArray(new byte[6000])));
            }
            assertThatExceptionOfType(IndexOutOfBoundsException.class)
                    .as("target too small")
                    .isThrownBy(() -> view.copyTo(0, 100, MemorySegment.ofArray(new byte[99])));
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 4999, 5001})
    void givenASourceOfTheWrongSize_whenCopied_thenRefusedWithBothSizes(int bytes) {
        try (ObjectWriter writer = reserve(KEY, 5000)) {
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> writer.copyFrom(version(1).toHeapSegment(bytes)))
                    .withMessageContaining("" + bytes)
                    .withMessageContaining("5000");
        }
    }

    @Test
    void givenTheSameKeyForAnotherTenant_whenLookedUp_thenTwoObjects() {
        Namespace other = Namespace.objects("objects", "other tenant");
        cache().register(other);
        putObject(KEY, version(1), 100);
        assertThat(cache().getObject(other, KEY)).isNull();
        assertThat(cache().dropObject(other, KEY)).isFalse();
        assertThat(cache().drop(other)).isZero();
        assertThat(cache().containsObject(OBJECTS, KEY)).isTrue();
    }
}
