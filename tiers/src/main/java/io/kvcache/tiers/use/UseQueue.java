package io.kvcache.tiers.use;

import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;

/// Uses on their way from requests to whoever looks at them. Takes no lock; what finds no room is
/// counted and gone.
///
/// **Threads.** Any may offer, one takes.
public final class UseQueue {

    private final int mostKeys;
    private final ConcurrentLinkedQueue<Use> queue = new ConcurrentLinkedQueue<>();
    private final AtomicInteger keys = new AtomicInteger();
    private final LongAdder dropped = new LongAdder();

    /// @param mostKeys that may wait
    public UseQueue(int mostKeys) {
        this.mostKeys = mostKeys;
    }

    /// Takes a use, or counts it as dropped.
    public void offer(Use use) {
        int more = use.keys();
        if (keys.addAndGet(more) > mostKeys) {
            keys.addAndGet(-more);
            dropped.increment();
            return;
        }
        queue.add(use);
    }

    /// The next one, or null.
    @Nullable
    public Use poll() {
        Use use = queue.poll();
        if (use != null) {
            keys.addAndGet(-use.keys());
        }
        return use;
    }

    /// Uses that found no room.
    public long dropped() {
        return dropped.sum();
    }
}
