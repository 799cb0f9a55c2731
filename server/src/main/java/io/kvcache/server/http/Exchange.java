package io.kvcache.server.http;

import io.netty.buffer.ByteBuf;

/// One request on its way to its reply.
///
/// **Threads.** The connection's loop.
public interface Exchange extends AutoCloseable {

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
        default void body(ByteBuf part) {
            part.skipBytes(part.readableBytes());
        }

        @Override
        default void close() {}
    }
}
