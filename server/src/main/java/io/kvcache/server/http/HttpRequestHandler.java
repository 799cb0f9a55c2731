package io.kvcache.server.http;

import io.netty.buffer.ByteBuf;

/// One request on its way to its reply.
///
/// **Threads.** The connection's loop.
public interface HttpRequestHandler extends AutoCloseable {

    /// Bytes of a body that is not wanted, which are skipped so that the connection can go on: a value, mostly.
    long MAX_SKIPPED_BYTES = 8L << 20;

    /// The length of a body that says it as it goes.
    long UNKNOWN_LENGTH = -1;

    /// Returns whether a body of this length is rejected unread: the reply comes at once, and ends the connection.
    ///
    /// @param contentLength [#UNKNOWN_LENGTH] of a body in chunks
    default boolean rejectsBody(long contentLength) {
        return false;
    }

    /// Takes a part of the body.
    void onBody(ByteBuf part);

    /// The body is complete: replies, now or when it can.
    void respond(HttpResponder out);

    /// Gives back what was reserved and not used.
    @Override
    void close();

    /// A request without a body that matters.
    interface BodylessHandler extends HttpRequestHandler {

        @Override
        default boolean rejectsBody(long contentLength) {
            return contentLength == UNKNOWN_LENGTH || contentLength > MAX_SKIPPED_BYTES;
        }

        @Override
        default void onBody(ByteBuf part) {
            part.skipBytes(part.readableBytes());
        }

        @Override
        default void close() {}
    }
}
