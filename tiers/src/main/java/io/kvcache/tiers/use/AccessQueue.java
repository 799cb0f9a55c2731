package io.kvcache.tiers.use;

import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;

/// Uses on their way from requests to whoever looks at them. Takes no lock; what finds no room is
/// counted and gone.
///
/// **Threads.** Any may offer, one takes.
public final class AccessQueue {

    private final int maxKeys;
    private final ConcurrentLinkedQueue<Access> queue = new ConcurrentLinkedQueue<>();
    private final AtomicInteger keys = new AtomicInteger();
    private final LongAdder dropped = new LongAdder();

    /// @param maxKeys that may wait
    public AccessQueue(int maxKeys) {
        this.maxKeys = maxKeys;
    }

    /// Takes a use, or counts it as dropped.
    public void offer(Access access) {
        int more = access.keyCount();
        if (keys.addAndGet(more) > maxKeys) {
            keys.addAndGet(-more);
            dropped.increment();
            return;
        }
        queue.add(access);
    }

    /// The next one, or null.
    @Nullable
    public Access poll() {
        Access access = queue.poll();
        if (access != null) {
            keys.addAndGet(-access.keyCount());
        }
        return access;
    }

    /// Uses that found no room.
    public long dropped() {
        return dropped.sum();
    }
}
