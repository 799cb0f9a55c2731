package io.kvcache.bench.jmh;

import io.kvcache.core.PutOutcome;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.core.store.HostStore;
import io.kvcache.core.store.HostStore.HostStoreConfig;
import io.kvcache.core.store.HostStore.PutReservation;
import io.kvcache.core.store.NamespaceRegistry.NamespaceEntry;
import io.kvcache.core.store.StoreEvents.EventLog;
import io.kvcache.tiers.memory.MappedMemorySource;
import io.kvcache.tiers.memory.MemoryOptions;

/// A store with room for a million records and as many slots, used directly, without a cache around it.
final class ResidentStore implements AutoCloseable {

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
}
