package io.kvcache.tiers.movement;

import java.util.Map;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/// What other threads ask of a [TierWorker].
///
/// **Threads.** Any may add; the mover takes.
public final class TierWorkerQueue {

    private final Queue<QueuedLoad> demanded = new ConcurrentLinkedQueue<>();
    private final Queue<QueuedLoad> prefetches = new ConcurrentLinkedQueue<>();

    /// What of [#prefetches] is still to come from there: others were wanted meanwhile, and moved up.
    private final Map<Integer, QueuedLoad> pendingPrefetches = new ConcurrentHashMap<>();

    private final Queue<CompletableFuture<Boolean>> flushes = new ConcurrentLinkedQueue<>();
    private final AtomicInteger loads = new AtomicInteger();

    /// A load that was started.
    ///
    /// @param wanted whether it goes on though nobody waits for it
    record QueuedLoad(int record, boolean wanted, long sinceNanos) {}

    /// Has a record read for somebody who waits.
    ///
    /// @param keep whether to read it also when nobody waits any longer
    public void addDemanded(int record, boolean keep, long nowNanos) {
        loads.incrementAndGet();
        demanded.add(new QueuedLoad(record, keep, nowNanos));
    }

    /// Has a record read that is likely to be wanted.
    public void addPrefetch(int record, long nowNanos) {
        loads.incrementAndGet();
        QueuedLoad load = new QueuedLoad(record, true, nowNanos);
        pendingPrefetches.put(record, load);
        prefetches.add(load);
    }

    /// Somebody waits for a record now: if it is only expected so far, it is read like what is demanded.
    void prioritize(int record) {
        QueuedLoad load = pendingPrefetches.isEmpty() ? null : pendingPrefetches.remove(record);
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
    QueuedLoad nextLoad() {
        QueuedLoad load = demanded.poll();
        if (load == null) {
            load = nextPrefetch();
        }
        if (load != null) {
            loads.decrementAndGet();
        }
        return load;
    }

    private @Nullable QueuedLoad nextPrefetch() {
        QueuedLoad load = prefetches.poll();
        while (load != null && !pendingPrefetches.remove(load.record, load)) {
            load = prefetches.poll();
        }
        return load;
    }

    @Nullable
    CompletableFuture<Boolean> nextFlush() {
        return flushes.poll();
    }

    int loadCount() {
        return loads.get();
    }

    boolean isEmpty() {
        return loads.get() == 0 && flushes.isEmpty();
    }
}
