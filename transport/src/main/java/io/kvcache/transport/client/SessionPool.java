package io.kvcache.transport.client;

import io.kvcache.core.identity.Namespace;
import io.kvcache.core.time.Backoff;
import io.kvcache.transport.client.RpcClient.RpcException;
import io.kvcache.transport.net.DisconnectReason;
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

/// Keeps a session with one of several servers.
///
/// When a session breaks, the pool opens another one, with growing pauses between attempts, and registers the
/// same namespaces again. It stays with one server while that server accepts it, and otherwise tries the next
/// ones in their order. It [fails back][Failback] when an earlier server is available again.
final class SessionPool implements AutoCloseable {

    private static final System.Logger LOG = System.getLogger(SessionPool.class.getName());

    /// Most delay until an expired deadline is noticed.
    private static final long TICK_NANOS = TimeUnit.MILLISECONDS.toNanos(20);

    /// A tick that comes later than this says that the process stood still.
    private static final long MAX_TICK_NANOS = 50 * TICK_NANOS;

    private static final long FIRST_PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(10);
    private static final long MAX_PAUSE_NANOS = TimeUnit.SECONDS.toNanos(2);

    /// Above what a session counts of messages.
    private static final int SESSION_SHIFT = 40;

    private final ServerList servers;
    private final CallTimeouts callTimeouts = new CallTimeouts();
    private final List<Namespace> registered = new CopyOnWriteArrayList<>();
    private final AtomicLong sessionCount = new AtomicLong();
    private final Failback failback;
    private final Thread watch;
    private final Thread keeper;
    private volatile @Nullable RemoteSession current;
    private volatile boolean closed;

    /// Index of the server that is used, or was used last.
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
    /// @throws UncheckedIOException when no server can be reached, or each rejects this client
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

    /// Connects to one server after the other, beginning with the one that was used last.
    ///
    /// @return false when the new session was not needed any more
    /// @throws UncheckedIOException when all servers fail
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

    /// Makes a session the current one. If the current session has changed meanwhile, or the pool is closed, closes
    /// the new one instead and returns false.
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

    /// Switches to a server earlier in the order, if one is available. Returns the previous session, which stays
    /// open and belongs to the caller, or null if nothing has changed.
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

    /// Returns the index of the server that is used, or was used last.
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
            throw RpcException.noReply("not connected to " + server());
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

    /// Returns whether the client reads the server's memory in place now.
    boolean isMemoryMapped() {
        RemoteSession session = current;
        return session != null && session.sharedStore() != null;
    }

    boolean isConnected() {
        RemoteSession session = current;
        return session != null && !session.isClosed();
    }

    /// Returns a number that changes whenever the server is heard: by a message, or as it accepts a session.
    long lifeSigns() {
        RemoteSession session = current;
        return (sessionCount.get() << SESSION_SHIFT) + (session == null ? 0 : session.heardCount());
    }

    /// Has the keeper ask the server for a sign of life.
    void requestLifeSign() {
        RemoteSession session = current;
        if (session != null) {
            session.requestLifeSign();
        }
    }

    /// Returns the name of the server that is used, or was used last.
    String server() {
        return servers.name(currentServerIndex);
    }

    /// Returns the number of sessions so far.
    long sessionCount() {
        return sessionCount.get();
    }

    /// Closes expired calls and sessions. It must never block, as it is what ends all waits.
    private void watchTimeouts() {
        long last = System.nanoTime();
        while (!closed || callTimeouts.hasPending()) {
            LockSupport.parkNanos(TICK_NANOS);
            long now = System.nanoTime();
            boolean stoodStill = now - last > MAX_TICK_NANOS;
            last = now;
            if (stoodStill) {
                continue; // this process did: answers that have come meanwhile are to be read first
            }
            try {
                callTimeouts.closeExpired();
                watchTimeouts(current);
                watchTimeouts(failback.retainedSession());
            } catch (RuntimeException | Error bug) {
                LOG.log(System.Logger.Level.ERROR, "the check of timeouts failed because of a bug, and goes on", bug);
            }
        }
        callTimeouts.end();
    }

