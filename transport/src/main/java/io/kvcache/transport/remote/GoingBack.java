package io.kvcache.transport.remote;

import io.kvcache.transport.link.DisconnectReason;
import java.io.UncheckedIOException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/// While a server is used that is not the first choice, asks those before it whether they are there
/// again, after pauses that grow, and has the first of them used that is. What is open at the
/// server that was used goes on there: its session is kept until nobody uses it.
///
/// A server that comes and goes has the pauses go on growing: they begin anew only when it has been
/// used for the longest of them. One session at most is kept beside the one that is used; until it
/// has ended nobody is asked.
///
/// **Threads.** It has one of its own.
final class GoingBack {

    private static final System.Logger LOG = System.getLogger(GoingBack.class.getName());

    private static final long LONGEST_PAUSE_NANOS = TimeUnit.SECONDS.toNanos(30);

    /// How late it may be noticed that nobody uses a session any more.
    private static final long TICK_NANOS = TimeUnit.MILLISECONDS.toNanos(20);

    private final Uplink uplink;
    private final long firstPauseNanos;
    private final long longestPauseNanos;
    private final Thread thread;
    private long pause;
    private long usedSince = System.nanoTime();
    private volatile @Nullable Attachment kept;

    /// @param firstPauseNanos before servers are asked for the first time; 0 to stay where one is
    GoingBack(Uplink uplink, long firstPauseNanos) {
        this.uplink = uplink;
        this.firstPauseNanos = firstPauseNanos;
        longestPauseNanos = Math.max(firstPauseNanos, LONGEST_PAUSE_NANOS);
        pause = firstPauseNanos;
        thread = Thread.ofPlatform().daemon().name("kvcache-remote-back").unstarted(this::run);
    }

    void begin() {
        if (firstPauseNanos > 0 && uplink.servers() > 1) {
            thread.start();
        }
    }

    /// Another server is used, or all is over.
    void changed() {
        LockSupport.unpark(thread);
    }

    /// A session that is kept for those who use it, or null.
    @Nullable
    Attachment kept() {
        return kept;
    }

    private void run() {
        while (!uplink.closed()) {
            try {
                turn();
            } catch (RuntimeException | Error bug) {
                LOG.log(System.Logger.Level.ERROR, "no way back to a server because of a bug", bug);
                waited(longestPauseNanos);
            }
        }
    }

    private void turn() {
        if (uplink.at() == 0) {
            LockSupport.park(this);
            return;
        }
        if (System.nanoTime() - usedSince > longestPauseNanos) {
            pause = firstPauseNanos;
        }
        while (uplink.at() > 0 && waited(pause)) {
            usedSince = System.nanoTime();
            pause = Math.min(2 * pause, longestPauseNanos);
            Attachment left = uplink.goBack();
            if (left != null) {
                keep(left);
            }
        }
    }

    /// Waits; answers whether it is still wanted.
    private boolean waited(long nanos) {
        long start = System.nanoTime();
        long left = nanos;
        while (left > 0 && !uplink.closed()) {
            LockSupport.parkNanos(this, left);
            left = nanos - (System.nanoTime() - start);
        }
        return !uplink.closed();
    }

    /// Keeps a session alive until nobody uses it, or it breaks.
    private void keep(Attachment left) {
        kept = left;
        try {
            while (!uplink.closed() && !left.over() && !left.users().end()) {
                left.beat(System.nanoTime());
                LockSupport.parkNanos(this, TICK_NANOS);
            }
        } finally {
            left.close(DisconnectReason.SHUTDOWN);
            kept = null;
        }
        usedSince = System.nanoTime();
    }

    /// Asks the servers before one, and answers a session with the first that takes this client, or
    /// null.
    static @Nullable Found ask(Ways ways, int before, Ways.Beginning beginning) {
        for (int way = 0; way < before; way++) {
            try {
                return new Found(way, ways.beginAsGood(way, beginning));
            } catch (UncheckedIOException notYet) {
                LOG.log(System.Logger.Level.DEBUG, "not back yet", notYet);
            }
        }
        return null;
    }

    /// A session with one of the servers.
    record Found(int way, Attachment attachment) {}
}
