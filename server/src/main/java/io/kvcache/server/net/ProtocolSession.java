package io.kvcache.server.net;

import io.netty.channel.ChannelHandlerContext;
import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;

/// One client's requests, in order, as a protocol understands them. Its [SessionHandler] feeds it, and suspends it
/// where a request has to wait.
///
/// **Threads.** The connection's loop.
public interface ProtocolSession extends AutoCloseable {

    /// Takes a piece of the input, unless the session is suspended. A protocol error ends the session.
    ///
    /// @param input a message of the handlers before this one; bytes if there are none
    /// @return whether the piece is used up; it is then released
    boolean onInput(Object input);

    /// Ends a suspension: the work that the session waited for is done. Its reply is complete, unless the session
    /// is suspended again.
    void onResponded();

    /// Returns whether the session takes no more input.
    boolean isEnded();

    /// Sends the replies written so far.
    void flush();

    /// Releases the reservations of an incomplete request.
    @Override
    void close();

    /// A session whose values can be read from the socket right to where they are to lie.
    interface DirectReads {

        /// The room for the next bytes when they are of a value, else null. The caller reports bytes that it has
        /// put there by [#bytesWritten].
        @Nullable
        ByteBuffer writableBuffer();

        /// Reports bytes that the caller has put at the start of the last buffer from [#writableBuffer]. The
        /// session took no input in between.
        void bytesWritten(int bytes);
    }

    /// Begins a session.
    @FunctionalInterface
    interface Factory {
        /// Makes the session of a new connection.
        ///
        /// @param handler suspends and resumes the session
        ProtocolSession create(ChannelHandlerContext context, SessionHandler handler);
    }
}
