package io.kvcache.transport.remote;

/// Whether a remote cache reads the memory of a server on its own host.
public enum SharedMemoryMode {
    /// Where the server is on this host, shares its memory and allows it; else everything is sent.
    AUTO,
    /// In any case: without it there is no connection.
    REQUIRED,
    /// Never.
    OFF
}
