package io.kvcache.server.net;

import io.kvcache.server.net.Connection.CloseReason;
import io.kvcache.server.net.Listener.TlsHandshakeHandler;
import io.kvcache.server.net.Protocol.ProtocolKind;
import io.kvcache.server.net.SessionHandler.ZeroCopyRecvAllocator;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.ByteBuf;
import io.netty.channel.AdaptiveRecvByteBufAllocator;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.channel.WriteBufferWaterMark;
import io.netty.handler.codec.DecoderException;
import io.netty.handler.ipfilter.IpFilterRuleType;
import io.netty.handler.ipfilter.IpSubnetFilterRule;
import io.netty.handler.ssl.SslContext;
import io.netty.handler.ssl.SslHandler;
import io.netty.handler.ssl.SslHandshakeCompletionEvent;
import io.netty.util.NetUtil;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.nio.channels.ClosedChannelException;
import java.nio.charset.StandardCharsets;
import java.util.Collection;
import java.util.EnumMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.Supplier;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import javax.net.ssl.SSLException;
import org.jspecify.annotations.Nullable;

/// Accepts connections at one address.
public final class Listener implements AutoCloseable {

    /// Replies that may wait in memory or slots before a client's next request is looked at: one value's piece.
    private static final WriteBufferWaterMark WRITE_WATERMARK = new WriteBufferWaterMark(512 << 10, 1 << 20);

    /// Bytes taken from a socket at once. Up to 1 MiB, which the second-level cache holds; it adapts downward.
    private static final int MIN_READ = 512;

    private static final int INITIAL_READ = 16 << 10;
    private static final int MAX_READ = 1 << 20;

    /// Reads before others have their turn, as long as each fills the room it has: what a value's beginning came
    /// with mostly has the rest of it behind it, and asking the system whether it has costs as much as the read.
    private static final int MAX_READS_PER_LOOP = 4;

    private static final String ADDRESS_IN_USE = "address already in use";
    private static final String NO_SUCH_ADDRESS = "this machine has no such address";
    private static final String PERMISSION_DENIED = "permission denied";

    /// How the library tells of the system's errors.
    private static final Pattern ERROR_NUMBER = Pattern.compile("error\\(-(\\d+)\\)");

    private final Channel channel;

    private Listener(Channel channel) {
        this.channel = channel;
    }

    /// Binds and begins to accept.
    ///
    /// @throws IOException when the address cannot be had; the message names it
    public static Listener open(
            NettyTransport transport, ListenerSpec listenerSpec, ConnectionRegistry connectionRegistry)
            throws IOException {
        InetSocketAddress address = listenerSpec.address();
        Map<ProtocolKind, Protocol> byKind = new EnumMap<>(ProtocolKind.class);
        listenerSpec.protocols().forEach(protocol -> byKind.put(protocol.kind(), protocol));
        ServerBootstrap bootstrap = new ServerBootstrap()
                .group(transport.eventLoops())
                .channel(transport.serverChannel())
                .option(ChannelOption.SO_BACKLOG, 1024)
                .option(ChannelOption.SO_REUSEADDR, true)
                .childOption(ChannelOption.TCP_NODELAY, true)
                .childOption(ChannelOption.SO_KEEPALIVE, true)
                .childOption(ChannelOption.WRITE_BUFFER_WATER_MARK, WRITE_WATERMARK)
                .childHandler(
                        new ChildInitializer(listenerSpec, byKind, connectionRegistry, transport.isReadinessBased()));
        var bound = bootstrap.bind(address).awaitUninterruptibly();
        if (!bound.isSuccess()) {
            throw new IOException(
                    "cannot listen at " + address.getAddress().getHostAddress() + ":" + address.getPort() + ": "
                            + reason(bound.cause()) + remedy(bound.cause()),
                    bound.cause());
        }
        return new Listener(bound.channel());
    }

    /// Returns the system's reason, in words where Netty has only the error number.
    public static String reason(Throwable refused) {
        String message = String.valueOf(refused.getMessage());
        Matcher number = ERROR_NUMBER.matcher(message);
        String code = number.find() ? number.group(1) : "";
        String text = message.toLowerCase(Locale.ROOT);
        if (code.equals("98") || text.contains(ADDRESS_IN_USE)) {
            return ADDRESS_IN_USE;
        }
        if (code.equals("99") || text.contains("cannot assign requested address")) {
            return NO_SUCH_ADDRESS;
        }
        return code.equals("13") || text.contains(PERMISSION_DENIED) ? PERMISSION_DENIED : message;
    }

    /// Returns what to do about a refused address, after a semicolon; empty when the reason is another.
    public static String remedy(Throwable refused) {
        return switch (reason(refused)) {
            case ADDRESS_IN_USE -> "; stop what has that port, or set another one";
            case NO_SUCH_ADDRESS ->
                "; set an address of this machine ('ip addr' lists them), 127.0.0.1 for this machine alone, or 0.0.0.0";
            case PERMISSION_DENIED -> "; set a port from 1024 up, or run as a user that may have lower ones";
            default -> "";
        };
    }

