package io.kvcache.tiers.movement;

import io.kvcache.core.tier.TierRead;
import java.util.Map;
import java.util.Objects;
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

    private final Queue<Load> demanded = new ConcurrentLinkedQueue<>();
    private final Queue<Load> prefetches = new ConcurrentLinkedQueue<>();

    /// What of [#prefetches] is still to come from there: others were wanted meanwhile, and moved up.
    private final Map<Integer, Load> pendingPrefetches = new ConcurrentHashMap<>();

    private final Queue<CompletableFuture<Boolean>> flushes = new ConcurrentLinkedQueue<>();
    private final AtomicInteger loads = new AtomicInteger();

    /// A load that was started, from here to its end.
    static final class Load {

        final int record;
        /// Whether it goes on though no caller waits for it.
        final boolean wanted;
        final long sinceNanos;
        /// What the tier is asked for, from when it is asked on; owned by the mover.
        @Nullable
        TierRead read;

        Load(int record, boolean wanted, long sinceNanos) {
            this.record = record;
            this.wanted = wanted;
            this.sinceNanos = sinceNanos;
        }

        /// What the tier is asked for.
        TierRead read() {
            return Objects.requireNonNull(read);
        }
    }

    /// Queues the read of a record for a waiting caller.
    ///
    /// @param keep whether to read it also when no caller waits any longer
    public void addDemanded(int record, boolean keep, long nowNanos) {
        loads.incrementAndGet();
        demanded.add(new Load(record, keep, nowNanos));
    }

    /// Has a record read that is likely to be wanted.
    public void addPrefetch(int record, long nowNanos) {
        loads.incrementAndGet();
        Load load = new Load(record, true, nowNanos);
        pendingPrefetches.put(record, load);
        prefetches.add(load);
    }

    /// A caller waits for a record now: if it was only expected so far, it is read like a demanded one.
    void prioritize(int record) {
        Load load = pendingPrefetches.isEmpty() ? null : pendingPrefetches.remove(record);
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
            load = nextPrefetch();
        }
        if (load != null) {
            loads.decrementAndGet();
        }
        return load;
    }

    private @Nullable Load nextPrefetch() {
        Load load = prefetches.poll();
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
