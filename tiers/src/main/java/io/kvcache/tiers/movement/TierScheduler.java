package io.kvcache.tiers.movement;

import io.kvcache.core.store.HostStore.LoadBatch;
import io.kvcache.core.store.TierPort;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.core.time.Backoff;
import io.kvcache.core.time.Clock;
import io.kvcache.tiers.movement.WritePump.WriteBalancer;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.Collections;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// All movement between host memory and the tiers below it: one [TierWorker] and one queue a tier.
///
/// **Threads.** Any, but for [#tick] and [#open], which are for the threads that drive it, one a tier.
public final class TierScheduler implements TierWorker.WorkerListener {

    private static final long INITIAL_PAUSE_NANOS = TimeUnit.MICROSECONDS.toNanos(50);
    private static final long MAX_PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(1);

    /// Free slots of a class below which some are made free ahead of need, and up to which: a few
    /// milliseconds of loads on a store of some GiB, and too little of it to cost hits.
    private static final int LOW_WATERMARK_PERCENT = 1;

    private static final int HIGH_WATERMARK_PERCENT = 2;

    /// A flush begins with what was used so often since it was put, then goes on with the next: a caller that runs
    /// out of time has the best.
    private static final int[] FLUSH_LEAST_USES = {4, 1, 0};

    private final TierPort tierPort;
    private final Clock clock;
    private final LoadListeners loadListeners = new LoadListeners();
    private final List<TierWorker> workers = new ArrayList<>();
    private final List<TierWorkerQueue> queues = new ArrayList<>();
    private final WriteBalancer balancer;
    private final BitSet recovering = new BitSet();
    private final Object restoring = new Object();
    private final Set<Runnable> recoveryListeners = Collections.synchronizedSet(new LinkedHashSet<>());

    /// True if any tier is recovering; every acquire reads it for [#isRecovering].
    private volatile boolean anyRecovering;

    /// One tier to move to and from.
    ///
    /// @param limitBytes alive on it at most
    /// @param ranked whether the host tier's policy says what stays there, see [TierPort#addDisk]
    public record TierSpec(TierOpener opener, long limitBytes, WriteBudget budget, boolean ranked) {

        /// One where what stays goes by last use.
        public TierSpec(TierOpener opener, long limitBytes, WriteBudget budget) {
            this(opener, limitBytes, budget, false);
        }
    }

    /// Settings of writes to the tiers.
    ///
    /// @param maxWaitingBytes most bytes that may wait to be written
    /// @param maxBlockBytes a larger block is not written
    /// @param gain what one use of a block saves in units of what its write costs, for
    ///     [AdmissionKind#VALUE]
    public record AdmissionConfig(AdmissionKind kind, long maxWaitingBytes, long maxBlockBytes, double gain) {}

    /// Tells the store of its disks; they are opened by [#open].
    public TierScheduler(
            TierPort tierPort,
            Clock clock,
            List<TierSpec> targets,
            AdmissionConfig admissionConfig,
            TierWorkerLimits limits) {
        this.tierPort = tierPort;
        this.clock = clock;
        balancer = new WriteBalancer(
                targets.stream().mapToLong(TierSpec::limitBytes).toArray());
        recovering.set(0, targets.size());
        anyRecovering = !targets.isEmpty();
        for (TierSpec tierSpec : targets) {
            TierWorkerQueue queue = new TierWorkerQueue();
            int disk = tierPort.addDisk(tierSpec.limitBytes(), tierSpec.ranked());
            TierWorker.WorkerContext workerContext = new TierWorker.WorkerContext(
                    disk, tierPort, clock, tierSpec.opener(), loadListeners, limits, balancer);
            workers.add(new TierWorker(workerContext, tierSpec.budget(), queue, this));
            queues.add(queue);
        }
        tierPort.configureAdmission(
                admissionConfig.kind(),
                admissionConfig.maxWaitingBytes(),
                admissionConfig.maxBlockBytes(),
                admissionConfig.gain());
    }

    /// How many tiers there are.
    public int tierCount() {
        return workers.size();
    }

    /// Opens a tier; what it holds is told by later ticks.
    ///
    /// @throws RuntimeException when it is refused
    public void open(int disk) {
        workers.get(disk).open();
    }

