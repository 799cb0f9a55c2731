package io.kvcache.transport.aeron;

import io.aeron.Aeron;
import io.aeron.ExclusivePublication;
import io.aeron.Subscription;
import io.aeron.logbuffer.BufferClaim;
import io.kvcache.transport.aeron.AeronConnection.StreamPair;
import io.kvcache.transport.net.Connector;
import io.kvcache.transport.net.DisconnectReason;
import io.kvcache.transport.net.FrameConnection;
import io.kvcache.transport.net.FrameHandler;
import io.kvcache.transport.wire.ProtocolException;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.UnknownHostException;
import java.nio.ByteOrder;
import java.nio.channels.DatagramChannel;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;
import org.agrona.DirectBuffer;
import org.agrona.MutableDirectBuffer;
import org.jspecify.annotations.Nullable;

/// Opens connections over Aeron to one address, `aeron:ipc?dir=FOLDER` or `aeron:udp?endpoint=host:port`:
/// over IPC through the driver of the server, over UDP through one of its own, which all its connections
/// share, or in both cases through one that runs by itself in `driver=DIRECTORY`.
///
/// **Threads.** Any.
@SuppressWarnings({"exports", "missing-explicit-ctor"}) // For the client alone.
public final class AeronConnector implements Connector {

    /// Prefix of addresses.
    public static final String SCHEME = "aeron:";

    private static final long LOOK_NANOS = TimeUnit.MICROSECONDS.toNanos(200);

    /// Streams of one client have the numbers from here on; the driver gives them out.
    private static final int FIRST_STREAM = 1 << 30;

    private final AeronAddress address;
    private @Nullable AeronDriver current;

    /// @throws IllegalStateException when this JVM was started without the flag that Agrona needs
    /// @throws IllegalArgumentException when the text is not an address of Aeron
    public AeronConnector(String address) {
        this.address = AeronAddress.parse(address);
        this.address.requireAgrona();
    }

    /// Found by `ServiceLoader`. Loads nothing of Aeron by itself.
    public static final class Provider implements Connector.Provider {

        @Override
        public Connector connector(String address) {
            return new AeronConnector(address);
        }
    }

    /// Connects on a thread of its own: an interrupt of a thread that waits for Aeron ends the client of all
    /// connections.
    @Override
    public FrameConnection connect(FrameHandler handler, long timeoutNanos) throws IOException {
        long end = System.nanoTime() + timeoutNanos;
        CompletableFuture<FrameConnection> opened = new CompletableFuture<>();
        Thread.ofPlatform().daemon().name("kvcache-aeron-connect").start(() -> {
            try {
                opened.complete(connect(handler, new ConnectAttempt(currentDriver(), end)));
            } catch (IOException | RuntimeException | Error failed) {
                opened.completeExceptionally(failed);
            }
        });
        try {
            return opened.get(); // in time, as the attempt has an end
        } catch (ExecutionException failed) {
            throw failed.getCause() instanceof IOException known
                    ? known
                    : new IOException("Aeron cannot connect: " + failed.getCause(), failed.getCause());
        } catch (InterruptedException stopped) {
            var _ = opened.thenAccept(late -> late.close(DisconnectReason.SHUTDOWN));
            Thread.currentThread().interrupt();
            throw new InterruptedIOException("interrupted while connecting to " + address.text());
        }
    }

    private FrameConnection connect(FrameHandler handler, ConnectAttempt connectAttempt) throws IOException {
        try {
            return connectAttempt.open(handler);
        } catch (RuntimeException failed) {
            throw new IOException("Aeron cannot connect: " + failed.getMessage(), failed);
        } finally {
            if (!connectAttempt.done) {
                discardDriver(connectAttempt.media);
                connectAttempt.closeStreams();
            }
        }
    }

    private synchronized AeronDriver currentDriver() throws IOException {
        AeronDriver media = current;
        if (media == null || !media.retain()) {
            media = AeronDriver.forClient(address);
            current = media;
        }
        return media;
    }

    /// It may be what has failed: the next connection opens another.
    private synchronized void discardDriver(AeronDriver media) {
        if (current == media) {
            current = null;
        }
    }

    @Override
    public String toString() {
        return address.text();
    }

    /// A connection on its way.
    private final class ConnectAttempt {

        private final AeronDriver media;
        private final long end;
        private @Nullable Subscription in;
        private @Nullable ExclusivePublication out;
        private boolean done;

        private ConnectAttempt(AeronDriver media, long end) {
            this.media = media;
            this.end = end;
        }

