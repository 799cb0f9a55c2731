package io.kvcache.tiers.movement;

import io.kvcache.core.spi.Clock;
import io.kvcache.core.stats.TierTransferStats;
import io.kvcache.core.store.HostStore.LoadBatch;
import io.kvcache.core.store.TierPort;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.core.time.Backoff;
import io.kvcache.tiers.movement.WritePump.WriteBalancer;
import java.lang.foreign.MemorySegment;
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
/// **Threads.** Any, except [#tick] and [#open], which belong to the threads that drive the tiers, one for each.
public final class TierScheduler implements TierWorker.WorkerListener {

    private static final long INITIAL_PAUSE_NANOS = TimeUnit.MICROSECONDS.toNanos(50);
    private static final long MAX_PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(1);

    /// Free slots of a class below which some are made free ahead of need, and up to which: a few
    /// milliseconds of loads on a store of some GiB, and too little of it to cost hits.
    private static final int LOW_WATERMARK_PERCENT = 1;

    private static final int HIGH_WATERMARK_PERCENT = 2;

    /// Uses since the put that each pass of a flush asks for, most used first: a caller that runs out of time has
    /// the best.
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
    /// @param ranked whether it is a device, see [TierPort#addDisk]
    public record TierSpec(TierOpener opener, long limitBytes, WriteBudget budget, boolean ranked) {

        /// A tier with eviction by last use.
        public TierSpec(TierOpener opener, long limitBytes, WriteBudget budget) {
            this(opener, limitBytes, budget, false);
        }
    }

    /// Settings of writes to the tiers.
    ///
    /// @param maxWaitingBytes most bytes that may wait to be written
    /// @param maxBlockBytes a larger block is not written
    /// @param gain saving by one use of a block in units of the cost of its write, for [AdmissionKind#VALUE]
    public record AdmissionConfig(AdmissionKind kind, long maxWaitingBytes, long maxBlockBytes, double gain) {}

