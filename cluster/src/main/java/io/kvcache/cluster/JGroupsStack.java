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
import java.net.SocketException;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLException;
import javax.net.ssl.SSLSocket;
import org.jgroups.Address;
import org.jgroups.logging.CustomLogFactory;
import org.jgroups.logging.Log;
import org.jgroups.logging.LogFactory;
import org.jgroups.protocols.FD_ALL3;
import org.jgroups.protocols.FRAG2;
import org.jgroups.protocols.MERGE3;
import org.jgroups.protocols.MFC;
import org.jgroups.protocols.TCP;
import org.jgroups.protocols.UFC;
import org.jgroups.protocols.UNICAST3;
import org.jgroups.protocols.VERIFY_SUSPECT2;
import org.jgroups.protocols.pbcast.GMS;
import org.jgroups.protocols.pbcast.NAKACK2;
import org.jgroups.protocols.pbcast.STABLE;
import org.jgroups.stack.Protocol;
import org.jgroups.util.DefaultSocketFactory;
import org.jgroups.util.UUID;
import org.jspecify.annotations.Nullable;

/// The protocols of JGroups that a membership consists of. All times follow from the failure timeout.
///
/// No FD_SOCK2: it opens a second port without TLS, and suspects members whose address has not arrived yet. A
/// connection that breaks makes TCP suspect the member, and VERIFY_SUSPECT2 asks it before it is out.
///
/// **First coordinator.** Of members that start at the same moment, the lowest address becomes coordinator and the
/// others join it. Members that do not know each other yet would choose different ones, and views would have to
/// merge. So addresses of listed seeds are lower than others, in the order of the list.
final class JGroupsStack {

    /// Most bytes that a peer may announce for a message. Bundles have at most 64,000.
    private static final int MAX_MESSAGE_BYTES = 256 << 10;

    private static final int STREAM_BYTES = 8 << 10;
    private static final int MAX_THREADS = 16;
    private static final int FRAGMENT_BYTES = 60_000;
    private static final long CREDIT_BYTES = 1_000_000;
    private static final long STABLE_MILLIS = 30_000;

    /// A join that is not answered in this time is tried again; the group is not left waiting for ever.
    private static final int MAX_JOIN_ATTEMPTS = 10;

    /// Bits of an address that are random; those above are the rank.
    private static final int RANDOM_BITS = 56;

    private static final int MAX_RANK = 127;

    private JGroupsStack() {}

    static List<Protocol> protocols(
            JGroupsMembership.Settings settings, InetSocketAddress listen, SeedDiscovery seeds) {
        long failure = settings.failureAfter().toMillis();
        return List.of(
                transport(settings, listen, failure),
                discovery(seeds),
                new MERGE3().setMinInterval(failure * 7 / 10).setMaxInterval(2 * failure),
                new FD_ALL3().setTimeout(failure).setInterval(failure / 3),
                new VERIFY_SUSPECT2().setTimeout(Math.clamp(failure / 6, 200, 1000)),
                new NAKACK2().useMcastXmit(false).logDiscardMessages(false),
                new UNICAST3(),
                new STABLE().setDesiredAverageGossip(STABLE_MILLIS).setMaxBytes(CREDIT_BYTES),
                new GMS()
                        .setJoinTimeout(Math.clamp(failure, 1000, 3000))
                        .setLeaveTimeout(1000)
                        .setMaxJoinAttempts(MAX_JOIN_ATTEMPTS)
                        .printLocalAddress(false),
                new UFC().setMaxCredits(CREDIT_BYTES),
                new MFC().setMaxCredits(CREDIT_BYTES),
                new FRAG2().setFragSize(FRAGMENT_BYTES));
    }

    private static TCP transport(JGroupsMembership.Settings settings, InetSocketAddress listen, long failure) {
        TCP tcp = new UnblockedTcp();
        tcp.setBindAddress(listen.getAddress());
        tcp.setBindPort(listen.getPort());
        tcp.setPortRange(0);
        tcp.enableSuspectEvents(true).setSockConnTimeout(Math.clamp(failure / 6, 300, 2000));
        tcp.tcpNodelay(true).setLinger(0).logDetails(false).setMaxLength(MAX_MESSAGE_BYTES);
        tcp.setBufferedInputStreamSize(STREAM_BYTES).setBufferedOutputStreamSize(STREAM_BYTES);
        tcp.logAcceptError(false);
        tcp.useVirtualThreads(true);
        tcp.getThreadPool().setMaxThreads(MAX_THREADS);
        tcp.setLogDiscardMessages(false);
        tcp.disableDiagnostics();
        tcp.setSocketFactory(
                switch (settings.proof()) {
                    case ClusterTls tls -> new TlsSockets(tls.context(), (int) failure);
                    case ClusterSecret secret -> new SecretSockets(secret, settings.cluster(), (int) failure);
                });
        return tcp;
    }

