package io.kvcache.server.cluster;

import io.kvcache.cluster.ViewKeeper;
import io.kvcache.server.cluster.ValueHandover.Outcome;
import io.kvcache.server.cluster.ValueHandover.Run;
import io.kvcache.transport.peer.PeeredKvCache;
import io.kvcache.transport.peer.PeeredKvCache.HandedOver;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.List;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// Gives what a draining server has in memory to the new owners, in the background for an operator, or at once for
/// a server that stops. What the same owners have got already is not given again.
///
/// **Threads.** Any.
final class DrainHandover {

    private static final Logger LOG = System.getLogger(DrainHandover.class.getName());

    /// Each waits for a reply most of the time.
    private static final int VALUE_THREADS = 4;

    /// How long a value may take whose transfer has begun.
    private static final Duration VALUE_PATIENCE = Duration.ofSeconds(5);

    private final PeeredKvCache cache;
    private final ValueHandover values;
    private final ViewKeeper views;
    private @Nullable Thread background;
    private long blocksBefore;
    private long valuesBefore;
    private HandedOver handedOver = new HandedOver(0, 0);
    private long valuesLeft;

    /// Digest of the view whose owners have got everything; 0 for none.
    private long completeView;

    DrainHandover(PeeredKvCache cache, ValueHandover values, ViewKeeper views) {
        this.cache = cache;
        this.values = values;
        this.views = views;
    }

    /// How far a handover in the background is.
    ///
    /// @param running whether it goes on
    /// @param blocks that the new owners have taken so far
    /// @param chains of groups that they have; counted at its end, as what is left
    /// @param left chains for which there was no time
    /// @param values that the new owners have taken so far
    /// @param valuesLeft for which there was no time, or that their owners did not take
    record Progress(boolean running, long blocks, int chains, int left, long values, long valuesLeft) {}

    synchronized Progress progress() {
        return new Progress(
                background != null && background.isAlive(),
                cache.givenCount() - blocksBefore,
                handedOver.chains(),
                handedOver.left(),
                values.givenCount() - valuesBefore,
                valuesLeft);
    }

    /// Begins in the background, after an earlier one has ended.
    ///
    /// @param limit how long it may take
    synchronized void begin(Duration limit) {
        Thread earlier = background;
        blocksBefore = cache.givenCount();
        valuesBefore = values.givenCount();
        handedOver = new HandedOver(0, 0);
        valuesLeft = 0;
        completeView = 0;
        background = Thread.ofPlatform()
                .daemon()
                .name("kvcache-cluster-handover")
                .start(() -> {
                    if (earlier == null || join(earlier, limit)) {
                        LOG.log(Level.INFO, give(limit));
                    }
                });
    }

    /// Everything has to be given again, as this server takes blocks again.
    synchronized void restart() {
        completeView = 0;
    }

    /// Gives everything, or waits for the one in the background.
    ///
    /// @param limit how long it may take
    /// @return what came of it, for the log
    String run(Duration limit) {
        long start = System.nanoTime();
        awaitBackground(limit);
        return isComplete()
                ? "Nothing is left to be handed over since the server was drained"
                : give(limit.minusNanos(System.nanoTime() - start));
    }

    private synchronized boolean isComplete() {
        return completeView == views.view().digest();
    }

    /// Returns what came of it, for the log.
    private String give(Duration limit) {
        if (isAlone()) {
            return "Nothing is handed over, as no other server of the cluster serves";
        }
        long view = views.view().digest();
        Duration time = limit.isNegative() ? Duration.ZERO : limit;
        long until = System.nanoTime() + time.toNanos();
        Run run = values.begin(_ -> true, () -> until - System.nanoTime() > 0 && !isAlone());
        List<Thread> givers = IntStream.range(0, VALUE_THREADS)
                .mapToObj(_ -> Thread.ofPlatform()
                        .daemon()
                        .name("kvcache-cluster-values")
                        .start(run::give))
                .toList();
        HandedOver given = cache.handOver(time);
        for (Thread giver : givers) {
            long left = Math.max(0, until - System.nanoTime());
            join(giver, VALUE_PATIENCE.plusNanos(left));
        }
        Outcome ofValues = run.outcome();
        long left = given.left() + ofValues.left();
        synchronized (this) {
            handedOver = given;
            valuesLeft = ofValues.left();
            completeView = left == 0 && view == views.view().digest() ? view : 0;
        }
        return "Handed over %s chains of groups and %s values%s"
                .formatted(
                        given.chains(),
                        ofValues.given(),
                        left == 0 ? "" : "; %s and %s more are left".formatted(given.left(), ofValues.left()));
    }

    private boolean isAlone() {
        return views.view().serving().isEmpty();
    }

    /// Waits for the handover in the background.
    void awaitBackground(Duration limit) {
        Thread running;
        synchronized (this) {
            running = background;
        }
        if (running != null) {
            join(running, limit);
        }
    }

    private static boolean join(Thread thread, Duration limit) {
        try {
            return thread.join(limit);
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
            return false;
        }
    }
}
