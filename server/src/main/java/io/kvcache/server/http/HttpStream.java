package io.kvcache.server.http;

import io.netty.buffer.ByteBufUtil;
import io.netty.channel.Channel;
import io.netty.channel.ChannelHandlerContext;
import io.netty.handler.codec.http.DefaultHttpContent;
import io.netty.handler.codec.http.LastHttpContent;
import java.util.concurrent.RejectedExecutionException;

/// A reply that goes on until either side ends it.
///
/// **Threads.** The connection's loop, but for [#runOnLoop].
public final class HttpStream {

    /// Bytes that may wait until a client reads: less than for a value, as clients that follow are many and stay.
    public static final int MAX_UNSENT_BYTES = 64 << 10;

    private final ChannelHandlerContext context;
    private final Runnable done;
    private boolean ended;

    HttpStream(ChannelHandlerContext context, Runnable done) {
        this.context = context;
        this.done = done;
    }

    /// Returns whether at most [#MAX_UNSENT_BYTES] wait in memory for the client to read.
    public boolean isWritable() {
        Channel channel = context.channel();
        long room = channel.bytesBeforeUnwritable(); // 0 when it is not writable at all
        return !ended && room > 0 && channel.config().getWriteBufferHighWaterMark() - room < MAX_UNSENT_BYTES;
    }

    /// Writes a text, if there is one.
    public void write(String text) {
        if (!text.isEmpty() && !ended) {
            context.write(new DefaultHttpContent(ByteBufUtil.writeUtf8(context.alloc(), text)), context.voidPromise());
        }
    }

    public void flush() {
        context.flush();
    }

    /// Runs something on the connection's loop, unless the reply has ended by then.
    public void runOnLoop(Runnable something) {
        try {
            context.channel().eventLoop().execute(() -> {
                if (!ended && context.channel().isActive()) {
                    something.run();
                }
            });
        } catch (RejectedExecutionException _) {
            // The loop has ended, and the connection with it.
        }
    }

    /// Ends the reply.
    public void end() {
        if (!ended) {
            ended = true;
            context.write(LastHttpContent.EMPTY_LAST_CONTENT, context.voidPromise());
            done.run();
            context.flush();
        }
    }
}