    /// Moves what there is to move between host memory and one tier.
    ///
    /// @param waitNanos how long to wait when there is nothing to do
    /// @return how much was done
    public int tick(int disk, long waitNanos) {
        if (disk == 0) {
            tierPort.evictAhead(LOW_WATERMARK_PERCENT, HIGH_WATERMARK_PERCENT);
        }
        return workers.get(disk).tick(clock.nanos(), waitNanos);
    }

    /// Returns whether nothing is in flight to or from a tier.
    public boolean isIdle(int disk) {
        return workers.get(disk).isIdle();
    }

    /// Says which thread ticks a tier, so that it can be woken.
    void setDriver(int disk, Thread thread) {
        workers.get(disk).setDriver(thread);
    }

    /// The listeners for records that arrive.
    public LoadListeners loadListeners() {
        return loadListeners;
    }

    /// Has loads that were started read.
    ///
    /// @param demanded whether a caller waits
    /// @param keep whether they go on when no caller waits any longer
    public void read(LoadBatch loadBatch, boolean demanded, boolean keep) {
        long asked = 0;
        for (int i = 0; i < loadBatch.count(); i++) {
            if (loadBatch.isStarted(i)) {
                int disk = loadBatch.disk(i);
                asked |= 1L << disk;
                read(loadBatch.record(i), disk, demanded, keep);
            } else if (demanded) {
                prioritize(loadBatch.record(i));
            }
        }
        for (int disk = 0; asked != 0; disk++, asked >>>= 1) {
            if ((asked & 1) != 0) {
                workers.get(disk).wake();
            }
        }
    }

    /// Queues the read of a load that was started, for a waiting caller.
    public void read(int record, int disk) {
        read(record, disk, true, false);
        workers.get(disk).wake();
    }

    /// A caller waits for a record that is being read for others, if it is on its way at all: it goes before what
    /// is only expected.
    public void prioritize(int record) {
        for (TierWorkerQueue queue : queues) {
            queue.prioritize(record);
        }
    }

    /// Queues the read of a load that was started, though no caller waits for it yet.
    public void prefetch(int record, int disk) {
        read(record, disk, false, true);
        workers.get(disk).wake();
    }

    /// Reads that a tier has to do: on their way, or waiting to be.
    public int pendingReads(int disk) {
        return workers.get(disk).pendingReads();
    }

    private void read(int record, int disk, boolean demanded, boolean keep) {
        if (demanded) {
            queues.get(disk).addDemanded(record, keep, clock.nanos());
        } else {
            queues.get(disk).addPrefetch(record, clock.nanos());
        }
    }

    /// How long it takes to read so many bytes more, spread over all tiers, judged by the reads of the
    /// last while.
    ///
    /// @return 0 while nothing is known
    public double estimateReadNanos(long bytes) {
        long each = bytes / workers.size();
        return workers.stream()
                .mapToDouble(tierWorker -> tierWorker.estimateReadNanos(each))
                .max()
                .orElse(0);
    }

    /// Begins to make durable all that is sealed and dropped by now, whatever its worth, what was used most
    /// often first. To be asked on until it has an outcome. What was dropped before a tier has told of it can be
    /// buried only then, so it waits for that.
    public FlushBarrier flushBarrier() {
        long unwritten = tierPort.unwrittenCount();
        for (int leastUses : FLUSH_LEAST_USES) {
            for (int from = 0; tierPort.queueUnwritten(from, leastUses); from += TierPort.scanBatch()) {}
        }
        workers.forEach(TierWorker::wake);
        return new FlushBarrier(tierPort, unwritten, () -> !isRecovering(), this::flushTiers);
    }

    /// Begins to make durable what waits to be written by now.
    public FlushBarrier flushQueued() {
        workers.forEach(TierWorker::wake);
        return new FlushBarrier(tierPort, tierPort.unwrittenCount(), () -> true, this::flushTiers);
    }

    private List<CompletableFuture<Boolean>> flushTiers() {
        List<CompletableFuture<Boolean>> all = new ArrayList<>();
        for (int disk = 0; disk < workers.size(); disk++) {
            all.add(queues.get(disk).flush());
            workers.get(disk).wake();
        }
        return all;
    }

