package io.kvcache.cluster;

import java.io.IOException;
import java.lang.System.Logger.Level;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketAddress;
import java.net.SocketException;
import java.util.LinkedHashSet;
import java.util.SequencedSet;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLException;
import javax.net.ssl.SSLSocket;
import org.jgroups.util.DefaultSocketFactory;
import org.jspecify.annotations.Nullable;

/// Sockets of JGroups with TLS 1.3 and a certificate on both sides.
///
/// JGroups accepts connections one by one, and reads from each before it accepts the next. A stranger who connects and
/// stays silent would keep members waiting. So it only gets connections whose handshake is done, each by a thread of
/// its own.
final class TlsSockets extends DefaultSocketFactory {

    private static final System.Logger LOG = System.getLogger(TlsSockets.class.getName());

    private static final String[] PROTOCOLS = {"TLSv1.3"};

    /// Handshakes at a time. One more closes the oldest, so that silent strangers cannot take all of them.
    private static final int MAX_HANDSHAKES = 64;

    private static final int BACKLOG = 128;
    private static final long WARNING_NANOS = TimeUnit.MINUTES.toNanos(1);
    private static final long RETRY_NANOS = TimeUnit.MILLISECONDS.toNanos(20);

    private final SSLContext context;
    private final int silenceMillis;

    /// @param silenceMillis a connection that is silent for longer is closed, in its handshake or later. Members send
    ///     heartbeats far more often
    TlsSockets(SSLContext context, int silenceMillis) {
        super(context);
        this.context = context;
        this.silenceMillis = silenceMillis;
        setSocketConfigurator(socket -> configure((SSLSocket) socket));
    }

    private void configure(SSLSocket socket) {
        try {
            socket.setEnabledProtocols(PROTOCOLS);
            socket.setSoTimeout(silenceMillis);
        } catch (SocketException closed) {
            LOG.log(Level.DEBUG, "a new socket is closed", closed);
        }
    }

    @Override
    public ServerSocket createServerSocket(String service) throws IOException {
        return new HandshakingServerSocket();
    }

    private final class HandshakingServerSocket extends ServerSocket {

        private final SequencedSet<Socket> pending = new LinkedHashSet<>();
        private final BlockingQueue<Accepted> accepted = new LinkedBlockingQueue<>();
        private final AtomicLong warnedNanos = new AtomicLong(System.nanoTime() - WARNING_NANOS);

        /// @param socket null for the end
        private record Accepted(@Nullable SSLSocket socket) {}

        HandshakingServerSocket() throws IOException {
            super();
        }

        @Override
        public void bind(SocketAddress address, int backlog) throws IOException {
            super.bind(address, BACKLOG);
            Thread.ofVirtual().name("kvcache-cluster-accept").start(this::acceptAll);
        }

        private void acceptAll() {
            while (!isClosed()) {
                try {
                    Socket socket = super.accept();
                    begin(socket);
                    Thread.ofVirtual().name("kvcache-cluster-handshake").start(() -> handshake(socket));
                } catch (IOException closed) {
                    LOG.log(Level.DEBUG, "a connection was not accepted", closed);
                    LockSupport.parkNanos(RETRY_NANOS); // too many open files, if it is not the end
                }
            }
            accepted.add(new Accepted(null));
        }

        private void begin(Socket socket) {
            Socket oldest = null;
            synchronized (pending) {
                if (pending.size() == MAX_HANDSHAKES) {
                    oldest = pending.removeFirst();
                }
                pending.add(socket);
            }
            close(oldest);
        }

        private void handshake(Socket socket) {
            try {
                SSLSocket tls = (SSLSocket) context.getSocketFactory().createSocket(socket, null, true);
                tls.setNeedClientAuth(true);
                configure(tls);
                tls.startHandshake();
                if (end(socket)) {
                    accepted.add(new Accepted(tls));
                    return;
                }
            } catch (SSLException refused) {
                warn(socket, refused);
            } catch (IOException broken) {
                LOG.log(Level.DEBUG, "no TLS with " + socket.getRemoteSocketAddress(), broken);
            }
            end(socket);
            close(socket);
        }

        /// At most once a minute: a server that is refused comes again and again.
        private void warn(Socket socket, SSLException refused) {
            long now = System.nanoTime();
            long last = warnedNanos.get();
            if (now - last >= WARNING_NANOS && warnedNanos.compareAndSet(last, now)) {
                LOG.log(
                        Level.WARNING,
                        "a connection from %s to the port of the cluster is refused: %s; a server of the cluster has a certificate that cluster.tls.authority has signed"
                                .formatted(socket.getRemoteSocketAddress(), refused.getMessage()));
            }
        }

        /// Returns whether it has still been pending.
        private boolean end(Socket socket) {
            synchronized (pending) {
                return pending.remove(socket);
            }
        }

        private static void close(@Nullable Socket socket) {
            try {
                if (socket != null) {
                    socket.close();
                }
            } catch (IOException broken) {
                LOG.log(Level.DEBUG, "a connection cannot be closed", broken);
            }
        }

        @Override
        public Socket accept() throws IOException {
            try {
                SSLSocket socket = accepted.take().socket;
                if (socket != null) {
                    return socket;
                }
            } catch (InterruptedException ended) {
                Thread.currentThread().interrupt();
            }
            throw new SocketException("the server socket is closed");
        }

        @Override
        public void close() throws IOException {
            super.close();
            Set<Socket> left;
            synchronized (pending) {
                left = new LinkedHashSet<>(pending);
                pending.clear();
            }
            left.forEach(HandshakingServerSocket::close);
            for (Accepted each = accepted.poll(); each != null; each = accepted.poll()) {
                close(each.socket);
            }
            accepted.add(new Accepted(null));
        }
    }
}
