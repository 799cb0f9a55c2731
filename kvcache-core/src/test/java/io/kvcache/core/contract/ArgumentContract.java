package io.kvcache.core.contract;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.core.BlockTable;
import io.kvcache.core.Hint;
import io.kvcache.core.KvCache;
import io.kvcache.core.RequestKind;
import io.kvcache.core.RequestLabel;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.ByteRange;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.Collections;
import java.util.List;
import java.util.stream.Stream;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/// The caller's bugs: refused at once, by an exception that names the value and what is allowed, and without
/// trace.
public abstract class ArgumentContract extends KvCacheContract {

    private static final byte[] KEY = {1};

    protected ArgumentContract(CacheUnderTest.Factory factory) {
        super(factory);
    }

    /// Refused by an `IllegalArgumentException` or `IndexOutOfBoundsException` whose message has all of
    /// `words`.
    private static void assertRefused(ThrowingCallable call, Object... words) {
        assertThatThrownBy(call)
                .isInstanceOfAny(IllegalArgumentException.class, IndexOutOfBoundsException.class)
                .hasMessageContainingAll(Stream.of(words).map(Object::toString).toArray(String[]::new));
    }

    @Test
    @Tag(ESSENTIAL)
    void givenAnotherShape_whenRegistered_thenRefusedWithBothShapes() {
        BlockShape mine = MIB.parts().getFirst().shape();
        BlockShape other = BlockShape.kv(16, 2, 1024, BLOCK_TOKENS, Dtype.BF16);
        Namespace wrong =
                MIB.toBuilder().parts(Namespace.of("x", other).parts()).build();
        assertRefused(() -> cache().register(wrong), mine.describe(), other.describe());
        assertThat(match(chain(1, 1))).isZero();
        cache().register(MIB);
    }

    @Test
    void givenABlockLargerThanTheStore_whenRegistered_thenRefusedWithBothSizes() {
        Namespace large = Namespace.of("large", BlockShape.kv(1024, 1, 1024 * 2, 16, Dtype.BF16));
        assertRefused(() -> cache().register(large), blockBytes(large), 64 << 20);
    }

    @Test
    @Tag(ESSENTIAL)
    void givenAnUnregisteredNamespace_whenUsed_thenRefusedByName() {
        Namespace stranger = blocksOf("stranger", 1, 1024);
        BlockChain chain = chain(stranger, 1, 1);
        assertRefused(() -> cache().match(chain), "stranger");
        assertRefused(() -> cache().acquire(chain), "stranger");
        assertRefused(() -> cache().put(chain, 0, 0, KvCache.NO_WAIT), "stranger");
        assertRefused(
                () -> cache().putAll(chain, 0, List.of(MemorySegment.ofArray(new byte[65_536])), KvCache.NO_WAIT),
                "stranger");
        assertRefused(
                () -> cache().getRange(
                                chain,
                                0,
                                new ByteRange(0, 1),
                                List.of(MemorySegment.ofArray(new byte[1])),
                                KvCache.NO_WAIT),
                "stranger");
        assertRefused(() -> cache().drop(chain, 0), "stranger");
        assertRefused(() -> cache().drop(stranger), "stranger");
        assertRefused(() -> cache().hint(new Hint.Expect(chain, Duration.ZERO)), "stranger");
        assertRefused(() -> cache().putObject(stranger, KEY, 1, KvCache.NO_WAIT), "stranger");
        assertRefused(() -> cache().getObject(stranger, KEY), "stranger");
        assertRefused(() -> cache().containsObject(stranger, KEY), "stranger");
        assertRefused(() -> cache().dropObject(stranger, KEY), "stranger");
    }

    @ParameterizedTest
    @ValueSource(ints = {-1, 3, Integer.MIN_VALUE, Integer.MAX_VALUE})
    void givenAnIndexOutsideTheChain_whenPut_thenRefused(int index) {
        assertRefused(() -> cache().put(chain(1, 3), index, 0, KvCache.NO_WAIT), index, 3);
    }

    @ParameterizedTest
    @ValueSource(ints = {-1, 4, Integer.MIN_VALUE, Integer.MAX_VALUE})
    void givenAStartOutsideTheChain_whenAcquiredOrDropped_thenRefused(int from) {
        assertRefused(() -> cache().acquire(chain(1, 3), from, KvCache.NO_WAIT), from, 3);
        assertRefused(() -> cache().drop(chain(1, 3), from), from, 3);
    }

