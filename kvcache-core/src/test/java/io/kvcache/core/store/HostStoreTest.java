package io.kvcache.core.store;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.kvcache.core.PutOutcome;
import io.kvcache.core.SealOutcome;
import io.kvcache.core.event.CacheEvent;
import io.kvcache.core.event.EventKind;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.identity.Part;
import io.kvcache.core.identity.PartKind;
import io.kvcache.core.identity.RopeOrigin;
import io.kvcache.core.memory.ArenaMemory;
import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.core.store.HostStore.HostStoreConfig;
import io.kvcache.core.store.HostStore.PutReservation;
import io.kvcache.core.store.NamespaceRegistry.NamespaceEntry;
import io.kvcache.core.tree.RecordHandle;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

final class HostStoreTest {

    private static final Namespace OBJECTS = Namespace.objects("objects", "t");

    /// 16 tokens of 64 KiB: a block of 1 MiB, 32 to a slab.
    private static final Namespace SPACE = Namespace.of("m", BlockShape.kv(16, 8, 128, 16, Dtype.BF16));

    private final HostStore store = new HostStore(
            new HostStoreConfig(2 * SlabPool.MIN_BYTES, 1000, PolicyKind.LRU, 1024), ArenaMemory.source());
    private final NamespaceEntry entry = store.register(SPACE);

    @AfterEach
    void validateAndClose() {
        store.validate();
        store.close();
    }

    private static BlockChain chain(int seed, int blocks) {
        return BlockChain.of(
                SPACE,
                IntStream.range(0, blocks * 16).map(i -> i + seed * 1_000_000).toArray());
    }

    private void fill(BlockChain chain, int from, int to) {
        for (int index = from; index < to; index++) {
            PutReservation putReservation = store.reserve(entry, chain, index);
            assertThat(putReservation.outcome()).isEqualTo(PutOutcome.RESERVED);
            assertThat(store.seal(putReservation.record(), index)).isEqualTo(SealOutcome.SEALED);
        }
    }

    private int match(BlockChain chain) {
        return store.lookup().match(chain, chain.length());
    }

    private NamespaceEntry objects() {
        return store.register(OBJECTS);
    }

    private static BlockKey object(int number) {
        return BlockKey.ofObject(OBJECTS, new byte[] {(byte) number});
    }

    @Test
    void givenSealedBlocks_whenMatched_thenTheirPrefixIsFound() {
        BlockChain chain = chain(1, 10);
        fill(chain, 0, 7);
        assertThat(match(chain)).isEqualTo(7);
        assertThat(match(chain.prefix(3))).isEqualTo(3);
        assertThat(match(chain(2, 4))).isZero();
        assertThat(store.reserve(entry, chain, 3).outcome()).isEqualTo(PutOutcome.PRESENT);
        assertThat(store.reserve(entry, chain, 9).outcome()).isEqualTo(PutOutcome.NO_PARENT);
    }

    @Test
    void givenAnyPrefix_whenWalkedBlockByBlock_thenAsMatched() {
        for (int blocks = 0; blocks <= 40; blocks++) {
            BlockChain chain = chain(1, 45);
            fill(chain, Math.max(0, blocks - 1), blocks);
            for (int limit : new int[] {0, 1, 15, 16, 17, 40, 45}) {
                assertThat(store.lookup().match(chain, limit))
                        .as("%d blocks here, looking at %d", blocks, limit)
                        .isEqualTo(Math.min(blocks, limit));
            }
        }
    }

    @Test
    void givenParentUnsealed_whenChildSeals_thenItWaitsForTheParent() {
        BlockChain chain = chain(1, 3);
        int first = store.reserve(entry, chain, 0).record();
        int second = store.reserve(entry, chain, 1).record();
        int third = store.reserve(entry, chain, 2).record();
        assertThat(store.reserve(entry, chain, 0).outcome()).isEqualTo(PutOutcome.BUSY);
        assertThat(store.seal(third, 0)).isEqualTo(SealOutcome.PENDING);
        assertThat(store.seal(second, 0)).isEqualTo(SealOutcome.PENDING);
        assertThat(match(chain)).isZero();
        assertThat(store.seal(first, 0)).isEqualTo(SealOutcome.SEALED);
        assertThat(match(chain)).isEqualTo(3);
    }

