package io.kvcache.tiers.movement;

import io.kvcache.core.Clock;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.store.TierPort;
import io.kvcache.core.tier.ReclaimCandidates;
import io.kvcache.core.tier.Tier;
import io.kvcache.core.tier.TierBlock;
import io.kvcache.core.tier.TierListener;
import io.kvcache.core.tier.TierRead;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/// Moves blocks between host memory and one tier, tick by tick.
///
/// Loads that somebody waits for go before those that are only expected, and both before writes; a write
/// is not begun while many loads are on their way. What cannot be written in time is not written; what
/// cannot be read is a miss. A tier that fails is taken out: its blocks are forgotten, the store serves
/// on, and it is opened again after a while.
///
/// **Threads.** [#tick] by one, which owns the tier. Whatever others ask goes through [MoverQueue].
public final class Mover implements TierListener {

    private static final Logger LOG = System.getLogger(Mover.class.getName());

    private final int disk;
    private final TierPort disks;
    private final Loading loading;
    private final Writing writing;
    private final Flushing flushing;
    private final Outage outage;
    private final Progress progress;
    private volatile @Nullable Thread driver;

    /// What a mover needs of the store around it.
    ///
    /// @param disk number of the tier in the store
    /// @param opener opens the tier, the first time and after a failure
    public record Around(
            int disk,
            TierPort disks,
            Clock clock,
            TierOpener opener,
            Arrivals arrivals,
            MoverLimits limits,
            WriteShares shares) {}

    /// Hears what concerns all movers of a store.
    public interface Progress {

        /// The tier begins to tell what it held before.
        void telling(int disk);

        /// The tier has told all that it held before, or never will.
        void recovered(int disk);

        /// The tier can or cannot be written to now.
        void writable(int disk, boolean can);
    }

    /// @param budget of this tier alone
    public Mover(Around around, WriteBudget budget, MoverQueue queue, Progress progress) {
        disk = around.disk;
        disks = around.disks;
        this.progress = progress;
        loading = new Loading(around, queue);
        writing = new Writing(around, budget);
        flushing = new Flushing(queue);
        outage = new Outage(around, progress);
    }

    /// Opens the tier for the first time, and waits until it serves.
    ///
    /// @throws RuntimeException when it is refused, with the cause
    public void open() {
        outage.open(this);
    }

    /// Does what there is to do.
    ///
    /// @param waitNanos how long to wait when there is nothing to do
    /// @return how much was done
    public int tick(long nowNanos, long waitNanos) {
        Tier tier = outage.tier(this, nowNanos);
        if (tier == null) {
            disks.holdTombstones(disk);
            loading.refuseAll();
            flushing.refuseAll();
            return 0;
        }
        int done = loading.pump(tier, nowNanos);
        boolean buried = writing.pumpBurials(tier);
        if (buried) {
            done += loading.busy() ? 0 : writing.pump(tier, nowNanos);
            flushing.pump(tier, writing);
        }
        done += tier.tick(nowNanos, done > 0 ? 0 : waitNanos);
        outage.watch(this, tier, nowNanos);
        return done;
    }

    /// Whether nothing is on its way or waiting to be moved.
    public boolean idle() {
        Tier tier = outage.present();
        return loading.idle() && writing.idle() && flushing.idle() && (tier == null || tier.isIdle());
    }

    void drivenBy(Thread thread) {
        driver = thread;
    }

    /// Has a tier that was taken out opened again at the next tick.
    public void reopen() {
        outage.probeNow();
    }

    /// Ends the wait of a tick, or of the thread between ticks. Any thread.
    public void wake() {
        Tier tier = outage.present();
        if (tier != null) {
            tier.wake();
        }
        LockSupport.unpark(driver);
    }

    /// Lets go of the tier.
    ///
    /// @throws IllegalStateException while somebody uses it, or what tiers before it have left behind
    public void close() {
        outage.close();
        loading.refuseAll();
        writing.refuseAll();
        flushing.refuseAll();
        outage.end(); // last, as whoever waits for the tier has nothing to do with what others left
    }

    /// How long it takes to read so many bytes more; 0 while nothing is known. Any thread.
    double readNanos(long bytes) {
        return loading.nanos(bytes);
    }

    /// Reads on their way, or waiting to be. Any thread.
    int reads() {
        return loading.underWay() + loading.waiting();
    }

    /// What goes on. Any thread.
    public MoverStats stats() {
        Tier tier = outage.present();
        return new MoverStats(
                outage.name(),
                outage.state(),
                outage.cause(),
                tier == null ? outage.lastStats() : tier.stats(),
                outage.opened(),
                loading.waiting(),
                loading.underWay(),
                writing.underWay(),
                loading.loaded(),
                loading.loadedBytes(),
                loading.failures(),
                loading.cancelled(),
                loading.latency(),
                writing.latency(),
                writing.budgetSpent());
    }

    /// What was on its way to a tier that is gone will not be told any more.
    void abandoned() {
        loading.abandon();
        writing.refuseAll();
        flushing.refuseAll();
    }

    @Override
    public Namespace namespace(int namespaceId) {
        return disks.namespace(namespaceId);
    }

    @Override
    public int namespaceId(Namespace namespace) {
        try {
            return disks.namespaceId(namespace);
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
    public void written(long tag, long place) {
        writing.ended(tag, outage.lost() ? -1 : place);
    }

    @Override
    public void read(long tag, TierRead.Outcome outcome) {
        loading.ended(tag, outcome);
    }

    @Override
    public void flushed(long tag, boolean durable) {
        flushing.ended(tag, durable, writing);
    }

    @Override
    public void recovered(TierBlock block, long place) {
        if (!outage.lost()) {
            disks.onRecovered(disk, block, place);
        }
    }

    @Override
    public void buried(long keyHi, long keyLo) {
        disks.onTombstone(disk, keyHi, keyLo);
    }

    @Override
    public void recoveryEnded() {
        progress.recovered(disk);
    }

    @Override
    public void offered(ReclaimCandidates offer) {
        disks.onReclaim(disk, offer);
    }

    @Override
    public void moved(TierBlock block, long from, long to) {
        disks.onMoved(disk, block, from, to);
    }

    @Override
    public void lost(TierBlock block, long place) {
        disks.onLost(disk, block, place);
    }

    @Override
    public void used(TierBlock block, long place) {
        disks.onUsed(block);
    }

    @Override
    public double worth(long keyHi, long keyLo) {
        return disks.score(keyHi, keyLo);
    }
}
