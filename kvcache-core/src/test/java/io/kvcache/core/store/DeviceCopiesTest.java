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
import io.kvcache.core.store.HostStore.LoadBatch;
import io.kvcache.core.store.NamespaceRegistry.NamespaceEntry;
import io.kvcache.core.store.TierPort.PendingWrite;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.core.tier.ReclaimCandidates;
import io.kvcache.core.tier.TierRead;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/// A device in front of a disk, as the store sees it: which blocks it gets, and what the store knows of its copies.
final class DeviceCopiesTest {

    private static final Namespace SPACE = Namespace.of("m", BlockShape.kv(1, 8, 128, 4, Dtype.BF16));
    private static final int LENGTH = 4;
    private static final int DISK = 0;
    private static final int DEVICE = 1;

    private final HostStore store =
            new HostStore(new HostStoreConfig(SlabPool.MIN_BYTES, 10_000, PolicyKind.LRU, 64), ArenaMemory.source());
    private final TierPort tierPort = store.tierPort();
    private final BlockChain chain =
            BlockChain.of(SPACE, IntStream.range(0, LENGTH * 4).toArray());

    @BeforeEach
    void put() {
        assertThat(tierPort.addDisk(1 << 20)).isEqualTo(DISK);
        assertThat(tierPort.addDisk(1 << 20, true)).isEqualTo(DEVICE);
        assertThat(tierPort.isFront(DISK)).isFalse();
        assertThat(tierPort.isFront(DEVICE)).isTrue();
        tierPort.configureAdmission(AdmissionKind.ALWAYS, 1 << 20, 1 << 20, AdmissionKind.DEFAULT_GAIN);
        tierPort.endRecovery();
        putAll();
    }

    private void putAll() {
        NamespaceEntry entry = store.register(SPACE);
        for (int index = 0; index < LENGTH; index++) {
            store.seal(store.reserve(entry, chain, index, false).record(), index);
        }
    }

    @AfterEach
    void close() {
        store.validate();
        store.close();
    }

    /// Writes all that waits to a tier, at addresses from one on.
    ///
    /// @return how much
    private int writeAll(int disk, long address) {
        int written = 0;
        for (PendingWrite write = tierPort.nextWrite(disk); write != null; write = tierPort.nextWrite(disk)) {
            tierPort.onWritten(write.record(), disk, address + written++);
            store.validate();
        }
        return written;
    }

    private int onDevice(int from, int to) {
        return store.lookup().countOnDevice(chain, from, to);
    }

    private List<String> events(TierKind tier) {
        return store.events().since(0, 64).events().stream()
                .filter(event -> event.tier() == tier)
                .map(event -> event.kind() + " " + event.depth())
                .toList();
    }

    /// What a device offers before it gives a span up.
    private final class Offer implements ReclaimCandidates {
        private final long first;
        private final int room;
        private final List<Integer> kept = new ArrayList<>();

        /// @param first address, of the first block
        Offer(long first, int room) {
            this.first = first;
            this.room = room;
        }

        @Override
        public int size() {
            return LENGTH;
        }

        @Override
        public long keyHi(int index) {
            return chain.keyHi(index);
        }

        @Override
        public long keyLo(int index) {
            return chain.keyLo(index);
        }

        @Override
        public long address(int index) {
            return first + index;
        }

        @Override
        public boolean keep(int index) {
            return kept.size() < room && kept.add(index);
        }
    }

    @Test
    void givenBlocksThatGoToADisk_whenTheyAre_thenTheDeviceGetsEachOnce() {
        assertThat(writeAll(DEVICE, 100)).as("before the disk").isZero();
        assertThat(writeAll(DISK, 10)).isEqualTo(LENGTH);
        assertThat(onDevice(0, LENGTH)).isZero();
        assertThat(writeAll(DEVICE, 100)).isEqualTo(LENGTH);
        assertThat(onDevice(0, LENGTH)).isEqualTo(LENGTH);
        assertThat(onDevice(1, 3)).isEqualTo(2);
        assertThat(events(TierKind.DEVICE)).containsExactly("STORED 0", "STORED 1", "STORED 2", "STORED 3");
        assertThat(events(TierKind.DISK)).hasSize(LENGTH);
        assertThat(tierPort.stats().disks().get(DEVICE).blocks()).isEqualTo(LENGTH);
        List<CacheEvent> stored = store.events().snapshot().stored();
        assertThat(stored).hasSize(3 * LENGTH).allMatch(event -> event.kind() == EventKind.STORED);
        assertThat(stored.stream().filter(event -> event.tier() == TierKind.DEVICE))
                .extracting(CacheEvent::depth)
                .containsExactly(0, 1, 2, 3);
    }

    @Test
    void givenADrop_whenTheDeviceHasCopies_thenTheyLeaveAndItGetsTombstones() {
        writeAll(DISK, 10);
        writeAll(DEVICE, 100);
        store.drop(chain, 2);
        assertThat(onDevice(0, LENGTH)).isEqualTo(2);
        assertThat(events(TierKind.DEVICE)).endsWith("DROPPED 3", "DROPPED 2");
        assertThat(tierPort.nextTombstone(DEVICE)).isNotNull();
        assertThat(tierPort.nextTombstone(DEVICE)).isNotNull();
        assertThat(tierPort.nextTombstone(DEVICE)).isNull();
    }

