package io.kvcache.transport.client;

import io.kvcache.core.identity.Namespace;
import io.kvcache.core.time.Backoff;
import io.kvcache.transport.client.RemoteContext.RpcException;
import io.kvcache.transport.client.RemoteKvCacheBuilder.RemoteOptions;
import io.kvcache.transport.net.Connector;
import io.kvcache.transport.net.DisconnectReason;
import io.kvcache.transport.shm.SharedStore.OneSidedCounters;
import io.kvcache.transport.wire.Status;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/// Keeps a session with the server.
///
/// When a session breaks, another one is opened, with growing pauses between attempts, and the same namespaces are
/// registered again.
///
/// **Threads.** Any.
final class SessionKeeper implements AutoCloseable {

    private static final System.Logger LOG = System.getLogger(SessionKeeper.class.getName());

    /// Most delay until an expired deadline is noticed.
    private static final long TICK_NANOS = TimeUnit.MILLISECONDS.toNanos(20);

    /// A tick that comes later than this says that the process stood still.
    private static final long MAX_TICK_NANOS = 50 * TICK_NANOS;

    private static final long FIRST_PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(10);
    private static final long MAX_PAUSE_NANOS = TimeUnit.SECONDS.toNanos(2);

    /// Above what a session counts of messages.
    private static final int SESSION_SHIFT = 40;

    private final Connector connector;
    private final RemoteOptions options;
    private final OneSidedCounters counters;
    private final CallTimeouts callTimeouts = new CallTimeouts();
    private final List<Namespace> registered = new CopyOnWriteArrayList<>();
    private final AtomicLong sessionCount = new AtomicLong();
    private final Thread watch;
    private final Thread keeper;
    private volatile @Nullable RemoteSession current;
    private volatile boolean closed;

    private SessionKeeper(Connector connector, RemoteOptions options, OneSidedCounters counters) {
        this.connector = connector;
        this.options = options;
        this.counters = counters;
        watch = thread("watch", this::watchTimeouts);
        keeper = thread("keep", this::maintainSession);
    }

    private static Thread thread(String name, Runnable work) {
        return Thread.ofPlatform().daemon().name("kvcache-remote-" + name).unstarted(work);
    }

    /// @param connector opens connections; its text is the server's address
    /// @throws UncheckedIOException when the server cannot be reached, or rejects this client
    static SessionKeeper open(Connector connector, RemoteOptions options, OneSidedCounters counters) {
        SessionKeeper sessionKeeper = new SessionKeeper(connector, options, counters);
        sessionKeeper.watch.start();
        try {
            sessionKeeper.connect();
            sessionKeeper.keeper.start();
        } catch (RuntimeException | Error none) {
            sessionKeeper.close();
            throw none;
        }
        return sessionKeeper;
    }

    /// Begins a session, and makes it the current one unless this is closed meanwhile. If the server rejects a
    /// namespace, its blocks are misses.
    ///
    /// @return false when it was closed
    /// @throws UncheckedIOException when the server cannot be reached, or rejects this client
    private boolean connect() {
        try {
            RemoteSession session = RemoteSession.open(
                    connector,
                    new RemoteSession.SessionSettings(options, counters, sessionCount.get()),
                    callTimeouts,
                    () -> LockSupport.unpark(keeper));
            prepare(session);
            return use(session);
        } catch (IOException unreachable) {
            throw new UncheckedIOException("cannot reach " + server() + ": " + unreachable.getMessage(), unreachable);
        } catch (RpcException refused) {
            throw new UncheckedIOException(
                    server() + " refuses: " + refused.getMessage(), new IOException(String.valueOf(refused.status())));
        }
    }

    private void prepare(RemoteSession session) throws RpcException {
        boolean good = false;
        try {
            session.mapSharedMemory();
            session.connectFabric();
            for (Namespace namespace : registered) {
                reregister(session, namespace);
            }
            good = true;
        } finally {
            if (!good) {
                session.close(DisconnectReason.SHUTDOWN);
            }
        }
    }

    private static void reregister(RemoteSession session, Namespace namespace) throws RpcException {
        try {
            session.register(namespace);
        } catch (RpcException failed) {
            if (!failed.hasReply()) {
                throw failed;
            }
            LOG.log(System.Logger.Level.WARNING, namespace + " is refused after a reconnect: " + failed.getMessage());
        }
    }

    private boolean use(RemoteSession session) {
        synchronized (sessionCount) {
            if (!closed) {
                sessionCount.incrementAndGet();
                current = session;
                return true;
            }
        }
        session.close(DisconnectReason.SHUTDOWN);
        return false;
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

    /// Makes a call over the current session.
    <T> T call(RemoteContext.SessionCall<T> call) throws RpcException {
        return call.call(currentSession());
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

    /// Returns the address of the server.
    String server() {
        return connector.toString();
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
                closeIfUnresponsive(current);
            } catch (RuntimeException | Error bug) {
                LOG.log(System.Logger.Level.ERROR, "the check of timeouts failed because of a bug, and goes on", bug);
            }
        }
        callTimeouts.end();
    }

    private static void closeIfUnresponsive(@Nullable RemoteSession session) {
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
        try {
            if (connect()) {
                LOG.log(System.Logger.Level.INFO, "connected to " + server() + " again");
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
        LockSupport.unpark(watch);
        LockSupport.unpark(keeper);
    }
}
