package io.kvcache.tiers.movement;

import io.kvcache.core.Clock;
import io.kvcache.core.store.TierPort;
import io.kvcache.core.tier.Tier;
import io.kvcache.core.tier.TierState;
import io.kvcache.core.tier.TierStats;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;

/// Whether a tier is there, and what happens when it fails: its blocks are forgotten, it is closed once
/// nothing is on its way, and opened again after a while that doubles with each failure. Owned by the
/// mover's thread, but for what says otherwise.
final class Outage {

    private static final Logger LOG = System.getLogger(Outage.class.getName());

    static final long FIRST_PROBE_NANOS = TimeUnit.SECONDS.toNanos(5);
    static final long LAST_PROBE_NANOS = TimeUnit.MINUTES.toNanos(10);

    /// How long a tier that failed may take to end what is on its way.
    private static final long ENDING_NANOS = TimeUnit.SECONDS.toNanos(60);

    private static final long OPENING_TICK_NANOS = TimeUnit.MILLISECONDS.toNanos(1);

    private final TierOpener opener;
    private final int disk;
    private final TierPort disks;
    private final Mover.Progress progress;
    private final Clock clock;
    private volatile @Nullable Tier tier;
    private volatile TierState state = TierState.OPENING;
    private volatile String cause = "";
    private volatile TierStats lastStats;
    private final LongAdder opened = new LongAdder();
    private volatile boolean probeNow;
    private @Nullable Tier stuck;
    private boolean recovering;
    private boolean forgotten = true;
    private boolean writable;
    private long failedAt;
    private long probeAt;
    private long pauseNanos = FIRST_PROBE_NANOS;

    Outage(Mover.Around around, Mover.Progress progress) {
        opener = around.opener();
        disk = around.disk();
        disks = around.disks();
        clock = around.clock();
        this.progress = progress;
        lastStats = TierStats.empty("not open", 0);
    }

    /// Waits until the tier serves. Its time goes on meanwhile, so that a disk which hangs is noticed.
    ///
    /// @throws RuntimeException when the tier is refused
    void open(Mover mover) {
        closeStuck();
        Tier opening = opener.open(mover);
        forgotten = false;
        recovering = true;
        progress.telling(disk);
        while (opening.state() == TierState.OPENING) {
            opening.tick(clock.nanos(), OPENING_TICK_NANOS);
        }
        if (opening.state() != TierState.SERVING) {
            stuck = opening;
            RuntimeException refused = opener.refused(opening);
            closeStuck();
            throw refused;
        }
        tier = opening;
        opened.increment();
        become(opening);
    }

    /// Closes a tier that was refused; while that does not end what is on its way, none is opened over it.
    private void closeStuck() {
        Tier refused = stuck;
        if (refused != null) {
            refused.close();
            stuck = null;
        }
    }

    /// The tier, opened again if it is time; or null while it is out.
    @Nullable
    Tier tier(Mover mover, long nowNanos) {
        if (tier == null && (probeNow || nowNanos - probeAt >= 0)) {
            probe(mover, nowNanos);
        }
        return tier;
    }

    private void probe(Mover mover, long nowNanos) {
        probeNow = false;
        try {
            open(mover);
            LOG.log(Level.INFO, "{0} is back", opener.name());
        } catch (RuntimeException failed) {
            forget();
            cause = String.valueOf(failed.getMessage());
            pauseNanos = Math.min(2 * pauseNanos, LAST_PROBE_NANOS);
            probeAt = nowNanos + pauseNanos;
        }
    }

    /// Notices what became of the tier in its last tick.
    void watch(Mover mover, Tier present, long nowNanos) {
        if (recovering && !present.isRecovering()) {
            recovering = false;
            pauseNanos = FIRST_PROBE_NANOS;
        }
        TierState before = state;
        become(present);
        if (state == TierState.FAILED && before != TierState.FAILED) {
            failedAt = nowNanos;
            LOG.log(Level.WARNING, "{0} is taken out, and the store serves on: {1}", opener.name(), cause);
            forget();
        }
        boolean over = present.isIdle() || nowNanos - failedAt > ENDING_NANOS;
        boolean ending = state == TierState.FAILED || state == TierState.STOPPED;
        if ((ending && over) || (state == TierState.READ_ONLY && probeNow)) {
            takeOut(mover, present, nowNanos);
        }
    }

    private void takeOut(Mover mover, Tier present, long nowNanos) {
        lastStats = present.stats();
        try {
            present.closeAfterFailure();
        } catch (RuntimeException stuck) {
            LOG.log(Level.WARNING, opener.name() + " does not end what is on its way", stuck);
            failedAt = nowNanos;
            return; // its memory is still in use: it is stopped, and tried again later
        }
        become(present);
        tier = null;
        forget();
        mover.abandoned();
        probeAt = nowNanos + pauseNanos;
    }

    /// Whether what the tier holds is not to be had any more, though it may still tell of it. The mover's
    /// thread.
    boolean lost() {
        return forgotten;
    }

    /// What the tier holds is not to be had any more.
    private void forget() {
        if (!forgotten) {
            forgotten = true;
            disks.onLost(disk);
        }
        if (recovering) {
            recovering = false;
            progress.recovered(disk);
        }
    }

    private void become(Tier present) {
        state = present.state();
        cause = present.cause();
        boolean can = state == TierState.SERVING;
        if (can != writable) {
            writable = can;
            progress.writable(disk, can);
        }
    }

    void probeNow() {
        probeNow = true;
    }

    void close() {
        closeStuck();
        Tier present = tier;
        if (present != null) {
            present.close();
            lastStats = present.stats();
            state = TierState.STOPPED;
            tier = null;
        }
    }

    /// Closes what tiers have left behind, once there is none.
    void end() {
        opener.end();
    }

    /// Any thread.
    @Nullable
    Tier present() {
        return tier;
    }

    String name() {
        return opener.name();
    }

    TierState state() {
        return state;
    }

    String cause() {
        return cause;
    }

    long opened() {
        return opened.sum();
    }

    TierStats lastStats() {
        return lastStats;
    }
}
