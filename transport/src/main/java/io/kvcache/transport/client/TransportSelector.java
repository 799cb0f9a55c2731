package io.kvcache.transport.client;

import io.kvcache.transport.aeron.AeronConnector;
import io.kvcache.transport.client.RemoteKvCacheBuilder.RemoteOptions;
import io.kvcache.transport.client.RpcClient.RpcException;
import io.kvcache.transport.net.Connector;
import io.kvcache.transport.net.PayloadSink;
import io.kvcache.transport.net.TcpConnector;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.FrameHeader;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.OutboundFrame.Payload;
import io.kvcache.transport.wire.ProtocolException;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/// Chooses the faster of TCP and Aeron's UDP to one server that may offer both.
///
/// It asks over TCP for the server's offers and measures the round trip of bytes over each transport, for 50 ms at
/// most. It keeps the choice for ten minutes, or until the chosen transport fails.
///
/// It loads Aeron only when a server offers it. That delays the opening by two seconds at most.
///
/// **Threads.** Any; one measures at a time.
final class TransportSelector {

    private static final System.Logger LOG = System.getLogger(TransportSelector.class.getName());

    private static final long VALID_NANOS = TimeUnit.MINUTES.toNanos(10);
    private static final long MAX_CONNECT_NANOS = TimeUnit.SECONDS.toNanos(2);
    private static final double MEGABYTE = 1e6;

    /// The only form of Aeron address that a server may offer, since it leads to another host. A malicious server
    /// could name any file in an address that shares memory by files.
    private static final Pattern UDP = Pattern.compile("aeron:udp\\?endpoint=([^|?\\s\\p{Cntrl}]{1,255}):(\\d{1,5})");

    /// Most characters of an invalid offer in logs and statistics.
    private static final int MAX_SHOWN_CHARS = 300;

    private static final Pattern ANY_HOST = Pattern.compile("0\\.0\\.0\\.0|\\[[0:]*]");

    private final TcpConnector tcp;
    private final String host;
    private @Nullable SelectedTransport selected;
    private long chosenAt;

    /// The chosen transport.
    ///
    /// @param reason for people
    record SelectedTransport(Connector connector, String reason) {}

    TransportSelector(String host, int port) {
        tcp = new TcpConnector(host, port);
        this.host = host;
    }

    /// Returns the transport to use now. Measures again if the last choice is too old.
    ///
    /// @throws IOException when the server cannot be reached over TCP
    /// @throws RpcException when the server rejects this client
    synchronized SelectedTransport select(RemoteOptions options, CallTimeouts callTimeouts)
            throws IOException, RpcException {
        SelectedTransport chosen = selected;
        if (chosen != null && System.nanoTime() - chosenAt < VALID_NANOS) {
            return chosen;
        }
        chosen = measure(new ProbeConnections(options, callTimeouts));
        LOG.log(System.Logger.Level.INFO, this + " goes by " + chosen.reason);
        selected = chosen;
        chosenAt = System.nanoTime();
        return chosen;
    }

    /// Forgets the choice, as the chosen transport has failed.
    synchronized void invalidate() {
        selected = null;
    }

    private SelectedTransport measure(ProbeConnections probes) throws IOException, RpcException {
        DataConnection line = probes.connect(tcp, probes.options.requestTimeoutNanos());
        try {
            String offered = requestOffers(line, probes.options.requestTimeoutNanos());
            if (offered.isEmpty()) {
                return selectTcp("the server offers no other way");
            }
            Matcher udp = UDP.matcher(offered);
            if (!udp.matches()) {
                return selectTcp(
                        "the server offers \"" + truncate(offered) + "\"; allowed: aeron:udp?endpoint=host:port");
            }
            String at = ANY_HOST.matcher(udp.group(1)).matches() ? bracketed(host) : udp.group(1);
            return compare(probes, line, "aeron:udp?endpoint=" + at + ":" + udp.group(2));
        } finally {
            line.close();
        }
    }

    private static String truncate(String offered) {
        return offered.substring(0, Math.min(MAX_SHOWN_CHARS, offered.length())).replaceAll("\\p{Cntrl}", "?");
    }

    private static String bracketed(String host) {
        return host.contains(":") ? "[" + host + "]" : host;
    }

    private SelectedTransport selectTcp(String why) {
        return new SelectedTransport(tcp, "TCP: " + why);
    }

