package io.kvcache.core.store;

import io.kvcache.core.event.EventBatch;
import io.kvcache.core.event.EventLog;
import io.kvcache.core.event.EventStream;
import io.kvcache.core.event.StoreSnapshot;
import java.util.concurrent.locks.ReentrantLock;

/// The events but for objects that are put, out of a log of their own: half a million puts a second
/// would run over one between two looks at it, and then the little that went would have to be
/// looked for among all that is stored.
///
/// **Threads.** Any.
final class FilteredEventStream implements EventStream {

    private final EventLog log;
    private final EventStream all;
    private final ReentrantLock lock;

    /// @param log under the lock
    /// @param all asked for snapshots
    FilteredEventStream(EventLog log, EventStream all, ReentrantLock lock) {
        this.log = log;
        this.all = all;
        this.lock = lock;
    }

    @Override
    public long nextSequence() {
        lock.lock();
        try {
            return log.nextSequence();
        } finally {
            lock.unlock();
        }
    }

    @Override
    public EventBatch since(long sequence, int max) {
        lock.lock();
        try {
            return log.since(sequence, max);
        } finally {
            lock.unlock();
        }
    }

    /// Of some time after its number was taken.
    @Override
    public StoreSnapshot snapshot() {
        long next = nextSequence();
        StoreSnapshot now = all.snapshot();
        return new StoreSnapshot(next, now.stored(), now.namespaces());
    }
}
