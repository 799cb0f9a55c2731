package io.kvcache.tiers.movement;

import io.kvcache.core.identity.Namespace;
import io.kvcache.core.spi.Clock;
import io.kvcache.core.stats.TierTransferStats;
import io.kvcache.core.store.TierPort;
import io.kvcache.core.tier.ReclaimCandidates;
import io.kvcache.core.tier.Tier;
import io.kvcache.core.tier.TierBlock;
import io.kvcache.core.tier.TierListener;
import io.kvcache.core.tier.TierRead;
import io.kvcache.tiers.movement.TierScheduler.LoadListeners;
import io.kvcache.tiers.movement.TierScheduler.TierWorkerLimits;
import io.kvcache.tiers.movement.WritePump.WriteBalancer;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/// Moves blocks between host memory and one tier, tick by tick.
///
/// Loads that a caller waits for go before prefetches, and both before writes; a write is not begun while many
/// loads are in flight. Blocks that cannot be written in time are not written; failed reads are misses. A tier
/// that fails is taken out: its blocks are forgotten, the store serves on, and it is opened again after a while.
///
/// **Threads.** [#tick] by one, which owns the tier. Requests of other threads go through [TierWorkerQueue].
public final class TierWorker implements TierListener {

    private static final Logger LOG = System.getLogger(TierWorker.class.getName());

    private final int disk;
    private final TierPort tierPort;
    private final LoadPump loadPump;
    private final WritePump writePump;
    private final FlushPump flushPump;
    private final CircuitBreaker circuitBreaker;
    private final WorkerListener workerListener;
    private volatile @Nullable Thread driver;

    /// Parts of the store that a tier worker needs.
    ///
    /// @param disk number of the tier in the store
    /// @param opener opens the tier, the first time and after a failure
    public record WorkerContext(
            int disk,
            TierPort tierPort,
            Clock clock,
            TierOpener opener,
            LoadListeners loadListeners,
            TierWorkerLimits limits,
            WriteBalancer shares) {}

    /// Receives events that concern all tier workers of a store.
    public interface WorkerListener {

        /// The tier begins to report its earlier contents.
        void beforeReport(int disk);

        /// The tier has reported all its earlier contents, or never will.
        void onRecoveryEnded(int disk);

        /// The tier can or cannot be written to now.
        void onWritableChanged(int disk, boolean can);

        /// A device in front of the disks did not read a record: it is to be read from a disk.
        void readElsewhere(int record, int disk);
    }

    /// @param budget of this tier alone
    public TierWorker(
            WorkerContext workerContext, WriteBudget budget, TierWorkerQueue queue, WorkerListener workerListener) {
        disk = workerContext.disk;
        tierPort = workerContext.tierPort;
        this.workerListener = workerListener;
        loadPump = new LoadPump(workerContext, queue, workerListener);
        writePump = new WritePump(workerContext, budget);
        flushPump = new FlushPump(queue);
        circuitBreaker = new CircuitBreaker(workerContext, workerListener);
    }

    /// Opens the tier for the first time, and waits until it serves.
    ///
    /// @throws RuntimeException when it is refused, with the cause
    public void open() {
        circuitBreaker.open(this);
    }

    /// Moves blocks and reports outcomes, as far as possible now.
    ///
    /// @param waitNanos how long to wait when there is nothing to do
    /// @return the amount of work done, 0 for none
    public int tick(long nowNanos, long waitNanos) {
        Tier tier = circuitBreaker.tierOrProbe(this, nowNanos);
        if (tier == null) {
            tierPort.holdTombstones(disk);
            loadPump.rejectWaiting();
            flushPump.rejectAll();
            return 0;
        }
        int done = loadPump.pump(tier, nowNanos);
        boolean buried = writePump.pumpTombstones(tier);
        if (buried) {
            done += loadPump.isBusy() ? 0 : writePump.pump(tier, nowNanos);
            flushPump.pump(tier, writePump);
        }
        done += tier.tick(nowNanos, done > 0 ? 0 : waitNanos);
        circuitBreaker.checkState(this, tier, nowNanos);
        flushPump.reportFailures();
        return done;
    }

    /// Returns whether nothing is in flight or waiting to be moved.
    public boolean isIdle() {
        Tier tier = circuitBreaker.currentTier();
        return loadPump.isIdle() && writePump.isIdle() && flushPump.isIdle() && (tier == null || tier.isIdle());
    }

    /// Returns whether only time or another thread lets it go on, after a tick that did nothing: nothing is on
    /// its way to the tier, though writes may be held that it does not take now.
    boolean isWaiting() {
        Tier tier = circuitBreaker.currentTier();
        return tier == null ? isIdle() : tier.isIdle();
    }

    void setDriver(Thread thread) {
        driver = thread;
    }

    /// Opens a tier that was taken out again, at the next tick.
    public void reopen() {
        circuitBreaker.requestProbe();
    }

    /// Ends the wait of a tick, or of the thread between ticks. Any thread.
    public void wake() {
        Tier tier = circuitBreaker.currentTier();
        if (tier != null) {
            tier.wake();
        }
        LockSupport.unpark(driver);
    }

    /// Closes the tier.
    ///
    /// @throws IllegalStateException while it is in use
    public void close() {
        circuitBreaker.close();
        loadPump.rejectWaiting();
        writePump.rejectAll();
        flushPump.rejectAll();
    }

    /// Estimates the time to read the given number of further bytes; 0 while nothing is known. Any thread.
    double estimateReadNanos(long bytes) {
        return loadPump.estimateNanos(bytes);
    }

    /// Returns the reads in flight or waiting. Any thread.
    int pendingReads() {
        return loadPump.inFlightCount() + loadPump.waiting();
    }

