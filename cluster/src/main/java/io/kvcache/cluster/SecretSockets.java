package io.kvcache.cluster;

import io.kvcache.cluster.MemberServerSocket.RefusedException;
import io.kvcache.transport.wire.Secret;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.lang.System.Logger.Level;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketAddress;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.jgroups.util.DefaultSocketFactory;

/// Sockets of JGroups on loopback, over which both sides first prove that they know a secret. What follows needs no
/// proof: no other user can read or change a connection over loopback.
///
/// 1. The side that connects sends `KVCLUST1` and 32 random bytes.
/// 2. The other one sends 32 random bytes and its [proof][ClusterSecret#proof] over both, the cluster's name, and
///    the two ends of the connection.
/// 3. The first one sends its own proof, which has another label.
///
/// As the ends are in it, a proof is worth nothing over another connection. So a stranger at a port that a member
/// connects to cannot pass on what it hears to another member.
final class SecretSockets extends DefaultSocketFactory {

    private static final System.Logger LOG = System.getLogger(SecretSockets.class.getName());

    private static final byte[] MAGIC = "KVCLUST1".getBytes(StandardCharsets.US_ASCII);
    private static final int NONCE_BYTES = 32;
    private static final int PROOF_BYTES = 32;
    private static final String CONNECTING = "kvcache cluster connecting v1";
    private static final String ACCEPTING = "kvcache cluster accepting v1";
    private static final long WARNING_NANOS = TimeUnit.MINUTES.toNanos(1);

    private final ClusterSecret secret;
    private final byte[] cluster;
    private final int patienceMillis;
    private final AtomicLong warnedNanos = new AtomicLong(System.nanoTime() - WARNING_NANOS);

    /// @param cluster its name
    /// @param patienceMillis how long the other side may be silent before it has proved itself
    SecretSockets(ClusterSecret secret, String cluster, int patienceMillis) {
        this.secret = secret;
        this.cluster = cluster.getBytes(StandardCharsets.UTF_8);
        this.patienceMillis = patienceMillis;
    }

    @Override
    public Socket createSocket(String service) {
        return new ProvedSocket();
    }

    @Override
    public ServerSocket createServerSocket(String service) throws IOException {
        return new MemberServerSocket(this::accept);
    }

    /// What both sides prove to know the secret for.
    private List<byte[]> statement(
            byte[] connecting, byte[] accepting, SocketAddress connectingEnd, SocketAddress acceptingEnd) {
        return List.of(
                cluster,
                connecting,
                accepting,
                ClusterSecret.bytesOf((InetSocketAddress) connectingEnd),
                ClusterSecret.bytesOf((InetSocketAddress) acceptingEnd));
    }

    private Socket accept(Socket socket) throws IOException {
        socket.setSoTimeout(patienceMillis);
        DataInputStream in = new DataInputStream(socket.getInputStream()); // reads no byte too many
        if (!MessageDigest.isEqual(MAGIC, in.readNBytes(MAGIC.length))) {
            throw new RefusedException("it is not that of a server without cluster.tls");
        }
        byte[] theirs = read(in, NONCE_BYTES);
        byte[] own = Secret.random(NONCE_BYTES).bytes();
        List<byte[]> statement =
                statement(theirs, own, socket.getRemoteSocketAddress(), socket.getLocalSocketAddress());
        socket.getOutputStream().write(join(own, secret.proof(ACCEPTING, statement)));
        if (!MessageDigest.isEqual(secret.proof(CONNECTING, statement), readProof(in))) {
            throw new RefusedException(
                    "it has not proved that it knows the secret in %s, which servers of this cluster have in common: they run as one user on one host"
                            .formatted(secret.file()));
        }
        socket.setSoTimeout(0);
        return socket;
    }

    /// Returns fewer bytes where the other side hangs up, as one with another secret does.
    private static byte[] readProof(DataInputStream in) {
        try {
            return in.readNBytes(PROOF_BYTES);
        } catch (IOException hungUp) {
            return new byte[0];
        }
    }

    private void connected(Socket socket) throws IOException {
        int patience = socket.getSoTimeout();
        socket.setSoTimeout(patienceMillis);
        byte[] own = Secret.random(NONCE_BYTES).bytes();
        socket.getOutputStream().write(join(MAGIC, own));
        DataInputStream in = new DataInputStream(socket.getInputStream()); // reads no byte too many
        byte[] theirs = read(in, NONCE_BYTES);
        List<byte[]> statement =
                statement(own, theirs, socket.getLocalSocketAddress(), socket.getRemoteSocketAddress());
        if (!MessageDigest.isEqual(secret.proof(ACCEPTING, statement), read(in, PROOF_BYTES))) {
            throw new RefusedException("it does not know the secret in " + secret.file());
        }
        socket.getOutputStream().write(secret.proof(CONNECTING, statement));
        socket.setSoTimeout(patience);
    }

    private static byte[] read(DataInputStream in, int count) throws IOException {
        byte[] bytes = in.readNBytes(count);
        if (bytes.length < count) {
            throw new EOFException("the other side has closed the connection");
        }
        return bytes;
    }

    private static byte[] join(byte[] first, byte[] second) {
        byte[] both = new byte[first.length + second.length];
        System.arraycopy(first, 0, both, 0, first.length);
        System.arraycopy(second, 0, both, first.length, second.length);
        return both;
    }

    /// At most once a minute: a server tries again and again.
    private void warn(SocketAddress address, RefusedException refused) {
        long now = System.nanoTime();
        long last = warnedNanos.get();
        if (now - last >= WARNING_NANOS && warnedNanos.compareAndSet(last, now)) {
            LOG.log(
                    Level.WARNING,
                    "what listens at %s is no server of this cluster, and is told nothing: %s"
                            .formatted(address, refused.getMessage()));
        }
    }

    /// Is connected once the other side has proved that it is a member.
    private final class ProvedSocket extends Socket {

        @Override
        public void connect(SocketAddress address) throws IOException {
            connect(address, 0);
        }

        @Override
        public void connect(SocketAddress address, int timeout) throws IOException {
            super.connect(address, timeout);
            try {
                connected(this);
            } catch (RefusedException refused) {
                warn(address, refused);
                close();
                throw refused;
            } catch (IOException broken) {
                close();
                throw broken;
            }
        }
    }
}
