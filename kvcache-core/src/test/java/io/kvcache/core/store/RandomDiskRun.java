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
import io.kvcache.core.stats.DiskTierStats;
import io.kvcache.core.store.HostStore.HostStoreConfig;
import io.kvcache.core.store.HostStore.LoadBatch;
import io.kvcache.core.store.HostStore.LoadOutcome;
import io.kvcache.core.store.HostStore.PutReservation;
import io.kvcache.core.store.NamespaceRegistry.NamespaceEntry;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.core.tier.TierRead;
import io.kvcache.core.tree.ControlWord;
import io.kvcache.core.tree.RecordHandle;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.IntStream;

/// Random life of a store over one disk, from one thread: puts, writes, reads, drops, reclaims and restarts come
/// in any order, and after each the store is validated.
final class RandomDiskRun implements AutoCloseable {

    enum Count {
        LOADED,
        JOINED,
        CANCELLED,
        FAILED_READS,
        REFUSED_WRITES,
        RESTARTS,
        RECLAIMS,
        REFILLED,
        OBJECTS_READ,
        PREFETCHED,
        SACRIFICED,
        COPIED_TO_DEVICE
    }

    private static final Namespace SPACE = Namespace.of("m", BlockShape.kv(16, 8, 128, 64, Dtype.BF16));
    private static final Namespace THINGS = Namespace.objects("things", "t");
    private static final List<PolicyKind> POLICIES = List.of(PolicyKind.values());
    private static final List<AdmissionKind> ADMISSIONS = List.of(AdmissionKind.values());
    private static final int BLOCK_TOKENS = 64;
    private static final int MAX_CHAIN_BLOCKS = 12;
    private static final long PAGE = 4096;
    private static final int DEVICE = 1;

    private final Random random;
    /// Of what a device in front of the disk does.
    private final Random device;
    private final FakeDisk onDevice = new FakeDisk();
    private final ArrayDeque<TierPort.PendingWrite> toDevice = new ArrayDeque<>();
    private final PolicyKind policy;
    private final AdmissionKind admission;
    private final int records;
    private final long diskLimit;
    private final FakeDisk disk = new FakeDisk();
    private final Map<Count, Integer> counts = new EnumMap<>(Count.class);
    private HostStore store;
    private NamespaceEntry blocks;
    private NamespaceEntry things;
    private final ArrayDeque<TierPort.PendingWrite> writing = new ArrayDeque<>();
    private final ArrayDeque<Integer> toRead = new ArrayDeque<>();
    private final List<TierRead> reading = new ArrayList<>();
    private final List<int[]> tables = new ArrayList<>();
    private final List<Integer> filling = new ArrayList<>();

    RandomDiskRun(long seed) {
        random = new Random(seed);
        device = new Random(seed);
        policy = POLICIES.get((int) (seed % POLICIES.size()));
        admission = ADMISSIONS.get((int) (seed / 2 % ADMISSIONS.size()));
        records = seed % 3 == 0 ? 50 : 1000;
        diskLimit = (seed % 4 == 0 ? 15L : 60L) * SPACE.blockBytes();
        open();
    }

    private void open() {
        HostStoreConfig config = new HostStoreConfig(3 * SlabPool.MIN_BYTES, records, policy, 1 << 10);
        store = new HostStore(config, ArenaMemory.source());
        assertThat(store.tierPort().addDisk(diskLimit)).isZero();
        assertThat(store.tierPort().addDisk(diskLimit, true)).isEqualTo(DEVICE);
        store.tierPort().configureAdmission(admission, 1L << 30, 1L << 30, AdmissionKind.DEFAULT_GAIN);
        blocks = store.register(SPACE);
        things = store.register(THINGS);
        disk.recoverInto(store.tierPort(), 0);
    }

    Map<Count, Integer> counts() {
        return counts;
    }

    private void count(Count what) {
        counts.merge(what, 1, Integer::sum);
    }

    void step() {
        stepOfDevice();
        int dice = random.nextInt(100);
        if (dice < 30) {
            put();
        } else if (dice < 36) {
            putObject();
        } else if (dice < 50) {
            beginWrite();
        } else if (dice < 60) {
            endWrite(random.nextInt(10) > 0);
        } else if (dice < 72) {
            acquire(random.nextInt(4) > 0 ? 1 : 0);
        } else if (dice < 80) {
            read();
        } else if (dice < 88) {
            releaseTable();
        } else if (dice < 91) {
            endFilling();
        } else if (dice < 94) {
            drop();
        } else if (dice < 96) {
            reclaim();
        } else if (dice < 98) {
            getObject();
        } else if (random.nextInt(20) == 0) {
            restart();
        }
        store.validate();
    }

