package io.kvcache.server.net;

import io.netty.buffer.ByteBuf;
import io.netty.channel.ChannelHandlerContext;
import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;

/// One client's requests, in order, as a protocol understands them.
///
/// **Threads.** The connection's loop.
public interface ProtocolSession extends AutoCloseable {

    /// Takes bytes until there are no more, or until [#isPaused()]. What is not in the protocol ends the talk.
    void onBytes(ByteBuf in);

    /// The room for the next bytes when they are of a value, else null. Whoever puts bytes there says so by
    /// [#bytesWritten].
    @Nullable
    ByteBuffer writableBuffer();

    /// So many bytes were put at the start of what [#writableBuffer] answered last; nothing was taken in between.
    void bytesWritten(int bytes);

    /// Goes on with a reply that waited for the client to read, if there is one.
    void resumeReply();

    /// Whether a reply waits that can be gone on with now.
    boolean canResume();

    /// Whether nothing can be taken now.
    boolean isPaused();

    /// Whether nothing will be taken any more.
    boolean isEnded();

    /// Sends what was answered.
    void flush();

    /// Gives back what a request that is not complete has reserved.
    @Override
    void close();

    /// Begins a talk.
    @FunctionalInterface
    interface Factory {

        /// Makes the talk of a new connection.
        ///
        /// @param resumption to be called when the talk, having waited for something, can take more
        ProtocolSession create(ChannelHandlerContext context, Runnable resumption);
    }
}