    /// Returns the address at which it listens, with the port that the system chose if 0 was requested.
    public InetSocketAddress address() {
        return (InetSocketAddress) channel.localAddress();
    }

    /// Accepts no more; what was accepted stays.
    @Override
    public void close() {
        channel.close().awaitUninterruptibly();
    }

    /// The address and the protocols of a listener.
    ///
    /// @param protocols those that may be spoken here, told by the first bytes when they are several
    /// @param allowList that clients may be in
    /// @param requiresAuth whether clients must authenticate
    /// @param tls asked for each connection; null for none
    public record ListenerSpec(
            InetSocketAddress address,
            Collection<Protocol> protocols,
            CidrAllowList allowList,
            boolean requiresAuth,
            @Nullable Supplier<SslContext> tls) {}

    private static final class ChildInitializer extends ChannelInitializer<Channel> {

        private final ListenerSpec listenerSpec;
        private final Map<ProtocolKind, Protocol> protocols;
        private final ConnectionRegistry connectionRegistry;
        private final ConnectionRegistry.ListenerSlots listenerSlots;
        private final boolean zeroCopy;

        ChildInitializer(
                ListenerSpec listenerSpec,
                Map<ProtocolKind, Protocol> protocols,
                ConnectionRegistry connectionRegistry,
                boolean zeroCopy) {
            this.listenerSpec = listenerSpec;
            this.protocols = protocols;
            this.connectionRegistry = connectionRegistry;
            listenerSlots = connectionRegistry.addListener(listenerSpec.requiresAuth());
            this.zeroCopy = zeroCopy;
        }

        @Override
        protected void initChannel(Channel channel) {
            AdaptiveRecvByteBufAllocator usual = new AdaptiveRecvByteBufAllocator(MIN_READ, INITIAL_READ, MAX_READ);
            usual.maxMessagesPerRead(MAX_READS_PER_LOOP);
            boolean plain = listenerSpec.tls() == null; // what is encrypted must not land in a value
            channel.config().setRecvByteBufAllocator(zeroCopy && plain ? new ZeroCopyRecvAllocator(usual) : usual);
            ChannelSetup.setUp(channel, listenerSpec, protocols, connectionRegistry, listenerSlots);
        }
    }

    /// Stands behind TLS: a client that does not speak it, or gives up half way, ends with a reason that is
    /// counted.
    static final class TlsHandshakeHandler extends ChannelInboundHandlerAdapter {

        private final Connection connection;
        private final ConnectionRegistry connectionRegistry;

        /// A reason may have all bytes that came, in hexadecimal digits.
        private static final int MAX_REASON_CHARS = 200;

        TlsHandshakeHandler(Connection connection, ConnectionRegistry connectionRegistry) {
            this.connection = connection;
            this.connectionRegistry = connectionRegistry;
        }

        /// Runs a step of a handshake. A client of TLS 1.2 may ask for another handshake at any time, which
        /// costs it a few bytes and the server a signature, so that ends the connection.
        void runStep(Channel channel, Runnable step) {
            SslHandler tls = channel.pipeline().get(SslHandler.class);
            if (tls != null
                    && tls.handshakeFuture().isSuccess()
                    && tls.engine().getSession().getProtocol().equals("TLSv1.2")) {
                close(channel, "a client of TLS 1.2 renegotiates, which is refused");
            } else {
                step.run();
            }
        }

        @Override
        public void userEventTriggered(ChannelHandlerContext context, Object event) {
            if (event instanceof SslHandshakeCompletionEvent handshake && !handshake.isSuccess()) {
                close(context.channel(), reason(handshake.cause()));
            }
            context.fireUserEventTriggered(event);
        }

        @Override
        public void exceptionCaught(ChannelHandlerContext context, Throwable failure) {
            Throwable cause =
                    failure instanceof DecoderException && failure.getCause() != null ? failure.getCause() : failure;
            if (cause instanceof SSLException) {
                close(context.channel(), reason(cause));
            } else {
                context.fireExceptionCaught(failure);
            }
        }

        private void close(Channel channel, String reason) {
            String here = channel.localAddress() instanceof InetSocketAddress inet
                    ? NetUtil.toSocketAddressString(inet)
                    : String.valueOf(channel.localAddress());
            connectionRegistry.recordTlsFailure(
                    here + ": " + reason.substring(0, Math.min(reason.length(), MAX_REASON_CHARS)));
            connection.close(CloseReason.TLS_FAILED);
        }

