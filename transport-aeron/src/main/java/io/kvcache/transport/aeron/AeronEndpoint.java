package io.kvcache.transport.aeron;

import io.aeron.Aeron;
import io.aeron.ExclusivePublication;
import io.aeron.Image;
import io.aeron.Subscription;
import io.aeron.logbuffer.ControlledFragmentHandler;
import io.aeron.logbuffer.Header;
import io.kvcache.core.KvCache;
import io.kvcache.core.identity.Namespace;
import io.kvcache.transport.aeron.AeronConnection.StreamPair;
import io.kvcache.transport.aeron.AeronConnector.ConnectMessage;
import io.kvcache.transport.endpoint.Endpoint;
import io.kvcache.transport.endpoint.EndpointConnections;
import io.kvcache.transport.endpoint.EndpointOptions;
import io.kvcache.transport.endpoint.EndpointStats;
import io.kvcache.transport.wire.ProtocolException;
import java.io.IOException;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import org.agrona.DirectBuffer;
import org.jspecify.annotations.Nullable;

/// Serves a cache over Aeron: one platform thread a connection, and one that watches the clock.
///
/// ```java
/// try (var endpoint = AeronEndpoint.open(cache, "aeron:ipc?dir=/dev/shm/cache", EndpointOptions.DEFAULTS)) {
///     // RemoteKvCache.connect("aeron:ipc?dir=/dev/shm/cache") in other processes of this user
/// }
/// ```
///
/// Addresses are `aeron:ipc` and `aeron:udp?endpoint=host:port`, with these after `?` and `|`:
///
/// - `dir` a folder of mode 0700 for an embedded driver, made when missing; by default one in `/dev/shm` that is
///   named after the user for IPC, and one without a name for UDP
/// - `driver` the directory of a media driver that runs by itself, instead; one server of IPC at each
/// - `term-length` bytes of a term, of which a connection has six; 1 MiB unless given
/// - `mtu` bytes of a UDP message; 8,192 unless given
/// - `idle` `shared` or `dedicated`: whether waiting threads give their processors up at once
///
/// **Pauses.** A process that is stopped for some seconds, or whose machine is, finds its client of the driver
/// ended when it goes on. The endpoint then opens another one at the same address; clients connect again.
///
/// **Ownership.** The caller keeps the cache, and closes the endpoint first.
public final class AeronEndpoint implements AutoCloseable {

    private static final System.Logger LOG = System.getLogger(AeronEndpoint.class.getName());

    /// How late it may be noticed that the media have ended.
    private static final long LOOK_NANOS = TimeUnit.MILLISECONDS.toNanos(200);

    private final AeronAddress address;
    private final Endpoint endpoint;
    private final EndpointOptions options;
    /// Host and port that it listens at, or nothing over IPC.
    private final String place;

    private final String clients;
    private final EndpointConnections lines;
    private final AtomicInteger arriving = new AtomicInteger();

    /// Driver to listen with; null between the end of one and the start of the next.
    private volatile @Nullable AeronDriver media;

    private AeronEndpoint(AeronAddress address, Endpoint endpoint, EndpointOptions options, AeronDriver media)
            throws IOException {
        this.address = address;
        this.endpoint = endpoint;
        this.options = options;
        this.media = media;
        lines = new EndpointConnections(endpoint, options, name -> "kvcache-aeron-" + name);
        Subscription arrivals = listen(media, address.endpoint());
        place = address.isIpc() ? "" : resolveEndpoint(arrivals);
        clients = address.clientAddress(place);
        lines.startClock();
        lines.start("media", this::superviseDriver);
    }

    private Subscription listen(AeronDriver by, String at) {
        return by.aeron()
                .addSubscription(
                        address.channel(at), ConnectMessage.STREAM, image -> onImageAvailable(by, image), image -> {});
    }

    private void superviseDriver() {
        while (lines.isOpen()) {
            LockSupport.parkNanos(LOOK_NANOS);
            AeronDriver now = media;
            if (now != null && now.isClosed()) {
                LOG.log(System.Logger.Level.WARNING, "Aeron ended at " + clients + " and will be reopened");
                media = null;
                now.release();
            } else if (now == null && lines.isOpen()) {
                media = reopenDriver();
            }
        }
    }

