package io.kvcache.server.net;

import io.kvcache.core.SegmentVisitor;
import io.netty.buffer.AbstractReferenceCountedByteBuf;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufAllocator;
import io.netty.buffer.Unpooled;
import io.netty.buffer.UnpooledByteBufAllocator;
import io.netty.channel.ChannelHandlerContext;
import io.netty.util.Recycler;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.ReadOnlyBufferException;
import java.nio.channels.FileChannel;
import java.nio.channels.GatheringByteChannel;
import java.nio.channels.ScatteringByteChannel;
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

    /// A span of a store's memory as Netty's buffer: read-only, in place, and used again when it is released.
    ///
    /// Netty's own wrapped buffers are made anew for each span, with a `ByteBuffer` inside. A value of 256 MiB has
    /// 256 of them, and garbage of a reply costs latency at the next collection. The native transports use only
    /// such a buffer's address; the other methods serve nio and TLS.
    ///
    /// **Ownership.** The span stays valid until `released` is run, which the last release does.
    static final class SegmentByteBuf extends AbstractReferenceCountedByteBuf {

        private static final ValueLayout.OfShort SHORT =
                ValueLayout.JAVA_SHORT_UNALIGNED.withOrder(ByteOrder.BIG_ENDIAN);
        private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.BIG_ENDIAN);
        private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.BIG_ENDIAN);

        private static final Recycler<SegmentByteBuf> RECYCLER = new Recycler<>() {
            @Override
            protected SegmentByteBuf newObject(Handle<SegmentByteBuf> handle) {
                return new SegmentByteBuf(handle);
            }
        };

        private final Recycler.Handle<SegmentByteBuf> handle;
        private MemorySegment memory = MemorySegment.NULL;
        private long from;
        private int length;
        private @Nullable Runnable released;

        private SegmentByteBuf(Recycler.Handle<SegmentByteBuf> handle) {
            super(Integer.MAX_VALUE);
            this.handle = handle;
        }

        /// @param released run when the span is no longer needed; null where others follow that are needed
        ///     longer
        static SegmentByteBuf of(MemorySegment memory, long from, int length, @Nullable Runnable released) {
            SegmentByteBuf span = RECYCLER.get();
            span.resetRefCnt();
            span.memory = memory;
            span.from = from;
            span.length = length;
            span.released = released;
            span.setIndex(0, length);
            return span;
        }

        @Override
        protected void deallocate() {
            Runnable then = released;
            memory = MemorySegment.NULL;
            released = null;
            handle.recycle(this);
            if (then != null) {
                then.run();
            }
        }

        @Override
        public boolean hasMemoryAddress() {
            return true;
        }

        @Override
        public long memoryAddress() {
            ensureAccessible();
            return memory.address() + from;
        }

        @Override
        public ByteBuffer nioBuffer(int index, int bytes) {
            checkIndex(index, bytes);
            return memory.asSlice(from + index, bytes).asByteBuffer();
        }

        @Override
        public ByteBuffer internalNioBuffer(int index, int bytes) {
            return nioBuffer(index, bytes);
        }

        @Override
        public ByteBuffer[] nioBuffers(int index, int bytes) {
            return new ByteBuffer[] {nioBuffer(index, bytes)};
        }

        @Override
        public int nioBufferCount() {
            return 1;
        }

        @Override
        public int capacity() {
            return length;
        }

        @Override
        public ByteBuf capacity(int asked) {
            throw new ReadOnlyBufferException();
        }

        @Override
        public boolean isDirect() {
            return true;
        }

        @Override
        public boolean isReadOnly() {
            return true;
        }

        @Override
        public boolean hasArray() {
            return false;
        }

        @Override
        public byte[] array() {
            throw new UnsupportedOperationException("a slot is no array");
        }

        @Override
        public int arrayOffset() {
            throw new UnsupportedOperationException("a slot is no array");
        }

        @Override
        public ByteBufAllocator alloc() {
            return UnpooledByteBufAllocator.DEFAULT;
        }

        @Override
        @SuppressWarnings("deprecation") // has to be there all the same
        public ByteOrder order() {
            return ByteOrder.BIG_ENDIAN;
        }

        @Override
        public @Nullable ByteBuf unwrap() {
            return null;
        }

        @Override
        protected byte _getByte(int index) {
            return memory.get(ValueLayout.JAVA_BYTE, from + index);
        }

        @Override
        protected short _getShort(int index) {
            return memory.get(SHORT, from + index);
        }

        @Override
        protected short _getShortLE(int index) {
            return Short.reverseBytes(_getShort(index));
        }

        @Override
        protected int _getUnsignedMedium(int index) {
            return (_getShort(index) & 0xffff) << 8 | (_getByte(index + 2) & 0xff);
        }

        @Override
        protected int _getUnsignedMediumLE(int index) {
            return (_getShortLE(index) & 0xffff) | (_getByte(index + 2) & 0xff) << 16;
        }

        @Override
        protected int _getInt(int index) {
            return memory.get(INT, from + index);
        }

        @Override
        protected int _getIntLE(int index) {
            return Integer.reverseBytes(_getInt(index));
        }

        @Override
        protected long _getLong(int index) {
            return memory.get(LONG, from + index);
        }

        @Override
        protected long _getLongLE(int index) {
            return Long.reverseBytes(_getLong(index));
        }

        @Override
        public ByteBuf getBytes(int index, byte[] target, int at, int bytes) {
            nioBuffer(index, bytes).get(target, at, bytes);
            return this;
        }

        @Override
        public ByteBuf getBytes(int index, ByteBuffer target) {
            target.put(nioBuffer(index, target.remaining()));
            return this;
        }

        @Override
        public ByteBuf getBytes(int index, ByteBuf target, int at, int bytes) {
            target.setBytes(at, nioBuffer(index, bytes));
            return this;
        }

        @Override
        public ByteBuf getBytes(int index, OutputStream target, int bytes) throws IOException {
            byte[] copy = new byte[bytes];
            getBytes(index, copy, 0, bytes);
            target.write(copy);
            return this;
        }

        @Override
        public int getBytes(int index, GatheringByteChannel target, int bytes) throws IOException {
            return target.write(nioBuffer(index, bytes));
        }

        @Override
        public int getBytes(int index, FileChannel target, long position, int bytes) throws IOException {
            return target.write(nioBuffer(index, bytes), position);
        }

        @Override
        public ByteBuf copy(int index, int bytes) {
            return Unpooled.copiedBuffer(nioBuffer(index, bytes));
        }

        @Override
        protected void _setByte(int index, int value) {
            throw new ReadOnlyBufferException();
        }

        @Override
        protected void _setShort(int index, int value) {
            throw new ReadOnlyBufferException();
        }

        @Override
        protected void _setShortLE(int index, int value) {
            throw new ReadOnlyBufferException();
        }

        @Override
        protected void _setMedium(int index, int value) {
            throw new ReadOnlyBufferException();
        }

        @Override
        protected void _setMediumLE(int index, int value) {
            throw new ReadOnlyBufferException();
        }

        @Override
        protected void _setInt(int index, int value) {
            throw new ReadOnlyBufferException();
        }

        @Override
        protected void _setIntLE(int index, int value) {
            throw new ReadOnlyBufferException();
        }

        @Override
        protected void _setLong(int index, long value) {
            throw new ReadOnlyBufferException();
        }

        @Override
        protected void _setLongLE(int index, long value) {
            throw new ReadOnlyBufferException();
        }

        @Override
        public ByteBuf setBytes(int index, byte[] source, int at, int bytes) {
            throw new ReadOnlyBufferException();
        }

        @Override
        public ByteBuf setBytes(int index, ByteBuffer source) {
            throw new ReadOnlyBufferException();
        }

        @Override
        public ByteBuf setBytes(int index, ByteBuf source, int at, int bytes) {
            throw new ReadOnlyBufferException();
        }

        @Override
        public int setBytes(int index, InputStream source, int bytes) {
            throw new ReadOnlyBufferException();
        }

        @Override
        public int setBytes(int index, ScatteringByteChannel source, int bytes) {
            throw new ReadOnlyBufferException();
        }

        @Override
        public int setBytes(int index, FileChannel source, long position, int bytes) {
            throw new ReadOnlyBufferException();
        }
    }
}
