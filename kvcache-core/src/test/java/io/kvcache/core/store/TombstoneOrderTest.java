package io.kvcache.core.store;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.PutOutcome;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.memory.ArenaMemory;
import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.core.store.HostStore.HostStoreConfig;
import io.kvcache.core.store.HostStore.PutReservation;
import io.kvcache.core.store.NamespaceRegistry.NamespaceEntry;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.core.tier.Tombstone;
import java.util.HashSet;
import java.util.Objects;
import java.util.Set;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/// A tombstone that a disk is told of after the write of a newer copy would bury that one too, at the next
/// opening.
final class TombstoneOrderTest {

    private static final Namespace THINGS = Namespace.objects("things", "t");
    private static final BlockKey KEY = BlockKey.ofObject(THINGS, new byte[] {1});

    private final HostStore store =
            new HostStore(new HostStoreConfig(2 * SlabPool.MIN_BYTES, 100, PolicyKind.LRU, 64), ArenaMemory.source());
    private final NamespaceEntry things = store.register(THINGS);

    private void put() {
        PutReservation putReservation = store.reserveObject(things, KEY, 5_000);
        assertThat(putReservation.outcome()).isEqualTo(PutOutcome.RESERVED);
        store.seal(putReservation.record(), 1);
    }

    private TierPort.PendingWrite write() {
        return Objects.requireNonNull(store.tierPort().nextWrite(0));
    }

    private void openTwo() {
        assertThat(store.tierPort().addDisk(1 << 20)).isZero();
        assertThat(store.tierPort().addDisk(1 << 20)).isOne();
        store.tierPort().configureAdmission(AdmissionKind.ALWAYS, 1 << 20, 1 << 20, 1);
    }

    @Test
    void givenAnObjectOnDiskThatWasDropped_whenItsBurialWaits_thenNothingIsWrittenBefore() {
        openTwo();
        put();
        store.tierPort().onWritten(write().record(), 0, 7);
        store.drop(KEY.hi(), KEY.lo());
        put();
        assertThat(store.tierPort().nextWrite(0)).isNull();
        Tombstone tombstone = Objects.requireNonNull(store.tierPort().nextTombstone(0));
        assertThat(tombstone.keyLo()).isEqualTo(KEY.lo());
        assertThat(write().block().keyLo()).isEqualTo(KEY.lo());
        store.close();
    }

    @Test
    void givenABurialOnOneDisk_whenAnotherAsks_thenItMayWrite() {
        openTwo();
        put();
        store.tierPort().onWritten(write().record(), 0, 7);
        store.drop(KEY.hi(), KEY.lo());
        put();
        assertThat(store.tierPort().nextWrite(1)).isNotNull();
        store.close();
    }

    @Test
    void givenAnObjectOnDiskThatWasReplaced_whenTheNewOneIsWrittenToThatDisk_thenItIsNeverBuried() {
        openTwo();
        put();
        store.tierPort().onWritten(write().record(), 0, 7);
        put();
        assertThat(store.tierPort().nextTombstone(0)).isNull();
        store.tierPort().onWritten(write().record(), 0, 8);
        assertThat(store.tierPort().nextTombstone(0))
                .as("is behind the older one")
                .isNull();
        store.validate();
        store.close();
    }

    @Test
    void givenAnObjectOnDiskThatWasReplaced_whenTheNewOneIsWrittenToAnother_thenTheOlderIsBuriedThen() {
        openTwo();
        put();
        store.tierPort().onWritten(write().record(), 0, 7);
        put();
        TierPort.PendingWrite write = Objects.requireNonNull(store.tierPort().nextWrite(1));
        assertThat(store.tierPort().nextTombstone(0)).isNull();
        store.tierPort().onWritten(write.record(), 1, 8);
        assertThat(store.tierPort().nextTombstone(0)).isNotNull();
        assertThat(store.tierPort().nextTombstone(1)).isNull();
        store.close();
    }