    @Test
    void givenParentAbandoned_whenChildSeals_thenItIsDropped() {
        BlockChain chain = chain(1, 3);
        int first = store.reserve(entry, chain, 0).record();
        int second = store.reserve(entry, chain, 1).record();
        int third = store.reserve(entry, chain, 2).record();
        store.seal(third, 0);
        store.abandon(first);
        assertThat(store.seal(second, 0)).isEqualTo(SealOutcome.DROPPED);
        assertThat(store.stats(0).records().live()).isZero();
    }

    @Test
    void givenFullStore_whenPut_thenLeavesGoOldestChainFirst() {
        BlockChain old = chain(1, 32);
        BlockChain young = chain(2, 32);
        fill(old, 0, 32);
        fill(young, 0, 32);
        fill(chain(3, 1), 0, 1);
        assertThat(match(old)).isEqualTo(31);
        assertThat(match(young)).isEqualTo(32);
    }

    @Test
    void givenEverythingPinned_whenPut_thenRefusedByValue() {
        BlockChain one = chain(1, 64);
        fill(one, 0, 64);
        long handle = store.lookup().pinDeepest(one);
        assertThat(store.reserve(entry, chain(2, 1), 0).outcome()).isEqualTo(PutOutcome.NO_ROOM);
        store.lookup().unpin(RecordHandle.record(handle));
        assertThat(store.reserve(entry, chain(2, 1), 0).outcome()).isEqualTo(PutOutcome.RESERVED);
    }

    @Test
    void givenPinnedTable_whenChainIsDropped_thenSlotsStayUntilTheLastUnpin() {
        BlockChain chain = chain(1, 5);
        fill(chain, 0, 5);
        long handle = store.lookup().pinDeepest(chain);
        assertThat(store.drop(chain.keyHi(1), chain.keyLo(1))).isEqualTo(4);
        assertThat(match(chain)).isEqualTo(1);
        assertThat(store.stats(0).records().live()).isEqualTo(5);
        fill(chain, 1, 5);
        assertThat(match(chain)).isEqualTo(5);
        store.lookup().unpin(RecordHandle.record(handle));
        assertThat(store.stats(0).records().live()).isEqualTo(5);
        assertThatIllegalStateException().isThrownBy(() -> store.lookup().unpin(RecordHandle.record(handle)));
    }

    @Test
    void givenBlocksFillTheStore_whenAnObjectComes_thenItGetsASlab() {
        fill(chain(1, 64), 0, 64);
        NamespaceEntry objects = objects();
        BlockKey key = object(1);
        PutReservation putReservation = store.reserveObject(objects, key, (1 << 20) + (64 << 10) + 1);
        assertThat(putReservation.outcome()).isEqualTo(PutOutcome.RESERVED);
        assertThat(store.segments(putReservation.record())).hasSize(3); // 1 MiB, 64 KiB and 4 KiB
        assertThat(store.seal(putReservation.record(), 0)).isEqualTo(SealOutcome.SEALED);
        assertThat(store.stats(0).host().slabMoves()).isPositive();
    }

