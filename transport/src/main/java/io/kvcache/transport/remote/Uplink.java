package io.kvcache.transport.remote;

import io.kvcache.core.identity.Namespace;
import io.kvcache.transport.link.DisconnectReason;
import io.kvcache.transport.shm.OneSidedCounters;
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
/// that lets it, goes on to the next in their order when it does not, and [goes back][GoingBack]
/// when one before it is there again.
final class Uplink implements AutoCloseable {

    private static final System.Logger LOG = System.getLogger(Uplink.class.getName());

    /// How late a deadline may be noticed.
    private static final long TICK_NANOS = TimeUnit.MILLISECONDS.toNanos(20);

    private static final long FIRST_PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(10);
    private static final long LONGEST_PAUSE_NANOS = TimeUnit.SECONDS.toNanos(2);

    private final Ways ways;
    private final Deadlines deadlines = new Deadlines();
    private final List<Namespace> registered = new CopyOnWriteArrayList<>();
    private final AtomicLong attachments = new AtomicLong();
    private final GoingBack back;
    private final Thread watch;
    private final Thread keeper;
    private volatile @Nullable Attachment current;
    private volatile boolean closed;

    /// The way that worked last.
    private volatile int at;

    private Uplink(List<Ways.Way> ways, OneSidedCounters counters) {
        this.ways = new Ways(ways, counters, deadlines);
        back = new GoingBack(this, ways.getFirst().options().returnAfter().toNanos());
        watch = thread("watch", this::watch);
        keeper = thread("keep", this::keep);
    }

    private static Thread thread(String name, Runnable work) {
        return Thread.ofPlatform().daemon().name("kvcache-remote-" + name).unstarted(work);
    }

    /// @param ways at least one, the first choice first
    /// @throws UncheckedIOException when no server can be reached, or each does not want this client
    static Uplink open(List<Ways.Way> ways, OneSidedCounters counters) {
        Uplink uplink = new Uplink(ways, counters);
        uplink.watch.start();
        try {
            uplink.attach();
            uplink.keeper.start();
            uplink.back.begin();
        } catch (RuntimeException | Error none) {
            uplink.close();
            throw none;
        }
        return uplink;
    }

    /// Tries one server after the other, beginning with the one that was used last.
    ///
    /// @return false when it was not needed any more
    private boolean attach() {
        List<UncheckedIOException> failures = new ArrayList<>();
        Attachment before = current;
        int first = at;
        for (int tried = 0; tried < ways.count(); tried++) {
            int way = (first + tried) % ways.count();
            try {
                return adopt(new GoingBack.Found(way, ways.begin(way, beginning())), before);
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

    private Ways.Beginning beginning() {
        return new Ways.Beginning(registered, attachments.get(), () -> LockSupport.unpark(keeperThread()));
    }

    /// Uses a session from now on, if nobody has put another one in the place of the one before;
    /// else closes it.
    private boolean adopt(GoingBack.Found found, @Nullable Attachment before) {
        synchronized (attachments) {
            if (current == before && !closed) {
                attachments.incrementAndGet();
                current = found.attachment();
                at = found.way();
                back.changed();
                return true;
            }
        }
        found.attachment().close(DisconnectReason.SHUTDOWN);
        return false;
    }

    /// Uses a server of the ones before the present one, if one is there; answers the session that
    /// was used until then, which goes on and is the caller's.
    @Nullable
    Attachment goBack() {
        Attachment before = current;
        int from = at;
        if (before == null || before.over()) {
            return null; // Another one is looked for anyway.
        }
        GoingBack.Found found = GoingBack.ask(ways, from, beginning());
        if (found == null || !adopt(found, before)) {
            return null;
        }
        LOG.log(
                System.Logger.Level.INFO,
                "connected to " + ways.name(found.way()) + " again, in place of " + ways.name(from)
                        + ", where what is open goes on");
        return before;
    }

    int servers() {
        return ways.count();
    }

    /// The place in their order of the server that is used, or was used last.
    int at() {
        return at;
    }

    boolean closed() {
        return closed;
    }

    private Thread keeperThread() {
        return keeper;
    }

    /// The session, if there is one now.
    Attachment attached() throws CallFailed {
        Attachment attachment = current;
        if (attachment == null || attachment.over()) {
            throw CallFailed.unanswered("there is no connection to " + server());
        }
        return attachment;
    }

    /// Asks the session that there is now, which goes on at least until that has ended.
    <T> T ask(Asking.Question<T> question) throws CallFailed {
        Attachment attachment = attached();
        while (!attachment.users().enter()) {
            attachment = attached(); // It was let go in favour of another one.
        }
        try {
            return question.ask(attachment);
        } finally {
            attachment.users().leave();
        }
    }

    /// Registers here and there; while there is no connection, there later.
    ///
    /// @throws IllegalArgumentException when it is refused
    void register(Namespace namespace) {
        try {
            ask(attachment -> {
                attachment.register(namespace);
                return true;
            });
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
        return ways.name(at);
    }

    /// How it is reached now, and why so.
    String way() {
        Attachment attachment = current;
        return attachment == null ? "" : attachment.way();
    }

    /// Sessions so far.
    long attachments() {
        return attachments.get();
    }

    /// Closes what is over its time. Does nothing that may wait: it is what ends all waits.
    private void watch() {
        while (!closed || deadlines.any()) {
            LockSupport.parkNanos(TICK_NANOS);
            try {
                deadlines.tick();
                watch(current);
                watch(back.kept());
            } catch (RuntimeException | Error bug) {
                LOG.log(System.Logger.Level.ERROR, "what is over its time is not closed because of a bug", bug);
            }
        }
        deadlines.end();
    }

    private static void watch(@Nullable Attachment attachment) {
        if (attachment != null && !attachment.over()) {
            attachment.watch(System.nanoTime());
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
            attachment.close(DisconnectReason.INTERNAL);
            return false;
        }
    }

    private void reattach() {
        if (closed) {
            return;
        }
        int before = at;
        try {
            if (attach()) {
                String how = at == before ? " again" : " in place of " + ways.name(before);
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
        Attachment attachment;
        synchronized (attachments) {
            closed = true;
            attachment = current;
        }
        if (attachment != null) {
            attachment.close(DisconnectReason.SHUTDOWN);
        }
        // Whoever keeps it may hang at a server that does not listen; he looks whether all is over after he has it.
        Attachment kept = back.kept();
        if (kept != null) {
            kept.close(DisconnectReason.SHUTDOWN);
        }
        back.changed();
        LockSupport.unpark(watch);
        LockSupport.unpark(keeper);
    }
}