        /// A connection that ends has no message of its own.
        private static String reason(Throwable cause) {
            if (cause instanceof ClosedChannelException) {
                return "the client closed the connection before the handshake was done";
            }
            return cause.getMessage() == null ? cause.toString() : cause.getMessage();
        }
    }

    /// Puts the first handlers on a new channel; TLS stands before them.
    public static final class ChannelSetup {

        private ChannelSetup() {}

        /// As [#setUp], unless the client is in no network that may connect.
        static void setUp(
                Channel channel,
                Listener.ListenerSpec listenerSpec,
                Map<ProtocolKind, Protocol> protocols,
                ConnectionRegistry connectionRegistry,
                ConnectionRegistry.ListenerSlots listenerSlots) {
            if (listenerSpec.allowList().allows(channel.remoteAddress())) {
                install(channel, listenerSpec.tls(), protocols, connectionRegistry, listenerSlots);
            } else {
                connectionRegistry.countRejected(CloseReason.FOREIGN_NETWORK);
                channel.close();
            }
        }

        /// Takes the channel in and waits for its first bytes, or closes it when the server goes down.
        ///
        /// @return null when it is closed
        public static @Nullable Connection setUp(
                Channel channel,
                Map<ProtocolKind, Protocol> protocols,
                ConnectionRegistry connectionRegistry,
                ConnectionRegistry.ListenerSlots listenerSlots) {
            return install(channel, null, protocols, connectionRegistry, listenerSlots);
        }

        /// As [#setUp], behind TLS unless that is null.
        private static @Nullable Connection install(
                Channel channel,
                @Nullable Supplier<SslContext> tls,
                Map<ProtocolKind, Protocol> protocols,
                ConnectionRegistry connectionRegistry,
                ConnectionRegistry.ListenerSlots listenerSlots) {
            Connection connection = connectionRegistry.accept(channel, listenerSlots);
            if (connection == null) {
                channel.close();
                return null;
            }
            if (tls != null) {
                // Before all else, so that a handshake that fails has given its reason when the end is counted.
                TlsHandshakeHandler handshakes = new TlsHandshakeHandler(connection, connectionRegistry);
                channel.pipeline()
                        .addLast(tls.get().newHandler(channel.alloc(), step -> handshakes.runStep(channel, step)))
                        .addLast(handshakes);
            }
            channel.pipeline()
                    .addLast(new Connection.Head(connectionRegistry, connection))
                    .addLast(new ProtocolDetector(protocols, connection));
            return connection;
        }
    }

    /// The networks that clients may be in.
    public static final class CidrAllowList {

        /// Any.
        public static final CidrAllowList ALL = new CidrAllowList(List.of());

        private final List<IpSubnetFilterRule> rules;

        /// @param cidrs as `10.0.0.0/8`; empty for any
        public CidrAllowList(List<String> cidrs) {
            rules = cidrs.stream()
                    .map(each -> each.split("/", 2))
                    .map(parts -> new IpSubnetFilterRule(parts[0], Integer.parseInt(parts[1]), IpFilterRuleType.ACCEPT))
                    .toList();
        }

        /// Returns whether a client may connect. A client with an unknown address may not, unless all may.
        boolean allows(SocketAddress client) {
            return rules.isEmpty()
                    || (client instanceof InetSocketAddress inet
                            && rules.stream().anyMatch(rule -> rule.matches(inet)));
        }
    }

    /// Waits until a connection's first bytes say what it speaks, installs that protocol, gives it the bytes and
    /// leaves.
    static final class ProtocolDetector extends ChannelInboundHandlerAdapter {

        private static final byte[] TOO_MANY_CLIENTS =
                "-ERR max number of clients reached\r\n".getBytes(StandardCharsets.US_ASCII);

        private final Map<ProtocolKind, Protocol> protocols;
        private final Connection connection;
        private @Nullable ByteBuf firstBytes;

        /// @param protocols those this listener speaks; when it is one, nothing is guessed
        ProtocolDetector(Map<ProtocolKind, Protocol> protocols, Connection connection) {
            this.protocols = protocols;
            this.connection = connection;
        }

        @Override
        public void channelRead(ChannelHandlerContext context, Object message) {
            connection.beginRequest();
            ByteBuf seen = firstBytes == null ? (ByteBuf) message : merge(context, firstBytes, (ByteBuf) message);
            firstBytes = seen;
            ProtocolSniffer.Detection detection = protocols.size() == 1
                    ? new ProtocolSniffer.Detection(
                            protocols.keySet().iterator().next(), false)
                    : ProtocolSniffer.detect(seen);
            if (detection.needsMore()) {
                return;
            }
            Protocol told = detection.kind() == null ? null : protocols.get(detection.kind());
            if (told == null) {
                connection.close(CloseReason.UNKNOWN_PROTOCOL);
            } else if (connection.isOverLimit() && told.kind() != ProtocolKind.HTTP) {
                reject(context, told.kind());
            } else {
                install(context, told, seen);
            }
        }

