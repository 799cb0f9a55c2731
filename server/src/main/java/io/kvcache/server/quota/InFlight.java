package io.kvcache.server.quota;

import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;

/// Bytes that are on their way at one time, in one direction, and how many may be.
///
/// **Threads.** Any.
public final class InFlight {

    private final long limitBytes;
    private final AtomicLong bytes = new AtomicLong();
    private final LongAdder refused = new LongAdder();

    /// @param limitBytes at one time; something larger may go when nothing else does
    public InFlight(long limitBytes) {
        this.limitBytes = limitBytes;
    }

    /// As many as there are.
    public static InFlight unlimited() {
        return new InFlight(Long.MAX_VALUE);
    }

    /// Bytes on their way now.
    public long bytes() {
        return bytes.get();
    }

    /// Most that may be.
    public long limitBytes() {
        return limitBytes;
    }

    /// What might not go because too much did.
    public long refusedCount() {
        return refused.sum();
    }

    /// Something begins its way, or may not.
    public boolean begin(long more) {
        long before = bytes.getAndAdd(more);
        if (before > 0 && before > limitBytes - more) {
            bytes.addAndGet(-more);
            refused.increment();
            return false;
        }
        return true;
    }

    /// Its way is over.
    public void end(long less) {
        bytes.addAndGet(-less);
    }
}
