package io.kvcache.core.store;

import static io.kvcache.core.policy.RecordView.NONE;

import io.kvcache.core.policy.EvictionPolicy;
import io.kvcache.core.tree.ControlWord;
import io.kvcache.core.tree.RecordHandle;
import io.kvcache.core.tree.RecordPool;
import java.util.concurrent.locks.ReentrantLock;

/// Carries uses from readers to the policies.
final class AccessDrain {

    private final RecordPool pool;
    private final RecordStates recordStates;
    private final ObjectSequence order;
    private final WriteBackQueue writeBackQueue;
    private final PrefetchTracker prefetchTracker;
    private final ExpiredBlocks expiredBlocks;
    private final NoveltyClassifier noveltyClassifier;
    private final ReentrantLock lock;
    private final AccessBuffer buffer = new AccessBuffer();

    AccessDrain(StoreComponents parts, RecordStates recordStates, ObjectSequence order, ReentrantLock lock) {
        pool = parts.pool();
        writeBackQueue = parts.writeBackQueue();
        prefetchTracker = parts.prefetchTracker();
        expiredBlocks = parts.expiredBlocks();
        noveltyClassifier = parts.noveltyClassifier();
        this.recordStates = recordStates;
        this.order = order;
        this.lock = lock;
    }

    /// Notes a use; whoever fills the buffer empties it if nobody holds the lock. Any thread.
    void record(long handle) {
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

    long dropped() {
        return buffer.dropped();
    }

    private void apply(long handle) {
        int record = RecordHandle.record(handle);
        long control = pool.control(record);
        if (ControlWord.generation(control) != RecordHandle.generation(handle)
                || ControlWord.state(control) != ControlWord.SEALED) {
            return;
        }
        expiredBlocks.onUsed(record);
        noveltyClassifier.onUsed(record);
        prefetchTracker.onUsed(record);
        EvictionPolicy policy = recordStates.policyOf(record);
        policy.touch(record);
        writeBackQueue.onUsed(record);
        order.onUsed(record);
        notifyAncestors(record, policy.touchesAncestors(), writeBackQueue.countsAncestorUses());
    }

    /// Tells of the blocks above one that was used, each if it is wanted, or if it was brought in
    /// for this.
    private void notifyAncestors(int record, boolean policies, boolean admission) {
        for (int at = pool.parent(record); at != NONE; at = pool.parent(at)) {
            boolean guessed = prefetchTracker.onUsed(at);
            if (policies) {
                recordStates.policyOf(at).touch(at);
            }
            if (guessed || admission) {
                writeBackQueue.onUsed(at);
            }
            if (!guessed && !policies && !admission) {
                return;
            }
        }
    }
}
