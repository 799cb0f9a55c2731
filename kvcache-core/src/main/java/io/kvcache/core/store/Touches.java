package io.kvcache.core.store;

import static io.kvcache.core.policy.RecordView.NONE;

import io.kvcache.core.policy.EvictionPolicy;
import io.kvcache.core.tree.Control;
import io.kvcache.core.tree.Handle;
import io.kvcache.core.tree.RecordPool;
import java.util.concurrent.locks.ReentrantLock;

/// Carries uses from readers to the policies.
final class Touches {

    private final RecordPool pool;
    private final Lifecycle lifecycle;
    private final ObjectOrder order;
    private final Offload offload;
    private final Prefetched prefetched;
    private final Over over;
    private final Cohorts cohorts;
    private final ReentrantLock lock;
    private final TouchBuffer buffer = new TouchBuffer();

    Touches(StoreParts parts, Lifecycle lifecycle, ObjectOrder order, ReentrantLock lock) {
        pool = parts.pool();
        offload = parts.offload();
        prefetched = parts.prefetched();
        over = parts.over();
        cohorts = parts.cohorts();
        this.lifecycle = lifecycle;
        this.order = order;
        this.lock = lock;
    }

    /// Notes a use; whoever fills the buffer empties it if nobody holds the lock. Any thread.
    void note(long handle) {
        if (buffer.offer(handle) && lock.tryLock()) {
            try {
                drain();
            } finally {
                lock.unlock();
            }
        }
    }

    /// Tells the policies; under the lock.
    void drain() {
        buffer.drain(this::apply);
    }

    long lost() {
        return buffer.lost();
    }

    private void apply(long handle) {
        int record = Handle.record(handle);
        long control = pool.control(record);
        if (Control.generation(control) != Handle.generation(handle) || Control.state(control) != Control.SEALED) {
            return;
        }
        over.used(record);
        cohorts.used(record);
        prefetched.used(record);
        EvictionPolicy policy = lifecycle.policyOf(record);
        policy.touch(record);
        offload.used(record);
        order.continued(record);
        tellAbove(record, policy.touchesAncestors(), offload.countsPaths());
    }

    /// Tells of the blocks above one that was used, each if it is wanted, or if it was brought in
    /// for this.
    private void tellAbove(int record, boolean policies, boolean admission) {
        for (int at = pool.parent(record); at != NONE; at = pool.parent(at)) {
            boolean guessed = prefetched.used(at);
            if (policies) {
                lifecycle.policyOf(at).touch(at);
            }
            if (guessed || admission) {
                offload.used(at);
            }
            if (!guessed && !policies && !admission) {
                return;
            }
        }
    }
}
