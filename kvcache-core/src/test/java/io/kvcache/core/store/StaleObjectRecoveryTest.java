package io.kvcache.core.store;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.PutOutcome;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.memory.ArenaMemory;
import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.core.store.HostStore.HostStoreConfig;
import io.kvcache.core.store.HostStore.PutReservation;
import io.kvcache.core.store.NamespaceRegistry.NamespaceEntry;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.core.tier.TierBlock;
import io.kvcache.core.tree.RecordHandle;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/// At an opening a disk tells of the newest copy of an object first. When that one cannot be kept, an older copy with
/// other bytes must not take its place.
final class StaleObjectRecoveryTest {

    private static final Namespace THINGS = Namespace.objects("things", "");
    private static final BlockKey KEY = new BlockKey(1, 1);
    private static final int RECORDS = 8;
    private static final int BYTES = 5000;
    private static final int NEWER = 2;
    private static final int OLDER = 1;

    private final HostStore store = new HostStore(
            new HostStoreConfig(2 * SlabPool.MIN_BYTES, RECORDS, PolicyKind.LRU, 64), ArenaMemory.source());
    private final TierPort tierPort = store.tierPort();
    private final NamespaceEntry entry = store.register(THINGS);

    @BeforeEach
    void open() {
        assertThat(tierPort.addDisk(1 << 24)).isZero();
        tierPort.configureAdmission(AdmissionKind.ALWAYS, 1 << 24, 1 << 20, AdmissionKind.DEFAULT_GAIN);
    }

    @AfterEach
    void close() {
        store.validate();
        store.close();
    }

    private TierBlock copy(int place) {
        return new TierBlock(KEY.hi(), KEY.lo(), 0, 0, entry.id(), true, 0, BYTES, place, 0);
    }

    private boolean tell(int place) {
        return tierPort.onRecovered(0, copy(place), place);
    }

    private PutReservation reserve(BlockKey key) {
        PutReservation putReservation = store.reserveObject(entry, key, BYTES);
        assertThat(putReservation.outcome()).isEqualTo(PutOutcome.RESERVED);
        return putReservation;
    }

    private boolean isKnown() {
        return RecordHandle.isFound(store.lookup().findKnown(KEY.hi(), KEY.lo()));
    }

    @Test
    void givenNoRecordForTheNewerCopy_whenOneIsFreeLater_thenTheOlderCopyDoesNotCount() {
        List<PutReservation> puts = IntStream.range(0, RECORDS)
                .mapToObj(i -> reserve(new BlockKey(2, i)))
                .toList();
        assertThat(tell(NEWER)).isFalse();
        puts.forEach(put -> store.abandon(put.record()));

        assertThat(tell(OLDER)).isFalse();

        tierPort.endRecovery();
        assertThat(isKnown()).isFalse();
    }

    @Test
    void givenAPutUnderWay_whenItIsAbandonedBetweenTwoCopies_thenTheOlderCopyDoesNotCount() {
        PutReservation put = reserve(KEY);
        assertThat(tell(NEWER)).isFalse();
        store.abandon(put.record());

        assertThat(tell(OLDER)).isFalse();

        tierPort.endRecovery();
        assertThat(isKnown()).isFalse();
    }

    @Test
    void givenTheNewerCopy_whenItIsLostBeforeTheOlderIsTold_thenTheOlderCopyDoesNotCount() {
        assertThat(tell(NEWER)).isTrue();
        tierPort.onLost(0, copy(NEWER), NEWER);
        assertThat(isKnown()).isFalse();

        assertThat(tell(OLDER)).isFalse();

        tierPort.endRecovery();
        assertThat(isKnown()).isFalse();
    }
}