    /// Others, once the last connection has let the old ones go, with the folder of their driver; null until
    /// then.
    private @Nullable AeronDriver reopenDriver() {
        AeronDriver opened = null;
        boolean good = false;
        try {
            opened = AeronDriver.forServer(address);
            listen(opened, place);
            good = true;
            return opened;
        } catch (IOException | RuntimeException notYet) {
            LOG.log(System.Logger.Level.DEBUG, "Aeron cannot be opened at " + clients + " yet", notYet);
            return null;
        } finally {
            if (opened != null && !good) {
                opened.release();
            }
        }
    }

    /// Begins to serve.
    ///
    /// @param address see above; port 0 for any free one
    /// @throws IllegalArgumentException when the text is not an address of Aeron
    /// @throws IllegalStateException when this JVM was started without the flag that Agrona needs
    /// @throws IOException when no media driver runs and none can be started, or the port is taken
    public static AeronEndpoint open(KvCache cache, String address, EndpointOptions options) throws IOException {
        return open(cache, AeronAddress.parse(address), options);
    }

    /// Begins to serve.
    ///
    /// @throws IllegalStateException when this JVM was started without the flag that Agrona needs
    /// @throws IOException when no media driver runs and none can be started, or the port is taken
    public static AeronEndpoint open(KvCache cache, AeronAddress address, EndpointOptions options) throws IOException {
        address.requireAgrona();
        AeronDriver media = AeronDriver.forServer(address);
        boolean good = false;
        try {
            Endpoint endpoint = new Endpoint(cache, options, System::nanoTime);
            AeronEndpoint opened = new AeronEndpoint(address, endpoint, options, media);
            good = true;
            return opened;
        } catch (RuntimeException failed) {
            throw new IOException("cannot serve at " + address.text() + ": " + failed.getMessage(), failed);
        } finally {
            if (!good) {
                media.release();
            }
        }
    }

