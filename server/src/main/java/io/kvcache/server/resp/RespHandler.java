package io.kvcache.server.resp;

import io.kvcache.server.net.Connection;
import io.netty.buffer.ByteBuf;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import java.util.ArrayDeque;
import java.util.Deque;
import org.jspecify.annotations.Nullable;

/// Feeds one connection's bytes to its conversation, and stops reading from the socket while that does not want more.
///
/// What has arrived and cannot be looked at yet waits in a backlog, which so is one read long.
final class RespHandler extends ChannelInboundHandlerAdapter {

    private final CommandTable commands;
    private final RespStats stats;
    private final Connection connection;
    private final Deque<ByteBuf> backlog = new ArrayDeque<>();
    private @Nullable Conversation conversation;
    private boolean pumping;
    private boolean again;

    RespHandler(CommandTable commands, RespStats stats, Connection connection) {
        this.commands = commands;
        this.stats = stats;
        this.connection = connection;
    }

    @Override
    public void handlerAdded(ChannelHandlerContext context) {
        conversation = new Conversation(context, connection, commands, stats, () -> pump(context, true));
    }

    @Override
    public void channelRead(ChannelHandlerContext context, Object message) {
        backlog.add((ByteBuf) message);
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

    /// Takes from the backlog until it is empty or the conversation has enough. What happens within may call this
    /// again; the outer call then goes round once more.
    ///
    /// @param flush whether what was written is sent; where more is about to be read, it can wait for that
    private void pump(ChannelHandlerContext context, boolean flush) {
        Conversation talk = conversation;
        if (pumping || talk == null) {
            again = true;
            return;
        }
        pumping = true;
        try {
            do {
                again = false;
                takeAll(talk);
                if (flush || talk.paused()) {
                    talk.flush();
                    // The socket may have taken all that had piled up, and nobody else would go on then.
                    again |= talk.canGoOn() || (!backlog.isEmpty() && !talk.paused());
                }
            } while (again);
        } finally {
            pumping = false;
        }
        context.channel().config().setAutoRead(!talk.paused());
    }

    private void takeAll(Conversation talk) {
        talk.proceed();
        for (ByteBuf first = backlog.peek(); first != null && !talk.paused(); first = backlog.peek()) {
            take(talk, first);
            talk.proceed();
        }
    }

    private void take(Conversation talk, ByteBuf first) {
        try {
            talk.take(first);
        } catch (RespException mistake) {
            stats.protocolErrors.increment();
            talk.fail(mistake);
        }
        if (talk.ended() || !first.isReadable()) {
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
        if (conversation != null) {
            conversation.close();
        }
    }
}
