package io.kvcache.server.net;

import io.kvcache.core.spi.Clock;
import io.kvcache.server.net.ConnectionRegistry.RequestTimer;
import io.kvcache.server.net.Protocol.ProtocolKind;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelFutureListener;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelOutboundBuffer;
import io.netty.channel.socket.DuplexChannel;
import io.netty.handler.ssl.SslHandler;
import io.netty.util.NetUtil;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.net.Inet6Address;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.util.HexFormat;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// One client, as far as no protocol matters: what it is doing, and how it ends.
///
/// **Threads.** The protocol's calls come from the connection's loop; [#enforceLimits] and [#drain] from any.
public final class Connection {

    private static final Logger LOG = System.getLogger(Connection.class.getName());

    /// Bytes that count as progress of a first request: less than a socket buffer, more than a slow drip.
    private static final long PROGRESS_STEP_BYTES = 32 << 10;

    /// Long enough for a client to read a short reply on any network.
    private static final long LINGER_MILLIS = 2000;

    /// A client that was heard this long ago may be about to go on.
    private static final long MIN_IDLE_NANOS = TimeUnit.SECONDS.toNanos(1);

    private final long id;
    private final Channel channel;
    private final Clock clock;
    private final RequestTimer timer;
    private final SlowRequestLog slowRequestLog;
    private final long slowNanos;
    private final long sinceNanos;
    private volatile @Nullable ProtocolKind protocol;
    private volatile @Nullable CloseReason reason;
    private volatile ClientInfo clientInfo = ClientInfo.NONE;
    private volatile Consumer<String> abortNotifier = _ -> closeAfterReplies(CloseReason.STALLED_REQUEST);
    private volatile boolean inRequest;
    private volatile boolean waiting;
    private volatile boolean draining;
    private final AtomicLong bytesRead = new AtomicLong();
    private final AtomicLong requests = new AtomicLong();
    private volatile long lastReadNanos;
    private long stepNanos;
    private long stepBytes;
    private long stepRequests;
    private long requestStartNanos;
    private long requestEndNanos;
    private String verb = "";

    /// Time that the server kept the request waiting; measured while slow requests are logged.
    private long waitedNanos;

    private long waitingNanos;
    private long bytesBefore;

    /// Not volatile, as it changes with each request: others see it a little later.
    private String lastRequest = "";

    private long stuckNanos;
    private long stuckBytes;
    private long holdingNanos;
    private long holdingRequests;

    private final AcceptInfo acceptInfo;
    private volatile boolean authenticated;

    /// How it came.
    ///
    /// @param address that it counts for
    /// @param overLimit whether it came when all places were taken, and may ask for the server's health alone
    /// @param authenticated whether it need not authenticate
    record AcceptInfo(
            ConnectionRegistry.ListenerSlots listenerSlots, String address, boolean overLimit, boolean authenticated) {}

    Connection(long id, Channel channel, ConnectionRegistry owner, AcceptInfo acceptInfo) {
        this.acceptInfo = acceptInfo;
        authenticated = acceptInfo.authenticated;
        clock = owner.clock();
        timer = owner.timer();
        slowRequestLog = owner.slowRequestLog();
        slowNanos = slowRequestLog.thresholdNanos();
        long now = clock.nanos();
        this.id = id;
        this.channel = channel;
        sinceNanos = now;
        lastReadNanos = now;
        stepNanos = now;
        requestEndNanos = now;
        stuckNanos = now;
        holdingNanos = now;
    }

    /// Counts connections from 1.
    public long id() {
        return id;
    }

    /// Returns the client's address with its port; empty where there is none.
    public String address() {
        return channel.remoteAddress() instanceof InetSocketAddress from ? NetUtil.toSocketAddressString(from) : "";
    }

    public Channel channel() {
        return channel;
    }

    public @Nullable ProtocolKind protocol() {
        return protocol;
    }

    void protocol(ProtocolKind told) {
        protocol = told;
    }

    /// When it was accepted.
    public long acceptedNanos() {
        return sinceNanos;
    }

    /// Returns the client's own description.
    public ClientInfo clientInfo() {
        return clientInfo;
    }

    AcceptInfo acceptInfo() {
        return acceptInfo;
    }

    /// Returns whether it connected above the connection limit. Then it may only ask for the server's health.
    public boolean isOverLimit() {
        return acceptInfo.overLimit;
    }

    /// The client has authenticated.
    public void markAuthenticated() {
        if (!authenticated) {
            authenticated = true;
        }
    }