    /// A device has what it has got and not given up, and nothing depends on it.
    private void stepOfDevice() {
        TierPort port = store.tierPort();
        int dice = device.nextInt(40);
        if (dice < 20) {
            while (port.nextTombstone(DEVICE) != null) {}
            TierPort.PendingWrite write = port.nextWrite(DEVICE);
            if (write != null) {
                toDevice.add(write);
            }
        } else if (dice < 34) {
            endDeviceWrite(device.nextInt(10) > 0);
        } else if (dice < 39) {
            onDevice.reclaim(port, DEVICE, 1 + device.nextInt(8), device.nextInt(6));
        } else if (device.nextInt(5) == 0) {
            port.onLost(DEVICE);
        }
    }

    private void endDeviceWrite(boolean succeeds) {
        TierPort.PendingWrite write = device.nextBoolean() ? toDevice.pollFirst() : toDevice.pollLast();
        if (write != null) {
            long place = succeeds ? onDevice.write(write.block(), write.pages().getFirst()) : -1;
            store.tierPort().onWritten(write.record(), DEVICE, place);
            count(succeeds ? Count.COPIED_TO_DEVICE : Count.REFUSED_WRITES);
        }
    }

    private BlockChain chain() {
        int trunk = random.nextInt(5);
        int branch = random.nextInt(4);
        int length = 1 + random.nextInt(MAX_CHAIN_BLOCKS);
        return BlockChain.of(
                SPACE,
                IntStream.range(0, length * BLOCK_TOKENS)
                        .map(i -> trunk * 1_000_000 + (i < 4 * BLOCK_TOKENS ? i : branch * 100_000 + i))
                        .toArray());
    }

    private void put() {
        BlockChain chain = chain();
        for (int index = 0; index < chain.length(); index++) {
            PutReservation putReservation = store.reserve(blocks, chain, index, random.nextBoolean());
            if (putReservation.outcome() == PutOutcome.RESERVED) {
                int record = putReservation.record();
                if (store.records().diskAddress(record) != -1) {
                    count(Count.REFILLED);
                }
                fill(record);
            } else if (!putReservation.outcome().allowsNextBlock()) {
                return;
            }
        }
    }

    private void fill(int record) {
        first(record).set(ValueLayout.JAVA_LONG, 0, content(record));
        int dice = random.nextInt(20);
        if (dice == 0) {
            store.abandon(record);
        } else if (dice == 1) {
            filling.add(record);
        } else {
            store.seal(record, 7);
        }
    }

    private void endFilling() {
        if (!filling.isEmpty()) {
            int record = filling.remove(/* index */ random.nextInt(filling.size()));
            if (random.nextBoolean()) {
                store.seal(record, 7);
            } else {
                store.abandon(record);
            }
        }
    }

    private long content(int record) {
        return store.records().keyLo(record) ^ store.records().keyHi(record);
    }

    private MemorySegment first(int record) {
        return store.slotSegment(store.records().hostPage(record), PAGE);
    }

    private void putObject() {
        BlockKey key = BlockKey.ofObject(THINGS, new byte[] {(byte) random.nextInt(6)});
        PutReservation putReservation = store.reserveObject(things, key, 1 + random.nextInt(3 << 20));
        if (putReservation.outcome() == PutOutcome.RESERVED) {
            fill(putReservation.record());
        }
    }

    private void getObject() {
        BlockKey key = BlockKey.ofObject(THINGS, new byte[] {(byte) random.nextInt(6)});
        long handle = store.lookup().findKnown(key.hi(), key.lo());
        if (RecordHandle.isFound(handle)) {
            int record = RecordHandle.record(handle);
            LoadOutcome start = store.beginLoad(record, RecordHandle.generation(handle), 1);
            if (start == LoadOutcome.STARTED) {
                toRead.add(record);
                count(Count.OBJECTS_READ);
            }
            if (start.isAvailable()) {
                tables.add(new int[] {record});
            }
        }
    }

    /// Returns whether a block that is on disk alone is brought in without a caller that waits.
    private boolean expect(BlockChain chain, int index) {
        long handle = store.lookup().findKnown(chain.keyHi(index), chain.keyLo(index));
        boolean comes = RecordHandle.isFound(handle)
                && store.hints().startPrefetch(RecordHandle.record(handle), RecordHandle.generation(handle));
        if (comes) {
            toRead.add(RecordHandle.record(handle));
            count(Count.PREFETCHED);
        }
        return comes;
    }

    private void beginWrite() {
        for (var tombstone = random.nextInt(4) == 0 ? null : store.tierPort().nextTombstone(0);
                tombstone != null;
                tombstone = store.tierPort().nextTombstone(0)) {
            disk.tombstone(tombstone);
        }
        TierPort.PendingWrite write = store.tierPort().nextWrite(0);
        if (write != null) {
            writing.add(write);
        }
    }

    private void endWrite(boolean succeeds) {
        TierPort.PendingWrite write = random.nextBoolean() ? writing.pollFirst() : writing.pollLast();
        if (write != null) {
            long place = succeeds ? disk.write(write.block(), write.pages().getFirst()) : -1;
            store.tierPort().onWritten(write.record(), 0, place);
        }
    }

