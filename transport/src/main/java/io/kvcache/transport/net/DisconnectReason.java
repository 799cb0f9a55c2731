package io.kvcache.transport.net;

/// Why a connection ended. Each has a counter.
public enum DisconnectReason {
    /// The peer closed it, at the end of a frame.
    PEER_CLOSED,
    /// The peer went away in the middle of a frame, or the network failed.
    BROKEN,
    /// The peer does not speak the protocol.
    MALFORMED,
    /// The peer stalled: it took or sent no bytes for too long although some were due.
    STALLED,
    /// The peer did not authenticate in time, or sent nothing for the duration of a lease.
    SILENT,
    /// Wrong secret, unknown tenant, or a session that is not the peer's.
    UNAUTHORIZED,
    /// More connections, leases or requests than are allowed.
    OVER_LIMIT,
    /// The session that it belongs to is over.
    SESSION_OVER,
    /// This side is closing.
    SHUTDOWN,
    /// A bug on this side.
    INTERNAL
}
