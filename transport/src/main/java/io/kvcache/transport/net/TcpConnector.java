package io.kvcache.transport.net;

import java.io.IOException;
import java.io.InterruptedIOException;
import java.net.ConnectException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketTimeoutException;
import java.net.UnknownHostException;
import java.nio.channels.SocketChannel;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLException;
import javax.net.ssl.SSLParameters;
import org.jspecify.annotations.Nullable;

/// Opens TCP connections to one host and port, whose name is looked up each time; behind TLS if that is wanted,
/// to a server alone whose certificate is trusted and of that name.
public final class TcpConnector implements Connector {

    private final String host;
    private final int port;
    private final HostResolver lookup;
    private final @Nullable SSLContext tls;

    /// @param port 1 to 65,535
    public TcpConnector(String host, int port) {
        this(host, port, null);
    }

    /// @param port 1 to 65,535
    /// @param tls with what is trusted; null for none
    public TcpConnector(String host, int port, @Nullable SSLContext tls) {
        this.host = host;
        this.port = port;
        this.tls = tls;
        lookup = new HostResolver(host, InetAddress::getByName);
    }

    @Override
    public FrameConnection connect(FrameHandler handler, long timeoutNanos) throws IOException {
        long start = System.nanoTime();
        InetSocketAddress address = new InetSocketAddress(lookup.resolve(timeoutNanos), port);
        SocketChannel channel = SocketChannel.open();
        try {
            long left = timeoutNanos - (System.nanoTime() - start);
            channel.socket().connect(address, Math.clamp(TimeUnit.NANOSECONDS.toMillis(left), 1, 60_000));
            rejectSelfConnection(channel);
            TcpConnection.configure(channel);
            SSLContext trusted = tls;
            if (trusted == null) {
                return new TcpConnection(channel, line -> handler);
            }
            TlsChannel behind = new TlsChannel(channel, createEngine(trusted));
            handshake(behind, timeoutNanos - (System.nanoTime() - start));
            return new TcpConnection(channel, behind, 0, line -> handler);
        } catch (IOException | RuntimeException | Error failed) {
            channel.close();
            throw failed;
        }
    }

    /// Rejects a TCP self-connection. If no server listens at an ephemeral port, the kernel may give that port to
    /// the client that connects to it. The client is then connected to itself, and its server cannot listen there
    /// again.
    ///
    /// @throws ConnectException when this is such a connection
    static void rejectSelfConnection(SocketChannel channel) throws IOException {
        if (channel.getLocalAddress().equals(channel.getRemoteAddress())) {
            throw new ConnectException("connection refused: no server listens at that port of this host");
        }
    }

    private SSLEngine createEngine(SSLContext trusted) {
        SSLEngine engine = trusted.createSSLEngine(host, port);
        engine.setUseClientMode(true);
        SSLParameters parameters = engine.getSSLParameters();
        parameters.setEndpointIdentificationAlgorithm("HTTPS"); // names as RFC 2818 has them
        engine.setSSLParameters(parameters);
        return engine;
    }

    private void handshake(TlsChannel behind, long timeoutNanos) throws IOException {
        try {
            behind.handshake(timeoutNanos);
        } catch (TlsChannel.PlaintextPeerException plain) {
            throw new IOException("the server does not use TLS; allowed: " + host + ":" + port, plain);
        } catch (SSLException refused) {
            throw new IOException("TLS handshake failed: " + reason(refused), refused);
        }
    }

    /// The innermost cause with a message is the most specific: the certificate that is not trusted, or its
    /// wrong name.
    static String reason(Throwable failure) {
        String reason = failure.toString();
        for (Throwable cause = failure; cause != null; cause = cause.getCause()) {
            reason = cause.getMessage() == null ? reason : cause.getMessage();
        }
        return reason;
    }

    @Override
    public String toString() {
        return (tls == null ? "" : "tls:") + host + ":" + port;
    }

    /// Resolves a host name at each connection attempt. The system's lookup has no timeout and cannot be
    /// interrupted. So a separate thread runs one lookup at a time, and each caller waits for it no longer than
    /// its own timeout.
    ///
    /// **Threads.** Any.
    static final class HostResolver {

        private final String host;
        private final NameService nameService;
        private final @Nullable InetAddress literal;
        private @Nullable FutureTask<InetAddress> pendingTask;

        /// Looks names up. It may block without a limit.
        @FunctionalInterface
        interface NameService {

            /// The address of a name.
            InetAddress resolve(String name) throws IOException, InterruptedException;
        }

        /// @param host an address, or a name
        HostResolver(String host, NameService nameService) {
            this.host = host;
            this.nameService = nameService;
            literal = literal(host);
        }

        private static @Nullable InetAddress literal(String host) {
            try {
                return InetAddress.ofLiteral(host);
            } catch (IllegalArgumentException name) {
                return null;
            }
        }

        /// The address as it is now, or was when another caller began to ask for it.
        ///
        /// @throws UnknownHostException when there is none
        /// @throws SocketTimeoutException when it was not found in time
        InetAddress resolve(long timeoutNanos) throws IOException {
            if (literal != null) {
                return literal;
            }
            try {
                return pendingLookup().get(timeoutNanos, TimeUnit.NANOSECONDS);
            } catch (ExecutionException failed) {
                UnknownHostException unknown = new UnknownHostException(host + ": no such host");
                unknown.initCause(failed.getCause());
                throw unknown;
            } catch (TimeoutException slow) {
                throw new SocketTimeoutException(host + ": its address was not found in time");
            } catch (InterruptedException stopped) {
                Thread.currentThread().interrupt();
                throw new InterruptedIOException(host + ": interrupted while its address was looked for");
            }
        }

        private synchronized FutureTask<InetAddress> pendingLookup() {
            FutureTask<InetAddress> now = pendingTask;
            if (now == null || now.isDone()) {
                now = new FutureTask<>(() -> nameService.resolve(host));
                Thread.ofPlatform().daemon().name("kvcache-remote-name").start(now); // which may fail
                pendingTask = now;
            }
            return now;
        }
    }
}
