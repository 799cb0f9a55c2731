package io.kvcache.server.cluster;

import io.kvcache.cluster.ViewKeeper;
import io.kvcache.transport.peer.PeerStats;
import io.kvcache.transport.peer.PeeredKvCache;
import io.kvcache.transport.peer.PeeredKvCache.HandedOver;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/// Gives what a draining server has in memory to the new owners, in the background for an operator, or at once for
/// a server that stops. What the same owners have got already is not given again.
///
/// **Threads.** Any.
final class DrainHandover {

    private static final Logger LOG = System.getLogger(DrainHandover.class.getName());

    private final PeeredKvCache cache;
    private final ViewKeeper views;
    private @Nullable Thread background;
    private long blocksBefore;
    private HandedOver handedOver = new HandedOver(0, 0);

    /// Digest of the view whose owners have got everything; 0 for none.
    private long completeView;

    DrainHandover(PeeredKvCache cache, ViewKeeper views) {
        this.cache = cache;
        this.views = views;
    }

    /// How far a handover in the background is.
    ///
    /// @param running whether it goes on
    /// @param blocks that the new owners have taken so far
    /// @param chains of groups that they have; counted at its end, as what is left
    /// @param left chains for which there was no time
    record Progress(boolean running, long blocks, int chains, int left) {}

    synchronized Progress progress() {
        return new Progress(
                background != null && background.isAlive(),
                Math.max(0, givenBlocks() - blocksBefore), // an owner that has left takes its count along
                handedOver.chains(),
                handedOver.left());
    }

    private long givenBlocks() {
        return cache.peerStats().stream().mapToLong(PeerStats::replicated).sum();
    }

    /// Begins in the background, after an earlier one has ended.
    ///
    /// @param limit how long it may take
    synchronized void begin(Duration limit) {
        Thread earlier = background;
        blocksBefore = givenBlocks();
        handedOver = new HandedOver(0, 0);
        completeView = 0;
        background = Thread.ofPlatform()
                .daemon()
                .name("kvcache-cluster-handover")
                .start(() -> {
                    if (earlier == null || join(earlier, limit)) {
                        give(limit);
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
    void run(Duration limit) {
        long start = System.nanoTime();
        awaitBackground(limit);
        if (isComplete()) {
            LOG.log(Level.INFO, "Nothing is left to be handed over since the server was drained");
        } else {
            give(limit.minusNanos(System.nanoTime() - start));
        }
    }

    private synchronized boolean isComplete() {
        return completeView == views.view().digest();
    }

    private void give(Duration limit) {
        if (views.view().serving().isEmpty()) {
            LOG.log(Level.WARNING, "Nothing is handed over, as no other server of the cluster serves");
            return;
        }
        long view = views.view().digest();
        HandedOver given = cache.handOver(limit.isNegative() ? Duration.ZERO : limit);
        LOG.log(
                Level.INFO,
                given.left() == 0
                        ? "Handed over %d chains of groups".formatted(given.chains())
                        : "Handed over %d chains of groups; there was no time for %d more"
                                .formatted(given.chains(), given.left()));
        synchronized (this) {
            handedOver = given;
            completeView = given.left() == 0 && view == views.view().digest() ? view : 0;
        }
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
