package io.kvcache.server.net;

import io.netty.channel.ChannelPipeline;

/// A protocol front end.
public interface Protocol {

    ProtocolKind kind();

    /// Adds the handlers of this protocol to the end of a new connection's pipeline; they get its first bytes.
    void install(ChannelPipeline pipeline, Connection connection);

    /// A protocol that a connection can speak.
    public enum ProtocolKind {
        /// Redis' protocol, version 2 and 3.
        RESP,
        /// LMCache's `lm://`.
        LM,
        /// HTTP/1.1.
        HTTP
    }
}
