package io.kvcache.tiers.movement;

import io.kvcache.core.spi.Clock;
import io.kvcache.core.store.TierPort;
import io.kvcache.core.tier.Tier;
import io.kvcache.core.tier.TierState;
import io.kvcache.core.tier.TierStats;
import io.kvcache.core.time.Backoff;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;

/// Availability of a tier. After a failure its blocks are forgotten, and it is closed once nothing is in flight.
/// It is opened again after a pause that doubles with each failure. Owned by the tier worker's thread, unless a
/// method says otherwise.
final class CircuitBreaker {

    private static final Logger LOG = System.getLogger(CircuitBreaker.class.getName());

    static final long INITIAL_BACKOFF_NANOS = TimeUnit.SECONDS.toNanos(5);
    static final long MAX_BACKOFF_NANOS = TimeUnit.MINUTES.toNanos(10);

    /// How long a tier that failed may take to end what is on its way.
    private static final long DRAIN_TIMEOUT_NANOS = TimeUnit.SECONDS.toNanos(60);

    private static final long OPENING_TICK_NANOS = TimeUnit.MILLISECONDS.toNanos(1);

    private final TierOpener opener;
    private final int disk;
    private final TierPort tierPort;
    private final TierWorker.WorkerListener workerListener;
    private final Clock clock;
    private volatile @Nullable Tier tier;
    private volatile TierState state = TierState.OPENING;
    private volatile String cause = "";
    private volatile TierStats lastStats;
    private final LongAdder openCount = new LongAdder();
    private volatile boolean probeNow;
    private @Nullable Tier stuck;
    private boolean recovering;
    private boolean contentsDropped = true;
    private boolean writable;
    private long failedAt;
    private long probeAt;
    private final Backoff backoff = new Backoff(INITIAL_BACKOFF_NANOS, MAX_BACKOFF_NANOS);

    CircuitBreaker(TierWorker.WorkerContext workerContext, TierWorker.WorkerListener workerListener) {
        opener = workerContext.opener();
        disk = workerContext.disk();
        tierPort = workerContext.tierPort();
        clock = workerContext.clock();
        this.workerListener = workerListener;
        lastStats = TierStats.empty("not open", 0);
    }

    /// Waits until the tier serves. Its time goes on meanwhile, so that a disk which hangs is noticed.
    ///
    /// @throws RuntimeException when the tier is refused
    void open(TierWorker tierWorker) {
        closeStuck();
        Tier opening = opener.open(tierWorker);
        contentsDropped = false;
        recovering = true;
        workerListener.beforeReport(disk);
        while (opening.state() == TierState.OPENING) {
            opening.tick(clock.nanos(), OPENING_TICK_NANOS);
        }
        if (opening.state() != TierState.SERVING) {
            stuck = opening;
            RuntimeException refused = opener.openFailure(opening);
            closeStuck();
            throw refused;
        }
        tier = opening;
        openCount.increment();
        adoptState(opening);
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
    Tier tierOrProbe(TierWorker tierWorker, long nowNanos) {
        if (tier == null && (probeNow || nowNanos - probeAt >= 0)) {
            probe(tierWorker, nowNanos);
        }
        return tier;
    }

    private void probe(TierWorker tierWorker, long nowNanos) {
        probeNow = false;
        try {
            open(tierWorker);
            LOG.log(Level.INFO, "{0} is back", opener.name());
        } catch (RuntimeException failed) {
            dropContents();
            cause = String.valueOf(failed.getMessage());
            backoff.increase();
            probeAt = nowNanos + backoff.currentNanos();
        }
    }

    /// Notices what became of the tier in its last tick.
    void checkState(TierWorker tierWorker, Tier present, long nowNanos) {
        if (recovering && !present.isRecovering()) {
            recovering = false;
            backoff.reset();
        }
        TierState before = state;
        adoptState(present);
        if (state == TierState.FAILED && before != TierState.FAILED) {
            failedAt = nowNanos;
            LOG.log(Level.WARNING, "{0} is taken out, and the store serves on: {1}", opener.name(), cause);
            dropContents();
        }
        boolean over = present.isIdle() || nowNanos - failedAt > DRAIN_TIMEOUT_NANOS;
        boolean ending = state == TierState.FAILED || state == TierState.STOPPED;
        if ((ending && over) || (state == TierState.READ_ONLY && probeNow)) {
            trip(tierWorker, present, nowNanos);
        }
    }

    private void trip(TierWorker tierWorker, Tier present, long nowNanos) {
        lastStats = present.stats();
        try {
            present.closeAfterFailure();
        } catch (RuntimeException stuck) {
            LOG.log(Level.WARNING, opener.name() + " does not end what is on its way", stuck);
            failedAt = nowNanos;
            return; // its memory is still in use: it is stopped, and tried again later
        }
        adoptState(present);
        tier = null;
        dropContents();
        tierWorker.onTierAbandoned();
        probeAt = nowNanos + backoff.currentNanos();
    }

    /// Returns whether the tier's contents are lost, though it may still report them. The tier worker's thread.
    boolean isContentLost() {
        return contentsDropped;
    }

    /// Reports the contents of the tier as lost, and its recovery as ended.
    private void dropContents() {
        if (!contentsDropped) {
            contentsDropped = true;
            tierPort.onLost(disk);
        }
        if (recovering) {
            recovering = false;
            workerListener.onRecoveryEnded(disk);
        }
    }

    private void adoptState(Tier present) {
        TierState next = present.state();
        boolean can = next == TierState.SERVING;
        if (can != writable) {
            writable = can;
            workerListener.onWritableChanged(disk, can);
        }
        cause = present.cause();
        state = next; // last: once it is seen to serve, a flush writes to it
    }

    void requestProbe() {
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

    /// Any thread.
    @Nullable
    Tier currentTier() {
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

    long openCount() {
        return openCount.sum();
    }

    TierStats lastStats() {
        return lastStats;
    }
}
