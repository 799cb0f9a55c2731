package io.kvcache.server.config;

/// What a listener speaks.
public enum ListenProtocol {
    /// Everything, told by the first bytes of each connection.
    AUTO,
    /// Redis' protocol only.
    RESP
}