    /// Waits for a flush, through interrupts: closing a store must not lose its content.
    ///
    /// @return whether all that was asked for is durable
    public boolean await(FlushBarrier flushBarrier, long timeoutNanos) {
        boolean interrupted = Thread.interrupted(); // no pause takes any time while it is
        try {
            return await(flushBarrier, timeoutNanos, () -> false);
        } finally {
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }

    /// Waits for a flush until this thread is interrupted.
    ///
    /// @return whether all that was asked for is durable
    public boolean awaitUntilInterrupted(FlushBarrier flushBarrier, long timeoutNanos) {
        return await(flushBarrier, timeoutNanos, () -> Thread.currentThread().isInterrupted());
    }

    private boolean await(FlushBarrier flushBarrier, long timeoutNanos, BooleanSupplier givenUp) {
        long start = clock.nanos();
        Backoff pause = new Backoff(INITIAL_PAUSE_NANOS, MAX_PAUSE_NANOS);
        while (!flushBarrier.advance()) {
            if (givenUp.getAsBoolean() || clock.nanos() - start >= timeoutNanos) {
                return false;
            }
            clock.sleep(pause.nextNanos());
        }
        return flushBarrier.isDurable();
    }

    /// Has a tier that was taken out, or does not write any more, opened again.
    public void reopen(int disk) {
        workers.get(disk).reopen();
        workers.get(disk).wake();
    }

    /// Ends the wait of a tier's thread.
    public void wake(int disk) {
        workers.get(disk).wake();
    }

    /// Lets go of a tier, by the thread that drives it.
    public void close(int disk) {
        workers.get(disk).close();
    }

    /// Returns the transfers of each tier.
    public List<TierTransferStats> stats() {
        return workers.stream().map(TierWorker::stats).toList();
    }

    /// Returns whether a tier has more to report of its contents from before.
    public boolean isRecovering() {
        return anyRecovering;
    }

    /// Waits until every tier has told all that it held before, or this thread is interrupted.
    ///
    /// @return whether they have
    public boolean awaitRecovered(long timeoutNanos) {
        long start = clock.nanos();
        Backoff pause = new Backoff(INITIAL_PAUSE_NANOS, MAX_PAUSE_NANOS);
        while (isRecovering()) {
            if (Thread.currentThread().isInterrupted() || clock.nanos() - start >= timeoutNanos) {
                return false;
            }
            clock.sleep(pause.nextNanos());
        }
        return true;
    }

    /// Has a listener run on a tier's thread when the recovery that is under way ends, the first that came first:
    /// what they find then shares host memory and the disks' reads. It may have ended before: ask
    /// [#isRecovering] afterwards.
    public void addRecoveryListener(Runnable listener) {
        recoveryListeners.add(listener);
    }

    /// Takes a listener of [#addRecoveryListener] away, if it is still there.
    public void removeRecoveryListener(Runnable listener) {
        recoveryListeners.remove(listener);
    }

    /// Waits until what others have told is in its place.
    @Override
    public void beforeReport(int disk) {
        synchronized (restoring) {
            synchronized (this) {
                recovering.set(disk);
                anyRecovering = true;
            }
            tierPort.beginRecovery(disk);
        }
    }

    @Override
    public void onRecoveryEnded(int disk) {
        synchronized (restoring) {
            boolean last;
            synchronized (this) {
                last = recovering.get(disk) && recovering.cardinality() == 1;
            }
            if (last) {
                tierPort.endRecovery();
            }
            synchronized (this) {
                recovering.clear(disk);
                anyRecovering = !recovering.isEmpty();
            }
        }
        if (!isRecovering()) {
            List<Runnable> told;
            synchronized (recoveryListeners) {
                told = List.copyOf(recoveryListeners);
                recoveryListeners.clear();
            }
            told.forEach(Runnable::run);
        }
    }

    @Override
    public void onWritableChanged(int disk, boolean can) {
        balancer.setWritable(disk, can);
        tierPort.setWritable(balancer.isAnyWritable());
    }

    /// A flush on its way: first everything that was sealed is written, then the tiers make it durable.
    ///
    /// **Threads.** One at a time.
    public static final class FlushBarrier {

        private final TierPort tierPort;
        private final long mark;
        private final long unwritten;
        private final BooleanSupplier canFlushTiers;
        private final Supplier<List<CompletableFuture<Boolean>>> flushTiers;
        private @Nullable List<CompletableFuture<Boolean>> tiers;

        /// @param unwritten before it was asked for what is to be written, see [TierPort#unwrittenCount]
        /// @param ready whether the tiers may be asked for durability
        /// @param flushTiers asks them
        FlushBarrier(
                TierPort tierPort,
                long unwritten,
                BooleanSupplier ready,
                Supplier<List<CompletableFuture<Boolean>>> flushTiers) {
            this.tierPort = tierPort;
            mark = tierPort.flushMark();
            this.unwritten = unwritten;
            this.canFlushTiers = ready;
            this.flushTiers = flushTiers;
        }

        /// Goes on as far as it can; whether it has an outcome.
        public boolean advance() {
            if (tiers == null && tierPort.settledWrites() >= mark && canFlushTiers.getAsBoolean()) {
                tiers = flushTiers.get();
            }
            return tiers != null && tiers.stream().allMatch(CompletableFuture::isDone);
        }

        /// Returns whether all queued writes were done, and all tiers have made them durable; valid once the flush
        /// has ended.
        public boolean isDurable() {
            return tierPort.unwrittenCount() == unwritten
                    && tiers != null
                    && tiers.stream().allMatch(flush -> flush.getNow(false));
        }
    }

    /// The listeners for a record's slot being filled, or not.
    ///
    /// After registering, a listener looks at the record: what ended before is not told.
    ///
    /// **Threads.** Any.
    public static final class LoadListeners {

        private final ConcurrentMap<Integer, List<Runnable>> waiting = new ConcurrentHashMap<>();

        /// Has `listener` called once, soon after the next change of the record.
        public void add(int record, Runnable listener) {
            waiting.compute(record, (_, present) -> {
                List<Runnable> listeners = present == null ? new CopyOnWriteArrayList<>() : present;
                listeners.add(listener);
                return listeners;
            });
        }

        /// No longer calls `listener`.
        public void remove(int record, Runnable listener) {
            waiting.computeIfPresent(record, (_, present) -> {
                present.remove(listener);
                return present.isEmpty() ? null : present;
            });
        }

        /// A record's slot was filled, or will not be.
        public void notifyChanged(int record) {
            if (!waiting.isEmpty()) {
                List<Runnable> listeners = waiting.remove(record);
                if (listeners != null) {
                    listeners.forEach(Runnable::run);
                }
            }
        }

        /// Records that a caller waits for.
        int size() {
            return waiting.size();
        }
    }

    /// How much a [TierWorker] takes on at a time.
    ///
    /// @param writeBytes on their way to the tier; as much of host memory is pinned by them
    /// @param readBytes handed to the tier at a time: beyond that loads wait where they can still be overtaken
    ///     and given
    ///     up
    /// @param reads as `readBytes`, by number
    /// @param maxReadsDuringWrites reads on their way above which no write is begun
    public record TierWorkerLimits(long writeBytes, long readBytes, int reads, int maxReadsDuringWrites) {

        private static final long MAX_WRITE_BYTES = 64L << 20;
        private static final int SHARE_OF_HOST = 8;

        /// As much as keeps a link of 60 GB/s busy for a quarter of a millisecond, which is longer than a thread
        /// takes to come back to it.
        private static final long MAX_DEVICE_WRITE_BYTES = 16L << 20;

        private static final int DEVICE_SHARE_OF_HOST = 32;

        /// For a device that is much faster than a disk: less on the way to it, so that fewer blocks are pinned by
        /// writes, and a put that does not wait finds one that is not.
        public static TierWorkerLimits forDevice(long hostBytes) {
            TierWorkerLimits usual = of(hostBytes);
            return new TierWorkerLimits(
                    Math.min(MAX_DEVICE_WRITE_BYTES, hostBytes / DEVICE_SHARE_OF_HOST),
                    usual.readBytes,
                    usual.reads,
                    usual.maxReadsDuringWrites);
        }

        /// For a store of this size: an eighth of it, and 64 MiB at most, on the way to each disk.
        public static TierWorkerLimits of(long hostBytes) {
            return new TierWorkerLimits(Math.min(MAX_WRITE_BYTES, hostBytes / SHARE_OF_HOST), 64L << 20, 256, 32);
        }
    }
}
