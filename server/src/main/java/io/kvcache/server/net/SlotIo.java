package io.kvcache.server.net;

import io.kvcache.core.SegmentVisitor;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.UnpooledByteBufAllocator;
import io.netty.buffer.UnpooledDirectByteBuf;
import io.netty.channel.ChannelHandlerContext;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

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

        /// Buffers are released in the order in which they were written, so the last one's end is the end of
        /// all.
        @Override
        public void visitSegment(MemorySegment memory, long from, long bytes) {
            left -= bytes;
            MemorySegment span = memory.asSlice(from, bytes);
            context.write(new SegmentByteBuf(span, left > 0 ? null : release), context.voidPromise());
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

    /// A span of a store's memory as Netty's buffer, in place: read, and never written.
    ///
    /// **Ownership.** The span stays valid until `released` is run, which the last release does.
    private static final class SegmentByteBuf extends UnpooledDirectByteBuf {

        private final long address;
        private final @Nullable Runnable released;

        /// @param released run when the span is no longer needed; null where others follow that are needed longer
        SegmentByteBuf(MemorySegment span, @Nullable Runnable released) {
            super(UnpooledByteBufAllocator.DEFAULT, writable(span), Math.toIntExact(span.byteSize()));
            address = span.address();
            this.released = released;
        }

        /// Netty takes no read-only memory here. The length is the span's own.
        @SuppressWarnings("restricted")
        private static ByteBuffer writable(MemorySegment span) {
            return MemorySegment.ofAddress(span.address())
                    .reinterpret(span.byteSize())
                    .asByteBuffer();
        }

        @Override
        public boolean hasMemoryAddress() {
            return true;
        }

        @Override
        public long memoryAddress() {
            return address;
        }

        @Override
        protected void deallocate() {
            super.deallocate();
            if (released != null) {
                released.run();
            }
        }
    }
}