    private static void watchTimeouts(@Nullable RemoteSession session) {
        if (session != null && !session.isClosed()) {
            session.closeIfUnresponsive(System.nanoTime());
        }
    }

    /// Keeps the session alive, or opens another one. Only this thread does so, hence only [#close] ends it.
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

    /// Sends a heartbeat if one is due. After a bug, closes the session and returns false.
    private static boolean heartbeat(RemoteSession session) {
        try {
            session.heartbeat(System.nanoTime());
            return true;
        } catch (RuntimeException | Error bug) {
            LOG.log(System.Logger.Level.ERROR, "a session is closed because of a bug", bug);
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
        // The failback thread may hang at an unresponsive server, and checks for the end only afterwards.
        RemoteSession kept = failback.retainedSession();
        if (kept != null) {
            kept.close(DisconnectReason.SHUTDOWN);
        }
        failback.onServerChanged();
        LockSupport.unpark(watch);
        LockSupport.unpark(keeper);
    }

    /// Switches back to an earlier server in the order.
    ///
    /// While the pool uses another server than the first one, this tries the earlier ones in their order, with
    /// growing pauses, and switches to the first that is available. Open tables, views and writers stay at the
    /// previous server: its session is kept until its last user has left.
    ///
    /// With an unstable server the pauses go on growing. They are reset only after the longest pause has passed
    /// without an attempt. At most one previous session is kept, and until it has ended no server is tried.
    ///
    /// **Threads.** It has a thread of its own.
    static final class Failback {

        private static final System.Logger LOG = System.getLogger(Failback.class.getName());

        private static final long MAX_PAUSE_NANOS = TimeUnit.SECONDS.toNanos(30);

        /// Most delay until the end of a session's last user is noticed.
        private static final long TICK_NANOS = TimeUnit.MILLISECONDS.toNanos(20);

        private final SessionPool sessionPool;
        private final long firstPauseNanos;
        private final long maxPauseNanos;
        private final Thread thread;
        private final Backoff backoff;
        private long usedSince = System.nanoTime();
        private volatile @Nullable RemoteSession retained;

        /// @param firstPauseNanos pause before the first attempt; 0 to stay with the current server
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

        /// Wakes the thread, as the pool uses another server or is closed.
        void onServerChanged() {
            LockSupport.unpark(thread);
        }

        /// Returns the previous session while it is kept for its users, or null.
        @Nullable
        RemoteSession retainedSession() {
            return retained;
        }

        private void run() {
            while (!sessionPool.isClosed()) {
                try {
                    runOnce();
                } catch (RuntimeException | Error bug) {
                    LOG.log(System.Logger.Level.ERROR, "failback failed because of a bug", bug);
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

        /// Waits for the whole pause, or until the pool is closed. Returns whether the pool is open.
        private boolean awaitPause(long nanos) {
            long start = System.nanoTime();
            long left = nanos;
            while (left > 0 && !sessionPool.isClosed()) {
                LockSupport.parkNanos(this, left);
                left = nanos - (System.nanoTime() - start);
            }
            return !sessionPool.isClosed();
        }

        /// Keeps a session alive until its last user has left, the session breaks, or the pool is closed.
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

        /// Tries the servers before an index. Returns a session with the first one that accepts this client, or
        /// null.
        static @Nullable ConnectedServer connectToPreferred(
                ServerList servers, int before, ServerList.SessionStart start) {
            for (int way = 0; way < before; way++) {
                try {
                    return new ConnectedServer(way, servers.connectStrict(way, start));
                } catch (UncheckedIOException notYet) {
                    LOG.log(System.Logger.Level.DEBUG, "failback: the server is not available yet", notYet);
                }
            }
            return null;
        }

        /// A session with one of the servers.
        record ConnectedServer(int serverIndex, RemoteSession session) {}
    }
}
