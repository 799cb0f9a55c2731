package io.kvcache.tiers.movement;

import io.kvcache.core.store.TierPort;
import io.kvcache.core.tier.TierRead;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/// Requests of other threads to a [TierWorker].
///
/// **Threads.** Any may add; the tier worker takes.
public final class TierWorkerQueue {

    private final Queue<Load> demanded = new ConcurrentLinkedQueue<>();
    private final Queue<Load> prefetches = new ConcurrentLinkedQueue<>();

    /// Loads of [#prefetches] that are still to come from there. The others were wanted meanwhile, and moved up.
    private final Map<Integer, Load> pendingPrefetches = new ConcurrentHashMap<>();

    private final Queue<SteppedLoads> stepped = new ConcurrentLinkedQueue<>();
    private final Queue<RangeLoad> ranges = new ConcurrentLinkedQueue<>();
    private final Queue<CompletableFuture<Boolean>> flushes = new ConcurrentLinkedQueue<>();
    private final AtomicInteger loads = new AtomicInteger();

    /// A load that was started, from here to its end.
    static final class Load {

        final int record;
        /// True if it continues though no caller waits for it.
        final boolean wanted;
        final long sinceNanos;
        /// The read given to the tier, from then on; owned by the tier worker.
        @Nullable
        TierRead read;

        Load(int record, boolean wanted, long sinceNanos) {
            this.record = record;
            this.wanted = wanted;
            this.sinceNanos = sinceNanos;
        }

        /// Returns the read given to the tier.
        TierRead read() {
            return Objects.requireNonNull(read);
        }
    }

    /// Some bytes of a block that stays where it is.
    ///
    /// @param target of as many bytes as are wanted
    /// @param done completed with whether they are there
    record RangeLoad(TierPort.DiskCopy copy, int from, MemorySegment target, CompletableFuture<Boolean> done) {}

    /// Queues the read of some bytes.
    ///
    /// @return completed with whether they are there, on the tier's thread
    CompletableFuture<Boolean> addRange(TierPort.DiskCopy copy, int from, MemorySegment target) {
        RangeLoad load = new RangeLoad(copy, from, target, new CompletableFuture<>());
        ranges.add(load);
        return load.done;
    }

    @Nullable
    RangeLoad nextRange() {
        return ranges.poll();
    }

    boolean hasRanges() {
        return !ranges.isEmpty();
    }

    /// Queues the read of a record for a waiting caller.
    ///
    /// @param keep whether to read it also when no caller waits any longer
    public void addDemanded(int record, boolean keep, long nowNanos) {
        loads.incrementAndGet();
        demanded.add(new Load(record, keep, nowNanos));
    }

    /// Queues the reads of a table's records, step by step, for a waiting caller.
    ///
    /// @param stepBytes of each record in a step, whole chunks of coded blocks
    public void addStepped(List<Integer> records, int stepBytes, long nowNanos) {
        loads.addAndGet(records.size());
        List<Load> all = records.stream()
                .map(record -> new Load(record, false, nowNanos))
                .toList();
        stepped.add(new SteppedLoads(all, stepBytes));
    }

    /// The next loads in steps, if no other demanded load was queued before.
    @Nullable
    SteppedLoads nextStepped() {
        SteppedLoads first = stepped.peek();
        Load other = demanded.peek();
        if (first == null || (other != null && other.sinceNanos < first.sinceNanos())) {
            return null;
        }
        loads.addAndGet(-first.loads().size());
        return stepped.poll();
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
        return loads.get() == 0 && ranges.isEmpty() && flushes.isEmpty();
    }
}
