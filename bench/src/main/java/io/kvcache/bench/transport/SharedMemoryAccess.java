package io.kvcache.bench.transport;

/// How a block of a server on this host is read.
public enum SharedMemoryAccess {
    /// Looked up and copied without a message.
    COPY,
    /// Leased, looked at in place, and given back.
    VIEW,
    /// The same after a millisecond in which nothing was asked, so that whoever answers sleeps.
    VIEW_IDLE
}