    @Test
    void givenAnotherShape_whenRegistered_thenRefusedWithBothShapes() {
        Namespace other = Namespace.of("m", BlockShape.kv(16, 4, 128, 16, Dtype.BF16));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> store.register(other))
                .withMessageContaining("Registered: FULL")
                .withMessageContaining("Asked for: FULL");
    }

    @Test
    void givenAnObject_whenReplaced_thenEventsSayGoneBeforeStored() {
        NamespaceEntry objects = objects();
        BlockKey key = object(1);
        store.seal(store.reserveObject(objects, key, 10).record(), 0);
        store.seal(store.reserveObject(objects, key, 20).record(), 0);
        assertThat(store.events().since(0, 10).events())
                .extracting(CacheEvent::kind)
                .containsExactly(EventKind.STORED, EventKind.REPLACED, EventKind.STORED);
    }

    @Test
    void givenASmallObject_whenStoredAgain_thenItsRecordAndSlotStayAndItsEventsSayReplaced() {
        NamespaceEntry objects = objects();
        BlockKey key = object(1);
        PutReservation first = store.storeObject(objects, key, new byte[] {1, 2, 3}, 0);
        int page = store.records().hostPage(first.record());
        long handle = store.lookup().find(key.hi(), key.lo());
        PutReservation second = store.storeObject(objects, key, new byte[] {4, 5}, 0);
        assertThat(first.replaces()).isFalse();
        assertThat(second).isEqualTo(new PutReservation(PutOutcome.RESERVED, first.record(), true));
        assertThat(store.records().hostPage(second.record())).isEqualTo(page);
        assertThat(store.slotSegment(page, 2).toArray(ValueLayout.JAVA_BYTE)).containsExactly(4, 5);
        assertThat(store.records().pin(first.record(), RecordHandle.generation(handle)))
                .as("the older one is pinned by its handle")
                .isFalse();
        assertThat(store.events().since(0, 10).events())
                .extracting(CacheEvent::kind)
                .containsExactly(EventKind.STORED, EventKind.REPLACED, EventKind.STORED);
        assertThat(objects.stats().liveBytes()).isEqualTo(2);
        assertThat(store.stats(0).records().live()).isEqualTo(1);
        store.validate();
    }

    @Test
    void givenAPinnedSmallObject_whenStoredAgain_thenTheReaderKeepsItsBytes() {
        NamespaceEntry objects = objects();
        BlockKey key = object(1);
        PutReservation first = store.storeObject(objects, key, new byte[] {1, 2, 3}, 0);
        long handle = store.lookup().pinKey(key.hi(), key.lo());
        PutReservation second = store.storeObject(objects, key, new byte[] {4, 5, 6}, 0);
        assertThat(second.record()).isNotEqualTo(first.record());
        assertThat(store.segments(first.record()).getFirst().toArray(ValueLayout.JAVA_BYTE))
                .containsExactly(1, 2, 3);
        store.lookup().unpin(RecordHandle.record(handle));
        assertThat(store.stats(0).records().live()).isEqualTo(1);
        store.validate();
    }

    @Test
    void givenAnObjectOfAnotherSlotClassOrTiedToAnother_whenASmallOneIsStored_thenItGetsASlotOfItsOwn() {
        NamespaceEntry objects = objects();
        BlockKey large = object(1);
        BlockKey tied = object(2);
        int older = store.reserveObject(objects, large, 70_000).record();
        store.seal(older, 0);
        assertThat(store.storeObject(objects, large, new byte[10], 0).record()).isNotEqualTo(older);
        int behind = store.storeObject(objects, tied, new byte[10], 0).record();
        assertThat(store.linkObject(tied, large)).isTrue();
        assertThat(store.storeObject(objects, tied, new byte[10], 0).record()).isNotEqualTo(behind);
        assertThat(store.stats(0).records().live()).isEqualTo(2);
        store.validate();
    }

    @Test
    void givenASmallObjectThatWasHintedDead_whenStoredAgain_thenTheNewOneIsNotDead() {
        NamespaceEntry objects = objects();
        BlockKey key = object(1);
        int dead = store.storeObject(objects, key, new byte[10], 0).record();
        assertThat(store.hints().demote(objects, List.of(key))).isEqualTo(1);
        assertThat(store.recordStates.expired().contains(dead)).isTrue();
        int living = store.storeObject(objects, key, new byte[10], 0).record();
        assertThat(store.recordStates.expired().contains(living)).isFalse();
        store.validate();
    }

    @Test
    void givenAHybridNamespace_whenItGetsAWeight_thenItsWindowsAndStatesShareIt() {
        BlockShape shape = BlockShape.kv(1, 1, 128, 16, Dtype.BF16);
        Namespace hybrid = Namespace.builder("hybrid")
                .part(Part.full(shape))
                .part(new Part(1, 0, PartKind.WINDOW, 128, shape, RopeOrigin.FROM_ZERO))
                .build();
        NamespaceEntry blocks = store.register(hybrid);
        NamespaceEntry windows = store.require(hybrid.groups().getFirst().namespace());
        store.setWeight(blocks, 3);
        assertThat(store.share(windows)).isEqualTo(store.share(blocks)).isNotEqualTo(store.share(entry));
        store.setWeight(blocks, 5);
        assertThat(store.share(windows)).isEqualTo(store.share(blocks));
    }

    @Test
    void givenAWrongEventCapacity_whenOpened_thenRefusedBeforeMemoryIsTaken() {
        HostStoreConfig config = new HostStoreConfig(SlabPool.MIN_BYTES, 10, PolicyKind.LRU, 1000);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> new HostStore(config, (purpose, bytes) -> {
                    throw new AssertionError(bytes + " bytes are taken for " + purpose);
                }))
                .withMessageContaining("1000");
    }
}
