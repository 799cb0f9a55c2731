package io.kvcache.core.store;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.event.CacheEvent;
import io.kvcache.core.event.EventKind;
import io.kvcache.core.event.TierKind;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.memory.ArenaMemory;
import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.core.store.HostStore.HostStoreConfig;
import io.kvcache.core.store.NamespaceRegistry.NamespaceEntry;
import io.kvcache.core.tier.AdmissionKind;
import java.util.List;
import java.util.Objects;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/// What a store knows of copies on a device.
final class DeviceCopiesTest {

    private static final Namespace SPACE = Namespace.of("m", BlockShape.kv(1, 8, 128, 4, Dtype.BF16));
    private static final int LENGTH = 4;

    private final HostStore store =
            new HostStore(new HostStoreConfig(2 * SlabPool.MIN_BYTES, 100, PolicyKind.LRU, 64), ArenaMemory.source());
    private final TierPort tierPort = store.tierPort();
    private final BlockChain chain =
            BlockChain.of(SPACE, IntStream.range(0, LENGTH * 4).toArray());
    private NamespaceEntry entry;

    @BeforeEach
    void put() {
        entry = store.register(SPACE);
        for (int index = 0; index < LENGTH; index++) {
            store.seal(store.reserve(entry, chain, index, false).record(), index);
        }
    }

    @AfterEach
    void close() {
        store.validate();
        store.close();
    }

    private void report(int index, boolean isPresent) {
        tierPort.onDeviceCopy(chain.keyHi(index), chain.keyLo(index), isPresent);
        store.validate();
    }

    private int onDevice(int from, int to) {
        return store.lookup().countOnDevice(chain, from, to);
    }

    /// Events of the device since the blocks were put.
    private List<String> events() {
        return store.events().since(LENGTH, 64).events().stream()
                .filter(event -> event.tier() == TierKind.DEVICE)
                .map(event -> event.kind() + " " + event.depth())
                .toList();
    }

    @Test
    void givenCopiesOfSomeBlocks_whenCounted_thenTheseCountWhereverTheyAreInTheChain() {
        report(1, true);
        report(3, true);
        assertThat(onDevice(0, LENGTH)).isEqualTo(2);
        assertThat(onDevice(0, 1)).isZero();
        assertThat(onDevice(2, LENGTH)).isEqualTo(1);
    }

    @Test
    void givenReportsThatComeTwice_whenPublished_thenOnceEach() {
        report(2, true);
        report(2, true);
        report(2, false);
        report(2, false);
        assertThat(events()).containsExactly("STORED 2", "EVICTED 2");
        assertThat(onDevice(0, LENGTH)).isZero();
    }

    @Test
    void givenACopy_whenItsBlockIsDropped_thenItLeavesTheDeviceByTheSameCause() {
        report(1, true);
        report(3, true);
        store.drop(chain, 2);
        assertThat(events()).containsExactly("STORED 1", "STORED 3", "DROPPED 3");
        report(3, false);
        assertThat(events()).hasSize(3);
    }

    /// The device still has the bytes of the earlier record; nothing says that they may be used for the new one.
    @Test
    void givenADroppedBlock_whenPutAgain_thenTheDeviceHasNoCopyOfIt() {
        report(3, true);
        store.drop(chain, 3);
        store.seal(store.reserve(entry, chain, 3, false).record(), 3);
        assertThat(onDevice(0, LENGTH)).isZero();
    }

    @Test
    void givenABlockThatIsNotHere_whenReported_thenNothingHappens() {
        BlockChain other = BlockChain.of(SPACE, IntStream.range(1000, 1004).toArray());
        tierPort.onDeviceCopy(other.keyHi(0), other.keyLo(0), true);
        assertThat(events()).isEmpty();
    }

    @Test
    void givenCopies_whenASnapshotIsTaken_thenItHasThemBesideThoseInHostMemory() {
        report(0, true);
        report(2, true);
        List<CacheEvent> stored = store.events().snapshot().stored();
        assertThat(stored).allMatch(event -> event.kind() == EventKind.STORED);
        assertThat(stored.stream().filter(event -> event.tier() == TierKind.DEVICE))
                .extracting(CacheEvent::depth)
                .containsExactly(0, 2);
        assertThat(stored.stream().filter(event -> event.tier() == TierKind.HOST))
                .hasSize(LENGTH);
    }

    /// A device is a tier by itself where there are no disks: then its blocks are on no disk.
    @Test
    void givenADeviceBelowHostMemory_whenABlockIsThereAlone_thenNoEventNamesADisk() {
        assertThat(tierPort.addDisk(1 << 20, true)).isZero();
        tierPort.configureAdmission(AdmissionKind.ALWAYS, 1 << 20, 1 << 20, AdmissionKind.DEFAULT_GAIN);
        tierPort.endRecovery();
        BlockChain other = BlockChain.of(SPACE, IntStream.range(1000, 1004).toArray());
        store.seal(store.reserve(entry, other, 0, false).record(), 0);
        TierPort.PendingWrite write = Objects.requireNonNull(tierPort.nextWrite(0));
        tierPort.onDeviceCopy(other.keyHi(0), other.keyLo(0), true);
        tierPort.onWritten(write.record(), 0, 1);
        tierPort.onDeviceCopy(other.keyHi(0), other.keyLo(0), false);
        tierPort.onLost(0, write.block(), 1);
        assertThat(tierPort.stats().disks().getFirst().blocks()).isZero();
        assertThat(events()).containsExactly("STORED 0", "EVICTED 0");
        assertThat(store.events().since(0, 64).events()).noneMatch(event -> event.tier() == TierKind.DISK);
    }
}
