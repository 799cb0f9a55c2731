package io.kvcache.server.config;

/// What a listener speaks.
public enum ListenProtocol {
    /// Everything, told by the first bytes of each connection.
    AUTO,
    /// Redis' protocol only.
    RESP,
    /// LMCache's `lm://` only, its layout told by the first bytes.
    LM,
    /// `lm://` as of 2024.
    LM_V0,
    /// `lm://` as of January to July 2025.
    LM_V1A,
    /// `lm://` as of August 2025 and later.
    LM_V1B,
    /// HTTP/1.1 only.
    HTTP
}