    private static SeedDiscovery discovery(SeedDiscovery seeds) {
        seeds.setPortRange(0).asyncDiscovery(true).numDiscoveryRuns(2).returnEntireCache(true);
        return seeds;
    }

    /// Returns a new address for a member.
    ///
    /// @param seed place among the seeds, or -1
    static Address address(int seed) {
        ThreadLocalRandom random = ThreadLocalRandom.current();
        long high = (long) (seed < 0 ? MAX_RANK : Math.min(seed, MAX_RANK)) << RANDOM_BITS
                | random.nextLong() >>> (Long.SIZE - RANDOM_BITS);
        return new UUID(high, random.nextLong());
    }

    /// Sockets of JGroups on loopback, over which both sides first prove that they know a secret. What follows
    /// needs no proof: no other user can read or change a connection over loopback.
    ///
    /// 1. The side that connects sends `KVCLUST1` and 32 random bytes.
    /// 2. The other one sends 32 random bytes and its [proof][ClusterSecret#proof] over both, the cluster's
    /// name, and the two ends of the connection. 3. The first one sends its own proof, which has another label.
    ///
    /// As the ends are in it, a proof is worth nothing over another connection. So a stranger at a port that a
    /// member connects to cannot pass on what it hears to another member.
    static final class SecretSockets extends DefaultSocketFactory {

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
                        "its cluster.name is not %s, or it does not know the secret in %s, which all servers of one user on one host have in common"
                                .formatted(name(), secret.file()));
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
                throw new RefusedException("its cluster.name is not %s, or it does not know the secret in %s"
                        .formatted(name(), secret.file()));
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

        private String name() {
            return new String(cluster, StandardCharsets.UTF_8);
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

    /// Sockets of JGroups with TLS 1.3 and a certificate on both sides.
    static final class TlsSockets extends DefaultSocketFactory {

        private static final System.Logger LOG = System.getLogger(TlsSockets.class.getName());

        private static final String[] PROTOCOLS = {"TLSv1.3"};

        private final SSLContext context;
        private final int silenceMillis;

        /// @param silenceMillis a connection that is silent for longer is closed, in its handshake or later.
        ///     Members send heartbeats far more often
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
            return new MemberServerSocket(this::shakeHands);
        }

        private Socket shakeHands(Socket socket) throws IOException {
            try {
                SSLSocket tls = (SSLSocket) context.getSocketFactory().createSocket(socket, null, true);
                tls.setNeedClientAuth(true);
                configure(tls);
                tls.startHandshake();
                return tls;
            } catch (SSLException refused) {
                throw new MemberServerSocket.RefusedException(
                        refused.getMessage()
                                + "; a server of the cluster has a certificate that cluster.tls.authority has signed",
                        refused);
            }
        }
    }

    /// TCP of JGroups in which no address holds up another one.
    ///
    /// JGroups sends to all addresses by one thread, which also connects. The system accepts a connection to a
    /// process that stands still, and the handshake then waits for as long as a member may be silent.
    /// Heartbeats that wait behind it have the healthy members take each other for gone. So each address has a
    /// thread while there is something to send to it.
    ///
    /// Messages for an address that cannot be reached, or that has fallen far behind, are discarded. JGroups
    /// repeats what matters.
    ///
    /// **Threads.** Any.
    static final class UnblockedTcp extends TCP {

        private static final System.Logger LOG = System.getLogger(UnblockedTcp.class.getName());

        /// Above what members may have on the way to one that confirms nothing, see [JGroupsStack].
        private static final int MAX_WAITING_BYTES = 4 << 20;

        private final Map<Address, Outbox> outboxes = new ConcurrentHashMap<>();

        /// What waits for one address, which has a thread from the first message to the last. Changed under its
        /// lock in the map.
        private static final class Outbox {

            private final Queue<byte[]> messages = new ArrayDeque<>();
            private int bytes;
            private boolean failed;

            void add(byte[] message) {
                if (bytes + message.length <= MAX_WAITING_BYTES) {
                    bytes += message.length;
                    messages.add(message);
                }
            }

            byte @Nullable [] remove() {
                byte[] next = failed ? null : messages.poll();
                bytes -= next == null ? 0 : next.length;
                return next;
            }
        }

        /// Returns at once.
        ///
        /// @param data is copied
        @Override
        public void send(Address dest, byte[] data, int offset, int length) {
            byte[] message = Arrays.copyOfRange(data, offset, offset + length);
            outboxes.compute(dest, (_, present) -> {
                Outbox outbox = present == null ? new Outbox() : present;
                outbox.add(message);
                if (present == null) {
                    Thread.ofVirtual().name("kvcache-cluster-send").start(() -> sendAll(dest, outbox));
                }
                return outbox;
            });
        }