    @ParameterizedTest
    @CsvSource({"-1, 1", "3, 1", "1, 3", "2147483647, 1"})
    void givenARunOutsideTheChain_whenPutAll_thenRefused(int from, int count) {
        List<MemorySegment> blocks = Collections.nCopies(count, MemorySegment.ofArray(new byte[1 << 20]));
        assertRefused(() -> cache().putAll(chain(1, 3), from, blocks, KvCache.NO_WAIT), from, 3);
        assertThat(match(chain(1, 3))).isZero();
    }

    @Test
    @Tag(ESSENTIAL)
    void givenABlockOfTheWrongSizeInARun_whenPutAll_thenRefusedAndWhatWasStoredStays() {
        BlockChain chain = chain(1, 2);
        List<MemorySegment> blocks = List.of(
                content(chain, 0).toHeapSegment(1 << 20), content(chain, 1).toHeapSegment(1000));
        assertRefused(() -> cache().putAll(chain, 0, blocks, KvCache.NO_WAIT), 1000, 1 << 20);
        assertThat(verified(chain)).isEqualTo(1);
        subject().settle();
        assertThat(cache().stats().records().live()).isEqualTo(1);
    }

    @ParameterizedTest
    @CsvSource({
        "-1, 0, 1, 1, -1",
        "4, 0, 1, 1, 4",
        "0, 0, 1048577, 1048577, 1048576",
        "0, 1048576, 1, 1, 1048577",
        "0, 0, 16, 15, 15"
    })
    void givenARangeThatCannotBe_whenRead_thenRefused(int from, long offset, long bytes, int room, String named) {
        BlockChain chain = chain(1, 3);
        List<MemorySegment> into = List.of(MemorySegment.ofArray(new byte[room]));
        assertRefused(() -> cache().getRange(chain, from, new ByteRange(offset, bytes), into, KvCache.NO_WAIT), named);
    }

    @ParameterizedTest
    @ValueSource(ints = {-1, 1, Integer.MAX_VALUE})
    void givenAPartThatIsNotThere_whenPut_thenRefused(int part) {
        assertRefused(() -> cache().put(chain(1, 1), 0, part, KvCache.NO_WAIT), part, 0);
    }

    @ParameterizedTest
    @ValueSource(longs = {-1, Long.MIN_VALUE})
    void givenANegativeTimeout_whenWaiting_thenRefused(long nanos) {
        Duration timeout = Duration.ofNanos(nanos);
        assertRefused(() -> cache().put(chain(1, 1), 0, 0, timeout), timeout, 0);
        assertRefused(() -> cache().acquire(chain(1, 1), 0, timeout), timeout, 0);
        List<MemorySegment> blocks = List.of(content(chain(1, 1), 0).toHeapSegment(1 << 20));
        assertRefused(() -> cache().putAll(chain(1, 1), 0, blocks, timeout), timeout, 0);
        assertRefused(() -> cache().getRange(chain(1, 1), 0, new ByteRange(0, 1), blocks, timeout), timeout, 0);
        assertRefused(() -> cache().putObject(OBJECTS, KEY, 1, timeout), timeout, 0);
    }

    @Test
    void givenANegativeTimeout_whenATableIsAwaited_thenRefused() {
        BlockChain chain = stored(chain(1, 2));
        try (BlockTable table = cache().acquire(chain);
                BlockTable miss = cache().acquire(chain(2, 2))) {
            assertRefused(() -> table.await(1, Duration.ofNanos(-1)), Duration.ofNanos(-1), 0);
            assertRefused(() -> miss.await(1, Duration.ofNanos(-1)), Duration.ofNanos(-1), 0);
        }
    }

    @ParameterizedTest
    @ValueSource(longs = {0, -1, KvCache.MAX_OBJECT_BYTES + 1, Long.MAX_VALUE})
    void givenAnObjectSizeOutOfRange_whenPut_thenRefused(long bytes) {
        assertRefused(
                () -> cache().putObject(OBJECTS, KEY, bytes, KvCache.NO_WAIT), bytes, 1, KvCache.MAX_OBJECT_BYTES);
    }

