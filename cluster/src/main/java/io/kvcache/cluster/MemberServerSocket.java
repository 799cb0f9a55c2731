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
import org.jspecify.annotations.Nullable;

/// Accepts the connections of members alone.
///
/// JGroups accepts connections one by one, and reads from each before it accepts the next. A stranger who connects and
/// stays silent would keep members waiting. So it only gets connections whose handshake is done, each by a thread of
/// its own.
final class MemberServerSocket extends ServerSocket {

    private static final System.Logger LOG = System.getLogger(MemberServerSocket.class.getName());

    /// Handshakes at a time. One more closes the oldest, so that silent strangers cannot take all of them.
    private static final int MAX_HANDSHAKES = 64;

    private static final int BACKLOG = 128;
    private static final long WARNING_NANOS = TimeUnit.MINUTES.toNanos(1);
    private static final long RETRY_NANOS = TimeUnit.MILLISECONDS.toNanos(20);

    private final Handshake handshake;
    private final SequencedSet<Socket> pending = new LinkedHashSet<>();
    private final BlockingQueue<Accepted> accepted = new LinkedBlockingQueue<>();
    private final AtomicLong warnedNanos = new AtomicLong(System.nanoTime() - WARNING_NANOS);

    /// @param socket null for the end
    private record Accepted(@Nullable Socket socket) {}

    /// Finds out whether a member has connected.
    @FunctionalInterface
    interface Handshake {

        /// Returns the connection that the members use.
        ///
        /// @param socket a new one
        /// @throws RefusedException when it is no member's, which is logged
        Socket run(Socket socket) throws IOException;
    }

    /// The other side is no member.
    static final class RefusedException extends IOException {

        private static final long serialVersionUID = 1;

        RefusedException(String reason) {
            super(reason);
        }

        RefusedException(String reason, Throwable cause) {
            super(reason, cause);
        }
    }

    MemberServerSocket(Handshake handshake) throws IOException {
        super();
        this.handshake = handshake;
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
                Thread.ofVirtual().name("kvcache-cluster-handshake").start(() -> shakeHands(socket));
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

    private void shakeHands(Socket socket) {
        try {
            Socket member = handshake.run(socket);
            if (end(socket)) {
                accepted.add(new Accepted(member));
                return;
            }
        } catch (RefusedException refused) {
            warn(socket, refused);
        } catch (IOException broken) {
            LOG.log(Level.DEBUG, "no handshake with " + socket.getRemoteSocketAddress(), broken);
        }
        end(socket);
        close(socket);
    }

    /// At most once a minute: a server that is refused comes again and again.
    private void warn(Socket socket, RefusedException refused) {
        long now = System.nanoTime();
        long last = warnedNanos.get();
        if (now - last >= WARNING_NANOS && warnedNanos.compareAndSet(last, now)) {
            LOG.log(
                    Level.WARNING,
                    "a connection from %s to the port of the cluster is refused: %s"
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
            Socket socket = accepted.take().socket;
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
        left.forEach(MemberServerSocket::close);
        for (Accepted each = accepted.poll(); each != null; each = accepted.poll()) {
            close(each.socket);
        }
        accepted.add(new Accepted(null));
    }
}