    private void acquire(int pins) {
        BlockChain chain = chain();
        long deepest = store.lookup().pinDeepest(chain);
        int here = RecordHandle.isFound(deepest) ? store.records().depth(RecordHandle.record(deepest)) + 1 : 0;
        int known = store.lookup().matchKnown(chain, here);
        assertThat(known).isGreaterThanOrEqualTo(here);
        boolean ahead = known > here && (pins == 0 || known % 4 == 0) && expect(chain, here);
        LoadBatch loadBatch = store.beginLoads(chain, here, ahead ? here : known, pins);
        for (int i = 0; i < loadBatch.count(); i++) {
            if (loadBatch.isStarted(i)) {
                toRead.add(loadBatch.record(i));
            } else {
                count(Count.JOINED);
            }
        }
        List<Integer> pinned = new ArrayList<>();
        if (RecordHandle.isFound(deepest)) {
            pinned.add(RecordHandle.record(deepest));
        }
        for (int i = 0; pins > 0 && i < loadBatch.count(); i++) {
            pinned.add(loadBatch.record(i));
        }
        tables.add(pinned.stream().mapToInt(Integer::intValue).toArray());
    }

    private void read() {
        if (reading.size() < 3 && !toRead.isEmpty()) {
            int record = toRead.poll();
            TierRead read = store.tierPort().nextRead(0, record, random.nextInt(3) == 0, record);
            if (read == null) {
                count(Count.CANCELLED);
            } else {
                reading.add(read);
            }
        } else if (!reading.isEmpty()) {
            TierRead read = reading.remove(random.nextInt(reading.size()));
            boolean good = disk.read(read.address(), read.pages().getFirst()) && random.nextInt(12) > 0;
            store.tierPort().onRead((int) read.tag(), read.block().checksum(), good, !good && random.nextBoolean());
            count(good ? Count.LOADED : Count.FAILED_READS);
        }
    }

    /// Whatever a table has pinned and is sealed has its content.
    private void releaseTable() {
        if (!tables.isEmpty()) {
            for (int record : tables.remove(random.nextInt(tables.size()))) {
                if (ControlWord.state(store.records().control(record)) == ControlWord.SEALED) {
                    assertThat(first(record).get(ValueLayout.JAVA_LONG, 0)).isEqualTo(content(record));
                }
                store.lookup().unpin(record);
            }
        }
    }

    private void drop() {
        BlockChain chain = chain();
        switch (random.nextInt(8)) {
            case 0 -> store.dropAll(random.nextBoolean() ? blocks : things);
            case 1, 2 -> store.drop(chain, random.nextInt(chain.length()));
            default -> store.drop(chain.keyHi(chain.length() - 1), chain.keyLo(chain.length() - 1));
        }
    }

    private void reclaim() {
        if (disk.size() > 20) {
            disk.reclaim(store.tierPort(), 0, 4 + random.nextInt(8), random.nextInt(6));
            count(Count.RECLAIMS);
        }
    }

    /// Everything that the store knew to be on disk is known afterwards; unless copies that had been evicted come
    /// back with it and are more than may be alive, or than there are records.
    private void restart() {
        List<BlockKey> before = onDisk();
        finish();
        before.retainAll(onDisk());
        store.close();
        open();
        DiskTierStats stats = store.tierPort().stats();
        if (stats.restored() * SPACE.blockBytes() <= diskLimit && stats.withoutRecord() == 0) {
            assertThat(onDisk()).containsAll(before);
            count(Count.RESTARTS);
        }
    }

    private List<BlockKey> onDisk() {
        List<BlockKey> keys = new ArrayList<>();
        RecordReader reader = new RecordReader(store);
        reader.eachKnown(record -> {
            if (store.records().diskAddress(record) != -1) {
                keys.add(new BlockKey(
                        store.records().keyHi(record), store.records().keyLo(record)));
            }
        });
        return keys;
    }

    /// Ends whatever is under way.
    void finish() {
        while (!toDevice.isEmpty()) {
            endDeviceWrite(true);
        }
        while (!tables.isEmpty()) {
            releaseTable();
        }
        while (!filling.isEmpty()) {
            endFilling();
        }
        while (!toRead.isEmpty() || !reading.isEmpty()) {
            read();
        }
        for (boolean more = true;
                more;
                more = store.tierPort().settledWrites() < store.tierPort().flushMark()) {
            beginWrite();
            endWrite(true);
        }
        store.validate();
        assertThat(store.tierPort().settledWrites()).isEqualTo(store.tierPort().flushMark());
        DiskTierStats stats = store.tierPort().stats();
        counts.merge(Count.REFUSED_WRITES, (int) stats.notWritten(), Integer::sum);
        if (stats.sacrificed() > 0) {
            count(Count.SACRIFICED);
        }
    }

    @Override
    public void close() {
        store.close();
    }

    /// Looks at every record.
    private record RecordReader(HostStore store) {
        void eachKnown(java.util.function.IntConsumer visitor) {
            for (int record = 0; record < store.records().highWaterMark(); record++) {
                if (ControlWord.isKnown(ControlWord.state(store.records().control(record)))) {
                    visitor.accept(record);
                }
            }
        }
    }
}
