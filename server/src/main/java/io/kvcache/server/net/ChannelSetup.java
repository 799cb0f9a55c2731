package io.kvcache.server.net;

import io.kvcache.server.net.Connection.CloseReason;
import io.kvcache.server.net.Listener.TlsHandshakeHandler;
import io.kvcache.server.net.Protocol.ProtocolKind;
import io.netty.channel.Channel;
import io.netty.handler.ssl.SslContext;
import java.util.Map;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// Puts the first handlers on a new channel; TLS stands before them.
public final class ChannelSetup {

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
            channel.pipeline()
                    .addLast(tls.get().newHandler(channel.alloc()))
                    .addLast(new TlsHandshakeHandler(connection));
        }
        channel.pipeline()
                .addLast(new Connection.Head(connectionRegistry, connection))
                .addLast(new ProtocolDetector(protocols, connection));
    }
}
