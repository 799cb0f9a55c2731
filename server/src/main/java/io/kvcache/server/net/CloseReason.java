package io.kvcache.server.net;

/// Why a connection ended. Each is counted.
public enum CloseReason {
    /// The client closed it, between two requests or before the first: what a probe does.
    CLIENT,
    /// The client closed it in the middle of a request.
    CLIENT_MID_REQUEST,
    /// The client asked for it.
    QUIT,
    /// Another client asked for it, or it did so by its own number.
    KILLED,
    /// There are as many connections as may be.
    TOO_MANY,
    /// All connections were taken, and this one had been idle the longest of the address that had the most.
    GAVE_WAY,
    /// The client did not say within [NetLimits#authTimeout] who it is.
    UNAUTHENTICATED,
    /// The client is in no network that may connect here.
    FOREIGN_NETWORK,
    /// The client does not speak TLS where it has to, or gave its handshake up.
    TLS_FAILED,
    /// Nothing was heard for too long.
    IDLE,
    /// A request was begun and came slower than the least rate.
    STALLED_REQUEST,
    /// Replies were not read.
    SLOW_READER,
    /// The first bytes are of no protocol that this listener speaks.
    UNKNOWN_PROTOCOL,
    /// What was sent is not in the protocol that it began with.
    PROTOCOL_ERROR,
    /// The network failed.
    IO_ERROR,
    /// The server goes down.
    DRAIN,
    /// A bug in this server.
    BUG
}
