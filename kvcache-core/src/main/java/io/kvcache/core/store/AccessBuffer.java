package io.kvcache.core.store;

import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.LongConsumer;

/// Uses that the policy has not heard of yet: written by any reader, drained by the holder of the store's lock.
///
/// Several small rings, one a group of threads, so that readers seldom meet. A full ring loses touches and counts
/// them: a policy that misses some of a thousand uses a moment decides as well as before.
final class AccessBuffer {

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