    /// Returns the transfers of this tier. Any thread.
    public TierTransferStats stats() {
        Tier tier = circuitBreaker.currentTier();
        return new TierTransferStats(
                circuitBreaker.name(),
                circuitBreaker.state(),
                circuitBreaker.cause(),
                tier == null ? circuitBreaker.lastStats() : tier.stats(),
                circuitBreaker.openCount(),
                loadPump.waiting(),
                loadPump.inFlightCount(),
                writePump.inFlightCount(),
                loadPump.loaded(),
                loadPump.loadedBytes(),
                loadPump.partsRead(),
                loadPump.partBytes(),
                loadPump.failures(),
                loadPump.cancelled(),
                loadPump.latency(),
                writePump.latency(),
                writePump.budgetSpent());
    }

    /// Ends all operations that were in flight to a tier that is gone: their outcomes will not be reported any
    /// more.
    void onTierAbandoned() {
        loadPump.failInFlight();
        writePump.rejectAll();
        flushPump.rejectAll();
    }

    @Override
    public Namespace namespace(int namespaceId) {
        return tierPort.namespace(namespaceId);
    }

    @Override
    public int namespaceId(Namespace namespace) {
        try {
            return tierPort.namespaceId(namespace);
        } catch (IllegalArgumentException refused) {
            LOG.log(
                    Level.WARNING,
                    "What disk {0} holds of {1} is left out: {2}",
                    disk,
                    namespace,
                    refused.getMessage());
            return -1;
        }
    }

    @Override
    public void onWritten(long tag, long address) {
        writePump.onWritten(tag, circuitBreaker.isContentLost() ? -1 : address);
    }

    @Override
    public void onRead(long tag, TierRead.Outcome outcome) {
        loadPump.onRead(tag, outcome);
    }

    @Override
    public void onFlushed(long tag, boolean durable) {
        flushPump.onFlushed(tag, durable, writePump);
    }

    @Override
    public void onRecovered(TierBlock block, long address) {
        if (!circuitBreaker.isContentLost()) {
            tierPort.onRecovered(disk, block, address);
        }
    }

    @Override
    public void onTombstone(long keyHi, long keyLo) {
        tierPort.onTombstone(disk, keyHi, keyLo);
    }

    @Override
    public void onRecoveryEnded() {
        workerListener.onRecoveryEnded(disk);
    }

    @Override
    public void onReclaim(ReclaimCandidates offer) {
        tierPort.onReclaim(disk, offer);
    }

    @Override
    public void onMoved(TierBlock block, long from, long to) {
        tierPort.onMoved(disk, block, from, to);
    }

    @Override
    public void onLost(TierBlock block, long address) {
        tierPort.onLost(disk, block, address);
    }

    @Override
    public void onUsed(TierBlock block, long address) {
        tierPort.onUsed(block);
    }

    @Override
    public double score(long keyHi, long keyLo) {
        return tierPort.score(keyHi, keyLo);
    }

    /// Hands requests for durability to a tier. Owned by the tier worker's thread.
    private static final class FlushPump {

        private final TierWorkerQueue queue;
        private final Map<Long, InFlightFlush> inFlight = new HashMap<>();

        /// Flushes that have failed in this tick. They are reported when the tier's state is known, so that a
        /// caller that asks why sees it.
        private final List<CompletableFuture<Boolean>> failed = new ArrayList<>();

        private @Nullable CompletableFuture<Boolean> held;
        private long nextTag;

        /// A flush in flight, and the last tombstone that it covers, see [WritePump#lastAcceptedTombstone].
        private record InFlightFlush(CompletableFuture<Boolean> flush, long lastTombstone) {}

        FlushPump(TierWorkerQueue queue) {
            this.queue = queue;
        }

        /// Passes the flushes in the queue to the tier, after the tombstones of all earlier drops. Tombstones are
        /// collected after a flush was taken from the queue, not before.
        void pump(Tier tier, WritePump writePump) {
            CompletableFuture<Boolean> next = held == null ? queue.nextFlush() : held;
            held = null;
            if (next == null && inFlight.isEmpty() && writePump.needsFlush()) {
                next = new CompletableFuture<>(); // for the tombstones' sake alone
            }
            while (next != null) {
                if (!writePump.pumpTombstones(tier)) {
                    held = next;
                    return;
                }
                long tag = ++nextTag;
                switch (tier.flush(tag)) {
                    case ACCEPTED -> inFlight.put(tag, new InFlightFlush(next, writePump.lastAcceptedTombstone()));
                    case GONE, REJECTED -> failed.add(next);
                    case RETRY -> {
                        held = next;
                        return;
                    }
                }
                next = queue.nextFlush();
            }
        }

        void onFlushed(long tag, boolean durable, WritePump writePump) {
            InFlightFlush inFlightFlush = inFlight.remove(tag);
            if (inFlightFlush != null) {
                if (durable) {
                    writePump.onSynced(inFlightFlush.lastTombstone);
                    inFlightFlush.flush.complete(true);
                } else {
                    failed.add(inFlightFlush.flush);
                }
            }
        }

        void reportFailures() {
            if (!failed.isEmpty()) {
                List<CompletableFuture<Boolean>> reported = List.copyOf(failed);
                failed.clear();
                reported.forEach(flush -> flush.complete(false));
            }
        }

        void rejectAll() {
            reportFailures();
            inFlight.values().forEach(inFlightFlush -> inFlightFlush.flush.complete(false));
            inFlight.clear();
            if (held != null) {
                held.complete(false);
                held = null;
            }
            for (CompletableFuture<Boolean> next = queue.nextFlush(); next != null; next = queue.nextFlush()) {
                next.complete(false);
            }
        }

        boolean isIdle() {
            return inFlight.isEmpty() && failed.isEmpty() && held == null;
        }
    }
}
