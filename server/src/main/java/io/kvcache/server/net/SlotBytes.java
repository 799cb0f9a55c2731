package io.kvcache.server.net;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelPromise;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.function.Supplier;

/// Moves bytes between the network and memory of the store.
public final class SlotBytes {

    private SlotBytes() {}

    /// Writes pieces of native memory in order, in one gathering write together with what was written before and
    /// after; does not flush.
    ///
    /// @param release run once the network has no more use for the memory, also when the connection fails
    public static void write(ChannelHandlerContext context, List<MemorySegment> pieces, Runnable release) {
        if (pieces.isEmpty()) {
            release.run();
            return;
        }
        int last = pieces.size() - 1;
        for (int i = 0; i < last; i++) {
            context.write(Unpooled.wrappedBuffer(pieces.get(i).asByteBuffer()), context.voidPromise());
        }
        ChannelPromise sent = context.newPromise();
        sent.addListener(done -> release.run());
        context.write(Unpooled.wrappedBuffer(pieces.get(last).asByteBuffer()), sent);
    }

    /// Takes bytes from the network to where they are to lie.
    ///
    /// @param length how many
    /// @param room the place for the next bytes, asked for until all are taken; never without a byte remaining
    public static void read(ByteBuf in, int length, Supplier<ByteBuffer> room) {
        int left = length;
        while (left > 0) {
            ByteBuffer target = room.get();
            int part = Math.min(left, target.remaining());
            if (part == 0) {
                throw new IllegalStateException(left + " bytes came for which no room was asked");
            }
            int limit = target.limit();
            target.limit(target.position() + part);
            in.readBytes(target);
            target.limit(limit);
            left -= part;
        }
    }
}