        private void sendAll(Address dest, Outbox outbox) {
            for (byte[] message = next(dest, outbox); message != null; message = next(dest, outbox)) {
                try {
                    super.send(dest, message, 0, message.length);
                } catch (Exception unreachable) {
                    LOG.log(Level.TRACE, "messages to {0} are not sent: {1}", dest, unreachable);
                    outbox.failed = true;
                }
            }
        }

        /// Returns the next message. Null when there is none, or one could not be sent: the outbox is gone then.
        private byte @Nullable [] next(Address dest, Outbox outbox) {
            AtomicReference<byte @Nullable []> next = new AtomicReference<>();
            outboxes.computeIfPresent(dest, (_, _) -> {
                byte[] message = outbox.remove();
                next.set(message);
                return message == null ? null : outbox;
            });
            return next.get();
        }
    }

    /// Passes the log of JGroups on to [System.Logger].
    ///
    /// What JGroups calls warnings and errors is part of its daily work: messages for members that have just gone,
    /// connections that broke, strangers at the port. What a person has to know is logged by the classes of
    /// this package. So warnings and errors are at level `DEBUG` here, and the rest is at `TRACE`.
    ///
    /// **Threads.** Any.
    @SuppressWarnings("AnnotateFormatMethod") // the methods are those of JGroups
    static final class SystemLog implements Log {

        private final System.Logger logger;

        private SystemLog(String name) {
            logger = System.getLogger(name);
        }

        /// Has all logs of JGroups in this JVM passed on that are opened from now on.
        static void install() {
            LogFactory.setCustomLogFactory(new CustomLogFactory() {
                @Override
                public Log getLog(Class<?> type) {
                    return new SystemLog(type.getName());
                }

                @Override
                public Log getLog(String category) {
                    return new SystemLog(category);
                }
            });
        }

        @Override
        public boolean isFatalEnabled() {
            return logger.isLoggable(Level.WARNING);
        }

        @Override
        public boolean isErrorEnabled() {
            return logger.isLoggable(Level.DEBUG);
        }

        @Override
        public boolean isWarnEnabled() {
            return logger.isLoggable(Level.DEBUG);
        }

        @Override
        public boolean isInfoEnabled() {
            return logger.isLoggable(Level.DEBUG);
        }

        @Override
        public boolean isDebugEnabled() {
            return logger.isLoggable(Level.TRACE);
        }

        @Override
        public boolean isTraceEnabled() {
            return logger.isLoggable(Level.TRACE);
        }

        @Override
        public void fatal(String message) {
            logger.log(Level.WARNING, message);
        }

        @Override
        public void fatal(String format, Object... args) {
            logger.log(Level.WARNING, () -> String.format(Locale.ROOT, format, args));
        }

        @Override
        public void fatal(String message, Throwable cause) {
            logger.log(Level.WARNING, message, cause);
        }

        @Override
        public void error(String message) {
            logger.log(Level.DEBUG, message);
        }

        @Override
        public void error(String format, Object... args) {
            logger.log(Level.DEBUG, () -> String.format(Locale.ROOT, format, args));
        }

        @Override
        public void error(String message, Throwable cause) {
            logger.log(Level.DEBUG, message, cause);
        }

        @Override
        public void warn(String message) {
            logger.log(Level.DEBUG, message);
        }

        @Override
        public void warn(String format, Object... args) {
            logger.log(Level.DEBUG, () -> String.format(Locale.ROOT, format, args));
        }

        @Override
        public void warn(String message, Throwable cause) {
            logger.log(Level.DEBUG, message, cause);
        }

        @Override
        public void info(String message) {
            logger.log(Level.DEBUG, message);
        }

        @Override
        public void info(String format, Object... args) {
            logger.log(Level.DEBUG, () -> String.format(Locale.ROOT, format, args));
        }

        @Override
        public void debug(String message) {
            logger.log(Level.TRACE, message);
        }

        @Override
        public void debug(String format, Object... args) {
            logger.log(Level.TRACE, () -> String.format(Locale.ROOT, format, args));
        }

        @Override
        public void debug(String message, Throwable cause) {
            logger.log(Level.TRACE, message, cause);
        }

        @Override
        public void trace(Object message) {
            logger.log(Level.TRACE, String.valueOf(message));
        }

        @Override
        public void trace(String message) {
            logger.log(Level.TRACE, message);
        }

        @Override
        public void trace(String format, Object... args) {
            logger.log(Level.TRACE, () -> String.format(Locale.ROOT, format, args));
        }

        @Override
        public void trace(String message, Throwable cause) {
            logger.log(Level.TRACE, message, cause);
        }

        /// The level is the logger's own.
        @Override
        public void setLevel(String level) {}

        @Override
        public String getLevel() {
            return isTraceEnabled() ? "trace" : isWarnEnabled() ? "info" : "error";
        }
    }
}
