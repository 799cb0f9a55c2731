package io.kvcache.core.store;

import io.kvcache.core.event.EventKind;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.core.spi.HostMemory;
import io.kvcache.core.store.HostStore.HostStoreConfig;
import io.kvcache.core.tree.RecordPool;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.locks.ReentrantLock;

/// One sealed record with a slot of its own, and all that its life takes; small enough that jcstress can have
/// thousands.
final class StressStore {

    private static final int TOKENS = 512;
    private static final int RECORDS = 2;

    /// Never touched, so that all may share it.
    private static final MemorySegment MEMORY = Arena.global().allocate(SlabPool.MIN_BYTES);

    private static final Namespace SPACE =
            Namespace.of("stress", BlockShape.mla(1, (int) (SlabPool.MIN_BYTES / TOKENS), TOKENS, Dtype.INT8));
    private static final BlockChain CHAIN = BlockChain.of(SPACE, new int[TOKENS]);

    final RecordPool pool;
    final int record;
    private final RecordStates recordStates;
    private final ReentrantLock lock = new ReentrantLock();

    StressStore() {
        HostStore store = new HostStore(
                new HostStoreConfig(SlabPool.MIN_BYTES, RECORDS, PolicyKind.LRU, 2), StressStore::memory, lock);
        pool = store.pool;
        recordStates = store.recordStates;
        record = store.reserve(store.register(SPACE), CHAIN, 0).record();
        store.seal(record, 0);
    }

    private static HostMemory memory(String purpose, long bytes) {
        MemorySegment memory =
                purpose.equals("slots") ? MEMORY : MemorySegment.ofArray(new long[(int) (bytes / Long.BYTES) + 1]);
        return new HostMemory() {
            @Override
            public MemorySegment segment() {
                return memory;
            }

            @Override
            public String describe() {
                return purpose;
            }

            @Override
            public void close() {}
        };
    }

    boolean pin() {
        return pool.pin(record, 0);
    }

    /// As eviction does it, under the lock.
    boolean evict() {
        lock.lock();
        try {
            boolean claimed = recordStates.claim(record);
            if (claimed) {
                recordStates.policyOf(record).forget(record);
                recordStates.onEvicted(record);
            }
            return claimed;
        } finally {
            lock.unlock();
        }
    }

    /// As [RecordLookup#unpin].
    void unpin() {
        if (pool.unpin(record)) {
            lock.lock();
            try {
                recordStates.reap(record);
            } finally {
                lock.unlock();
            }
        }
    }

    void drop() {
        lock.lock();
        try {
            recordStates.markDeleted(record, EventKind.DROPPED);
        } finally {
            lock.unlock();
        }
    }
}
