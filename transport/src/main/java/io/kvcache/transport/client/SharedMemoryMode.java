package io.kvcache.transport.client;

/// Use of shared memory with a server on the same host.
public enum SharedMemoryMode {
    /// If the server is on this host, shares its memory and allows it. Otherwise all blocks are sent.
    AUTO,
    /// Always: without shared memory the client does not connect.
    REQUIRED,
    /// Never.
    OFF
}
