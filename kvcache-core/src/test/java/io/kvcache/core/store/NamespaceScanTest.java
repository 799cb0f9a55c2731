package io.kvcache.core.store;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.PutOutcome;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.memory.ArenaMemory;
import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.core.stats.ObjectResidency;
import io.kvcache.core.store.HostStore.HostStoreConfig;
import io.kvcache.core.store.HostStore.PutReservation;
import io.kvcache.core.store.NamespaceRegistry.NamespaceEntry;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.core.tier.TierBlock;
import io.kvcache.core.tree.RecordHandle;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/// What a namespace has is listed in each state that an object can be in.
final class NamespaceScanTest {

    private static final Namespace THINGS = Namespace.objects("things", "");
    private static final BlockKey ON_DISK = new BlockKey(1, 1);
    private static final BlockKey IN_MEMORY = new BlockKey(2, 2);
    private static final int BYTES = 5000;

    private final HostStore store =
            new HostStore(new HostStoreConfig(2 * SlabPool.MIN_BYTES, 8, PolicyKind.LRU, 64), ArenaMemory.source());
    private final TierPort tierPort = store.tierPort();
    private final NamespaceEntry entry = store.register(THINGS);

    @BeforeEach
    void open() {
        assertThat(tierPort.addDisk(1 << 24)).isZero();
        tierPort.configureAdmission(AdmissionKind.ALWAYS, 1 << 24, 1 << 20, AdmissionKind.DEFAULT_GAIN);
        TierBlock copy = new TierBlock(ON_DISK.hi(), ON_DISK.lo(), 0, 0, entry.id(), true, 0, BYTES, 1, 0);
        assertThat(tierPort.onRecovered(0, copy, 1)).isTrue();
        tierPort.endRecovery();
    }

    private void put() {
        PutReservation put = store.reserveObject(entry, IN_MEMORY, BYTES);
        assertThat(put.outcome()).isEqualTo(PutOutcome.RESERVED);
        store.seal(put.record(), 1);
    }

    @AfterEach
    void close() {
        store.validate();
        store.close();
    }

    private List<ObjectResidency> visited() {
        List<ObjectResidency> found = new ArrayList<>();
        store.visitObjects(id -> id == entry.id(), found::add);
        return found;
    }

    @Test
    void givenAnObjectThatIsOnDiskAlone_whenObjectsAreVisited_thenItIsListedWithoutUses() {
        List<ObjectResidency> found = visited();
        put();
        List<ObjectResidency> foundWithAnother = visited();

        ObjectResidency onDisk = new ObjectResidency(entry.id(), ON_DISK, BYTES, false, true, -1, -1);
        assertThat(found).containsExactly(onDisk);
        assertThat(foundWithAnother).hasSize(2).contains(onDisk);
        assertThat(foundWithAnother.getLast().inMemory()).isTrue();
    }

    @Test
    void givenAnObjectThatIsBeingLoaded_whenObjectsAreVisited_thenItIsListedWithoutUses() {
        long handle = store.lookup().findKnown(ON_DISK.hi(), ON_DISK.lo());
        int record = RecordHandle.record(handle);
        store.beginLoad(record, RecordHandle.generation(handle), 0);

        List<ObjectResidency> waiting = visited();
        assertThat(tierPort.nextRead(0, record, true, 0)).isNotNull();
        List<ObjectResidency> reading = visited();
        tierPort.onRead(record, 1, true, false);

        assertThat(waiting).hasSize(1).first().returns(false, ObjectResidency::inMemory);
        assertThat(reading).hasSize(1).first().returns(false, ObjectResidency::inMemory);
        assertThat(visited()).hasSize(1).allMatch(ObjectResidency::inMemory);
    }
}
