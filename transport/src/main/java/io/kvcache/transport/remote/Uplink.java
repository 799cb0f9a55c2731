package io.kvcache.transport.remote;

import io.kvcache.core.identity.Namespace;
import io.kvcache.transport.link.CloseReason;
import io.kvcache.transport.link.Connector;
import io.kvcache.transport.shm.OneSidedCounters;
import io.kvcache.transport.wire.Status;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/// Keeps a session with the server: opens another one when it breaks, after pauses that grow, and
/// registers there what was registered before.
final class Uplink implements AutoCloseable {

    private static final System.Logger LOG = System.getLogger(Uplink.class.getName());

    /// How late a deadline may be noticed.
    private static final long TICK_NANOS = TimeUnit.MILLISECONDS.toNanos(20);

    private static final long FIRST_PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(10);
    private static final long LONGEST_PAUSE_NANOS = TimeUnit.SECONDS.toNanos(2);

    private final Connector connector;
    private final RemoteOptions options;
    private final OneSidedCounters counters;
    private final Deadlines deadlines = new Deadlines();
    private final List<Namespace> registered = new CopyOnWriteArrayList<>();
    private final LongAdder attachments = new LongAdder();
    private final Thread watch;
    private final Thread keeper;
    private volatile @Nullable Attachment current;
    private volatile boolean closed;

    private Uplink(Connector connector, RemoteOptions options, OneSidedCounters counters) {
        this.connector = connector;
        this.options = options;
        this.counters = counters;
        watch = thread("watch", this::watch);
        keeper = thread("keep", this::keep);
    }

    private static Thread thread(String name, Runnable work) {
        return Thread.ofPlatform().daemon().name("kvcache-remote-" + name).unstarted(work);
    }

    /// @throws UncheckedIOException when the server cannot be reached or does not want this client
    static Uplink open(Connector connector, RemoteOptions options, OneSidedCounters counters) {
        Uplink uplink = new Uplink(connector, options, counters);
        uplink.watch.start();
        try {
            uplink.attach();
        } catch (IOException unreachable) {
            uplink.close();
            throw new UncheckedIOException("cannot reach " + connector, unreachable);
        } catch (CallFailed refused) {
            uplink.close();
            throw new UncheckedIOException(
                    connector + " refuses: " + refused.getMessage(), new IOException(String.valueOf(refused.status())));
        }
        uplink.keeper.start();
        return uplink;
    }

    private void attach() throws IOException, CallFailed {
        Attachment attachment = Attachment.open(
                connector,
                new Attachment.Means(options, counters),
                deadlines,
                () -> LockSupport.unpark(keeperThread()));
        boolean good = false;
        try {
            attachment.share();
            attachment.join();
            for (Namespace namespace : registered) {
                again(attachment, namespace);
            }
            good = true;
        } finally {
            if (!good) {
                attachment.close(CloseReason.SHUTDOWN);
            }
        }
        attachments.increment();
        current = attachment;
        if (closed) {
            attachment.close(CloseReason.SHUTDOWN);
        }
    }

    private Thread keeperThread() {
        return keeper;
    }

    private static void again(Attachment attachment, Namespace namespace) throws CallFailed {
        try {
            attachment.register(namespace);
        } catch (CallFailed failed) {
            if (!failed.answered()) {
                throw failed;
            }
            LOG.log(System.Logger.Level.WARNING, namespace + " is refused after a reconnect: " + failed.getMessage());
        }
    }

    /// The session, if there is one now.
    Attachment attached() throws CallFailed {
        Attachment attachment = current;
        if (attachment == null || attachment.over()) {
            throw CallFailed.unanswered("there is no connection to " + connector);
        }
        return attachment;
    }

    /// Registers here and there; while there is no connection, there later.
    ///
    /// @throws IllegalArgumentException when it is refused
    void register(Namespace namespace) {
        try {
            attached().register(namespace);
        } catch (CallFailed failed) {
            if (failed.answered()) {
                throw refusal(failed);
            }
        }
        if (!registered.contains(namespace)) {
            registered.add(namespace);
        }
    }

    private static RuntimeException refusal(CallFailed failed) {
        return failed.status() == Status.INVALID || failed.status() == Status.FORBIDDEN
                ? new IllegalArgumentException(failed.getMessage())
                : new UncheckedIOException(new IOException(failed.status() + ": " + failed.getMessage()));
    }

    /// @throws IllegalArgumentException when the namespace was not registered here
    void require(Namespace namespace) {
        if (!registered.contains(namespace)) {
            throw new IllegalArgumentException(namespace + " is not registered with this cache");
        }
    }

    /// Whether the server's memory is read in place now.
    boolean shares() {
        Attachment attachment = current;
        return attachment != null && attachment.shared() != null;
    }

    boolean connected() {
        Attachment attachment = current;
        return attachment != null && !attachment.over();
    }

    /// Sessions so far.
    long attachments() {
        return attachments.sum();
    }

    /// Closes what is over its time. Does nothing that may wait: it is what ends all waits.
    private void watch() {
        while (!closed) {
            LockSupport.parkNanos(TICK_NANOS);
            deadlines.tick();
            Attachment attachment = current;
            if (attachment != null && !attachment.over()) {
                attachment.watch(System.nanoTime());
            }
        }
    }

    /// Keeps a session alive, or gets another one.
    private void keep() {
        long pause = FIRST_PAUSE_NANOS;
        while (!closed) {
            Attachment attachment = current;
            if (attachment != null && !attachment.over()) {
                pause = FIRST_PAUSE_NANOS;
                attachment.beat(System.nanoTime());
                LockSupport.parkNanos(TICK_NANOS);
                continue;
            }
            LockSupport.parkNanos(pause);
            pause = Math.min(2 * pause, LONGEST_PAUSE_NANOS);
            reattach();
        }
    }

    private void reattach() {
        if (closed) {
            return;
        }
        try {
            attach();
            LOG.log(System.Logger.Level.INFO, "connected to " + connector + " again");
        } catch (IOException | CallFailed failed) {
            LOG.log(System.Logger.Level.DEBUG, "no connection to " + connector, failed);
        }
    }

    @Override
    public void close() {
        closed = true;
        Attachment attachment = current;
        if (attachment != null) {
            attachment.close(CloseReason.SHUTDOWN);
        }
        LockSupport.unpark(watch);
        LockSupport.unpark(keeper);
    }
}
