package io.kvcache.server.net;

/// How sockets are driven.
public enum TransportKind {
    /// epoll where the platform has it, else NIO. Not io_uring: with large values it is as fast, and container
    /// profiles refuse it more often.
    AUTO,
    IO_URING,
    EPOLL,
    NIO
}
