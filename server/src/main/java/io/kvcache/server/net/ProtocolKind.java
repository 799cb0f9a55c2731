package io.kvcache.server.net;

/// What a connection can speak.
public enum ProtocolKind {
    /// Redis' protocol, version 2 and 3.
    RESP,
    /// LMCache's `lm://`.
    LM,
    /// HTTP/1.1.
    HTTP
}
