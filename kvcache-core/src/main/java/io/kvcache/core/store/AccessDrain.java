package io.kvcache.core.store;

import static io.kvcache.core.policy.RecordView.NONE;

import io.kvcache.core.policy.EvictionPolicy;
import io.kvcache.core.store.ObjectLinks.ObjectSequence;
import io.kvcache.core.store.RecordStates.ExpiredBlocks;
import io.kvcache.core.store.WriteAdmission.NoveltyClassifier;
import io.kvcache.core.tree.ControlWord;
import io.kvcache.core.tree.RecordHandle;
import io.kvcache.core.tree.RecordPool;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.LongConsumer;

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

    /// Uses that the policy has not heard of yet: written by any reader, drained by the holder of the store's lock.
    ///
    /// Several small rings, one a group of threads, so that readers seldom meet. A full ring loses touches and
    /// counts them: a policy that misses some of a thousand uses a moment decides as well as before.
    static final class AccessBuffer {

        private static final int STRIPES = 8;
        private static final int RING = 256;

        /// Longs between two stripes' counters: two cache lines, so that neighbours do not share one.
        private static final int SPACING = 16;

        private static final long EMPTY = 0;

        private final AtomicLongArray cells = new AtomicLongArray(STRIPES * RING);
        private final AtomicLongArray tails = new AtomicLongArray(STRIPES * SPACING);
        private final AtomicLongArray heads = new AtomicLongArray(STRIPES * SPACING);
        private final LongAdder lost = new LongAdder();

        /// Notes a use.
        ///
        /// @param handle of the deepest record used
        /// @return whether the ring is filling up, so that draining it soon is worth a try at the lock
        boolean offer(long handle) {
            int stripe = (int) Thread.currentThread().threadId() & (STRIPES - 1);
            long tail = tails.get(stripe * SPACING);
            long used = tail - heads.get(stripe * SPACING);
            if (used >= RING || !tails.compareAndSet(stripe * SPACING, tail, tail + 1)) {
                lost.increment();
                return true;
            }
            cells.setRelease(stripe * RING + (int) (tail & (RING - 1)), handle + 1);
            return used > RING / 2;
        }

        /// Hands every noted use to `consumer`; under the store's lock. One that it fails at counts as handed
        /// over.
        void drain(LongConsumer consumer) {
            for (int stripe = 0; stripe < STRIPES; stripe++) {
                drain(stripe, consumer);
            }
        }

        private void drain(int stripe, LongConsumer consumer) {
            long head = heads.get(stripe * SPACING);
            long tail = tails.get(stripe * SPACING);
            try {
                while (head < tail) {
                    int cell = stripe * RING + (int) (head & (RING - 1));
                    long handle = cells.getAcquire(cell);
                    if (handle == EMPTY) {
                        break;
                    }
                    cells.setRelease(cell, EMPTY);
                    head++;
                    consumer.accept(handle - 1);
                }
            } finally {
                heads.setRelease(stripe * SPACING, head);
            }
        }

        long dropped() {
            return lost.sum();
        }
    }
}