        /// All connections are taken; a client of Redis' protocol gets an error in that protocol.
        private void reject(ChannelHandlerContext context, ProtocolKind kind) {
            if (kind == ProtocolKind.RESP) {
                ByteBuf told = context.alloc().buffer(TOO_MANY_CLIENTS.length);
                context.write(told.writeBytes(TOO_MANY_CLIENTS), context.voidPromise());
            }
            connection.closeAfterReplies(CloseReason.TOO_MANY);
        }

        private static ByteBuf merge(ChannelHandlerContext context, ByteBuf before, ByteBuf after) {
            ByteBuf both = context.alloc().buffer(before.readableBytes() + after.readableBytes());
            both.writeBytes(before).writeBytes(after);
            before.release();
            after.release();
            return both;
        }

        private void install(ChannelHandlerContext context, Protocol told, ByteBuf seen) {
            firstBytes = null;
            connection.protocol(told.kind());
            told.install(context.pipeline(), connection);
            context.pipeline().addLast(new Connection.Tail(connection));
            context.fireChannelRead(seen);
            context.fireChannelReadComplete();
            context.pipeline().remove(this);
        }

        @Override
        public void handlerRemoved(ChannelHandlerContext context) {
            if (firstBytes != null) {
                firstBytes.release();
                firstBytes = null;
            }
        }

        @Override
        public void channelInactive(ChannelHandlerContext context) {
            handlerRemoved(context);
            context.fireChannelInactive();
        }

        /// Tells protocols apart by the bytes that a client sends first.
        ///
        /// A request of `lm://` begins with a command of 1 to 5, as four bytes little-endian. One of RESP
        /// begins with `*`, or is a line of words (telnet, a shell); one of HTTP is a line that ends in
        /// `HTTP/1.x`. Words and HTTP can only be told apart at the end of the line, except that no HTTP
        /// method is followed by anything but a path.
        static final class ProtocolSniffer {

            /// Longest first line that is looked through. HTTP servers take 8 KiB.
            static final int MAX_BYTES = 8192;

            private static final int MAX_LM_COMMAND = 5;
            private static final byte[] HTTP = " HTTP/1.".getBytes(StandardCharsets.US_ASCII);

            /// The result for the bytes so far.
            ///
            /// @param kind the protocol, when it is known
            /// @param needsMore whether more bytes may tell
            record Detection(@Nullable ProtocolKind kind, boolean needsMore) {
                static final Detection UNKNOWN = new Detection(null, false);
                static final Detection NEEDS_MORE = new Detection(null, true);
            }

            private ProtocolSniffer() {}

            static Detection detect(ByteBuf in) {
                if (!in.isReadable()) {
                    return Detection.NEEDS_MORE;
                }
                int first = in.getUnsignedByte(in.readerIndex());
                if (first == '*') {
                    return new Detection(ProtocolKind.RESP, false);
                }
                if (first >= 1 && first <= MAX_LM_COMMAND) {
                    return detectLm(in);
                }
                return (Character.isLetter(first) && first < 0x80) || first == '\r' || first == '\n'
                        ? detectFromLine(in)
                        : Detection.UNKNOWN;
            }

            private static Detection detectLm(ByteBuf in) {
                int known = Math.min(4, in.readableBytes());
                for (int i = 1; i < known; i++) {
                    if (in.getByte(in.readerIndex() + i) != 0) {
                        return Detection.UNKNOWN;
                    }
                }
                return known == 4 ? new Detection(ProtocolKind.LM, false) : Detection.NEEDS_MORE;
            }

            private static Detection detectFromLine(ByteBuf in) {
                int length = in.bytesBefore((byte) '\n');
                if (length < 0) {
                    return in.readableBytes() < MAX_BYTES ? Detection.NEEDS_MORE : detectOverlong(in);
                }
                String line = in.toString(in.readerIndex(), length, StandardCharsets.ISO_8859_1);
                int version = line.lastIndexOf(new String(HTTP, StandardCharsets.US_ASCII));
                boolean http = version > 0 && line.strip().length() == version + HTTP.length + 1;
                return new Detection(http ? ProtocolKind.HTTP : ProtocolKind.RESP, false);
            }

            /// A line this long is a request for a path that HTTP will refuse, or nothing.
            private static Detection detectOverlong(ByteBuf in) {
                String start = in.toString(in.readerIndex(), 10, StandardCharsets.ISO_8859_1);
                boolean http = Stream.of("GET ", "PUT ", "HEAD ", "POST ", "DELETE ")
                        .anyMatch(method -> start.startsWith(method + "/") || start.startsWith(method + "ht"));
                return http ? new Detection(ProtocolKind.HTTP, false) : Detection.UNKNOWN;
            }
        }
    }
}
