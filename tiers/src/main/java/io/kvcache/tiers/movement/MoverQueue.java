package io.kvcache.tiers.movement;

import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/// What other threads ask of a [Mover].
///
/// **Threads.** Any may add; the mover takes.
public final class MoverQueue {

    private final Queue<Load> demanded = new ConcurrentLinkedQueue<>();
    private final Queue<Load> expected = new ConcurrentLinkedQueue<>();
    private final Queue<CompletableFuture<Boolean>> flushes = new ConcurrentLinkedQueue<>();
    private final AtomicInteger loads = new AtomicInteger();

    /// A load that was started.
    ///
    /// @param wanted whether it goes on though nobody waits for it
    record Load(int record, boolean wanted, long sinceNanos) {}

    /// Has a record read for somebody who waits.
    ///
    /// @param keep whether to read it also when nobody waits any longer
    public void demand(int record, boolean keep, long nowNanos) {
        loads.incrementAndGet();
        demanded.add(new Load(record, keep, nowNanos));
    }

    /// Has a record read that is likely to be wanted.
    public void expect(int record, long nowNanos) {
        loads.incrementAndGet();
        expected.add(new Load(record, true, nowNanos));
    }

    /// Has all that was handed to the tier by now made durable.
    public CompletableFuture<Boolean> flush() {
        CompletableFuture<Boolean> durable = new CompletableFuture<>();
        flushes.add(durable);
        return durable;
    }

    @Nullable
    Load nextLoad() {
        Load load = demanded.poll();
        if (load == null) {
            load = expected.poll();
        }
        if (load != null) {
            loads.decrementAndGet();
        }
        return load;
    }

    @Nullable
    CompletableFuture<Boolean> nextFlush() {
        return flushes.poll();
    }

    int loads() {
        return loads.get();
    }

    boolean isEmpty() {
        return loads.get() == 0 && flushes.isEmpty();
    }
}