    /// Registers the disks with the store; [#open] opens them.
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
                    disk,
                    tierPort,
                    clock,
                    tierSpec.opener(),
                    loadListeners,
                    tierSpec.ranked() ? limits.forDevice() : limits,
                    balancer);
            workers.add(new TierWorker(workerContext, tierSpec.budget(), queue, this));
            queues.add(queue);
        }
        tierPort.configureAdmission(
                admissionConfig.kind(),
                admissionConfig.maxWaitingBytes(),
                admissionConfig.maxBlockBytes(),
                admissionConfig.gain());
    }

    /// Returns how many tiers there are.
    public int tierCount() {
        return workers.size();
    }

    /// Opens a tier; later ticks report its contents.
    ///
    /// @throws RuntimeException when it is refused
    public void open(int disk) {
        workers.get(disk).open();
    }

    /// Moves blocks between host memory and one tier, as far as possible now.
    ///
    /// @param waitNanos how long to wait when there is nothing to do
    /// @return the amount of work done, 0 for none
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

    /// Returns whether the thread of a tier may rest, after a tick that did nothing.
    boolean isWaiting(int disk) {
        return workers.get(disk).isWaiting();
    }

    /// Sets the thread that ticks a tier, so that it can be woken.
    void setDriver(int disk, Thread thread) {
        workers.get(disk).setDriver(thread);
    }

    /// Returns the listeners for records that arrive.
    public LoadListeners loadListeners() {
        return loadListeners;
    }

    /// Queues the reads of loads that were started.
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
        wake(asked);
    }

    /// As [#read], for a waiting caller, in steps: each disk reads the first bytes of all its blocks, then the
    /// next ones.
    ///
    /// @param stepBytes of each block, whole chunks of coded blocks
    public void readInSteps(LoadBatch loadBatch, int stepBytes) {
        List<List<Integer>> records = new ArrayList<>();
        workers.forEach(_ -> records.add(new ArrayList<>()));
        long asked = 0;
        for (int i = 0; i < loadBatch.count(); i++) {
            if (loadBatch.isStarted(i)) {
                asked |= 1L << loadBatch.disk(i);
                if (tierPort.isFront(loadBatch.disk(i))) { // which reads blocks whole
                    read(loadBatch.record(i), loadBatch.disk(i), true, false);
                } else {
                    records.get(loadBatch.disk(i)).add(loadBatch.record(i));
                }
            } else {
                prioritize(loadBatch.record(i));
            }
        }
        for (int disk = 0; disk < records.size(); disk++) {
            if (!records.get(disk).isEmpty()) {
                queues.get(disk).addStepped(records.get(disk), stepBytes, clock.nanos());
            }
        }
        wake(asked);
    }

    /// @param disks as bits
    private void wake(long disks) {
        long left = disks;
        for (int disk = 0; left != 0; disk++, left >>>= 1) {
            if ((left & 1) != 0) {
                workers.get(disk).wake();
            }
        }
    }

    /// Queues the read of a load that was started, for a waiting caller.
    public void read(int record, int disk) {
        read(record, disk, true, false);
        workers.get(disk).wake();
    }

    /// A caller waits for a record that is being read for others, if it is on its way at all: it goes before
    /// prefetches.
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

    /// Reads some bytes of a block where it lies.
    ///
    /// @param target of as many bytes as are wanted
    /// @return completed with whether they are there, on a thread that must not be held up; if not, the block is
    ///     to be read whole
    public CompletableFuture<Boolean> readRange(TierPort.DiskCopy copy, int from, MemorySegment target) {
        CompletableFuture<Boolean> done = queues.get(copy.disk()).addRange(copy, from, target);
        workers.get(copy.disk()).wake();
        return done;
    }

    /// Returns the reads that a tier has to do: in flight, or waiting.
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

    /// Estimates from recent reads how long it takes to read this many further bytes, spread over all tiers but
    /// devices in front of disks.
    ///
    /// @return 0 while nothing is known
    public double estimateReadNanos(long bytes) {
        int disks = diskCount();
        long each = bytes / disks;
        return workers.stream()
                .limit(disks)
                .mapToDouble(tierWorker -> tierWorker.estimateReadNanos(each))
                .max()
                .orElse(0);
    }

    /// Starts to make durable all that is sealed and dropped by now, whatever its worth, most used first. Call
    /// [FlushBarrier#advance] until it has an outcome. A key dropped while a tier is recovering gets its tombstone
    /// only after that, so the flush waits for it.
    public FlushBarrier flushBarrier() {
        long unwritten = tierPort.unwrittenCount();
        for (int leastUses : FLUSH_LEAST_USES) {
            for (int from = 0; tierPort.queueUnwritten(from, leastUses); from += TierPort.scanBatch()) {}
        }
        workers.forEach(TierWorker::wake);
        return new FlushBarrier(tierPort, unwritten, () -> !isRecovering(), this::flushTiers);
    }

    /// Starts to make durable the records queued by now.
    public FlushBarrier flushQueued() {
        workers.forEach(TierWorker::wake);
        return new FlushBarrier(tierPort, tierPort.unwrittenCount(), () -> true, this::flushTiers);
    }

    /// Starts to make durable what is dropped by now, with the records queued by now. As with [#flushBarrier], it
    /// has no outcome while a tier is recovering.
    public FlushBarrier flushDrops() {
        workers.forEach(TierWorker::wake);
        return new FlushBarrier(tierPort, tierPort.unwrittenCount(), () -> !isRecovering(), this::flushTiers);
    }

    /// Tiers but for devices in front of disks, whose numbers are the last ones.
    private int diskCount() {
        int disks = workers.size();
        while (tierPort.isFront(disks - 1)) {
            disks--;
        }
        return disks;
    }

    private List<CompletableFuture<Boolean>> flushTiers() {
        List<CompletableFuture<Boolean>> all = new ArrayList<>();
        for (int disk = 0; disk < diskCount(); disk++) {
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

    /// Opens a tier again that was taken out, or is read-only.
    public void reopen(int disk) {
        workers.get(disk).reopen();
        workers.get(disk).wake();
    }

    /// Ends the wait of a tier's thread.
    public void wake(int disk) {
        workers.get(disk).wake();
    }

    /// Closes a tier, by the thread that drives it.
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

    /// Waits until every tier has reported its earlier contents, or this thread is interrupted.
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

    /// Runs a listener on a tier's thread when the current recovery ends, in order of registration: the blocks
    /// they find then share host memory and the disks' reads. It may have ended before: ask [#isRecovering]
    /// afterwards.
    public void addRecoveryListener(Runnable listener) {
        recoveryListeners.add(listener);
    }

    /// Removes a listener of [#addRecoveryListener], if it is still there.
    public void removeRecoveryListener(Runnable listener) {
        recoveryListeners.remove(listener);
    }

    /// Marks a tier as recovering, once the store has ended the recovery of others.
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
        if (!tierPort.isFront(disk)) {
            balancer.setWritable(disk, can);
            tierPort.setWritable(balancer.isAnyWritable());
        }
    }

    @Override
    public void readElsewhere(int record, int disk) {
        read(record, disk);
    }

    /// A flush in progress: first everything that was sealed is written, then the tiers make it durable.
    ///
    /// **Threads.** One at a time.
    public static final class FlushBarrier {

        private final TierPort tierPort;
        private final long mark;
        private final long unwritten;
        private final BooleanSupplier canFlushTiers;
        private final Supplier<List<CompletableFuture<Boolean>>> flushTiers;
        private @Nullable List<CompletableFuture<Boolean>> tiers;

        /// @param unwritten count of unwritten records from before this flush queued any, see
        ///     [TierPort#unwrittenCount]
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

        /// Continues as far as possible now; returns whether it has an outcome.
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

    /// Listeners for a record's slot being filled, or not.
    ///
    /// After registering, a listener checks the record: changes before that are not reported.
    ///
    /// **Threads.** Any.
    public static final class LoadListeners {

        private final ConcurrentMap<Integer, List<Runnable>> waiting = new ConcurrentHashMap<>();
        private final ConcurrentMap<Integer, Integer> arrived = new ConcurrentHashMap<>();

        /// Calls `listener` once, soon after the next change of the record.
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
            if (!arrived.isEmpty()) {
                arrived.remove(record);
            }
            if (!waiting.isEmpty()) {
                List<Runnable> listeners = waiting.remove(record);
                if (listeners != null) {
                    listeners.forEach(Runnable::run);
                }
            }
        }

        /// The given number of leading bytes of a record's slot are filled; its listeners go on listening.
        void notifyArrived(int record, int bytes) {
            arrived.put(record, bytes);
            List<Runnable> listeners = waiting.get(record);
            if (listeners != null) {
                listeners.forEach(Runnable::run);
            }
        }

        /// Returns the leading bytes that are there of a record that is being read in steps; 0 of others.
        public int arrivedBytes(int record) {
            return arrived.getOrDefault(record, 0);
        }

        /// Returns how many records a caller waits for.
        int size() {
            return waiting.size();
        }
    }

    /// Limits of the transfers that a [TierWorker] has in flight.
    ///
    /// @param writeBytes in flight to the tier; as much of host memory is pinned by them
    /// @param readBytes handed to the tier at a time: beyond that loads wait where they can still be overtaken and
    ///     cancelled
    /// @param reads as `readBytes`, by number
    /// @param maxReadsDuringWrites reads in flight above which no write is begun
    public record TierWorkerLimits(long writeBytes, long readBytes, int reads, int maxReadsDuringWrites) {

        private static final long MAX_WRITE_BYTES = 64L << 20;
        private static final int SHARE_OF_HOST = 8;

        /// Keeps a link of 60 GB/s busy for a quarter of a millisecond, which is longer than a thread takes to
        /// come back to it.
        private static final long MAX_DEVICE_WRITE_BYTES = 16L << 20;

        /// Divisor of what may be in flight to a disk.
        private static final int DEVICE_SHARE = 4;

        /// Returns limits for a device that is much faster than a disk: fewer bytes in flight, so that fewer
        /// blocks are pinned by writes, and a put that does not wait finds one that is not.
        TierWorkerLimits forDevice() {
            return new TierWorkerLimits(
                    Math.min(MAX_DEVICE_WRITE_BYTES, writeBytes / DEVICE_SHARE),
                    readBytes,
                    reads,
                    maxReadsDuringWrites);
        }

        /// Returns limits for a store of this size: an eighth of it, and 64 MiB at most, in flight to each disk.
        public static TierWorkerLimits of(long hostBytes) {
            return new TierWorkerLimits(Math.min(MAX_WRITE_BYTES, hostBytes / SHARE_OF_HOST), 64L << 20, 256, 32);
        }
    }
}
