package io.kvcache.server.net;

import io.kvcache.core.SegmentVisitor;
import io.netty.buffer.ByteBuf;
import io.netty.channel.ChannelHandlerContext;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.function.Consumer;
import java.util.function.Supplier;

/// Moves bytes between the network and memory of the store.
public final class SlotIo {

    private SlotIo() {}

    /// Writes pieces of native memory in order, in one gathering write together with what was written before and
    /// after; does not flush.
    ///
    /// @param bytes of all pieces together
    /// @param pieces shows them
    /// @param release run once the network has no more use for the memory, also when the connection fails
    public static void write(
            ChannelHandlerContext context, long bytes, Consumer<SegmentVisitor> pieces, Runnable release) {
        if (bytes == 0) {
            release.run();
        } else {
            pieces.accept(new GatheringWrite(context, bytes, release));
        }
    }

    private static final class GatheringWrite implements SegmentVisitor {

        private final ChannelHandlerContext context;
        private final Runnable release;
        private long left;

        GatheringWrite(ChannelHandlerContext context, long bytes, Runnable release) {
            this.context = context;
            this.release = release;
            left = bytes;
        }

        /// Buffers are released in the order in which they were written, so the last one's end is the end of all.
        @Override
        public void visitSegment(MemorySegment memory, long from, long bytes) {
            left -= bytes;
            int length = Math.toIntExact(bytes);
            context.write(SegmentByteBuf.of(memory, from, length, left > 0 ? null : release), context.voidPromise());
        }
    }

    /// Takes bytes from the network to where they are to lie.
    ///
    /// @param length how many
    /// @param writableBuffer the place for the next bytes, asked for until all are taken; never without a byte
    ///     remaining
    public static void read(ByteBuf in, int length, Supplier<ByteBuffer> writableBuffer) {
        int left = length;
        while (left > 0) {
            ByteBuffer target = writableBuffer.get();
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
