package io.kvcache.server.net;

import io.netty.buffer.ByteBuf;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/// Waits until a connection's first bytes say what it speaks, installs that protocol, gives it the bytes and leaves.
final class ProtocolDetector extends ChannelInboundHandlerAdapter {

    private static final byte[] TOO_MANY_CLIENTS =
            "-ERR max number of clients reached\r\n".getBytes(StandardCharsets.US_ASCII);

    private final Map<ProtocolKind, Protocol> protocols;
    private final Connection connection;
    private @Nullable ByteBuf firstBytes;

    /// @param protocols those this listener speaks; when it is one, nothing is guessed
    ProtocolDetector(Map<ProtocolKind, Protocol> protocols, Connection connection) {
        this.protocols = protocols;
        this.connection = connection;
    }

    @Override
    public void channelRead(ChannelHandlerContext context, Object message) {
        connection.beginRequest();
        ByteBuf seen = firstBytes == null ? (ByteBuf) message : merge(context, firstBytes, (ByteBuf) message);
        firstBytes = seen;
        ProtocolSniffer.Detection detection = protocols.size() == 1
                ? new ProtocolSniffer.Detection(protocols.keySet().iterator().next(), false)
                : ProtocolSniffer.detect(seen);
        if (detection.needsMore()) {
            return;
        }
        Protocol told = detection.kind() == null ? null : protocols.get(detection.kind());
        if (told == null) {
            connection.close(CloseReason.UNKNOWN_PROTOCOL);
        } else if (connection.isOverLimit() && told.kind() != ProtocolKind.HTTP) {
            reject(context, told.kind());
        } else {
            install(context, told, seen);
        }
    }

    /// There is no place; those who speak Redis' protocol are told so in its words.
    private void reject(ChannelHandlerContext context, ProtocolKind kind) {
        if (kind == ProtocolKind.RESP) {
            ByteBuf told = context.alloc().buffer(TOO_MANY_CLIENTS.length);
            context.write(told.writeBytes(TOO_MANY_CLIENTS), context.voidPromise());
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

    private void install(ChannelHandlerContext context, Protocol told, ByteBuf seen) {
        firstBytes = null;
        connection.protocol(told.kind());
        told.install(context.pipeline(), connection);
        context.pipeline().addLast(new PipelineEnds.Tail(connection));
        context.fireChannelRead(seen);
        context.fireChannelReadComplete();
        context.pipeline().remove(this);
    }

    @Override
    public void handlerRemoved(ChannelHandlerContext context) {
        if (firstBytes != null) {
            firstBytes.release();
            firstBytes = null;
        }
    }

    @Override
    public void channelInactive(ChannelHandlerContext context) {
        handlerRemoved(context);
        context.fireChannelInactive();
    }
}