        private FrameConnection open(FrameHandler handler) throws IOException {
            Aeron aeron = media.aeron();
            int stream = FIRST_STREAM | (int) (aeron.nextCorrelationId() & (FIRST_STREAM - 1));
            Subscription subscription =
                    aeron.addSubscription(address.channel(address.isIpc() ? "" : localEndpoint()), stream);
            in = subscription;
            ExclusivePublication publication =
                    aeron.addExclusivePublication(address.channel(address.endpoint()), ConnectMessage.STREAM);
            out = publication;
            await(publication::isConnected, "no server replied");
            int port = address.isIpc() ? 0 : port(subscription);
            BufferClaim claim = new BufferClaim();
            await(() -> publication.tryClaim(ConnectMessage.BYTES, claim) > 0, "the server took no bytes");
            new ConnectMessage(stream, port).write(claim.buffer(), claim.offset());
            claim.commit();
            await(() -> subscription.imageCount() > 0, "the server did not connect back");
            StreamPair streamPair = new StreamPair(media, subscription.imageAtIndex(0), publication, subscription);
            FrameConnection frameConnection =
                    new AeronConnection(streamPair, address.dedicated(), frameSink -> handler);
            done = true;
            return frameConnection;
        }

        /// Any free port of the address that packets to the server leave from.
        private String localEndpoint() throws IOException {
            InetSocketAddress server = address.socketAddress();
            if (server.isUnresolved()) {
                throw new UnknownHostException(server.getHostString() + ": no such host");
            }
            try (DatagramChannel channel = DatagramChannel.open()) {
                InetAddress from = ((InetSocketAddress) channel.connect(server).getLocalAddress()).getAddress();
                String name = from.getHostAddress();
                return (name.contains(":") ? "[" + name + "]" : name) + ":0";
            }
        }

        private int port(Subscription subscription) throws IOException {
            Supplier<@Nullable String> resolved = subscription::resolvedEndpoint;
            await(() -> resolved.get() != null, "no port is free");
            String endpoint = String.valueOf(resolved.get());
            return Integer.parseInt(endpoint.substring(endpoint.lastIndexOf(':') + 1));
        }

        private void await(BooleanSupplier condition, String defaultValue) throws IOException {
            while (!condition.getAsBoolean()) {
                if (System.nanoTime() - end > 0) {
                    throw new IOException(address.text() + ": " + defaultValue + " in time");
                }
                LockSupport.parkNanos(LOOK_NANOS);
            }
        }

        private void closeStreams() {
            try {
                if (in != null) {
                    in.close();
                }
                if (out != null) {
                    out.close();
                }
            } finally {
                media.release();
            }
        }
    }

    /// The first message of a connection: where its answers go.
    ///
    /// ```
    /// 0 u32 magic "KVCA"     4 u32 version     8 i32 stream     12 u32 port
    /// ```
    ///
    /// Not the host: answers go where the client's bytes come from, so that a client cannot have them sent to
    /// others.
    ///
    /// @param stream that the client listens to
    /// @param port that it listens at, 1 to 65,535; 0 for IPC
    record ConnectMessage(int stream, int port) {

        /// Stream on which clients connect.
        static final int STREAM = 7420;

        static final int BYTES = 16;

        private static final int MAGIC = 'K' | 'V' << 8 | 'C' << 16 | 'A' << 24;
        private static final int VERSION = 1;
        private static final int MAX_PORT = 65_535;

        /// @param udp whether a port is needed
        static ConnectMessage read(DirectBuffer from, int offset, int bytes, boolean udp) throws ProtocolException {
            if (bytes < BYTES || from.getInt(offset, ByteOrder.LITTLE_ENDIAN) != MAGIC) {
                throw new ProtocolException(
                        "a first message of " + bytes + " bytes; allowed: " + BYTES + ", beginning \"KVCA\"");
            }
            int version = from.getInt(offset + 4, ByteOrder.LITTLE_ENDIAN);
            if (version != VERSION) {
                throw new ProtocolException("version = " + version + "; allowed: " + VERSION);
            }
            int stream = from.getInt(offset + 8, ByteOrder.LITTLE_ENDIAN);
            int port = from.getInt(offset + 12, ByteOrder.LITTLE_ENDIAN);
            boolean fits = udp ? port > 0 && port <= MAX_PORT : port == 0;
            if (stream == STREAM || !fits) {
                throw new ProtocolException("stream = %s, port = %s; allowed: any other stream than %s, and %s"
                        .formatted(stream, port, STREAM, udp ? "1 to 65535" : "0"));
            }
            return new ConnectMessage(stream, port);
        }

        void write(MutableDirectBuffer to, int offset) {
            to.putInt(offset, MAGIC, ByteOrder.LITTLE_ENDIAN);
            to.putInt(offset + 4, VERSION, ByteOrder.LITTLE_ENDIAN);
            to.putInt(offset + 8, stream, ByteOrder.LITTLE_ENDIAN);
            to.putInt(offset + 12, port, ByteOrder.LITTLE_ENDIAN);
        }
    }
}
