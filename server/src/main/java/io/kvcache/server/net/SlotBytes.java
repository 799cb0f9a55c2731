package io.kvcache.server.net;

import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelPromise;
import java.lang.foreign.MemorySegment;
import java.util.List;

/// Sends memory of the store without copying it.
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
}