    private String resolveEndpoint(Subscription arrivals) throws IOException {
        long end = System.nanoTime() + options.timeouts().handshake().toNanos();
        String endpoint = arrivals.resolvedEndpoint();
        while (endpoint == null) {
            if (System.nanoTime() - end > 0) {
                throw new IOException(address.text() + ": the driver did not open a port in time");
            }
            LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(1));
            endpoint = arrivals.resolvedEndpoint();
        }
        return endpoint;
    }

    /// Returns the address for clients.
    public String address() {
        return clients;
    }

    /// Returns counters and what is open now.
    public EndpointStats stats() {
        return endpoint.stats();
    }

    /// Adds the programs and versions of the clients that use each namespace now.
    public void addClients(Map<Namespace, Set<String>> byNamespace) {
        endpoint.addClients(byNamespace);
    }

    /// A client's stream is there; said by a thread that may not wait.
    private void onImageAvailable(AeronDriver by, Image image) {
        PendingConnection pendingConnection = new PendingConnection(by, address, image);
        boolean room = arriving.incrementAndGet() <= options.limits().connections();
        if (!lines.isOpen() || !room || !by.retain()) {
            arriving.decrementAndGet();
            return;
        }
        boolean begun = false;
        try {
            lines.start("connection", () -> serve(by, pendingConnection));
            begun = true;
        } finally {
            if (!begun) {
                arriving.decrementAndGet();
                by.release();
            }
        }
    }

    private void serve(AeronDriver by, PendingConnection pendingConnection) {
        StreamPair streamPair = null;
        try {
            streamPair = accept(pendingConnection);
        } catch (RuntimeException failed) {
            LOG.log(System.Logger.Level.WARNING, "cannot answer a connection at " + clients, failed);
        } finally {
            arriving.decrementAndGet();
            if (streamPair == null) {
                by.release();
            }
        }
        if (streamPair != null) {
            pump(streamPair);
        }
    }

    private @Nullable StreamPair accept(PendingConnection pendingConnection) {
        long end = System.nanoTime() + options.timeouts().handshake().toNanos();
        StreamPair streamPair = null;
        try {
            streamPair = pendingConnection.accept(() -> lines.isOpen() && System.nanoTime() - end < 0);
            if (streamPair == null) {
                pendingConnection.reject("no connection came of it");
            }
        } catch (ProtocolException malformed) {
            LOG.log(System.Logger.Level.DEBUG, "a client does not speak the protocol", malformed);
            pendingConnection.reject(String.valueOf(malformed.getMessage()));
        }
        return streamPair;
    }

    private void pump(StreamPair streamPair) {
        AeronConnection line = createConnection(streamPair);
        lines.add(line);
        lines.pump(line);
    }

    private AeronConnection createConnection(StreamPair streamPair) {
        boolean good = false;
        try {
            AeronConnection line = new AeronConnection(streamPair, address.dedicated(), endpoint::onConnected);
            good = true;
            return line;
        } finally {
            if (!good) {
                streamPair.close();
            }
        }
    }

    /// Begins nothing new any more; see [Endpoint#drain].
    public void drain() {
        endpoint.drain();
    }

    /// Returns whether all work that had begun has ended. Poll it after [#drain].
    public boolean isDrained() {
        return lines.isDrained();
    }

    /// Ends all connections, and waits for their threads, five seconds at most; what their clients held goes
    /// back to the cache. The driver's files are gone afterwards.
    @Override
    public void close() {
        if (lines.isOpen()) {
            lines.close();
            AeronDriver last = media;
            if (last != null) {
                last.release();
            }
        }
    }

    /// A client's stream that has come to a server, until there is one back.
    private static final class PendingConnection {

        private final AeronDriver media;
        private final AeronAddress address;
        private final Image in;
        private @Nullable ConnectMessage connectMessage;
        private @Nullable ProtocolException wrong;

        PendingConnection(AeronDriver media, AeronAddress address, Image in) {
            this.media = media;
            this.address = address;
            this.in = in;
        }

        /// Waits for the first message, and opens the stream back.
        ///
        /// @param wanted whether there is still time
        /// @return null when nothing came of it; the media are as retained as they were
        /// @throws ProtocolException when the first message is not what it should be
        @Nullable
        StreamPair accept(BooleanSupplier wanted) throws ProtocolException {
            AdaptiveIdleStrategy adaptiveIdleStrategy = AdaptiveIdleStrategy.forConnection(address.dedicated());
            while (connectMessage == null && wrong == null) {
                if (in.controlledPoll(this::onFirstFragment, 1) == 0) {
                    if (!wanted.getAsBoolean() || in.isClosed() || in.isEndOfStream()) {
                        return null;
                    }
                    adaptiveIdleStrategy.idle();
                }
            }
            if (wrong != null) {
                throw wrong;
            }
            return connectMessage == null ? null : openReplyStream(connectMessage, wanted);
        }

        private ControlledFragmentHandler.Action onFirstFragment(
                DirectBuffer from, int offset, int bytes, Header header) {
            try {
                connectMessage = ConnectMessage.read(from, offset, bytes, !address.isIpc());
            } catch (ProtocolException malformed) {
                wrong = malformed;
            }
            return ControlledFragmentHandler.Action.COMMIT;
        }

        private @Nullable StreamPair openReplyStream(ConnectMessage to, BooleanSupplier wanted) {
            Aeron aeron = media.aeron();
            String back = address.channel(address.isIpc() ? "" : source() + ":" + to.port());
            ExclusivePublication out = aeron.addExclusivePublication(back, to.stream());
            AdaptiveIdleStrategy adaptiveIdleStrategy = AdaptiveIdleStrategy.forConnection(address.dedicated());
            while (!out.isConnected()) {
                if (!wanted.getAsBoolean() || in.isClosed()) {
                    out.close();
                    return null;
                }
                adaptiveIdleStrategy.idle();
            }
            return new StreamPair(media, in, out, null);
        }

        /// The host that the stream comes from.
        private String source() {
            String from = in.sourceIdentity();
            return from.substring(0, from.lastIndexOf(':'));
        }

        void reject(String why) {
            if (!in.isClosed()) {
                in.reject(why);
            }
        }
    }
}
