package io.kvcache.transport.remote;

import io.kvcache.core.identity.Namespace;
import io.kvcache.core.time.Backoff;
import io.kvcache.transport.link.DisconnectReason;
import io.kvcache.transport.remote.RpcClient.RpcException;
import io.kvcache.transport.shm.SharedStore.OneSidedCounters;
import io.kvcache.transport.wire.Status;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/// Keeps a session with a server: opens another one when it breaks, after pauses that grow, and
/// registers there what was registered before. Of several servers it stays with one for as long as
/// that lets it, goes on to the next in their order when it does not, and [goes back][Failback]
/// when one before it is there again.
final class SessionPool implements AutoCloseable {

    private static final System.Logger LOG = System.getLogger(SessionPool.class.getName());

    /// How late a deadline may be noticed.
    private static final long TICK_NANOS = TimeUnit.MILLISECONDS.toNanos(20);

    private static final long FIRST_PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(10);
    private static final long MAX_PAUSE_NANOS = TimeUnit.SECONDS.toNanos(2);

    private final ServerList servers;
    private final CallTimeouts callTimeouts = new CallTimeouts();
    private final List<Namespace> registered = new CopyOnWriteArrayList<>();
    private final AtomicLong sessionCount = new AtomicLong();
    private final Failback failback;
    private final Thread watch;
    private final Thread keeper;
    private volatile @Nullable RemoteSession current;
    private volatile boolean closed;

    /// The way that worked last.
    private volatile int currentServerIndex;

    private SessionPool(List<ServerList.Server> ways, OneSidedCounters counters) {
        this.servers = new ServerList(ways, counters, callTimeouts);
        failback = new Failback(this, ways.getFirst().options().failbackAfter().toNanos());
        watch = thread("watch", this::watchTimeouts);
        keeper = thread("keep", this::maintainSession);
    }

    private static Thread thread(String name, Runnable work) {
        return Thread.ofPlatform().daemon().name("kvcache-remote-" + name).unstarted(work);
    }

    /// @param ways at least one, the first choice first
    /// @throws UncheckedIOException when no server can be reached, or each does not want this client
    static SessionPool open(List<ServerList.Server> ways, OneSidedCounters counters) {
        SessionPool sessionPool = new SessionPool(ways, counters);
        sessionPool.watch.start();
        try {
            sessionPool.connectAny();
            sessionPool.keeper.start();
            sessionPool.failback.start();
        } catch (RuntimeException | Error none) {
            sessionPool.close();
            throw none;
        }
        return sessionPool;
    }

    /// Tries one server after the other, beginning with the one that was used last.
    ///
    /// @return false when it was not needed any more
    private boolean connectAny() {
        List<UncheckedIOException> failures = new ArrayList<>();
        RemoteSession before = current;
        int first = currentServerIndex;
        for (int tried = 0; tried < servers.size(); tried++) {
            int way = (first + tried) % servers.size();
            try {
                return useSession(new Failback.ConnectedServer(way, servers.connect(way, nextStart())), before);
            } catch (UncheckedIOException failed) {
                failures.add(failed);
            }
        }
        throw combineFailures(failures);
    }

    private static UncheckedIOException combineFailures(List<UncheckedIOException> failures) {
        if (failures.size() == 1) {
            return failures.getFirst();
        }
        String all = failures.stream().map(Throwable::getMessage).collect(Collectors.joining("; "));
        UncheckedIOException none =
                new UncheckedIOException(all, failures.getFirst().getCause());
        failures.forEach(none::addSuppressed);
        return none;
    }

    private ServerList.SessionStart nextStart() {
        return new ServerList.SessionStart(registered, sessionCount.get(), () -> LockSupport.unpark(keeperThread()));
    }