    /// The copy is not to be found under the key of the block that is put next.
    @Test
    void givenADropWhileABlockIsOnItsWayToTheDevice_whenItArrives_thenItDoesNotCountAndGetsATombstone() {
        writeAll(DISK, 10);
        PendingWrite write = Objects.requireNonNull(tierPort.nextWrite(DEVICE));
        store.drop(chain, 0);
        while (tierPort.nextTombstone(DEVICE) != null) {}
        putAll();
        tierPort.onWritten(write.record(), DEVICE, 100);
        assertThat(onDevice(0, LENGTH)).isZero();
        assertThat(Objects.requireNonNull(tierPort.nextTombstone(DEVICE)).keyLo())
                .isEqualTo(chain.keyLo(0));
    }

    @Test
    void givenASpanThatIsReclaimed_whenBlocksWereUsed_thenTheseStayAndTheOthersLeave() {
        writeAll(DISK, 10);
        writeAll(DEVICE, 100);
        tierPort.onUsed(new TierPort.TierBlocks(store.records(), store.lookup()).hostBlock(record(1)));
        Offer offer = new Offer(100, LENGTH);
        tierPort.onReclaim(DEVICE, offer);
        assertThat(offer.kept).containsExactly(1);
        assertThat(onDevice(0, LENGTH)).isEqualTo(1);
        tierPort.onMoved(
                DEVICE, new TierPort.TierBlocks(store.records(), store.lookup()).hostBlock(record(1)), 101, 201);
        Offer again = new Offer(200, LENGTH);
        tierPort.onReclaim(DEVICE, again);
        assertThat(again.kept).as("not used since it was kept").isEmpty();
        assertThat(onDevice(0, LENGTH)).isZero();
        assertThat(events(TierKind.DISK)).as("the disk's stay").hasSize(LENGTH);
    }

    @Test
    void givenADeviceThatIsLost_whenTold_thenOnlyItsCopiesLeave() {
        writeAll(DISK, 10);
        writeAll(DEVICE, 100);
        tierPort.onLost(DEVICE);
        assertThat(onDevice(0, LENGTH)).isZero();
        assertThat(events(TierKind.DEVICE)).contains("EVICTED 0", "EVICTED 3");
        assertThat(tierPort.stats().disks().get(DISK).blocks()).isEqualTo(LENGTH);
    }

    private int record(int index) {
        return store.tree.findAny(chain.keyHi(index), chain.keyLo(index));
    }

    /// Puts other blocks until the chain is in no host memory.
    private void evict() {
        NamespaceEntry entry = store.register(SPACE);
        for (int other = 1; store.lookup().match(chain, LENGTH) > 0; other++) {
            BlockChain next = BlockChain.of(
                    SPACE, IntStream.range(1000 * other, 1000 * other + 4).toArray());
            store.seal(store.reserve(entry, next, 0, false).record(), 0);
            tierPort.evictAhead(100, 100);
        }
    }

    @Test
    void givenBlocksOnBoth_whenLoaded_thenFromTheDeviceAndFromTheDiskWhereThatFails() {
        writeAll(DISK, 10);
        writeAll(DEVICE, 100);
        evict();
        assertThat(onDevice(0, LENGTH)).isEqualTo(LENGTH);
        LoadBatch batch = store.beginLoads(chain, 0, 2, 1);
        assertThat(batch.count()).isEqualTo(2);
        assertThat(batch.disk(0)).isEqualTo(DEVICE);
        TierRead read = Objects.requireNonNull(tierPort.nextRead(DEVICE, batch.record(0), true, 1));
        assertThat(read.address()).isEqualTo(100);
        tierPort.onRead(batch.record(0), read.checksum(), true, false);
        assertThat(tierPort.fallBack(DEVICE, batch.record(1), true))
                .as("where else it is")
                .isEqualTo(DISK);
        assertThat(onDevice(0, LENGTH)).isEqualTo(LENGTH - 1);
        TierRead second = Objects.requireNonNull(tierPort.nextRead(DISK, batch.record(1), true, 2));
        assertThat(second.address()).isEqualTo(11);
        tierPort.onRead(batch.record(1), second.checksum(), true, false);
        assertThat(store.lookup().match(chain, LENGTH)).isEqualTo(2);
        assertThat(tierPort.fallBack(DISK, batch.record(1), true))
                .as("nowhere else")
                .isEqualTo(-1);
        assertThat(writeAll(DEVICE, 300)).as("what came from the disk").isEqualTo(1);
        assertThat(onDevice(0, LENGTH)).isEqualTo(LENGTH);
        for (int i = 0; i < 2; i++) {
            store.lookup().unpin(batch.record(i));
        }
    }

    @Test
    void givenACopyThatLeavesBeforeItsRead_whenTheReadIsAskedFor_thenItHasNoAddress() {
        writeAll(DISK, 10);
        writeAll(DEVICE, 100);
        evict();
        LoadBatch batch = store.beginLoads(chain, 0, 1, 1);
        tierPort.onReclaim(DEVICE, new Offer(100, 0));
        TierRead read = Objects.requireNonNull(tierPort.nextRead(DEVICE, batch.record(0), true, 1));
        assertThat(read.address()).isEqualTo(-1);
        assertThat(tierPort.fallBack(DEVICE, batch.record(0), false)).isEqualTo(DISK);
        tierPort.onRead(batch.record(0), 0, false, false);
        store.lookup().unpin(batch.record(0));
    }
}
