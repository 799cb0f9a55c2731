package io.kvcache.core.store;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.PutOutcome;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.memory.ArenaMemory;
import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.core.store.HostStore.HostStoreConfig;
import io.kvcache.core.store.HostStore.PutReservation;
import io.kvcache.core.store.NamespaceRegistry.NamespaceEntry;
import io.kvcache.core.store.WriteBackQueue.PendingTombstones;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.core.tier.TierBlock;
import io.kvcache.core.tier.Tombstone;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/// Calls during the recovery of a disk cost none of its contents, except those that they drop.
final class ConcurrentRecoveryTest {

    private static final Namespace SPACE = Namespace.of("m", BlockShape.kv(1, 8, 128, 4, Dtype.BF16));
    private static final BlockChain CHAIN =
            BlockChain.of(SPACE, IntStream.range(0, 8).toArray());

    private final HostStore store =
            new HostStore(new HostStoreConfig(2 * SlabPool.MIN_BYTES, 100, PolicyKind.LRU, 64), ArenaMemory.source());
    private final TierPort tierPort = store.tierPort();
    private final NamespaceEntry entry = store.register(SPACE);

    @BeforeEach
    void open() {
        assertThat(tierPort.addDisk(1 << 20)).isZero();
        tierPort.configureAdmission(AdmissionKind.ALWAYS, 1 << 20, 1 << 20, AdmissionKind.DEFAULT_GAIN);
    }

    @AfterEach
    void close() {
        store.validate();
        store.close();
    }

    private TierBlock block(int index) {
        return new TierBlock(
                CHAIN.keyHi(index),
                CHAIN.keyLo(index),
                index == 0 ? 0 : CHAIN.keyHi(index - 1),
                index == 0 ? 0 : CHAIN.keyLo(index - 1),
                entry.id(),
                false,
                index,
                Math.toIntExact(entry.blockBytes()),
                7,
                0);
    }

    private boolean tell(int index) {
        boolean counts = tierPort.onRecovered(0, block(index), index + 1);
        store.validate();
        return counts;
    }

    private int reserve(int index) {
        PutReservation putReservation = store.reserve(entry, CHAIN, index, false);
        assertThat(putReservation.outcome()).isEqualTo(PutOutcome.RESERVED);
        return putReservation.record();
    }

    private int known() {
        return store.lookup().matchKnown(CHAIN, 0);
    }

    @Test
    void givenABlockToldBelowOneThatIsWritten_whenTheWriterGivesUp_thenItWaitsForTheCopyAbove() {
        int head = reserve(0);
        assertThat(tell(1)).isTrue();
        store.abandon(head);
        assertThat(tell(0)).isTrue();
        tierPort.endRecovery();
        assertThat(known()).isEqualTo(2);
    }

    @Test
    void givenABlockToldWhileItIsWritten_whenTheWriterGivesUp_thenItsCopyCountsInTheEnd() {
        int head = reserve(0);
        assertThat(tell(0)).isTrue();
        assertThat(tell(1)).isTrue();
        store.abandon(head);
        tierPort.endRecovery();
        assertThat(known()).isEqualTo(2);
    }

    @Test
    void givenABlockToldBelowOneInHostMemory_whenThatIsEvicted_thenItWaitsForTheCopyAbove() {
        store.seal(reserve(0), 7);
        assertThat(tell(1)).isTrue();
        fillHostMemory();
        assertThat(known()).isZero();
        assertThat(tell(0)).isTrue();
        tierPort.endRecovery();
        assertThat(known()).isEqualTo(2);
    }

    /// With a block as large as that.
    private void fillHostMemory() {
        Namespace large = Namespace.of("large", BlockShape.kv(256, 8, 128, 64, Dtype.BF16));
        BlockChain chain = BlockChain.of(large, IntStream.range(0, 64).toArray());
        PutReservation putReservation = store.reserve(store.register(large), chain, 0, false);
        assertThat(putReservation.outcome()).isEqualTo(PutOutcome.RESERVED);
        store.seal(putReservation.record(), 7);
    }

    @Test
    void givenABlockToldWhileItIsWritten_whenDroppedAndWithdrawn_thenItDoesNotCount() {
        int head = reserve(0);
        assertThat(tell(0)).isTrue();
        store.drop(CHAIN, 0);
        store.abandon(head);
        tierPort.endRecovery();
        assertThat(known()).isZero();
    }

    @Test
    void givenABlockPutAnewAndDroppedWithTheOneAboveIt_whenItsOldCopyIsTold_thenThatDoesNotCount() {
        store.seal(reserve(0), 7);
        store.seal(reserve(1), 7);
        store.drop(CHAIN.prefix(1), 0);
        assertThat(tell(1)).isFalse();
        tierPort.endRecovery();
        assertThat(known()).isZero();
    }

    @Test
    void givenADiskThatIsOut_whenABlockIsDroppedMeanwhile_thenItsCopyDoesNotCountWhenTheDiskIsBack() {
        assertThat(tell(0)).isTrue();
        tierPort.endRecovery();
        tierPort.onLost(0);
        store.drop(CHAIN, 0);
        tierPort.beginRecovery(0);
        assertThat(tell(0)).isFalse();
        tierPort.endRecovery();
        assertThat(known()).isZero();
        assertThat(tombstones()).contains(Tombstone.of(block(0)));
    }

    @Test
    void givenADiskThatIsOut_whenMoreIsDroppedThanIsKept_thenItsNamespacesAreBuried() {
        tierPort.endRecovery();
        tierPort.onLost(0);
        for (int i = 0; i <= PendingTombstones.MAX_KEPT / CHAIN.length(); i++) {
            store.drop(CHAIN, 0);
        }
        tierPort.holdTombstones(0);
        tierPort.beginRecovery(0);
        assertThat(tell(0)).isFalse();
        tierPort.endRecovery();
        assertThat(tombstones()).containsExactly(Tombstone.of(entry.id()));
    }

    private List<Tombstone> tombstones() {
        List<Tombstone> all = new ArrayList<>();
        for (Tombstone next = tierPort.nextTombstone(0); next != null; next = tierPort.nextTombstone(0)) {
            all.add(next);
        }
        return all;
    }
}
