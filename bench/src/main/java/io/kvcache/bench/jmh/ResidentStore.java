package io.kvcache.bench.jmh;

import io.kvcache.core.PutOutcome;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.core.store.HostStore;
import io.kvcache.core.store.HostStore.HostStoreConfig;
import io.kvcache.core.store.HostStore.PutReservation;
import io.kvcache.core.store.NamespaceRegistry.NamespaceEntry;
import io.kvcache.core.store.StoreEvents.EventLog;
import io.kvcache.core.tree.RecordLayout;
import io.kvcache.tiers.memory.MappedMemorySource;
import io.kvcache.tiers.options.MemoryOptions;

/// A store with room for a million records and as many slots, used directly, without a cache around it.
public final class ResidentStore implements AutoCloseable {

    final HostStore store = new HostStore(
            new HostStoreConfig(
                    (long) ResidentCache.RECORDS * ResidentCache.SLOT_BYTES + (64 << 20),
                    ResidentCache.RECORDS,
                    PolicyKind.LRU,
                    EventLog.DEFAULT_CAPACITY),
            new MappedMemorySource(MemoryOptions.defaults()));

    private final NamespaceEntry entry = store.register(BenchChains.NAMESPACE);

    /// Reserves and seals a block; evicts when all records are taken.
    void put(BlockChain chain, int index) {
        PutReservation putReservation = store.reserve(entry, chain, index);
        if (putReservation.outcome() != PutOutcome.RESERVED) {
            throw new IllegalStateException("block " + index + " of " + chain + ": " + putReservation.outcome());
        }
        store.seal(putReservation.record(), 0);
    }

    /// Bytes that the store keeps for one record, as its statistics say.
    long bytesPerRecord() {
        return store.stats(0).records().bytesEach();
    }

    @Override
    public void close() {
        store.close();
    }

    /// The bytes of the layout itself, without the index.
    public static final int LINES_BYTES = RecordLayout.HOT_BYTES + RecordLayout.COLD_BYTES;

    /// How many bytes the metadata of one block takes, all in, with chains of 8,192 blocks. Budget: 120.
    /// `./kvcache bench core --filter bytes`
    public static double chainBytes() {
        try (ResidentStore resident = new ResidentStore()) {
            BenchChains.forEachBlockInterleaved(BenchChains.of(1, ResidentCache.CHAINS), resident::put);
            return resident.bytesPerRecord();
        }
    }

    /// The same with a million chains of one block, when every record is a leaf and so in the heap of the
    /// policy.
    public static double leafBytes() {
        try (ResidentStore resident = new ResidentStore()) {
            for (BlockChain chain : BenchChains.oneBlockChains(1, ResidentCache.RECORDS)) {
                resident.put(chain, 0);
            }
            return resident.bytesPerRecord();
        }
    }
}
