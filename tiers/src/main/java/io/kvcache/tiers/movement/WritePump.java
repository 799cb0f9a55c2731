package io.kvcache.tiers.movement;

import io.kvcache.core.codec.StoredLayout;
import io.kvcache.core.memory.Pages;
import io.kvcache.core.stats.TierTransferStats;
import io.kvcache.core.store.TierPort;
import io.kvcache.core.tier.SubmitResult;
import io.kvcache.core.tier.Tier;
import io.kvcache.core.tier.TierState;
import io.kvcache.core.tier.Tombstone;
import io.kvcache.tiers.movement.TierScheduler.TierWorkerLimits;
import java.util.HashMap;
import java.util.Map;
import java.util.NavigableMap;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.AtomicLongArray;
import org.jspecify.annotations.Nullable;

/// Writes queued blocks to a tier, tombstones first.
///
/// A written tombstone can still be lost until a flush that began after it: the group before it may have failed,
/// or the disk loses unsynced writes. So tombstones are kept until then, and sent again to a tier that was taken
/// out. Otherwise deleted blocks would come back with it.
///
/// Owned by the tier worker's thread, except the counters.
final class WritePump {

    /// Most tombstones kept without a flush; at this number one is requested for their sake. Some MiB of heap.
    static final int MAX_UNSYNCED_TOMBSTONES = 1 << 16;

    private final int disk;
    private final TierPort tierPort;
    private final TierWorkerLimits limits;
    private final WriteBudget budget;
    private final WriteBalancer balancer;
    private final Map<Long, InFlightWrite> inFlight = new HashMap<>();
    private final Map<Long, Tombstone> inFlightTombstones = new HashMap<>();

    /// Tombstones that were written, but that no flush has made durable yet. By tag, which grows.
    private final NavigableMap<Long, Tombstone> unsyncedTombstones = new TreeMap<>();

    private final LatencyRecorder latencyRecorder = new LatencyRecorder();
    private @Nullable Tombstone heldTombstone;
    private @Nullable InFlightWrite held;
    private volatile int inFlightCount;
    private volatile double budgetSpent;
    private long bytes;
    private long nextTag;
    private long now;

    private record InFlightWrite(TierPort.PendingWrite write, long sinceNanos) {}

    WritePump(TierWorker.WorkerContext workerContext, WriteBudget budget) {
        disk = workerContext.disk();
        tierPort = workerContext.tierPort();
        limits = workerContext.limits();
        balancer = workerContext.shares();
        this.budget = budget;
    }

    /// Sends waiting tombstones to the tier.
    ///
    /// @return whether it has all of them: until then nothing else may be written
    boolean pumpTombstones(Tier tier) {
        if (tier.state() != TierState.SERVING) {
            rejectHeld();
            return true;
        }
        Tombstone next = heldTombstone == null ? tierPort.nextTombstone(disk) : heldTombstone;
        while (next != null) {
            long tag = ++nextTag;
            SubmitResult submitResult = tier.tombstone(next, tag);
            if (submitResult == SubmitResult.RETRY) {
                heldTombstone = next;
                return false;
            }
            if (submitResult == SubmitResult.ACCEPTED) {
                inFlightTombstones.put(tag, next);
            }
            next = tierPort.nextTombstone(disk);
        }
        heldTombstone = null;
        return true;
    }

    int pump(Tier tier, long nowNanos) {
        now = nowNanos;
        int done = 0;
        while (tier.state() == TierState.SERVING
                && bytes < limits.writeBytes()
                && !isNamespaceDropInFlight()
                && canWrite()) {
            InFlightWrite next = held == null ? next() : held;
            held = null;
            if (next == null || !submit(tier, next)) {
                break;
            }
            done++;
        }
        budgetSpent = budget.dailyFractionSpent();
        return done;
    }

    /// Returns whether a tombstone of the namespace is in flight. Blocks written meanwhile would be buried too, if
    /// that failed and were sent again.
    private boolean isNamespaceDropInFlight() {
        return !inFlightTombstones.isEmpty()
                && inFlightTombstones.values().stream().anyMatch(Tombstone::isNamespace);
    }

    private boolean canWrite() {
        return held != null || tierPort.isFront(disk) || (budget.canWrite(now) && balancer.canWrite(disk));
    }

    private @Nullable InFlightWrite next() {
        TierPort.PendingWrite write = tierPort.nextWrite(disk);
        return write == null ? null : new InFlightWrite(write, now);
    }

    /// Returns false when the tier takes no more now.
    private boolean submit(Tier tier, InFlightWrite inFlightWrite) {
        TierPort.PendingWrite write = inFlightWrite.write;
        long tag = ++nextTag;
        return switch (tier.write(write.block(), write.pages(), tag)) {
            case ACCEPTED -> {
                inFlight.put(tag, inFlightWrite);
                updateInFlightCount();
                bytes += write.block().bytes();
                budget.spend(write.block().bytes());
                balancer.addWritten(disk, write.block().bytes());
                yield true;
            }
            case RETRY -> {
                held = inFlightWrite;
                updateInFlightCount();
                yield false;
            }
            case GONE, REJECTED -> {
                tierPort.onWritten(write.record(), disk, -1);
                yield true;
            }
        };
    }

