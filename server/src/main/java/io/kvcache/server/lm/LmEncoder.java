package io.kvcache.server.lm;

import io.kvcache.server.keyspace.PinnedValue;
import io.kvcache.server.keyspace.TensorMetadata;
import io.kvcache.server.net.ZeroCopyIo;
import io.netty.buffer.ByteBuf;
import io.netty.channel.ChannelHandlerContext;

/// Writes replies. A header is one buffer, and leaves with its body in one gathering write: several clients read it by
/// a single `recv`.
final class LmEncoder {

    static final int SUCCESS = 200;
    static final int FAIL = 400;

    private final ChannelHandlerContext context;

    LmEncoder(ChannelHandlerContext context) {
        this.context = context;
    }

    /// A reply without data.
    void writeCode(LmVersion layout, int code) {
        context.write(header(layout, code, 0, TensorMetadata.NONE), context.voidPromise());
    }

    /// A reply with a body of its own.
    void writeText(LmVersion layout, byte[] body) {
        ByteBuf out = header(layout, SUCCESS, body.length, TensorMetadata.NONE).writeBytes(body);
        context.write(out, context.voidPromise());
    }

    /// A value, from its slots. Takes the value over.
    void writeValue(LmVersion layout, PinnedValue value) {
        int bytes = Math.toIntExact(value.bytes());
        context.write(header(layout, SUCCESS, bytes, value.tensorMetadata()), context.voidPromise());
        ZeroCopyIo.write(context, bytes, each -> value.visit(0, bytes, each), value::close);
    }

    private ByteBuf header(LmVersion layout, int code, int length, TensorMetadata note) {
        ByteBuf out = context.alloc().directBuffer(layout.replyBytes());
        layout.writeReply(code, length, note, out);
        return out;
    }
}
