package io.kvcache.transport.endpoint;

import io.kvcache.core.KvCache;
import io.kvcache.core.identity.Namespace;
import io.kvcache.transport.net.TcpConnection;
import io.kvcache.transport.net.TlsChannel;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Supplier;
import javax.net.ssl.SSLEngine;
import org.jspecify.annotations.Nullable;

/// Serves a cache over TCP: one platform thread a connection, one that accepts, and one that watches the
/// clock.
///
/// ```java
/// try (var endpoint = TcpEndpoint.open(cache, new InetSocketAddress("127.0.0.1", 7420), EndpointOptions.DEFAULTS))
/// {
///     // RemoteKvCache.connect("127.0.0.1:7420") in other processes
/// }
/// ```
///
/// **Ownership.** The caller keeps the cache, and closes the endpoint first.
public final class TcpEndpoint implements AutoCloseable {

    private static final System.Logger LOG = System.getLogger(TcpEndpoint.class.getName());

    /// After a failure to accept, such as too many open files.
    private static final long PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(50);

    private static final int BACKLOG = 128;

    private final Endpoint endpoint;
    private final ServerSocketChannel listener;
    private final InetSocketAddress address;
    private final EndpointConnections lines;
    private final @Nullable Supplier<SSLEngine> tls;
    private final long handshakeNanos;

    private TcpEndpoint(
            Endpoint endpoint, ServerSocketChannel listener, EndpointOptions options, @Nullable Supplier<SSLEngine> tls)
            throws IOException {
        this.tls = tls;
        handshakeNanos = options.timeouts().handshake().toNanos();
        this.endpoint = endpoint;
        this.listener = listener;
        address = (InetSocketAddress) listener.getLocalAddress();
        lines = new EndpointConnections(endpoint, options, name -> "kvcache-tcp-" + name + "-" + address.getPort());
        lines.startClock();
        lines.start("accept", this::accept);
    }

    /// Begins to listen.
    ///
    /// @param address where; port 0 for any free one
    /// @throws IOException when it cannot be listened on
    public static TcpEndpoint open(KvCache cache, InetSocketAddress address, EndpointOptions options)
            throws IOException {
        return open(cache, address, options, null);
    }

    /// Begins to listen, for clients that speak TLS.
    ///
    /// @param address where; port 0 for any free one
    /// @param tls makes an engine of the server's side for each connection, so that a certificate may change; null
    ///     for no TLS
    /// @throws IOException when it cannot be listened on
    public static TcpEndpoint open(
            KvCache cache, InetSocketAddress address, EndpointOptions options, @Nullable Supplier<SSLEngine> tls)
            throws IOException {
        ServerSocketChannel listener = ServerSocketChannel.open();
        try {
            listener.setOption(StandardSocketOptions.SO_REUSEADDR, true);
            listener.bind(address, BACKLOG);
            return new TcpEndpoint(new Endpoint(cache, options, System::nanoTime), listener, options, tls);
        } catch (IOException failed) {
            listener.close();
            throw failed;
        }
    }

    /// Returns the address that it listens at.
    public InetSocketAddress address() {
        return address;
    }

    /// Returns counters and what is open now.
    public EndpointStats stats() {
        return endpoint.stats();
    }

    /// Adds the programs and versions of the clients that use each namespace now.
    public void addClients(Map<Namespace, Set<String>> byNamespace) {
        endpoint.addClients(byNamespace);
    }

    private void accept() {
        while (lines.isOpen()) {
            try {
                serve(listener.accept());
            } catch (IOException | RuntimeException | Error failed) { // no thread or certificate for this one
                onAcceptFailure(failed);
            }
        }
    }

    private void onAcceptFailure(Throwable why) {
        if (lines.isOpen()) {
            LOG.log(System.Logger.Level.WARNING, "cannot accept a connection at " + address, why);
            LockSupport.parkNanos(PAUSE_NANOS);
        }
    }

    private void serve(SocketChannel channel) throws IOException {
        boolean served = false;
        try {
            TcpConnection.configure(channel);
            TlsChannel behind = tls == null ? null : new TlsChannel(channel, tls.get());
            lines.serve(new TcpConnection(channel, behind, handshakeNanos, endpoint::onConnected));
            served = true;
        } finally {
            if (!served) {
                channel.close();
            }
        }
    }

    /// Accepts no new work; see [Endpoint#drain]. It keeps listening, as running work may need another connection.
    public void drain() {
        endpoint.drain();
    }

    /// Returns whether all work that had begun has ended. Poll it after [#drain].
    public boolean isDrained() {
        return lines.isDrained();
    }

    /// Ends all connections, and waits for their threads, five seconds at most; what their clients held goes
    /// back to the cache.
    @Override
    public void close() throws IOException {
        lines.stopAccepting();
        try {
            listener.close();
        } finally {
            lines.close();
        }
    }
}