    @ParameterizedTest
    @ValueSource(ints = {0, KvCache.MAX_OBJECT_KEY_BYTES + 1})
    void givenAnObjectKeyOutOfRange_whenUsed_thenRefused(int length) {
        byte[] key = new byte[length];
        assertRefused(
                () -> cache().putObject(OBJECTS, key, 1, KvCache.NO_WAIT), length, 1, KvCache.MAX_OBJECT_KEY_BYTES);
        assertRefused(() -> cache().getObject(OBJECTS, key), length, 1, KvCache.MAX_OBJECT_KEY_BYTES);
        assertRefused(() -> cache().containsObject(OBJECTS, key), length, 1, KvCache.MAX_OBJECT_KEY_BYTES);
        assertRefused(() -> cache().dropObject(OBJECTS, key), length, 1, KvCache.MAX_OBJECT_KEY_BYTES);
    }

    @Test
    void givenABlockIndexOutsideTheTable_whenItsSegmentIsAsked_thenRefused() {
        BlockChain chain = chain(1, 6);
        stored(chain.prefix(4));
        try (BlockTable table = cache().acquire(chain, 2, KvCache.NO_WAIT)) {
            for (int index : new int[] {-1, 0, 1, 4, 5, 6, Integer.MAX_VALUE}) {
                assertThatThrownBy(() -> table.segment(index))
                        .isInstanceOf(IndexOutOfBoundsException.class)
                        .hasMessageContaining("" + index);
            }
        }
        try (BlockTable miss = cache().acquire(chain(2, 1))) {
            assertThatThrownBy(() -> miss.segment(0)).isInstanceOf(IndexOutOfBoundsException.class);
        }
    }

    @Test
    @Tag(ESSENTIAL)
    void givenATargetTooSmall_whenABlockIsCopied_thenRefused() {
        try (BlockTable table = cache().acquire(stored(chain(1, 1)))) {
            assertThatThrownBy(() -> table.copyTo(0, MemorySegment.ofArray(new byte[100])))
                    .isInstanceOf(IndexOutOfBoundsException.class);
        }
    }

    @Test
    void givenImpossibleWeights_whenMade_thenRefusedWithTheRange() {
        BlockChain chain = chain(1, 3);
        assertRefused(() -> new Hint.Weigh(chain, 0, List.of(1f, 1.5f)), "weight 1 is 1.5", "0 to 1");
        assertRefused(() -> new Hint.Weigh(chain, 0, List.of(-0.1f)), "weight 0 is -0.1", "0 to 1");
        assertRefused(() -> new Hint.Weigh(chain, 0, List.of(Float.NaN)), "NaN", "0 to 1");
        assertRefused(() -> new Hint.Weigh(chain, 2, List.of(1f, 1f)), "2 weights from block 2", "3 blocks");
    }

    @Test
    void givenNegativeNumbersInHints_whenMade_thenRefused() {
        assertThatIllegalArgumentException().isThrownBy(() -> new Hint.Expect(chain(1, 1), Duration.ofNanos(-1)));
        assertThatIllegalArgumentException().isThrownBy(() -> new Hint.Pin(chain(1, 1), Duration.ofNanos(-1)));
        assertThatIllegalArgumentException().isThrownBy(() -> new Hint.Forget(chain(1, 1), -1));
        assertThatIllegalArgumentException().isThrownBy(() -> new Hint.Expire(chain(1, 1), 0, Duration.ofNanos(-1)));
        assertRefused(() -> new RequestLabel(RequestKind.CHAT, 1, -2, false), "turn is -2", "1 and up");
    }

    @ParameterizedTest
    @ValueSource(ints = {-1, 0, 65_537})
    void givenAnEventCountOutOfRange_whenAsked_thenRefused(int max) {
        assertRefused(() -> cache().events().since(0, max), max, 1, 65_536);
    }

    @Test
    @Tag(ESSENTIAL)
    void givenRefusals_whenCounted_thenTheyLeftNothing() {
        assertThatThrownBy(() -> cache().put(chain(1, 1), 5, 0, KvCache.NO_WAIT))
                .isInstanceOf(RuntimeException.class);
        assertThatThrownBy(() -> cache().putObject(OBJECTS, new byte[0], 5, KvCache.NO_WAIT))
                .isInstanceOf(RuntimeException.class);
        subject().settle();
        assertThat(cache().stats().records().live()).isZero();
        subject().settle();
        assertThat(cache().stats().host().heldBytes()).isZero();
        assertThat(cache().stats().openTables()).isZero();
    }
}
