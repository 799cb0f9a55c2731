package io.kvcache.server.net;

import io.netty.channel.Channel;
import io.netty.handler.ssl.SslContext;
import java.util.Map;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// Puts the first handlers on a new channel; TLS stands before them.
public final class Pipelines {

    private Pipelines() {}

    /// As [#begin], unless the client is in no network that may connect.
    static void begin(
            Channel channel,
            Listener.Place place,
            Map<ProtocolKind, Protocol> protocols,
            Connections connections,
            Connections.Gate gate) {
        if (place.networks().have(channel.remoteAddress())) {
            install(channel, place.tls(), protocols, connections, gate);
        } else {
            connections.refused(CloseReason.FOREIGN_NETWORK);
            channel.close();
        }
    }

    /// Takes the channel in and waits for its first bytes, or closes it when the server goes down.
    public static void begin(Channel channel, Map<ProtocolKind, Protocol> protocols, Connections connections) {
        begin(channel, protocols, connections, connections.gate(false));
    }

    /// The same at a listener that there is.
    public static void begin(
            Channel channel, Map<ProtocolKind, Protocol> protocols, Connections connections, Connections.Gate gate) {
        install(channel, null, protocols, connections, gate);
    }

    /// As [#begin], behind TLS unless that is null.
    private static void install(
            Channel channel,
            @Nullable Supplier<SslContext> tls,
            Map<ProtocolKind, Protocol> protocols,
            Connections connections,
            Connections.Gate gate) {
        Connection connection = connections.accept(channel, gate);
        if (connection == null) {
            channel.close();
            return;
        }
        if (tls != null) {
            // Before all else, so that a handshake that fails has given its reason when the end is counted.
            channel.pipeline().addLast(tls.get().newHandler(channel.alloc())).addLast(new TlsHandshake(connection));
        }
        channel.pipeline()
                .addLast(new ConnectionHandler.Head(connections, connection))
                .addLast(new ProtocolDetector(protocols, connection));
    }
}
