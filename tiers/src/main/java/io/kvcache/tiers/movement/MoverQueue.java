package io.kvcache.tiers.movement;

import java.util.Map;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/// What other threads ask of a [Mover].
///
/// **Threads.** Any may add; the mover takes.
public final class MoverQueue {

    private final Queue<Load> demanded = new ConcurrentLinkedQueue<>();
    private final Queue<Load> expected = new ConcurrentLinkedQueue<>();

    /// What of [#expected] is still to come from there: others were wanted meanwhile, and moved up.
    private final Map<Integer, Load> unwanted = new ConcurrentHashMap<>();

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
        Load load = new Load(record, true, nowNanos);
        unwanted.put(record, load);
        expected.add(load);
    }

    /// Somebody waits for a record now: if it is only expected so far, it is read like what is demanded.
    void hurry(int record) {
        Load load = unwanted.isEmpty() ? null : unwanted.remove(record);
        if (load != null) {
            demanded.add(load);
        }
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
            load = nextExpected();
        }
        if (load != null) {
            loads.decrementAndGet();
        }
        return load;
    }

    private @Nullable Load nextExpected() {
        Load load = expected.poll();
        while (load != null && !unwanted.remove(load.record, load)) {
            load = expected.poll();
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
