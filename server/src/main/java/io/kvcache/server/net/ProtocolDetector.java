package io.kvcache.server.net;

import io.netty.buffer.ByteBuf;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/// Waits until a connection's first bytes say what it speaks, installs that protocol, gives it the bytes and leaves.
final class ProtocolDetector extends ChannelInboundHandlerAdapter {

    private static final byte[] FULL = "-ERR max number of clients reached\r\n".getBytes(StandardCharsets.US_ASCII);

    private final Map<ProtocolKind, Protocol> protocols;
    private final Connection connection;
    private @Nullable ByteBuf first;

    /// @param protocols those this listener speaks; when it is one, nothing is guessed
    ProtocolDetector(Map<ProtocolKind, Protocol> protocols, Connection connection) {
        this.protocols = protocols;
        this.connection = connection;
    }

    @Override
    public void channelRead(ChannelHandlerContext context, Object message) {
        connection.requestBegins();
        ByteBuf seen = first == null ? (ByteBuf) message : merge(context, first, (ByteBuf) message);
        first = seen;
        FirstBytes.Verdict verdict = protocols.size() == 1
                ? new FirstBytes.Verdict(protocols.keySet().iterator().next(), false)
                : FirstBytes.tell(seen);
        if (verdict.more()) {
            return;
        }
        Protocol told = verdict.kind() == null ? null : protocols.get(verdict.kind());
        if (told == null) {
            connection.close(CloseReason.UNKNOWN_PROTOCOL);
        } else if (connection.isSpare() && told.kind() != ProtocolKind.HTTP) {
            refuse(context, told.kind());
        } else {
            handOver(context, told, seen);
        }
    }

    /// There is no place; those who speak Redis' protocol are told so in its words.
    private void refuse(ChannelHandlerContext context, ProtocolKind kind) {
        if (kind == ProtocolKind.RESP) {
            ByteBuf told = context.alloc().buffer(FULL.length);
            context.write(told.writeBytes(FULL), context.voidPromise());
        }
        connection.closeAfterReplies(CloseReason.TOO_MANY);
    }

    private static ByteBuf merge(ChannelHandlerContext context, ByteBuf before, ByteBuf after) {
        ByteBuf both = context.alloc().buffer(before.readableBytes() + after.readableBytes());
        both.writeBytes(before).writeBytes(after);
        before.release();
        after.release();
        return both;
    }

    private void handOver(ChannelHandlerContext context, Protocol told, ByteBuf seen) {
        first = null;
        connection.protocol(told.kind());
        told.install(context.pipeline(), connection);
        context.pipeline().addLast(new ConnectionHandler.Tail(connection));
        context.fireChannelRead(seen);
        context.fireChannelReadComplete();
        context.pipeline().remove(this);
    }

    @Override
    public void handlerRemoved(ChannelHandlerContext context) {
        if (first != null) {
            first.release();
            first = null;
        }
    }

    @Override
    public void channelInactive(ChannelHandlerContext context) {
        handlerRemoved(context);
        context.fireChannelInactive();
    }
}
