package io.kvcache.transport.tcp;

import io.kvcache.core.KvCache;
import io.kvcache.transport.endpoint.Endpoint;
import io.kvcache.transport.endpoint.EndpointOptions;
import io.kvcache.transport.endpoint.EndpointStats;
import io.kvcache.transport.endpoint.EndpointThreads;
import io.kvcache.transport.link.CloseReason;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/// Serves a cache over TCP: one platform thread a connection, one that accepts, and one that watches the
/// clock.
///
/// ```java
/// try (var endpoint = TcpEndpoint.open(cache, new InetSocketAddress("127.0.0.1", 7420), EndpointOptions.DEFAULTS)) {
///     // RemoteKvCache.connect("127.0.0.1:7420") in other processes
/// }
/// ```
///
/// **Ownership.** The cache stays its caller's, who closes the endpoint first.
public final class TcpEndpoint implements AutoCloseable {

    private static final System.Logger LOG = System.getLogger(TcpEndpoint.class.getName());

    /// How late an end of a lease may be noticed, at most; little beside any lease, and nothing for an
    /// idle processor.
    private static final long LONGEST_TICK_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

    /// After a failure to accept, such as too many open files.
    private static final long PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(50);

    private static final int BACKLOG = 128;

    private final Endpoint endpoint;
    private final ServerSocketChannel listener;
    private final InetSocketAddress address;
    private final long stallNanos;
    private final Set<TcpLine> lines = ConcurrentHashMap.newKeySet();
    private final EndpointThreads threads = new EndpointThreads();
    private final Thread watch;
    private volatile boolean closed;

    private TcpEndpoint(Endpoint endpoint, ServerSocketChannel listener, long stallNanos) throws IOException {
        this.endpoint = endpoint;
        this.listener = listener;
        this.stallNanos = stallNanos;
        address = (InetSocketAddress) listener.getLocalAddress();
        watch = thread("watch", this::watch);
        thread("accept", this::accept);
    }

    private Thread thread(String name, Runnable work) {
        return threads.start("kvcache-tcp-" + name + "-" + address.getPort(), work);
    }

    /// Begins to listen.
    ///
    /// @param address where; port 0 for any free one
    /// @throws IOException when it cannot be listened on
    public static TcpEndpoint open(KvCache cache, InetSocketAddress address, EndpointOptions options)
            throws IOException {
        ServerSocketChannel listener = ServerSocketChannel.open();
        try {
            listener.setOption(StandardSocketOptions.SO_REUSEADDR, true);
            listener.bind(address, BACKLOG);
            return new TcpEndpoint(
                    new Endpoint(cache, options, System::nanoTime),
                    listener,
                    options.stall().toNanos());
        } catch (IOException failed) {
            listener.close();
            throw failed;
        }
    }

    /// Where it listens.
    public InetSocketAddress address() {
        return address;
    }

    /// What it serves and has served.
    public EndpointStats stats() {
        return endpoint.stats();
    }

    private void accept() {
        while (!closed) {
            try {
                serve(listener.accept());
            } catch (IOException failed) {
                if (!closed) {
                    LOG.log(System.Logger.Level.WARNING, "cannot accept a connection at " + address, failed);
                    LockSupport.parkNanos(PAUSE_NANOS);
                }
            }
        }
    }

    private void serve(SocketChannel channel) throws IOException {
        TcpLine line = new TcpLine(TcpLine.prepared(channel), endpoint::connected);
        lines.add(line);
        if (closed) {
            line.close(CloseReason.SHUTDOWN);
        }
        thread("connection", () -> {
            try {
                boolean open = true;
                while (open) {
                    open = line.pump();
                }
            } finally {
                lines.remove(line);
            }
        });
    }

    private void watch() {
        while (!closed) {
            LockSupport.parkNanos(Math.min(LONGEST_TICK_NANOS, stallNanos / 4));
            endpoint.tick();
            for (TcpLine line : lines) {
                if (line.stalledNanos() > stallNanos) {
                    line.close(CloseReason.STALLED);
                }
            }
        }
    }

    /// Begins nothing new any more; see [Endpoint#drain]. It listens on, as what has begun may need another
    /// connection.
    public void drain() {
        endpoint.drain();
    }

    /// Whether all that had begun has ended; to be asked again and again after [#drain].
    public boolean drained() {
        return endpoint.drained(lines.stream().anyMatch(line -> line.stalledNanos() > 0));
    }

    /// Ends all connections, and waits for their threads, five seconds at most; what their clients held goes
    /// back to the cache.
    @Override
    public void close() throws IOException {
        closed = true;
        try {
            listener.close();
        } finally {
            LockSupport.unpark(watch);
            endpoint.close();
            lines.forEach(line -> line.close(CloseReason.SHUTDOWN));
            threads.await();
        }
    }
}
