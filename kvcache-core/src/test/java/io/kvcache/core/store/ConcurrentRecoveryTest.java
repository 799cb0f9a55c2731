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
import io.kvcache.core.tree.DiskAddress;
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
    void givenABlockWrittenElsewhereMeanwhile_whenItsOldCopyIsTold_thenTheOldOneCounts() {
        assertThat(tierPort.addDisk(1 << 20)).isOne();
        int head = reserve(0);
        store.seal(head, 7);
        int writer = write(head);
        assertThat(diskOf(head)).isEqualTo(writer);
        int other = 1 - writer;
        assertThat(tierPort.onRecovered(other, block(1), 2)).isTrue();
        assertThat(tierPort.onRecovered(other, block(0), 1)).isTrue();
        store.validate();
        assertThat(diskOf(head)).isEqualTo(other);
        assertThat(tierPort.onRecovered(writer, block(0), 5))
                .as("one that is as old")
                .isFalse();
        tierPort.endRecovery();
        assertThat(diskOf(head)).isEqualTo(other);
        assertThat(known()).isEqualTo(2);
    }

    @Test
    void givenABlockWrittenElsewhereAfterItsOldCopyWasTold_whenRecoveryEnds_thenTheOldOneCounts() {
        assertThat(tierPort.addDisk(1 << 20)).isOne();
        int head = reserve(0);
        int other = 0;
        assertThat(tierPort.onRecovered(other, block(0), 1))
                .as("while it is filled")
                .isTrue();
        store.seal(head, 7);
        int writer = write(head);
        tierPort.endRecovery();
        assertThat(diskOf(head)).isEqualTo(other);
        assertThat(writer).isBetween(0, 1);
        assertThat(known()).isOne();
    }

    @Test
    void givenADiskThatWasOut_whenItReportsABlockWrittenElsewhere_thenTheNewerCopyStays() {
        assertThat(tierPort.addDisk(1 << 20)).isOne();
        tierPort.endRecovery();
        tierPort.onLost(0);
        int head = reserve(0);
        store.seal(head, 7);
        tierPort.beginRecovery(0);
        assertThat(write(head)).isOne();
        assertThat(tierPort.onRecovered(0, block(0), 1)).isFalse();
        tierPort.endRecovery();
        assertThat(diskOf(head)).isOne();
    }

    private int diskOf(int record) {
        return DiskAddress.diskOf(store.records().diskAddress(record));
    }

    /// Has a record written to the disk that asks for it.
    ///
    /// @return the disk
    private int write(int record) {
        for (int disk = 1; disk >= 0; disk--) {
            if (tierPort.nextWrite(disk) != null) {
                tierPort.onWritten(record, disk, 77);
                return disk;
            }
        }
        throw new AssertionError("nothing waits to be written");
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
