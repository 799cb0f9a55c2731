package io.kvcache.transport.endpoint;

import io.kvcache.transport.link.CloseReason;
import io.kvcache.transport.link.Line;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.UnaryOperator;

/// The connections that one carrier brings to an endpoint, whatever it is: each is pumped by a thread of
/// its own, and one more thread watches the clock, for the endpoint and for connections that stall.
///
/// **Ownership.** The endpoint is this one's, which closes it.
///
/// **Threads.** Any.
public final class EndpointLines {

    private static final System.Logger LOG = System.getLogger(EndpointLines.class.getName());

    /// How late an end of a lease may be noticed, at most; little beside any lease, and nothing for an
    /// idle processor.
    private static final long LONGEST_TICK_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

    private final Endpoint endpoint;
    private final long stallNanos;
    private final Set<Line> lines = ConcurrentHashMap.newKeySet();
    private final EndpointThreads threads = new EndpointThreads();
    private final UnaryOperator<String> named;
    private volatile boolean closed;

    /// @param named makes the name of a thread of what it does
    public EndpointLines(Endpoint endpoint, EndpointOptions options, UnaryOperator<String> named) {
        this.endpoint = endpoint;
        this.named = named;
        stallNanos = options.times().stall().toNanos();
    }

    /// Begins to watch the clock.
    public void begin() {
        start("watch", this::watch);
    }

    /// Runs some work of the carrier's on a thread that closing waits for.
    public Thread start(String name, Runnable work) {
        return threads.start(named.apply(name), work);
    }

    /// Takes a connection in, which is closed at once when this is.
    public void add(Line line) {
        lines.add(line);
        if (closed) {
            line.close(CloseReason.SHUTDOWN);
        }
    }

    /// Takes a connection in and pumps it on a thread of its own.
    ///
    /// @throws OutOfMemoryError when there can be no such thread; the connection is closed then, and gone
    public void serve(Line line) {
        boolean begun = false;
        add(line);
        try {
            start("connection", () -> pump(line));
            begun = true;
        } finally {
            if (!begun) {
                line.close(CloseReason.INTERNAL);
                pump(line);
            }
        }
    }

    /// Pumps a connection that was taken in, until it is closed.
    public void pump(Line line) {
        try {
            boolean open = true;
            while (open) {
                open = line.pump();
            }
        } finally {
            lines.remove(line);
        }
    }

    /// Whether nobody has closed this.
    public boolean open() {
        return !closed;
    }

    private void watch() {
        while (!closed) {
            LockSupport.parkNanos(Math.min(LONGEST_TICK_NANOS, stallNanos / 4));
            try {
                look();
            } catch (RuntimeException | Error bug) {
                LOG.log(System.Logger.Level.ERROR, "the watch over connections goes on after a bug", bug);
            }
        }
    }

    private void look() {
        endpoint.tick();
        for (Line line : lines) {
            if (line.stalledNanos() > stallNanos) {
                line.close(CloseReason.STALLED);
            }
        }
    }

    /// Whether all that had begun has ended; to be asked again and again after [Endpoint#drain].
    public boolean drained() {
        return endpoint.drained(lines.stream().anyMatch(line -> line.stalledNanos() > 0));
    }

    /// Ends all connections, and waits for all threads but the caller's, five seconds at most; what clients
    /// held goes back to the cache.
    public void close() {
        end();
        endpoint.close();
        lines.forEach(line -> line.close(CloseReason.SHUTDOWN));
        threads.await();
    }

    /// From now on nothing is taken in: for a carrier that has to stop listening before it closes this.
    public void end() {
        closed = true;
    }
}