    @Test
    void givenAnObjectOnDiskThatWasReplaced_whenTheNewOneIsNotWritten_thenTheOlderStays() {
        openTwo();
        put();
        store.tierPort().onWritten(write().record(), 0, 7);
        put();
        store.tierPort().onWritten(write().record(), 1, -1);
        assertThat(store.tierPort().nextTombstone(0)).isNull();
        put();
        assertThat(store.tierPort().nextTombstone(0)).isNull();
        store.drop(KEY.hi(), KEY.lo());
        assertThat(store.tierPort().nextTombstone(0))
                .as("now nothing replaces it")
                .isNotNull();
        store.close();
    }

    @Test
    void givenAWriteWhoseObjectWasReplaced_whenItEnds_thenItCountsUntilTheNewestIsWritten() {
        openTwo();
        put();
        store.tierPort().onWritten(write().record(), 0, 7);
        put();
        TierPort.PendingWrite second = Objects.requireNonNull(store.tierPort().nextWrite(1));
        put();
        assertThat(store.tierPort().nextWrite(1))
                .as("one write of a key at a time")
                .isNull();
        store.tierPort().onWritten(second.record(), 1, 8);
        assertThat(store.tierPort().nextTombstone(0))
                .as("the first is older than the second")
                .isNotNull();
        assertThat(store.tierPort().nextTombstone(1)).isNull();
        store.tierPort().onWritten(write().record(), 0, 9);
        assertThat(store.tierPort().nextTombstone(1)).isNotNull();
        assertThat(store.tierPort().nextTombstone(0)).isNull();
        store.validate();
        store.close();
    }

    @Test
    void givenAWriteWhoseObjectWasReplacedAndThatDropped_whenItEnds_thenItIsBuried() {
        openTwo();
        put();
        TierPort.PendingWrite first = write();
        put();
        store.drop(KEY.hi(), KEY.lo());
        put();
        store.tierPort().onWritten(first.record(), 0, 7);
        assertThat(store.tierPort().nextTombstone(0)).isNotNull();
        store.close();
    }

    @Test
    void givenAnObjectThatWaitsToBeWritten_whenReplaced_thenTheNewOneHasItsTurnAndAFlushWaitsForIt() {
        openTwo();
        put();
        store.tierPort().onWritten(write().record(), 0, 7);
        put();
        long mark = store.tierPort().flushMark();
        put();
        assertThat(store.tierPort().settledWrites()).isLessThan(mark);
        store.tierPort().onWritten(write().record(), 0, 8);
        assertThat(store.tierPort().settledWrites()).isEqualTo(mark);
        assertThat(store.tierPort().nextWrite(0)).isNull();
        store.close();
    }

    @Test
    void givenBlocksOnDisk_whenAChainIsDropped_thenAllOfItIsBuriedOnEveryDisk() {
        assertThat(store.tierPort().addDisk(1 << 20)).isZero();
        assertThat(store.tierPort().addDisk(1 << 20)).isOne();
        store.tierPort().configureAdmission(AdmissionKind.ALWAYS, 1 << 20, 1 << 20, 1);
        Namespace space = Namespace.of("m", BlockShape.kv(1, 1, 64, 16, Dtype.BF16));
        NamespaceEntry entry = store.register(space);
        BlockChain chain = BlockChain.of(space, IntStream.range(0, 48).toArray());
        assertThat(store.drop(chain, 1)).isZero();
        for (int disk = 0; disk < 2; disk++) {
            assertThat(store.tierPort().nextTombstone(disk))
                    .as("not known here, and perhaps on disk")
                    .isEqualTo(new Tombstone(chain.keyHi(2), chain.keyLo(2), entry.id(), false));
            assertThat(store.tierPort().nextTombstone(disk))
                    .isEqualTo(new Tombstone(chain.keyHi(1), chain.keyLo(1), entry.id(), false));
            assertThat(store.tierPort().nextTombstone(disk)).isNull();
        }
        store.dropAll(entry);
        assertThat(store.tierPort().nextTombstone(0)).isEqualTo(Tombstone.of(entry.id()));
        store.close();
    }