    /// Uses a session from now on, unless another one has taken the place of the one before; else closes it.
    private boolean useSession(Failback.ConnectedServer connected, @Nullable RemoteSession before) {
        synchronized (sessionCount) {
            if (current == before && !closed) {
                sessionCount.incrementAndGet();
                current = connected.session();
                currentServerIndex = connected.serverIndex();
                failback.onServerChanged();
                return true;
            }
        }
        connected.session().close(DisconnectReason.SHUTDOWN);
        return false;
    }

    /// Uses a server of the ones before the present one, if one is there; answers the session that
    /// was used until then, which goes on and is the caller's.
    @Nullable
    RemoteSession failBack() {
        RemoteSession before = current;
        int from = currentServerIndex;
        if (before == null || before.isClosed()) {
            return null; // Another one is looked for anyway.
        }
        Failback.ConnectedServer connected = Failback.connectToPreferred(servers, from, nextStart());
        if (connected == null || !useSession(connected, before)) {
            return null;
        }
        LOG.log(
                System.Logger.Level.INFO,
                "connected to " + servers.name(connected.serverIndex()) + " again, in place of " + servers.name(from)
                        + ", where what is open goes on");
        return before;
    }

    int serverCount() {
        return servers.size();
    }

    /// The place in their order of the server that is used, or was used last.
    int currentServerIndex() {
        return currentServerIndex;
    }

    boolean isClosed() {
        return closed;
    }

    private Thread keeperThread() {
        return keeper;
    }

    /// Returns the open session.
    ///
    /// @throws RpcException when the client is not connected
    RemoteSession currentSession() throws RpcException {
        RemoteSession session = current;
        if (session == null || session.isClosed()) {
            throw RpcException.noReply("there is no connection to " + server());
        }
        return session;
    }

    /// Makes a call over the current session, and keeps that session open until the call has ended.
    <T> T call(RpcClient.SessionCall<T> call) throws RpcException {
        RemoteSession session = currentSession();
        while (!session.users().enter()) {
            session = currentSession(); // It was let go in favour of another one.
        }
        try {
            return call.call(session);
        } finally {
            session.users().leave();
        }
    }

    /// Registers a namespace with this client and the server. While disconnected, the server follows later.
    ///
    /// @throws IllegalArgumentException when the server rejects it
    void register(Namespace namespace) {
        try {
            call(session -> {
                session.register(namespace);
                return true;
            });
        } catch (RpcException failed) {
            if (failed.hasReply()) {
                throw rejection(failed);
            }
        }
        if (!registered.contains(namespace)) {
            registered.add(namespace);
        }
    }

    private static RuntimeException rejection(RpcException failed) {
        return failed.status() == Status.INVALID || failed.status() == Status.FORBIDDEN
                ? new IllegalArgumentException(failed.getMessage())
                : new UncheckedIOException(new IOException(failed.status() + ": " + failed.getMessage()));
    }

    /// @throws IllegalArgumentException when the namespace was not registered here
    void requireRegistered(Namespace namespace) {
        if (!registered.contains(namespace)) {
            throw new IllegalArgumentException(namespace + " is not registered with this cache");
        }
    }

    /// Whether the server's memory is read in place now.
    boolean isMemoryMapped() {
        RemoteSession session = current;
        return session != null && session.sharedStore() != null;
    }

    boolean isConnected() {
        RemoteSession session = current;
        return session != null && !session.isClosed();
    }

    /// The server that is used, or was used last.
    String server() {
        return servers.name(currentServerIndex);
    }

    /// How it is reached now, and why so.
    String route() {
        RemoteSession session = current;
        return session == null ? "" : session.route();
    }

    /// Sessions so far.
    long sessionCount() {
        return sessionCount.get();
    }

    /// Closes what is over its time. Does nothing that may wait: it is what ends all waits.
    private void watchTimeouts() {
        while (!closed || callTimeouts.hasPending()) {
            LockSupport.parkNanos(TICK_NANOS);
            try {
                callTimeouts.closeExpired();
                watchTimeouts(current);
                watchTimeouts(failback.retainedSession());
            } catch (RuntimeException | Error bug) {
                LOG.log(System.Logger.Level.ERROR, "what is over its time is not closed because of a bug", bug);
            }
        }
        callTimeouts.end();
    }

