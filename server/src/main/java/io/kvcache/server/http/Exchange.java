package io.kvcache.server.http;

import io.netty.buffer.ByteBuf;

/// One request on its way to its reply.
///
/// **Threads.** The connection's loop.
public interface Exchange extends AutoCloseable {

    /// Bytes of a body that is not wanted, which are skipped so that the connection can go on: a block, mostly.
    long SKIPPED_BYTES = 8L << 20;

    /// Whether a body of this length is not waited for: the reply comes at once, and ends the connection.
    default boolean refuses(long contentLength) {
        return false;
    }

    /// Takes a part of the body.
    void body(ByteBuf part);

    /// The body is complete: replies, now or when it can.
    void answer(HttpReplies out);

    /// Gives back what was reserved and not used.
    @Override
    void close();

    /// A request without a body that matters.
    interface Plain extends Exchange {

        @Override
        default boolean refuses(long contentLength) {
            return contentLength > SKIPPED_BYTES;
        }

        @Override
        default void body(ByteBuf part) {
            part.skipBytes(part.readableBytes());
        }

        @Override
        default void close() {}
    }
}
