package io.kvcache.transport.peer;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/// Threads that take turns by a seed, and a clock that only they move: a run of the same seed is the same
/// run.
///
/// One actor works at a time. It gives its turn up when it sleeps or waits, and, as the seed decides, when
/// it reads the clock or has something run beside it: whoever can go on is next by lot. Time stands still
/// while anybody can go on, and then jumps to when the first one can. When nobody ever can, that is a hang,
/// and the run has failed.
///
/// What works here may wait only by this clock, and must not read it inside a monitor that others want.
final class TurnScheduler implements PeerClock {

    private static final int KEPT = 300;
    private static final long MAX_AWAY_NANOS = TimeUnit.MILLISECONDS.toNanos(20);

    /// Beyond it nobody wakes: those who wait for it wait for somebody else.
    private static final long NEVER = TimeUnit.DAYS.toNanos(1000);

    private final SplittableRandom random;
    private final List<Actor> actors = new ArrayList<>();
    private @Nullable Actor running;
    private final Semaphore over = new Semaphore(0);
    private final Deque<JournalEntry> journal = new ArrayDeque<>();
    private volatile @Nullable Throwable failure;
    private long now = 1;
    private long trace;
    private int born;

    /// What happened at a moment. Most entries are never shown, so none is formatted before it is.
    private record JournalEntry(long nanos, String actor, String what) {

        @Override
        public String toString() {
            return "%10.3f ms %s: %s".formatted(nanos / 1e6, actor, what);
        }
    }

    TurnScheduler(SplittableRandom random) {
        this.random = random;
    }

    /// One thread of the play.
    private static final class Actor {

        private final String name;
        private final Semaphore turn = new Semaphore(0);
        private long wakeAt;
        private long away;
        private @Nullable Object monitor;

        /// Guarded by the monitor.
        private boolean called;

        Actor(String name) {
            this.name = name;
        }
    }

    /// Plays until all actors have ended.
    ///
    /// @throws AssertionError when one failed, or all hang; with what happened last
    void run(String name, Runnable first) throws InterruptedException {
        start(name, first);
        resumeActor(next());
        over.acquire();
        Throwable failed = failure;
        if (failed != null) {
            String events = journal.stream().map(JournalEntry::toString).collect(Collectors.joining("\n"));
            throw new AssertionError(failed + "\n== last events\n" + events, failed);
        }
    }

    /// Has something run beside whoever has the turn.
    void start(String name, Runnable work) {
        born++;
        Actor actor = new Actor(name + "-" + born);
        actor.wakeAt = now;
        actors.add(actor);
        Thread.ofVirtual().name(actor.name).start(() -> runActor(actor, work));
    }

    private void runActor(Actor actor, Runnable work) {
        actor.turn.acquireUninterruptibly();
        running = actor;
        try {
            work.run();
        } catch (RuntimeException | Error wrong) {
            fail(wrong);
        } finally {
            actors.remove(actor);
            if (actors.isEmpty()) {
                over.release();
            } else {
                resumeActor(next());
            }
        }
    }

    private void fail(Throwable wrong) {
        if (failure == null) {
            note("failed: " + wrong);
            failure = wrong;
        }
    }

    /// Who goes on; when nobody can any more, or somebody has failed, the play is over.
    private Actor next() {
        if (failure != null) {
            over.release();
            return new Actor("nobody");
        }
        List<Actor> ready = ready();
        if (ready.isEmpty()) {
            long soonest = actors.stream().mapToLong(each -> each.wakeAt).min().orElse(NEVER);
            if (soonest >= NEVER) {
                fail(new AssertionError("nobody can go on: "
                        + actors.stream().map(each -> each.name).collect(Collectors.joining(", "))));
                over.release();
                return new Actor("nobody");
            }
            now = soonest;
            ready = ready();
        }
        Actor next = ready.get(random.nextInt(ready.size()));
        addToTrace(now);
        addToTrace(next.name.hashCode());
        return next;
    }

    private List<Actor> ready() {
        return actors.stream().filter(each -> each.wakeAt <= now).toList();
    }

    private static void resumeActor(Actor next) {
        Object monitor = next.monitor;
        if (monitor == null) {
            next.turn.release();
            return;
        }
        synchronized (monitor) {
            next.called = true;
            monitor.notifyAll();
        }
    }

    /// Others have their turns until it is this actor's again.
    private void yieldTurn(Actor actor) {
        Actor next = next();
        if (next != actor) {
            resumeActor(next);
            actor.turn.acquireUninterruptibly();
            running = actor;
        }
    }

    /// Perhaps others have their turns now, and sometimes for a while, as where a processor is taken away.
    void maybeYield() {
        Actor actor = running;
        if (actor != null && random.nextInt(3) == 0) {
            long away = random.nextInt(6) == 0 ? random.nextLong(MAX_AWAY_NANOS) : 0;
            actor.away += away;
            actor.wakeAt = now + away;
            yieldTurn(actor);
        }
    }

    /// For how long this actor has been kept from going on until now: what it is late by is not its own fault.
    long randomDelayNanos() {
        Actor actor = running;
        return actor == null ? 0 : actor.away;
    }

    void sleep(long nanos) {
        Actor actor = running;
        if (actor == null) {
            throw new IllegalStateException("only actors sleep");
        }
        actor.wakeAt = now + Math.max(0, nanos);
        yieldTurn(actor);
    }

    /// The time, without giving the turn up.
    long now() {
        return now;
    }

    /// The cache of misses asks inside locks of its own.
    @Override
    public long nanos() {
        boolean locked = StackWalker.getInstance()
                .walk(frames ->
                        frames.limit(8).anyMatch(each -> each.getClassName().startsWith("com.github")));
        if (!locked) {
            maybeYield();
        }
        return now;
    }

    @Override
    public void await(Object monitor, long untilNanos) throws InterruptedException {
        Actor actor = running;
        if (actor == null) {
            throw new IllegalStateException("only actors wait");
        }
        actor.wakeAt = Math.max(now, untilNanos);
        actor.called = false;
        actor.monitor = monitor;
        Actor next = next();
        if (next != actor) {
            resumeActor(next);
            while (!actor.called) {
                monitor.wait();
            }
        }
        actor.monitor = null;
        running = actor;
    }

    @Override
    @SuppressWarnings("ReferenceEquality") // a monitor is itself
    public void wake(Object monitor) {
        for (Actor each : actors) {
            if (each.monitor == monitor) {
                each.wakeAt = Math.min(each.wakeAt, now);
            }
        }
    }

    @Override
    public Runnable schedule(long momentNanos, Runnable what) {
        AtomicBoolean taken = new AtomicBoolean();
        start("at a moment", () -> {
            sleep(momentNanos - now);
            if (taken.compareAndSet(false, true)) {
                what.run();
            }
        });
        return () -> taken.set(true);
    }

    /// Counts something in what tells two runs apart.
    void addToTrace(long value) {
        trace = trace * 0x9E37_79B9_7F4A_7C15L + value;
    }

    /// Two runs that are alike have the same.
    long trace() {
        return trace;
    }

    /// Notes what happens, for whoever has to understand a failure.
    void note(String what) {
        Actor actor = running;
        addToTrace(what.hashCode());
        if (journal.size() == KEPT) {
            journal.removeFirst();
        }
        journal.addLast(new JournalEntry(now, actor == null ? "" : actor.name, what));
    }
}
