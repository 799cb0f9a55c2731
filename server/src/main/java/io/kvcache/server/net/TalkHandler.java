package io.kvcache.server.net;

import io.netty.buffer.ByteBuf;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.Deque;
import org.jspecify.annotations.Nullable;

/// Feeds one connection's bytes to its talk, and stops reading from the socket while that does not want more.
///
/// What has arrived and cannot be looked at yet waits in a backlog, which so is one read long.
public final class TalkHandler extends ChannelInboundHandlerAdapter {

    private final Talk.Opening opening;
    private final Deque<ByteBuf> backlog = new ArrayDeque<>();
    private @Nullable Talk talk;
    private @Nullable Landing landing;
    private boolean pumping;
    private boolean again;

    public TalkHandler(Talk.Opening opening) {
        this.opening = opening;
    }

    @Override
    public void handlerAdded(ChannelHandlerContext context) {
        talk = opening.open(context, () -> pump(context, true));
        if (context.channel().config().getRecvByteBufAllocator() instanceof Landing own) {
            landing = own;
            own.at(this::room);
        }
    }

    /// Where the next bytes are to be read to, if that matters: only when all before them are taken.
    private @Nullable ByteBuffer room() {
        Talk current = talk;
        return current == null || pumping || !backlog.isEmpty() || current.paused() ? null : current.landing();
    }

    @Override
    public void channelRead(ChannelHandlerContext context, Object message) {
        ByteBuf bytes = (ByteBuf) message;
        Talk current = talk;
        if (landing != null && landing.took(bytes) && current != null) {
            current.landed(bytes.readableBytes());
            bytes.release();
        } else {
            backlog.add(bytes);
        }
        pump(context, false);
    }

    @Override
    public void channelReadComplete(ChannelHandlerContext context) {
        pump(context, true);
    }

    @Override
    public void channelWritabilityChanged(ChannelHandlerContext context) {
        if (context.channel().isWritable()) {
            pump(context, true);
        }
        context.fireChannelWritabilityChanged();
    }

    /// Takes from the backlog until it is empty or the talk has enough. What happens within may call this
    /// again; the outer call then goes round once more.
    ///
    /// @param flush whether what was written is sent; where more is about to be read, it can wait for that
    private void pump(ChannelHandlerContext context, boolean flush) {
        Talk current = talk;
        if (pumping || current == null) {
            again = true;
            return;
        }
        pumping = true;
        try {
            do {
                again = false;
                takeAll(current);
                if (flush || current.paused()) {
                    current.flush();
                    // The socket may have taken all that had piled up, and nobody else would go on then.
                    again |= current.canGoOn() || (!backlog.isEmpty() && !current.paused());
                }
            } while (again);
        } finally {
            pumping = false;
        }
        context.channel().config().setAutoRead(!current.paused());
    }

    private void takeAll(Talk current) {
        current.proceed();
        for (ByteBuf first = backlog.peek(); first != null && !current.paused(); first = backlog.peek()) {
            take(current, first);
            current.proceed();
        }
    }

    private void take(Talk current, ByteBuf first) {
        current.take(first);
        if (current.ended() || !first.isReadable()) {
            backlog.remove();
            first.release();
        }
    }

    @Override
    public void channelInactive(ChannelHandlerContext context) {
        end();
        context.fireChannelInactive();
    }

    @Override
    public void handlerRemoved(ChannelHandlerContext context) {
        end();
    }

    @Override
    public void exceptionCaught(ChannelHandlerContext context, Throwable failure) {
        end();
        context.fireExceptionCaught(failure);
    }

    private void end() {
        backlog.forEach(ByteBuf::release);
        backlog.clear();
        if (talk != null) {
            talk.close();
        }
    }
}