    @Test
    void givenABlockOnOneDisk_whenTheOneAboveIsDropped_thenItIsBuriedOnceOnEveryDisk() {
        assertThat(store.tierPort().addDisk(1 << 20)).isZero();
        assertThat(store.tierPort().addDisk(1 << 20)).isOne();
        store.tierPort().configureAdmission(AdmissionKind.ALWAYS, 1 << 20, 1 << 20, 1);
        Namespace space = Namespace.of("m", BlockShape.kv(1, 1, 64, 16, Dtype.BF16));
        NamespaceEntry entry = store.register(space);
        BlockChain chain = BlockChain.of(space, IntStream.range(0, 32).toArray());
        for (int index = 0; index < 2; index++) {
            store.seal(store.reserve(entry, chain, index, false).record(), 7);
            store.tierPort().onWritten(write().record(), 0, index);
        }
        assertThat(store.drop(chain.prefix(1), 0)).isEqualTo(2);
        for (int disk = 0; disk < 2; disk++) {
            Set<Tombstone> tombstones = new HashSet<>();
            for (Tombstone next = store.tierPort().nextTombstone(disk);
                    next != null;
                    next = store.tierPort().nextTombstone(disk)) {
                assertThat(tombstones.add(next)).isTrue();
            }
            assertThat(tombstones)
                    .containsExactlyInAnyOrder(
                            new Tombstone(chain.keyHi(0), chain.keyLo(0), entry.id(), false),
                            new Tombstone(chain.keyHi(1), chain.keyLo(1), entry.id(), false));
        }
        store.close();
    }

    @Test
    void givenABurialThatCouldNotBeWritten_whenAsked_thenItIsToldAgainAndAFlushHearsOfIt() {
        assertThat(store.tierPort().addDisk(1 << 20)).isZero();
        store.tierPort().configureAdmission(AdmissionKind.ALWAYS, 1 << 20, 1 << 20, 1);
        put();
        store.tierPort().onWritten(write().record(), 0, 7);
        store.drop(KEY.hi(), KEY.lo());
        Tombstone tombstone = Objects.requireNonNull(store.tierPort().nextTombstone(0));
        assertThat(store.tierPort().nextTombstone(0)).isNull();
        long unwritten = store.tierPort().unwrittenCount();
        store.tierPort().onTombstoneFailed(0, tombstone);
        assertThat(store.tierPort().unwrittenCount()).isGreaterThan(unwritten);
        assertThat(store.tierPort().nextTombstone(0)).isEqualTo(tombstone);
        store.close();
    }

    @Test
    void givenABurialThatCouldNotBeWritten_whenANewerCopyCountsOnThatDisk_thenItIsNotToldAgain() {
        assertThat(store.tierPort().addDisk(1 << 20)).isZero();
        store.tierPort().configureAdmission(AdmissionKind.ALWAYS, 1 << 20, 1 << 20, 1);
        put();
        store.tierPort().onWritten(write().record(), 0, 7);
        store.drop(KEY.hi(), KEY.lo());
        put();
        Tombstone tombstone = Objects.requireNonNull(store.tierPort().nextTombstone(0));
        store.tierPort().onWritten(write().record(), 0, 9);
        store.tierPort().onTombstoneFailed(0, tombstone);
        assertThat(store.tierPort().nextTombstone(0)).isNull();
        store.close();
    }

    @Test
    void givenTheBurialOfANamespaceThatCouldNotBeWritten_whenAsked_thenItIsToldBeforeAllOthers() {
        assertThat(store.tierPort().addDisk(1 << 20)).isZero();
        store.tierPort().configureAdmission(AdmissionKind.ALWAYS, 1 << 20, 1 << 20, 1);
        store.dropAll(things);
        Tombstone tombstone = Objects.requireNonNull(store.tierPort().nextTombstone(0));
        put();
        store.tierPort().onWritten(write().record(), 0, 7);
        store.drop(KEY.hi(), KEY.lo());
        store.tierPort().onTombstoneFailed(0, tombstone);
        assertThat(store.tierPort().nextTombstone(0)).isEqualTo(tombstone);
        assertThat(store.tierPort().nextTombstone(0)).isNotNull();
        store.close();
    }
}