    /// Returns whether it can be closed in favour of a new one: it is idle, or has sent no request in the time for
    /// one.
    boolean isEvictable(NetLimits limits, long now) {
        if (waiting || now - lastReadNanos < MIN_IDLE_NANOS) {
            return requests.get() == 0
                    && !waiting
                    && bytesRead.get() < PROGRESS_STEP_BYTES
                    && now - sinceNanos >= limits.authTimeout().toNanos();
        }
        return unreadBytes() == 0 && (!inRequest || requests.get() == 0);
    }

    /// The client has said something of itself.
    public void clientInfo(ClientInfo told) {
        clientInfo = told;
    }

    /// The client acts as a tenant from now on.
    public void tenant(String name) {
        ClientInfo known = clientInfo;
        if (!known.tenant().equals(name)) {
            clientInfo = known.withTenant(name);
        }
    }

    /// How the connection ends when its request is cut: a protocol that can say why does so before.
    ///
    /// @param words run on the connection's loop with the reason
    public void onAbort(Consumer<String> words) {
        abortNotifier = words;
    }

    /// When something came last.
    public long lastReadNanos() {
        return lastReadNanos;
    }

    /// Returns the last request's label, from [#labelRequest]. Another thread may see it a little later.
    public String lastRequest() {
        return lastRequest;
    }

    /// Returns whether a request has begun and is not answered. Another thread may see it a little later.
    public boolean isInRequest() {
        return inRequest;
    }

    public long requestCount() {
        return requests.get();
    }

    private void onRead(int bytes) {
        bytesRead.setRelease(bytesRead.getPlain() + bytes); // only the connection's loop writes
        lastReadNanos = clock.nanos();
    }

    /// The first bytes of a request are here, the last are not.
    public void beginRequest() {
        if (!inRequest) {
            inRequest = true;
            requestStartNanos = clock.nanos();
        }
    }

    /// The same of a request that came together with the one before and had to wait for its end:
    /// asking the clock takes as long as many a small request.
    public void beginPipelinedRequest() {
        if (!inRequest) {
            inRequest = true;
            requestStartNanos = requestEndNanos;
        }
    }

    /// It is known what the request asks for.
    ///
    /// @param what one of few words; empty when it is not to be timed
    public void labelRequest(String what) {
        verb = what;
        lastRequest = what.isEmpty() ? lastRequest : what;
    }

    /// A request is answered.
    ///
    /// @return whether the connection is to be closed now, by [#closeAfterReplies]
    public boolean endRequest() {
        requests.setRelease(requests.getPlain() + 1); // only the connection's loop writes
        inRequest = false;
        ProtocolKind spoken = protocol;
        if (!verb.isEmpty() && spoken != null) {
            requestEndNanos = clock.nanos();
            long took = requestEndNanos - requestStartNanos;
            timer.recordRequest(spoken, verb, took);
            if (took >= slowNanos) {
                logSlow(spoken, took);
            }
            verb = "";
        } else {
            requestEndNanos = requestStartNanos; // an empty one takes no time, but the one before may be long over
        }
        if (logsSlow()) {
            waitedNanos = 0;
            bytesBefore = bytesRead.getPlain();
        }
        return draining;
    }

    private boolean logsSlow() {
        return slowNanos != SlowRequestLog.NEVER;
    }

    private void logSlow(ProtocolKind spoken, long took) {
        String what = spoken.name().toLowerCase(Locale.ROOT) + " " + verb;
        slowRequestLog.log(this, what, took, waitedNanos, bytesRead.getPlain() - bytesBefore);
    }

    /// Notes whether the server, not the client, keeps a request from going on.
    public void setServerWaiting(boolean now) {
        if (now != waiting && logsSlow()) {
            long nanos = clock.nanos();
            waitedNanos += now ? 0 : nanos - waitingNanos;
            waitingNanos = nanos;
        }
        waiting = now;
    }

    /// Ends the connection at once.
    public void close(CloseReason why) {
        setReasonOnce(why);
        channel.close();
    }

    /// Ends the connection once what was written is sent.
    public void closeAfterReplies(CloseReason why) {
        setReasonOnce(why);
        channel.config().setAutoRead(false);
        channel.writeAndFlush(Unpooled.EMPTY_BUFFER).addListener(ChannelFutureListener.CLOSE);
    }

