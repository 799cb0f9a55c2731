package io.kvcache.core.store;

import io.kvcache.core.event.EventKind;
import io.kvcache.core.event.EventLog;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.memory.SlotClass;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.core.policy.RecordView;
import io.kvcache.core.tree.NewRecord;
import io.kvcache.core.tree.RecordLayout;
import io.kvcache.core.tree.RecordPool;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.locks.ReentrantLock;

/// One sealed record with a slot of its own, and all that its life takes; small enough that jcstress can have
/// thousands.
final class StressedStore {

    /// Never touched, so that all may share it.
    private static final MemorySegment SLAB = Arena.global().allocate(SlabPool.SLAB_BYTES);

    private static final Namespace SPACE = Namespace.objects("stress", "t");
    private static final int RECORDS = 2;

    final RecordPool pool = new RecordPool(
            MemorySegment.ofArray(new long[(int) (RecordLayout.spanBytes(RECORDS) / Long.BYTES) + 1]), RECORDS);
    final int record;
    private final Pins pins;
    private final Lifecycle lifecycle;
    private final ReentrantLock lock = new ReentrantLock();

    StressedStore() {
        SlabPool slabs = new SlabPool(SLAB);
        SlotClass slots = slabs.classOf(SlabPool.SLAB_BYTES);
        StoreParts parts = StoreParts.of(pool, slabs, PolicyKind.LRU, new EventLog(2));
        parts.namespaces().add(new NamespaceEntry(0, SPACE, slots, (int) SlabPool.SLAB_BYTES));
        pins = parts.pins();
        lifecycle = new Lifecycle(parts);
        record = parts.tree().insert(new NewRecord(1, 1, RecordView.NONE, 0, Identity.block(0), 4096, 0, -1));
        pool.hostPage(record, slabs.acquire(slots, record));
        lifecycle.seal(record, RecordView.NONE);
    }

    boolean pin() {
        return pins.pin(record, 0);
    }

    /// As eviction does it, under the lock.
    boolean evict() {
        lock.lock();
        try {
            boolean claimed = lifecycle.claim(record);
            if (claimed) {
                lifecycle.policyOf(record).forget(record);
                lifecycle.evicted(record);
            }
            return claimed;
        } finally {
            lock.unlock();
        }
    }

    /// As [Lookup#unpin].
    void unpin() {
        if (pins.unpin(record)) {
            lock.lock();
            try {
                lifecycle.bury(record);
            } finally {
                lock.unlock();
            }
        }
    }

    void drop() {
        lock.lock();
        try {
            lifecycle.doom(record, EventKind.DROPPED);
        } finally {
            lock.unlock();
        }
    }
}
