package io.kvcache.transport.endpoint;

import io.kvcache.transport.net.DisconnectReason;
import io.kvcache.transport.net.FrameConnection;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;

/// The connections that one carrier brings to an endpoint, whatever it is: each is pumped by a thread of
/// its own, and one more thread watches the clock, for the endpoint and for connections that stall.
///
/// **Ownership.** The endpoint is this one's, which closes it.
///
/// **Threads.** Any.
@SuppressWarnings("exports") // For carriers of ours.
public final class EndpointConnections {

    private static final System.Logger LOG = System.getLogger(EndpointConnections.class.getName());

    /// How late an end of a lease may be noticed, at most; little beside any lease, and nothing for an
    /// idle processor.
    private static final long MAX_TICK_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

    private final Endpoint endpoint;
    private final long stallNanos;
    private final Set<FrameConnection> connections = ConcurrentHashMap.newKeySet();
    private final EndpointThreads threads = new EndpointThreads();
    private final UnaryOperator<String> threadNames;
    private volatile boolean closed;

    /// @param named makes the name of a thread of what it does
    public EndpointConnections(Endpoint endpoint, EndpointOptions options, UnaryOperator<String> named) {
        this.endpoint = endpoint;
        this.threadNames = named;
        stallNanos = options.timeouts().stall().toNanos();
    }

    /// Begins to watch the clock.
    public void startClock() {
        start("watch", this::watch);
    }

    /// Runs some work of the carrier's on a thread that closing waits for.
    public Thread start(String name, Runnable work) {
        return threads.start(threadNames.apply(name), work);
    }

    /// Takes a connection in, which is closed at once when this is.
    public void add(FrameConnection frameConnection) {
        connections.add(frameConnection);
        if (closed) {
            frameConnection.close(DisconnectReason.SHUTDOWN);
        }
    }

    /// Takes a connection in and pumps it on a thread of its own.
    ///
    /// @throws OutOfMemoryError when there can be no such thread; the connection is closed then, and gone
    public void serve(FrameConnection frameConnection) {
        boolean begun = false;
        add(frameConnection);
        try {
            start("connection", () -> pump(frameConnection));
            begun = true;
        } finally {
            if (!begun) {
                frameConnection.close(DisconnectReason.INTERNAL);
                pump(frameConnection);
            }
        }
    }

    /// Pumps a connection that was taken in, until it is closed.
    public void pump(FrameConnection frameConnection) {
        try {
            boolean open = true;
            while (open) {
                open = frameConnection.pump();
            }
        } finally {
            connections.remove(frameConnection);
        }
    }

    /// Returns whether this is open.
    public boolean isOpen() {
        return !closed;
    }

    private void watch() {
        while (!closed) {
            LockSupport.parkNanos(Math.min(MAX_TICK_NANOS, stallNanos / 4));
            try {
                closeStalled();
            } catch (RuntimeException | Error bug) {
                LOG.log(
                        System.Logger.Level.ERROR,
                        "the check of connections failed because of a bug, and goes on",
                        bug);
            }
        }
    }

    private void closeStalled() {
        endpoint.tick();
        for (FrameConnection frameConnection : connections) {
            if (frameConnection.stalledNanos() > stallNanos) {
                frameConnection.close(DisconnectReason.STALLED);
            }
        }
    }

    /// Returns whether all work that had begun has ended. Poll it after [Endpoint#drain].
    public boolean isDrained() {
        return endpoint.isDrained(connections.stream().anyMatch(frameConnection -> frameConnection.stalledNanos() > 0));
    }

    /// Ends all connections, and waits for all threads but the caller's, five seconds at most; what clients
    /// held goes back to the cache.
    public void close() {
        stopAccepting();
        endpoint.close();
        connections.forEach(frameConnection -> frameConnection.close(DisconnectReason.SHUTDOWN));
        threads.await();
    }

    /// From now on nothing is taken in: for a carrier that has to stop listening before it closes this.
    public void stopAccepting() {
        closed = true;
    }

    /// The threads of what carries an endpoint's bytes, so that its closing can wait for them: until they have
    /// ended they may use the cache.
    ///
    /// **Threads.** Any.
    static final class EndpointThreads {

        private static final System.Logger LOG = System.getLogger(EndpointThreads.class.getName());

        /// Far longer than any thread takes to notice that its connection is closed.
        static final long MAX_WAIT_NANOS = TimeUnit.SECONDS.toNanos(5);

        /// Between two looks at a thread that is about to start.
        private static final Duration POLL_INTERVAL = Duration.ofMillis(1);

        private final Set<Thread> running = ConcurrentHashMap.newKeySet();

        /// Runs some work on a platform thread of its own.
        public Thread start(String name, Runnable work) {
            Thread thread = Thread.ofPlatform().daemon().name(name).unstarted(() -> {
                try {
                    work.run();
                } finally {
                    running.remove(Thread.currentThread());
                }
            });
            running.add(thread);
            boolean started = false;
            try {
                thread.start();
                started = true;
            } finally {
                if (!started) {
                    running.remove(thread);
                }
            }
            return thread;
        }

        /// Waits until all have ended, those too that the others start meanwhile, but not for longer than five
        /// seconds. Wakes sleeping threads, leaves out the caller's, and stops at an interrupt.
        ///
        /// @return whether all have ended
        public boolean await() {
            long end = System.nanoTime() + MAX_WAIT_NANOS;
            try {
                for (Thread next = anyRunning(); next != null; next = anyRunning()) {
                    LockSupport.unpark(next);
                    long left = end - System.nanoTime();
                    if (left > 0 && next.getState() == Thread.State.NEW) {
                        Thread.sleep(POLL_INTERVAL); // Another thread is about to start it.
                        continue;
                    }
                    if (left <= 0 || !next.join(Duration.ofNanos(left))) {
                        LOG.log(System.Logger.Level.WARNING, next.getName() + " does not end");
                        return false;
                    }
                    running.remove(next);
                }
                return true;
            } catch (InterruptedException stopped) {
                Thread.currentThread().interrupt();
                return false;
            }
        }

        private @Nullable Thread anyRunning() {
            return running.stream()
                    .filter(each -> !each.equals(Thread.currentThread()))
                    .findFirst()
                    .orElse(null);
        }
    }
}