    /// Ends the connection once what was written is sent and the client has had a moment to read it, or has closed its
    /// side. What the client still sends is read meanwhile, and its session throws it away
    /// ([SessionHandler#linger]): closing over unread bytes resets the connection, and the reply would be lost.
    public void closeAfterLingering(CloseReason why) {
        setReasonOnce(why);
        channel.config().setAutoRead(true);
        channel.writeAndFlush(Unpooled.EMPTY_BUFFER).addListener(_ -> {
            SslHandler tls = channel.pipeline().get(SslHandler.class);
            if (tls != null) {
                tls.closeOutbound();
            } else if (channel instanceof DuplexChannel duplex) {
                duplex.shutdownOutput();
            } else {
                channel.close();
            }
            channel.eventLoop().schedule(() -> channel.close(), LINGER_MILLIS, TimeUnit.MILLISECONDS);
        });
    }

    private void setReasonOnce(CloseReason why) {
        if (reason == null) {
            reason = why;
        }
    }

    /// Why it ended, or the client's reason when the server had none.
    CloseReason reason() {
        CloseReason known = reason;
        if (known != null) {
            return known;
        }
        return inRequest ? CloseReason.CLIENT_MID_REQUEST : CloseReason.CLIENT;
    }

    /// Ends the connection when its request, if there is one, is answered.
    void drain() {
        draining = true;
        channel.eventLoop().execute(() -> {
            if (!inRequest) {
                closeAfterReplies(CloseReason.DRAIN);
            }
        });
    }

    /// Closes the connection when it is idle, stalls, or does not read. Called by one thread.
    ///
    /// @param pressed whether reads of other clients are refused because too many bytes are being sent. Then a
    ///     client that reads a little now and then may not hold its replies for ever either
    void enforceLimits(NetLimits limits, long now, boolean pressed) {
        checkReading(limits, now, pressed);
        if ((!authenticated || acceptInfo.overLimit)
                && !waiting
                && now - sinceNanos >= limits.authTimeout().toNanos()) {
            close(acceptInfo.overLimit ? CloseReason.TOO_MANY : CloseReason.UNAUTHENTICATED);
            return;
        }
        boolean blocked = !channel.isWritable();
        if (!inRequest || waiting || blocked) {
            beginStep(now);
            if (!inRequest && !blocked && isIdle(limits, now)) {
                close(CloseReason.IDLE);
            }
        } else if (requests.get() != stepRequests) {
            beginStep(now);
        } else if (now - stepNanos >= limits.stallTimeout().toNanos()) {
            if (bytesRead.get() - stepBytes >= limits.minBytesPerStall()) {
                beginStep(now);
            } else if (reason == null) {
                abort(limits);
            }
        }
    }

    /// A window of time has gone in which the request brought too little.
    private void abort(NetLimits limits) {
        String text = "the request came slower than " + (NetLimits.MIN_RATE_BYTES >> 10) + " KiB/s for "
                + limits.stallTimeout().toSeconds() + " s (limits.stall); the connection is closed";
        setReasonOnce(CloseReason.STALLED_REQUEST);
        Runnable end = () -> abortNotifier.accept(text);
        if (channel.eventLoop().inEventLoop()) {
            end.run();
        } else {
            channel.eventLoop().execute(end);
        }
    }

    private void checkReading(NetLimits limits, long now, boolean pressed) {
        long unread = unreadBytes();
        if (unread == 0 || unread != stuckBytes) {
            stuckBytes = unread;
            stuckNanos = now;
        }
        if (unread == 0 || requests.get() != holdingRequests) {
            holdingRequests = requests.get();
            holdingNanos = now;
        }
        long since = pressed ? Math.min(stuckNanos, holdingNanos) : stuckNanos;
        if (unread > 0 && now - since >= limits.stallTimeout().toNanos()) {
            close(CloseReason.SLOW_READER);
        }
    }

    /// Bytes that were written and that the system has not taken yet.
    public long unreadBytes() {
        ChannelOutboundBuffer unsent = channel.unsafe().outboundBuffer();
        return unsent == null ? 0 : unsent.totalPendingWriteBytes();
    }

    private boolean isIdle(NetLimits limits, long now) {
        return limits.idleTimeout().isPositive()
                && now - lastReadNanos >= limits.idleTimeout().toNanos();
    }

    private void beginStep(long now) {
        stepNanos = now;
        stepBytes = bytesRead.get();
        stepRequests = requests.get();
    }

