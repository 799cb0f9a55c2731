package io.kvcache.tiers.movement;

import io.kvcache.core.store.TierPort;
import io.kvcache.core.tier.SubmitResult;
import io.kvcache.core.tier.Tier;
import io.kvcache.core.tier.TierState;
import io.kvcache.core.tier.Tombstone;
import java.util.HashMap;
import java.util.Map;
import java.util.NavigableMap;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/// Writes what the store wants written to a tier, and buries there what it wants buried, burials first.
///
/// A burial that was written can still be lost until a flush that began after it: the group before it may have
/// failed, or the disk loses what was not synced. So burials are kept until then, and told again to a tier that was
/// taken out; else what was dropped would come back with it.
///
/// Owned by the mover's thread, but for the counters.
final class Writing {

    /// Burials that are kept until a flush before one is asked for because of them: some MiB of heap.
    static final int MAX_UNSYNCED = 1 << 16;

    private final int disk;
    private final TierPort disks;
    private final MoverLimits limits;
    private final WriteBudget budget;
    private final WriteShares shares;
    private final Map<Long, Begun> underWay = new HashMap<>();
    private final Map<Long, Tombstone> burying = new HashMap<>();

    /// Burials that were written, and that no flush has made durable yet. By tag, which grows.
    private final NavigableMap<Long, Tombstone> unsynced = new TreeMap<>();

    private final Latencies latencies = new Latencies();
    private @Nullable Tombstone heldBurial;
    private @Nullable Begun held;
    private volatile int count;
    private volatile double budgetSpent;
    private long bytes;
    private long nextTag;
    private long now;

    private record Begun(TierPort.PendingWrite write, long sinceNanos) {}

    Writing(Mover.Around around, WriteBudget budget) {
        disk = around.disk();
        disks = around.disks();
        limits = around.limits();
        shares = around.shares();
        this.budget = budget;
    }

    /// Tells the tier what is buried.
    ///
    /// @return whether it knows of all: until then nothing else may be written
    boolean pumpBurials(Tier tier) {
        if (tier.state() != TierState.SERVING) {
            refuseHeld();
            return true;
        }
        Tombstone next = heldBurial == null ? disks.nextTombstone(disk) : heldBurial;
        while (next != null) {
            long tag = ++nextTag;
            SubmitResult taken = tier.tombstone(next, tag);
            if (taken == SubmitResult.RETRY) {
                heldBurial = next;
                return false;
            }
            if (taken == SubmitResult.ACCEPTED) {
                burying.put(tag, next);
            }
            next = disks.nextTombstone(disk);
        }
        heldBurial = null;
        return true;
    }

    int pump(Tier tier, long nowNanos) {
        now = nowNanos;
        int done = 0;
        while (tier.state() == TierState.SERVING && bytes < limits.writeBytes() && !buryingAll() && mayWrite()) {
            Begun next = held == null ? next() : held;
            held = null;
            if (next == null || !submit(tier, next)) {
                break;
            }
            done++;
        }
        budgetSpent = budget.daySpent();
        return done;
    }

    /// What is written while the burial of a namespace is on its way would be buried too, if that failed
    /// and were told again.
    private boolean buryingAll() {
        return !burying.isEmpty() && burying.values().stream().anyMatch(Tombstone::isNamespace);
    }

    private boolean mayWrite() {
        return held != null || (budget.allows(now) && shares.mayTake(disk));
    }

    private @Nullable Begun next() {
        TierPort.PendingWrite write = disks.nextWrite(disk);
        return write == null ? null : new Begun(write, now);
    }

    /// Answers false when the tier takes no more now.
    private boolean submit(Tier tier, Begun begun) {
        TierPort.PendingWrite write = begun.write;
        long tag = ++nextTag;
        return switch (tier.write(write.block(), write.pages(), tag)) {
            case ACCEPTED -> {
                underWay.put(tag, begun);
                recount();
                bytes += write.block().bytes();
                budget.spend(write.block().bytes());
                shares.took(disk, write.block().bytes());
                yield true;
            }
            case RETRY -> {
                held = begun;
                recount();
                yield false;
            }
            case GONE, REJECTED -> {
                disks.onWritten(write.record(), disk, -1);
                yield true;
            }
        };
    }

    /// What the tier has not taken yet is on its way as well: it is pinned.
    private void recount() {
        count = underWay.size() + (held == null ? 0 : 1);
    }

    void ended(long tag, long place) {
        Tombstone buried = burying.remove(tag);
        if (buried != null && place < 0) {
            disks.onTombstoneFailed(disk, buried);
        } else if (buried != null) {
            unsynced.put(tag, buried);
        }
        Begun begun = underWay.remove(tag);
        if (begun != null) {
            bytes -= begun.write.block().bytes();
            latencies.record(now - begun.sinceNanos);
            disks.onWritten(begun.write.record(), disk, place);
            recount();
        }
    }

    /// Number of the burial that the tier has taken last.
    long lastTaken() {
        return nextTag;
    }

    /// All burials up to a number are durable.
    void synced(long taken) {
        unsynced.headMap(taken, true).clear();
    }

    /// Whether so many burials wait for a flush that one should come by itself.
    boolean wantsFlush() {
        return unsynced.size() >= MAX_UNSYNCED;
    }

    /// A tier does not write any more: what it has not taken is not written. It will hear of burials when
    /// it is opened again, and what it tells then is held against them.
    private void refuseHeld() {
        Begun waiting = held;
        held = null;
        if (heldBurial != null) {
            disks.requeueTombstone(disk, heldBurial);
            heldBurial = null;
        }
        disks.holdTombstones(disk);
        if (waiting != null) {
            disks.onWritten(waiting.write.record(), disk, -1);
            recount();
        }
    }

    /// Ends all that waits or is on its way as not written.
    void refuseAll() {
        refuseHeld();
        underWay.values().forEach(begun -> disks.onWritten(begun.write.record(), disk, -1));
        underWay.clear();
        burying.values().forEach(burial -> disks.requeueTombstone(disk, burial));
        burying.clear();
        unsynced.descendingMap().values().forEach(burial -> disks.requeueTombstone(disk, burial));
        unsynced.clear();
        count = 0;
        bytes = 0;
    }

    boolean idle() {
        return count == 0 && held == null && heldBurial == null;
    }

    int underWay() {
        return count;
    }

    double budgetSpent() {
        return budgetSpent;
    }

    MoverStats.Latency latency() {
        return latencies.summary();
    }
}
