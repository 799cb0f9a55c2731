package io.kvcache.server.quota;

import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;

/// Bytes that are on their way at one time, in one direction, and how many may be.
///
/// **Threads.** Any.
public final class ByteBudget {

    private final long limitBytes;
    private final AtomicLong usedBytes = new AtomicLong();
    private final LongAdder rejected = new LongAdder();

    /// @param limitBytes at one time; something larger may go when nothing else does
    public ByteBudget(long limitBytes) {
        this.limitBytes = limitBytes;
    }

    /// As many as there are.
    public static ByteBudget unlimited() {
        return new ByteBudget(Long.MAX_VALUE);
    }

    /// Bytes on their way now.
    public long usedBytes() {
        return usedBytes.get();
    }

    /// Most that may be.
    public long limitBytes() {
        return limitBytes;
    }

    /// What might not go because too much did.
    public long rejectedCount() {
        return rejected.sum();
    }

    /// Something begins its way, or may not.
    public boolean tryAcquire(long more) {
        long before = usedBytes.getAndAdd(more);
        if (before > 0 && before > limitBytes - more) {
            usedBytes.addAndGet(-more);
            rejected.increment();
            return false;
        }
        return true;
    }

    /// Its way is over.
    public void release(long less) {
        usedBytes.addAndGet(-less);
    }
}