    private static void watchTimeouts(@Nullable RemoteSession session) {
        if (session != null && !session.isClosed()) {
            session.closeIfUnresponsive(System.nanoTime());
        }
    }

    /// Keeps a session alive, or gets another one. No other thread does it in this one's place, so nothing but
    /// [#close] ends it.
    private void maintainSession() {
        Backoff pause = new Backoff(FIRST_PAUSE_NANOS, MAX_PAUSE_NANOS);
        while (!closed) {
            RemoteSession session = current;
            if (session != null && !session.isClosed() && heartbeat(session)) {
                pause.reset();
                LockSupport.parkNanos(TICK_NANOS);
                continue;
            }
            LockSupport.parkNanos(pause.nextNanos());
            reconnect();
        }
    }

    /// Answers whether the session is as it should be; one that is not is given up.
    private static boolean heartbeat(RemoteSession session) {
        try {
            session.heartbeat(System.nanoTime());
            return true;
        } catch (RuntimeException | Error bug) {
            LOG.log(System.Logger.Level.ERROR, "a session is given up because of a bug", bug);
            session.close(DisconnectReason.INTERNAL);
            return false;
        }
    }

    private void reconnect() {
        if (closed) {
            return;
        }
        int before = currentServerIndex;
        try {
            if (connectAny()) {
                String how = currentServerIndex == before ? " again" : " in place of " + servers.name(before);
                LOG.log(System.Logger.Level.INFO, "connected to " + server() + how);
            }
        } catch (UncheckedIOException failed) {
            LOG.log(System.Logger.Level.DEBUG, "no connection", failed);
        } catch (RuntimeException | Error bug) {
            LOG.log(System.Logger.Level.ERROR, "no connection to " + server() + " because of a bug", bug);
        }
    }

    @Override
    public void close() {
        RemoteSession session;
        synchronized (sessionCount) {
            closed = true;
            session = current;
        }
        if (session != null) {
            session.close(DisconnectReason.SHUTDOWN);
        }
        // The thread that keeps it may hang at a server that does not listen; it looks whether all is over
        // afterwards.
        RemoteSession kept = failback.retainedSession();
        if (kept != null) {
            kept.close(DisconnectReason.SHUTDOWN);
        }
        failback.onServerChanged();
        LockSupport.unpark(watch);
        LockSupport.unpark(keeper);
    }

    /// While a server is used that is not the first choice, asks those before it whether they are there again,
    /// after pauses that grow, and has the first of them used that is. What is open at the server that was used
    /// goes on there: its session is kept until its last user has left.
    ///
    /// A server that comes and goes has the pauses go on growing: they begin anew only when it has been used for
    /// the longest of them. One session at most is kept beside the one that is used; until it has ended no server
    /// is asked.
    ///
    /// **Threads.** It has one of its own.
    static final class Failback {

        private static final System.Logger LOG = System.getLogger(Failback.class.getName());

        private static final long MAX_PAUSE_NANOS = TimeUnit.SECONDS.toNanos(30);

        /// How late it may be noticed that a session has no user any more.
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

        /// A session that is kept for its users, or null.
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

        /// Keeps a session alive until its last user has left, or it breaks.
        private void retainUntilUnused(RemoteSession left) {
            retained = left;
            try {
                while (!sessionPool.isClosed()
                        && !left.isClosed()
                        && !left.users().endIfUnused()) {
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
                ServerList servers, int before, ServerList.SessionStart start) {
            for (int way = 0; way < before; way++) {
                try {
                    return new ConnectedServer(way, servers.connectStrict(way, start));
                } catch (UncheckedIOException notYet) {
                    LOG.log(System.Logger.Level.DEBUG, "not back yet", notYet);
                }
            }
            return null;
        }

        /// A session with one of the servers.
        record ConnectedServer(int serverIndex, RemoteSession session) {}
    }
}
