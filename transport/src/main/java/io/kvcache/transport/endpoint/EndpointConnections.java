package io.kvcache.transport.endpoint;

import io.kvcache.transport.link.DisconnectReason;
import io.kvcache.transport.link.FrameConnection;
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

    /// Whether nobody has closed this.
    public boolean isOpen() {
        return !closed;
    }

    private void watch() {
        while (!closed) {
            LockSupport.parkNanos(Math.min(MAX_TICK_NANOS, stallNanos / 4));
            try {
                closeStalled();
            } catch (RuntimeException | Error bug) {
                LOG.log(System.Logger.Level.ERROR, "the watch over connections goes on after a bug", bug);
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

    /// Whether all that had begun has ended; to be asked again and again after [Endpoint#drain].
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
}