    /// Updates the count of writes in flight. Records that the tier has not taken yet count too: they are pinned.
    private void updateInFlightCount() {
        inFlightCount = inFlight.size() + (held == null ? 0 : 1);
    }

    void onWritten(long tag, long address) {
        Tombstone buried = inFlightTombstones.remove(tag);
        if (buried != null && address < 0) {
            tierPort.onTombstoneFailed(disk, buried);
        } else if (buried != null && !tierPort.isDevice(disk)) { // which has nothing left when it is opened again
            unsyncedTombstones.put(tag, buried);
        }
        InFlightWrite inFlightWrite = inFlight.remove(tag);
        if (inFlightWrite != null) {
            bytes -= inFlightWrite.write.block().bytes();
            latencyRecorder.record(now - inFlightWrite.sinceNanos);
            refund(inFlightWrite.write.block().bytes(), address);
            tierPort.onWritten(inFlightWrite.write.record(), disk, address);
            updateInFlightCount();
        }
    }

    /// Gives back what a coded block did not take of the budget.
    private void refund(int plainBytes, long address) {
        StoredLayout layout = address < 0 ? StoredLayout.PLAIN : StoredLayout.ofAddress(address);
        if (layout.isCoded()) {
            budget.spend(Pages.offset(layout.pages(plainBytes)) - plainBytes);
        }
    }

    /// Number of the tombstone that the tier has taken last.
    long lastAcceptedTombstone() {
        return nextTag;
    }

    /// All tombstones up to a number are durable.
    void onSynced(long taken) {
        unsyncedTombstones.headMap(taken, true).clear();
    }

    /// Returns whether enough tombstones wait for a flush to start one.
    boolean needsFlush() {
        return unsyncedTombstones.size() >= MAX_UNSYNCED_TOMBSTONES;
    }

    /// A tier does not write any more: records it has not taken are not written. It gets the tombstones when it is
    /// opened again, and they apply to the copies that it reports then.
    private void rejectHeld() {
        InFlightWrite waiting = held;
        held = null;
        if (heldTombstone != null) {
            tierPort.requeueTombstone(disk, heldTombstone);
            heldTombstone = null;
        }
        tierPort.holdTombstones(disk);
        if (waiting != null) {
            tierPort.onWritten(waiting.write.record(), disk, -1);
            updateInFlightCount();
        }
    }

    /// Ends all waiting writes and all in flight as not written.
    void rejectAll() {
        rejectHeld();
        inFlight.values().forEach(inFlightWrite -> tierPort.onWritten(inFlightWrite.write.record(), disk, -1));
        inFlight.clear();
        inFlightTombstones.values().forEach(tombstone -> tierPort.requeueTombstone(disk, tombstone));
        inFlightTombstones.clear();
        unsyncedTombstones.descendingMap().values().forEach(tombstone -> tierPort.requeueTombstone(disk, tombstone));
        unsyncedTombstones.clear();
        inFlightCount = 0;
        bytes = 0;
    }

    boolean isIdle() {
        return inFlightCount == 0 && held == null && heldTombstone == null;
    }

    int inFlightCount() {
        return inFlightCount;
    }

    double budgetSpent() {
        return budgetSpent;
    }

    TierTransferStats.Latency latency() {
        return latencyRecorder.summary();
    }

    /// Spreads writes over several tiers by their size: none gets far ahead of another that can be written to.
    ///
    /// **Threads.** Any.
    public static final class WriteBalancer {

        /// Longest lead of one tier: a few groups of the log, so that each has something to do.
        private static final long SLACK_BYTES = 64L << 20;

        private final long[] limits;
        private final AtomicLongArray written;
        private final AtomicIntegerArray writable;

        /// @param limits bytes of each tier, by number
        public WriteBalancer(long... limits) {
            this.limits = limits.clone();
            written = new AtomicLongArray(limits.length);
            writable = new AtomicIntegerArray(limits.length);
        }

        void setWritable(int disk, boolean can) {
            writable.set(disk, can ? 1 : 0);
        }

        /// Returns whether any tier can be written to.
        boolean isAnyWritable() {
            for (int disk = 0; disk < limits.length; disk++) {
                if (writable.get(disk) == 1) {
                    return true;
                }
            }
            return false;
        }

        void addWritten(int disk, long bytes) {
            written.addAndGet(disk, bytes);
        }

        boolean canWrite(int disk) {
            double mine = fillFraction(disk, written.get(disk) - SLACK_BYTES);
            for (int other = 0; other < limits.length; other++) {
                if (other != disk && writable.get(other) == 1 && fillFraction(other, written.get(other)) < mine) {
                    return false;
                }
            }
            return true;
        }

        private double fillFraction(int disk, long bytes) {
            return (double) bytes / limits[disk];
        }
    }
}
