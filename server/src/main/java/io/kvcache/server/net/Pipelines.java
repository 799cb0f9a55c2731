package io.kvcache.server.net;

import io.netty.channel.Channel;
import java.util.Map;

/// Puts the first handlers on a new channel; TLS will stand before them.
public final class Pipelines {

    private Pipelines() {}

    /// Takes the channel in and waits for its first bytes, or closes it when there are too many.
    public static void begin(Channel channel, Map<ProtocolKind, Protocol> protocols, Connections connections) {
        Connection connection = connections.accept(channel);
        if (connection == null) {
            channel.close();
            return;
        }
        channel.pipeline()
                .addLast(new ConnectionHandler.Head(connections, connection))
                .addLast(new ProtocolDetector(protocols, connection));
    }
}
