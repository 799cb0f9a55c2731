package io.kvcache.core.store;

import io.kvcache.core.event.EventKind;
import io.kvcache.core.event.EventLog;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.memory.SlotClass;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.core.policy.RecordView;
import io.kvcache.core.store.RecordStates.RecordPins;
import io.kvcache.core.tree.NewRecordFields;
import io.kvcache.core.tree.RecordLayout;
import io.kvcache.core.tree.RecordPool;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.locks.ReentrantLock;

/// One sealed record with a slot of its own, and all that its life takes; small enough that jcstress can have
/// thousands.
final class StressStore {

    /// Never touched, so that all may share it.
    private static final MemorySegment SLAB = Arena.global().allocate(SlabPool.SLAB_BYTES);

    private static final Namespace SPACE = Namespace.objects("stress", "t");
    private static final int RECORDS = 2;

    final RecordPool pool = new RecordPool(
            MemorySegment.ofArray(new long[(int) (RecordLayout.spanBytes(RECORDS) / Long.BYTES) + 1]), RECORDS);
    final int record;
    private final RecordPins pins;
    private final RecordStates recordStates;
    private final ReentrantLock lock = new ReentrantLock();

    StressStore() {
        SlabPool slabs = new SlabPool(SLAB);
        SlotClass slots = slabs.classOf(SlabPool.SLAB_BYTES);
        StoreComponents parts = StoreComponents.of(pool, slabs, PolicyKind.LRU, new EventLog(2));
        parts.namespaceRegistry().add(new NamespaceEntry(0, SPACE, slots, (int) SlabPool.SLAB_BYTES));
        pins = parts.recordPins();
        recordStates = new RecordStates(parts);
        record =
                parts.tree().insert(new NewRecordFields(1, 1, RecordView.NONE, 0, RecordFlags.ofBlock(0), 4096, 0, -1));
        pool.hostPage(record, slabs.acquire(slots, record));
        recordStates.seal(record, RecordView.NONE);
    }

    boolean pin() {
        return pins.pin(record, 0);
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
        if (pins.unpin(record)) {
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
