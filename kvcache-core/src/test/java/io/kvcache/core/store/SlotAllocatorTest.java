package io.kvcache.core.store;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.PutOutcome;
import io.kvcache.core.identity.AxisOrder;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.memory.ArenaMemory;
import io.kvcache.core.memory.SlotClass;
import io.kvcache.core.policy.EvictionPolicy;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.core.store.HostStore.HostStoreConfig;
import io.kvcache.core.store.HostStore.PutReservation;
import io.kvcache.core.tree.RecordHandle;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// How slabs move between classes. Blocks are 256 KiB and 512 KiB: 64 and 32 to a slab of 16 MiB.
final class SlotAllocatorTest {

    private static final int SLABS = 16;
    private static final long HOST_BYTES = SLABS * (16L << 20);
    private static final Namespace SMALL = space("small", 256 << 10);
    private static final Namespace LARGE = space("large", 512 << 10);

    private final HostStore store =
            new HostStore(new HostStoreConfig(HOST_BYTES, 4096, PolicyKind.LRU, 1024), ArenaMemory.source());

    @AfterEach
    void validateAndClose() {
        store.validate();
        store.close();
    }

    private static Namespace space(String name, int bytes) {
        int heads = bytes >> 16;
        return Namespace.of(name, new BlockShape(1, 1, heads, 1 << 16, 1, Dtype.INT8, AxisOrder.LAYER_KV_HEAD_TOKEN));
    }

    private PutOutcome put(Namespace space, int number) {
        return put(store, space, number);
    }

    private static PutOutcome put(HostStore store, Namespace space, int number) {
        PutReservation putReservation =
                store.reserve(store.register(space), BlockChain.of(space, new int[] {number}), 0);
        if (putReservation.outcome() == PutOutcome.RESERVED) {
            store.seal(putReservation.record(), 0);
        }
        return putReservation.outcome();
    }

    private long find(Namespace space, int number) {
        return find(store, space, number);
    }

    private static BlockChain chain(Namespace space, int number) {
        return BlockChain.of(space, new int[] {number});
    }

    private static long find(HostStore store, Namespace space, int number) {
        BlockChain chain = chain(space, number);
        return store.lookup().find(chain.keyHi(0), chain.keyLo(0));
    }

    private int resident(Namespace space, int numbers) {
        int found = 0;
        for (int number = 0; number < numbers; number++) {
            found += RecordHandle.isFound(find(space, number)) ? 1 : 0;
        }
        return found;
    }

    @Test
    void givenStoreFullOfOneClass_whenAnotherComes_thenItGetsASlabAtOnce() {
        for (int number = 0; number < SLABS * 64; number++) {
            put(SMALL, number);
        }
        assertThat(put(LARGE, 0)).isEqualTo(PutOutcome.RESERVED);
        assertThat(resident(SMALL, SLABS * 64)).isEqualTo((SLABS - 1) * 64);
        assertThat(store.stats(0).host().slabMoves()).isEqualTo(1);
    }

    @Test
    void givenColdBlocks_whenAnotherClassKeepsEvicting_thenSlabsMoveToIt() {
        for (int number = 0; number < SLABS * 64; number++) {
            put(SMALL, number);
        }
        int churn = 20_000;
        for (int number = 0; number < churn; number++) {
            assertThat(put(LARGE, number)).isEqualTo(PutOutcome.RESERVED);
        }
        assertThat(resident(LARGE, churn)).isGreaterThanOrEqualTo(12 * 32);
    }

    /// Half of the memory is written to; most of what was written last is there.
    @Test
    void givenColdBlocks_whenAnotherClassBegins_thenItGrowsWhileItIsFilled() {
        for (int number = 0; number < SLABS * 64; number++) {
            put(SMALL, number);
        }
        int written = SLABS / 2 * 32;
        for (int number = 0; number < written; number++) {
            put(LARGE, number);
        }
        assertThat(resident(LARGE, written)).isGreaterThanOrEqualTo(written * 8 / 10);
    }

    @Test
    void givenBothClassesEquallyBusy_whenTheyEvict_thenNeitherLosesAllItsSlabs() {
        int rounds = 10_000;
        for (int number = 0; number < rounds; number++) {
            put(SMALL, number);
            put(LARGE, number);
        }
        assertThat(resident(SMALL, rounds)).isGreaterThanOrEqualTo(2 * 64);
        assertThat(resident(LARGE, rounds)).isGreaterThanOrEqualTo(2 * 32);
    }

    @Test
    void givenPinnedBlockInEverySlab_whenAnotherClassComes_thenRefusedByValueUntilOneIsUnpinned() {
        for (int number = 0; number < SLABS * 64; number++) {
            put(SMALL, number);
        }
        int[] pinned = new int[SLABS];
        for (int slab = 0; slab < SLABS; slab++) {
            BlockChain chain = BlockChain.of(SMALL, new int[] {slab * 64});
            pinned[slab] = RecordHandle.record(store.lookup().pinDeepest(chain));
        }
        assertThat(put(LARGE, 0)).isEqualTo(PutOutcome.NO_ROOM);
        store.lookup().unpin(pinned[3]);
        assertThat(put(LARGE, 0)).isEqualTo(PutOutcome.RESERVED);
        for (int slab = 0; slab < SLABS; slab++) {
            if (slab != 3) {
                store.lookup().unpin(pinned[slab]);
            }
        }
    }

    @Test
    void givenBlocksOfASlabThatWasTaken_whenTheyComeBack_thenThePolicyKnowsThem() {
        try (HostStore remembering = new HostStore(
                new HostStoreConfig(HOST_BYTES, 4096, PolicyKind.IMPORTANCE, 1024), ArenaMemory.source())) {
            for (int number = 0; number < SLABS * 64; number++) {
                put(remembering, SMALL, number);
            }
            put(remembering, LARGE, 0);
            int gone = 0;
            while (RecordHandle.isFound(find(remembering, SMALL, gone))) {
                gone++;
            }
            SlotClass small = remembering.slabs.classOf(256 << 10);
            EvictionPolicy policy = remembering.policies.getOrCreate(small.id(), MemoryShares.DEFAULT_GROUP);
            assertThat(policy.hasGhost(chain(SMALL, gone).keyLo(0))).isTrue();
            assertThat(policy.hasGhost(chain(SMALL, SLABS * 64).keyLo(0)))
                    .as("never put")
                    .isFalse();
            remembering.validate();
        }
    }

    @Test
    void givenBlockLargerThanASlab_whenPut_thenARunOfSlabsIsCleared() {
        Namespace huge = space("huge", 70 << 20);
        for (int number = 0; number < SLABS * 64; number++) {
            put(SMALL, number);
        }
        for (int number = 0; number < 6; number++) {
            assertThat(put(huge, number)).isEqualTo(PutOutcome.RESERVED);
        }
        assertThat(resident(huge, 6)).isEqualTo(3); // of five slabs each
        assertThat(resident(SMALL, SLABS * 64)).isEqualTo(64);
    }
}