    private static String requestOffers(DataConnection line, long patienceNanos) throws RpcException {
        DataConnection.SingleReply<String> offers = new DataConnection.SingleReply<>(body -> body.text("aeron"));
        try {
            line.call(MessageType.OFFERS, new BodyWriter(), patienceNanos, offers);
            return offers.value();
        } catch (RpcException older) {
            if (!older.hasReply()) {
                throw older;
            }
            return "";
        }
    }

    private SelectedTransport compare(ProbeConnections probes, DataConnection line, String address) {
        DataConnection other;
        Connector aeron;
        try {
            aeron = new AeronConnector(address);
            other = probes.connect(aeron, Math.min(probes.options.requestTimeoutNanos(), MAX_CONNECT_NANOS));
        } catch (IOException | RpcException | IllegalStateException | IllegalArgumentException no) {
            return selectTcp("no way by " + address + ": " + no.getMessage());
        }
        try {
            double byTcp = BandwidthProbe.bytesPerSecond(line);
            double byAeron = BandwidthProbe.bytesPerSecond(other);
            String measured =
                    String.format(Locale.ROOT, "TCP %.0f MB/s, Aeron %.0f MB/s", byTcp / MEGABYTE, byAeron / MEGABYTE);
            return byAeron > byTcp ? new SelectedTransport(aeron, address + ": " + measured) : selectTcp(measured);
        } finally {
            other.close();
        }
    }

    /// Opens connections to be measured. Each has a session of its own, which ends with it.
    private record ProbeConnections(RemoteOptions options, CallTimeouts callTimeouts) {

        DataConnection connect(Connector connector, long patienceNanos) throws IOException, RpcException {
            ClientHandshake.HandshakeSettings settings =
                    new ClientHandshake.HandshakeSettings(options, callTimeouts, null, patienceNanos);
            return new DataConnection(ClientHandshake.open(connector, settings), callTimeouts, new ReleaseQueue());
        }
    }

    @Override
    public String toString() {
        return "auto:" + tcp;
    }

    /// Measures the bandwidth of one connection: sends bytes and gets as many back, repeatedly for a short time.
    static final class BandwidthProbe implements DataConnection.ReplyHandler {

        /// Time limit for measuring one connection. The probe does not wait for later replies. [CallTimeouts] may
        /// notice the limit 20 ms late.
        static final long MAX_PROBE_NANOS = TimeUnit.MILLISECONDS.toNanos(50);

        /// New rounds start only within this time. The last one may take the rest of the limit.
        private static final long START_WINDOW_NANOS = TimeUnit.MILLISECONDS.toNanos(35);

        private static final int MAX_ROUNDS = 12;

        /// Bytes of the first round: few, so that a slow connection completes at least one.
        private static final int FIRST_BYTES = 16 << 10;

        private static final int BYTES = 256 << 10;

        private static final double NANOS = 1e9;

        private boolean replied;
        private int left;

        private BandwidthProbe(int bytes) {
            left = bytes;
        }

        /// Returns the bytes a second of the best round that ended in time, both directions together, or 0 if none
        /// did. The connection may be broken afterwards.
        static double bytesPerSecond(DataConnection line) {
            long start = System.nanoTime();
            double best = 0;
            try (Arena arena = Arena.ofShared()) {
                MemorySegment bytes = arena.allocate(BYTES);
                for (int round = 0; round < MAX_ROUNDS; round++) {
                    int size = round == 0 ? FIRST_BYTES : BYTES;
                    long begun = System.nanoTime();
                    long spent = begun - start;
                    if (spent > START_WINDOW_NANOS) {
                        break;
                    }
                    Payload payload = Payload.of(bytes.asSlice(0, size));
                    BodyWriter body = new BodyWriter().i32(size).i32(0);
                    line.call(MessageType.PROBE, body, payload, MAX_PROBE_NANOS - spent, new BandwidthProbe(size));
                    best = Math.max(best, 2.0 * size / Math.max(1, System.nanoTime() - begun) * NANOS);
                }
            } catch (RpcException tooSlow) {
                return best;
            }
            return best;
        }

        @Override
        public void onReply(BodyReader body) throws ProtocolException {
            body.count("count");
            replied = true;
        }

        @Override
        public PayloadSink onData(FrameHeader header, BodyReader body) throws ProtocolException {
            int bytes = header.payloadBytes();
            if (bytes > left) {
                throw new ProtocolException(
                        "a probe is answered by %s bytes; allowed: up to %s".formatted(bytes, left));
            }
            return PayloadSink.discard(bytes, sum -> left -= bytes);
        }

        @Override
        public boolean isComplete() {
            return replied && left == 0;
        }
    }
}
