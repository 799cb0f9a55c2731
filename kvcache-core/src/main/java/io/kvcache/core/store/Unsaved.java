package io.kvcache.core.store;

import static io.kvcache.core.policy.RecordView.NONE;

import io.kvcache.core.tree.Control;
import io.kvcache.core.tree.RecordPool;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.IntConsumer;

/// What is resident and on no disk: a restart would not find it.
///
/// **Threads.** Any; takes the store's lock for a bounded number of records at a time.
final class Unsaved {

    private final RecordPool pool;
    private final Lifecycle lifecycle;
    private final Offload offload;
    private final ReentrantLock lock;

    Unsaved(StoreParts parts, Lifecycle lifecycle, ReentrantLock lock) {
        pool = parts.pool();
        offload = parts.offload();
        this.lifecycle = lifecycle;
        this.lock = lock;
    }

    /// Has a run of records written, as far as they were used so often. They are owed to a flush from then on.
    ///
    /// @return whether there are more
    boolean want(int from, int turn, int leastUses) {
        lock.lock();
        try {
            boolean more = each(from, turn, record -> {
                if (Identity.uses(pool.identity(record)) >= leastUses) {
                    offload.want(record);
                }
            });
            offload.mark();
            return more;
        } finally {
            lock.unlock();
        }
    }

    /// How many bytes it is.
    long bytes(int turn) {
        long[] sum = new long[1];
        for (int from = 0; each(from, turn, record -> sum[0] += pool.bytes(record)); from += turn) {}
        return sum[0];
    }

    private boolean each(int from, int turn, IntConsumer use) {
        lock.lock();
        try {
            int to = Math.min(pool.highWater(), from + turn);
            for (int record = from; record < to; record++) {
                if (lifecycle.state(record) == Control.SEALED && pool.diskPlace(record) == NONE) {
                    use.accept(record);
                }
            }
            return to < pool.highWater();
        } finally {
            lock.unlock();
        }
    }
}
