package io.kvcache.server.net;

import io.netty.channel.ChannelPipeline;

/// A protocol front end.
public interface Protocol {

    ProtocolKind kind();

    /// Adds the handlers of this protocol to the end of a new connection's pipeline; they get its first bytes.
    void install(ChannelPipeline pipeline, Connection connection);
}
