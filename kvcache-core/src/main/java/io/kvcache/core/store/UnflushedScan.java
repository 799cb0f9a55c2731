package io.kvcache.core.store;

import static io.kvcache.core.policy.RecordView.NONE;

import io.kvcache.core.tree.ControlWord;
import io.kvcache.core.tree.RecordPool;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.IntConsumer;

/// What is resident and on no disk: a restart would not find it.
///
/// **Threads.** Any; takes the store's lock for a bounded number of records at a time.
final class UnflushedScan {

    private final RecordPool pool;
    private final RecordStates recordStates;
    private final WriteBackQueue writeBackQueue;
    private final ReentrantLock lock;

    UnflushedScan(StoreComponents parts, RecordStates recordStates, ReentrantLock lock) {
        pool = parts.pool();
        writeBackQueue = parts.writeBackQueue();
        this.recordStates = recordStates;
        this.lock = lock;
    }

    /// Has a run of records written, as far as they were used so often. They are owed to a flush from then on.
    ///
    /// @return whether there are more
    boolean enqueue(int from, int batch, int leastUses) {
        lock.lock();
        try {
            boolean more = forEachUnflushed(from, batch, record -> {
                if (RecordFlags.uses(pool.flags(record)) >= leastUses) {
                    writeBackQueue.enqueueMissing(record);
                }
            });
            writeBackQueue.flushMark();
            return more;
        } finally {
            lock.unlock();
        }
    }

    /// How many bytes it is.
    long countBytes(int batch) {
        long[] sum = new long[1];
        for (int from = 0; forEachUnflushed(from, batch, record -> sum[0] += pool.bytes(record)); from += batch) {}
        return sum[0];
    }

    private boolean forEachUnflushed(int from, int batch, IntConsumer use) {
        lock.lock();
        try {
            int to = Math.min(pool.highWaterMark(), from + batch);
            for (int record = from; record < to; record++) {
                if (recordStates.stateOf(record) == ControlWord.SEALED && pool.diskAddress(record) == NONE) {
                    use.accept(record);
                }
            }
            return to < pool.highWaterMark();
        } finally {
            lock.unlock();
        }
    }
}
