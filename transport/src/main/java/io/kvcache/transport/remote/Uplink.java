package io.kvcache.transport.remote;

import io.kvcache.core.identity.Namespace;
import io.kvcache.transport.link.CloseReason;
import io.kvcache.transport.link.Connector;
import io.kvcache.transport.shm.OneSidedCounters;
import io.kvcache.transport.wire.Status;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/// Keeps a session with a server: opens another one when it breaks, after pauses that grow, and registers
/// there what was registered before. Of several servers it stays with one for as long as that lets it, and
/// goes on to the next in their order when it does not.
final class Uplink implements AutoCloseable {

    private static final System.Logger LOG = System.getLogger(Uplink.class.getName());

    /// How late a deadline may be noticed.
    private static final long TICK_NANOS = TimeUnit.MILLISECONDS.toNanos(20);

    private static final long FIRST_PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(10);
    private static final long LONGEST_PAUSE_NANOS = TimeUnit.SECONDS.toNanos(2);

    private final List<Way> ways;
    private final OneSidedCounters counters;
    private final Deadlines deadlines = new Deadlines();
    private final List<Namespace> registered = new CopyOnWriteArrayList<>();
    private final LongAdder attachments = new LongAdder();
    private final Thread watch;
    private final Thread keeper;
    private volatile @Nullable Attachment current;
    private volatile boolean closed;

    /// The way that worked last.
    private volatile int at;

    /// One of the servers.
    record Way(Connector connector, RemoteOptions options) {}

    private Uplink(List<Way> ways, OneSidedCounters counters) {
        this.ways = ways;
        this.counters = counters;
        watch = thread("watch", this::watch);
        keeper = thread("keep", this::keep);
    }

    private static Thread thread(String name, Runnable work) {
        return Thread.ofPlatform().daemon().name("kvcache-remote-" + name).unstarted(work);
    }

    /// @param ways at least one, the first choice first
    /// @throws UncheckedIOException when no server can be reached, or each does not want this client
    static Uplink open(List<Way> ways, OneSidedCounters counters) {
        Uplink uplink = new Uplink(ways, counters);
        uplink.watch.start();
        try {
            uplink.attach();
            uplink.keeper.start();
        } catch (RuntimeException | Error none) {
            uplink.close();
            throw none;
        }
        return uplink;
    }

    /// Tries one server after the other, beginning with the one that was used last.
    private void attach() {
        List<UncheckedIOException> failures = new ArrayList<>();
        int first = at;
        for (int tried = 0; tried < ways.size(); tried++) {
            int way = (first + tried) % ways.size();
            try {
                attach(ways.get(way));
                at = way;
                return;
            } catch (UncheckedIOException failed) {
                failures.add(failed);
            }
        }
        throw together(failures);
    }

    private static UncheckedIOException together(List<UncheckedIOException> failures) {
        if (failures.size() == 1) {
            return failures.getFirst();
        }
        String all = failures.stream().map(Throwable::getMessage).collect(Collectors.joining("; "));
        UncheckedIOException none =
                new UncheckedIOException(all, failures.getFirst().getCause());
        failures.forEach(none::addSuppressed);
        return none;
    }

    private void attach(Way way) {
        try {
            begin(way);
        } catch (IOException unreachable) {
            throw new UncheckedIOException(
                    "cannot reach " + way.connector + ": " + unreachable.getMessage(), unreachable);
        } catch (CallFailed refused) {
            throw new UncheckedIOException(
                    way.connector + " refuses: " + refused.getMessage(),
                    new IOException(String.valueOf(refused.status())));
        }
    }

    private void begin(Way way) throws IOException, CallFailed {
        Attachment attachment = Attachment.open(
                way.connector,
                new Attachment.Means(way.options, counters, attachments.sum()),
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
            throw CallFailed.unanswered("there is no connection to " + server());
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

    /// The server that is used, or was used last.
    String server() {
        return ways.get(at).connector.toString();
    }

    /// Sessions so far.
    long attachments() {
        return attachments.sum();
    }

    /// Closes what is over its time. Does nothing that may wait: it is what ends all waits.
    private void watch() {
        while (!closed) {
            LockSupport.parkNanos(TICK_NANOS);
            try {
                deadlines.tick();
                Attachment attachment = current;
                if (attachment != null && !attachment.over()) {
                    attachment.watch(System.nanoTime());
                }
            } catch (RuntimeException | Error bug) {
                LOG.log(System.Logger.Level.ERROR, "what is over its time is not closed because of a bug", bug);
            }
        }
    }

    /// Keeps a session alive, or gets another one. There is nobody to do it in this thread's place, so nothing
    /// but [#close] ends it.
    private void keep() {
        long pause = FIRST_PAUSE_NANOS;
        while (!closed) {
            Attachment attachment = current;
            if (attachment != null && !attachment.over() && beaten(attachment)) {
                pause = FIRST_PAUSE_NANOS;
                LockSupport.parkNanos(TICK_NANOS);
                continue;
            }
            LockSupport.parkNanos(pause);
            pause = Math.min(2 * pause, LONGEST_PAUSE_NANOS);
            reattach();
        }
    }

    /// Answers whether the session is as it should be; one that is not is given up.
    private static boolean beaten(Attachment attachment) {
        try {
            attachment.beat(System.nanoTime());
            return true;
        } catch (RuntimeException | Error bug) {
            LOG.log(System.Logger.Level.ERROR, "a session is given up because of a bug", bug);
            attachment.close(CloseReason.INTERNAL);
            return false;
        }
    }

    private void reattach() {
        if (closed) {
            return;
        }
        int before = at;
        try {
            attach();
            LOG.log(
                    System.Logger.Level.INFO,
                    "connected to " + server()
                            + (at == before ? " again" : " in place of " + ways.get(before).connector));
        } catch (UncheckedIOException failed) {
            LOG.log(System.Logger.Level.DEBUG, "no connection", failed);
        } catch (RuntimeException | Error bug) {
            LOG.log(System.Logger.Level.ERROR, "no connection to " + server() + " because of a bug", bug);
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
