package io.kvcache.server.config;

/// What a listener speaks.
public enum ListenProtocol {
    /// Everything, told by the first bytes of each connection.
    AUTO,
    /// Redis' protocol.
    RESP,
    /// LMCache's `lm://`, its layout told by the first bytes.
    LM,
    /// `lm://` as of 2024.
    LM_V0,
    /// `lm://` as of January to July 2025.
    LM_V1A,
    /// `lm://` as of August 2025 and later.
    LM_V1B,
    /// Objects by HTTP/1.1, and the health pages.
    HTTP,
    /// All pages for operators by HTTP/1.1, health, metrics and statistics; no objects.
    PAGES;

    /// Whether this is `lm://`, which has no way to say who one is.
    public boolean isLm() {
        return switch (this) {
            case LM, LM_V0, LM_V1A, LM_V1B -> true;
            case AUTO, RESP, HTTP, PAGES -> false;
        };
    }
}