    /// Why a connection ended. Each is counted.
    public enum CloseReason {
        /// The client closed it, between two requests or before the first: what a probe does.
        CLIENT,
        /// The client closed it in the middle of a request.
        CLIENT_MID_REQUEST,
        /// The client asked for it.
        QUIT,
        /// Another client asked for it, or it did so by its own number.
        KILLED,
        /// There are as many connections as may be.
        TOO_MANY,
        /// All connections were taken, and this one had been idle the longest of the address that had the most.
        GAVE_WAY,
        /// The client did not authenticate within [NetLimits#authTimeout].
        UNAUTHENTICATED,
        /// The client is in no network that may connect here.
        FOREIGN_NETWORK,
        /// The client does not speak TLS where it has to, or gave its handshake up.
        TLS_FAILED,
        /// Nothing was heard for too long.
        IDLE,
        /// A request was begun and came slower than the least rate.
        STALLED_REQUEST,
        /// Replies were not read.
        SLOW_READER,
        /// The first bytes are of no protocol that this listener speaks.
        UNKNOWN_PROTOCOL,
        /// The client broke the protocol that it began with.
        PROTOCOL_ERROR,
        /// The network failed.
        IO_ERROR,
        /// The server goes down.
        DRAIN,
        /// A bug in this server.
        BUG
    }

    /// A client's own description, and its tenant.
    ///
    /// @param tenant whose values it sees; empty while that is not known, or changes with each request
    /// @param name that it has chosen; empty without one
    /// @param library that it uses, or empty
    /// @param libraryVersion of that, or empty
    /// @param version of the protocol, where it has several
    public record ClientInfo(String tenant, String name, String library, String libraryVersion, int version) {

        /// Nothing was said.
        static final ClientInfo NONE = new ClientInfo("", "", "", "", 2);

        /// The same of another tenant.
        public ClientInfo withTenant(String now) {
            return new ClientInfo(now, name, library, libraryVersion, version);
        }

        /// The same by another name.
        public ClientInfo withName(String chosen) {
            return new ClientInfo(tenant, chosen, library, libraryVersion, version);
        }

        /// The same with another library.
        public ClientInfo withLibrary(String used) {
            return new ClientInfo(tenant, name, used, libraryVersion, version);
        }

        /// The same with another version of its library.
        public ClientInfo withLibraryVersion(String used) {
            return new ClientInfo(tenant, name, library, used, version);
        }

        /// The same in another version of the protocol.
        public ClientInfo withVersion(int chosen) {
            return new ClientInfo(tenant, name, library, libraryVersion, chosen);
        }
    }

    /// Stands first in every pipeline: counts what comes in.
    static final class Head extends ChannelInboundHandlerAdapter {

        private final ConnectionRegistry connectionRegistry;
        private final Connection connection;

        Head(ConnectionRegistry connectionRegistry, Connection connection) {
            this.connectionRegistry = connectionRegistry;
            this.connection = connection;
        }

        @Override
        public void channelRead(ChannelHandlerContext context, Object message) {
            if (message instanceof ByteBuf bytes) {
                connection.onRead(bytes.readableBytes());
            }
            context.fireChannelRead(message);
        }

        @Override
        public void channelInactive(ChannelHandlerContext context) {
            connectionRegistry.onClosed(connection);
            context.fireChannelInactive();
        }

        @Override
        public void exceptionCaught(ChannelHandlerContext context, Throwable failure) {
            connection.fail(failure);
        }
    }

    /// Stands last in every pipeline: hears of a failure that no protocol has caught.
    static final class Tail extends ChannelInboundHandlerAdapter {

        private final Connection connection;

        Tail(Connection connection) {
            this.connection = connection;
        }

        @Override
        public void exceptionCaught(ChannelHandlerContext context, Throwable failure) {
            connection.fail(failure);
        }
    }

    /// The network failed, or there is a bug.
    private void fail(Throwable failure) {
        if (failure instanceof IOException) {
            close(CloseReason.IO_ERROR);
        } else {
            LOG.log(Level.ERROR, "connection " + id + " failed", failure);
            close(CloseReason.BUG);
        }
    }

    /// The key by which clients are counted: an IPv4 address, or the first 64 bits of an IPv6 address, as one host
    /// has all the addresses below those.
    public static final class ClientAddress {

        private static final int PREFIX_BYTES = 8;

        private ClientAddress() {}

        /// The address that a client counts for; empty where there is none.
        public static String of(SocketAddress from) {
            InetAddress address = from instanceof InetSocketAddress inet ? inet.getAddress() : null;
            return switch (address) {
                case null -> "";
                case Inet6Address six ->
                    HexFormat.ofDelimiter(":").formatHex(six.getAddress(), 0, PREFIX_BYTES) + "/64";
                default -> address.getHostAddress();
            };
        }
    }
}
