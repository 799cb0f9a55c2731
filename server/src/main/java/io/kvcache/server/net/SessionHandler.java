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
public final class SessionHandler extends ChannelInboundHandlerAdapter {

    private final ProtocolSession.Factory factory;
    private final Deque<ByteBuf> backlog = new ArrayDeque<>();
    private @Nullable ProtocolSession session;
    private @Nullable ZeroCopyRecvAllocator recvAllocator;
    private boolean pumping;
    private boolean pumpAgain;

    public SessionHandler(ProtocolSession.Factory factory) {
        this.factory = factory;
    }

    @Override
    public void handlerAdded(ChannelHandlerContext context) {
        session = factory.create(context, () -> pump(context, true));
        if (context.channel().config().getRecvByteBufAllocator() instanceof ZeroCopyRecvAllocator own) {
            recvAllocator = own;
            own.setBufferSource(this::writableBuffer);
        }
    }

    /// Where the next bytes are to be read to, if that matters: only when all before them are taken.
    private @Nullable ByteBuffer writableBuffer() {
        ProtocolSession current = session;
        return current == null || pumping || !backlog.isEmpty() || current.isPaused() ? null : current.writableBuffer();
    }

    @Override
    public void channelRead(ChannelHandlerContext context, Object message) {
        ByteBuf bytes = (ByteBuf) message;
        ProtocolSession current = session;
        if (recvAllocator != null && recvAllocator.isOfferedBuffer(bytes) && current != null) {
            current.bytesWritten(bytes.readableBytes());
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
        ProtocolSession current = session;
        if (pumping || current == null) {
            pumpAgain = true;
            return;
        }
        pumping = true;
        try {
            do {
                pumpAgain = false;
                feedBacklog(current);
                if (flush || current.isPaused()) {
                    current.flush();
                    // The socket may have taken all that had piled up, and nobody else would go on then.
                    pumpAgain |= current.canResume() || (!backlog.isEmpty() && !current.isPaused());
                }
            } while (pumpAgain);
        } finally {
            pumping = false;
        }
        context.channel().config().setAutoRead(!current.isPaused());
    }

    private void feedBacklog(ProtocolSession current) {
        current.resumeReply();
        for (ByteBuf first = backlog.peek(); first != null && !current.isPaused(); first = backlog.peek()) {
            feed(current, first);
            current.resumeReply();
        }
    }

    private void feed(ProtocolSession current, ByteBuf first) {
        current.onBytes(first);
        if (current.isEnded() || !first.isReadable()) {
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
        if (session != null) {
            session.close();
        }
    }
}
