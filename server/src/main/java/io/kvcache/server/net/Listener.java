package io.kvcache.server.net;

import io.kvcache.server.net.Connection.CloseReason;
import io.kvcache.server.net.Listener.TlsHandshakeHandler;
import io.kvcache.server.net.Protocol.ProtocolKind;
import io.kvcache.server.net.SessionHandler.ZeroCopyRecvAllocator;
import io.netty.bootstrap.ServerBootstrap;
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
import java.util.Collection;
import java.util.EnumMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.Supplier;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
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
                boolean landing) {
            this.listenerSpec = listenerSpec;
            this.protocols = protocols;
            this.connectionRegistry = connectionRegistry;
            listenerSlots = connectionRegistry.addListener(listenerSpec.requiresAuth());
            this.zeroCopy = landing;
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

        /// Runs a step of a handshake. A client of TLS 1.2 may ask for another handshake at any time, which costs it a
        /// few
        /// bytes and the server a signature, so that ends the connection.
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
        public static void setUp(
                Channel channel, Map<ProtocolKind, Protocol> protocols, ConnectionRegistry connectionRegistry) {
            setUp(channel, protocols, connectionRegistry, connectionRegistry.addListener(false));
        }

        /// The same at a listener that there is.
        public static void setUp(
                Channel channel,
                Map<ProtocolKind, Protocol> protocols,
                ConnectionRegistry connectionRegistry,
                ConnectionRegistry.ListenerSlots listenerSlots) {
            install(channel, null, protocols, connectionRegistry, listenerSlots);
        }

        /// As [#setUp], behind TLS unless that is null.
        private static void install(
                Channel channel,
                @Nullable Supplier<SslContext> tls,
                Map<ProtocolKind, Protocol> protocols,
                ConnectionRegistry connectionRegistry,
                ConnectionRegistry.ListenerSlots listenerSlots) {
            Connection connection = connectionRegistry.accept(channel, listenerSlots);
            if (connection == null) {
                channel.close();
                return;
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
}
