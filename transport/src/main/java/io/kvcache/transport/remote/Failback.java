package io.kvcache.transport.remote;

import io.kvcache.core.time.Backoff;
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
final class Failback {

    private static final System.Logger LOG = System.getLogger(Failback.class.getName());

    private static final long MAX_PAUSE_NANOS = TimeUnit.SECONDS.toNanos(30);

    /// How late it may be noticed that nobody uses a session any more.
    private static final long TICK_NANOS = TimeUnit.MILLISECONDS.toNanos(20);

    private final SessionPool sessionPool;
    private final long firstPauseNanos;
    private final long maxPauseNanos;
    private final Thread thread;
    private final Backoff backoff;
    private long usedSince = System.nanoTime();
    private volatile @Nullable RemoteSession retained;

    /// @param firstPauseNanos before servers are asked for the first time; 0 to stay where one is
    Failback(SessionPool sessionPool, long firstPauseNanos) {
        this.sessionPool = sessionPool;
        this.firstPauseNanos = firstPauseNanos;
        maxPauseNanos = Math.max(firstPauseNanos, MAX_PAUSE_NANOS);
        backoff = new Backoff(Math.max(1, firstPauseNanos), maxPauseNanos);
        thread = Thread.ofPlatform().daemon().name("kvcache-remote-back").unstarted(this::run);
    }

    void start() {
        if (firstPauseNanos > 0 && sessionPool.serverCount() > 1) {
            thread.start();
        }
    }

    /// Another server is used, or all is over.
    void onServerChanged() {
        LockSupport.unpark(thread);
    }

    /// A session that is kept for those who use it, or null.
    @Nullable
    RemoteSession retainedSession() {
        return retained;
    }

    private void run() {
        while (!sessionPool.isClosed()) {
            try {
                runOnce();
            } catch (RuntimeException | Error bug) {
                LOG.log(System.Logger.Level.ERROR, "no way back to a server because of a bug", bug);
                awaitPause(maxPauseNanos);
            }
        }
    }

    private void runOnce() {
        if (sessionPool.currentServerIndex() == 0) {
            LockSupport.park(this);
            return;
        }
        if (System.nanoTime() - usedSince > maxPauseNanos) {
            backoff.reset();
        }
        while (sessionPool.currentServerIndex() > 0 && awaitPause(backoff.currentNanos())) {
            usedSince = System.nanoTime();
            backoff.increase();
            RemoteSession left = sessionPool.failBack();
            if (left != null) {
                retainUntilUnused(left);
            }
        }
    }

    /// Waits; answers whether it is still wanted.
    private boolean awaitPause(long nanos) {
        long start = System.nanoTime();
        long left = nanos;
        while (left > 0 && !sessionPool.isClosed()) {
            LockSupport.parkNanos(this, left);
            left = nanos - (System.nanoTime() - start);
        }
        return !sessionPool.isClosed();
    }

    /// Keeps a session alive until nobody uses it, or it breaks.
    private void retainUntilUnused(RemoteSession left) {
        retained = left;
        try {
            while (!sessionPool.isClosed() && !left.isClosed() && !left.users().endIfUnused()) {
                left.heartbeat(System.nanoTime());
                LockSupport.parkNanos(this, TICK_NANOS);
            }
        } finally {
            left.close(DisconnectReason.SHUTDOWN);
            retained = null;
        }
        usedSince = System.nanoTime();
    }

    /// Asks the servers before one, and answers a session with the first that takes this client, or
    /// null.
    static @Nullable ConnectedServer connectToPreferred(
            ServerList serverList, int before, ServerList.SessionStart sessionStart) {
        for (int way = 0; way < before; way++) {
            try {
                return new ConnectedServer(way, serverList.connectStrict(way, sessionStart));
            } catch (UncheckedIOException notYet) {
                LOG.log(System.Logger.Level.DEBUG, "not back yet", notYet);
            }
        }
        return null;
    }

    /// A session with one of the servers.
    record ConnectedServer(int serverIndex, RemoteSession remoteSession) {}
}
