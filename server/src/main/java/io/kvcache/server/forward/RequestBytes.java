package io.kvcache.server.forward;

import io.kvcache.server.keyspace.PinnedValue;
import io.kvcache.server.quota.ByteBudget;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.PooledByteBufAllocator;
import io.netty.buffer.Unpooled;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// A request that is to be passed on, as bytes in native memory.
///
/// **Ownership.** Of its buffers, until [#release].
///
/// Not safe for several threads.
public final class RequestBytes {

    private static final int INITIAL_BYTES = 256;
    private static final byte[] CRLF = {'\r', '\n'};

    private final List<ByteBuf> pieces = new ArrayList<>();
    private ByteBuf last = next();

    private ByteBuf next() {
        ByteBuf buffer = PooledByteBufAllocator.DEFAULT.directBuffer(INITIAL_BYTES);
        pieces.add(buffer);
        return buffer;
    }

    /// Returns a command of Redis' protocol with one key.
    public static RequestBytes command(String name, byte[] key) {
        return new RequestBytes().beginArray(2).bulk(name).bulk(key);
    }

    /// Adds bytes.
    public RequestBytes add(byte[] bytes) {
        last.writeBytes(bytes);
        return this;
    }

    /// Adds the readable bytes of a native buffer, which is retained.
    public RequestBytes add(ByteBuf bytes) {
        pieces.add(bytes.retain());
        last = next();
        return this;
    }

    /// Adds a value where it lies. Its caller holds it until [#release].
    public RequestBytes add(PinnedValue value) {
        value.visit(
                0,
                value.bytes(),
                (memory, from, bytes) -> pieces.add(
                        Unpooled.wrappedBuffer(memory.asSlice(from, bytes).asByteBuffer())));
        last = next();
        return this;
    }

    /// Begins an array of Redis' protocol; its elements follow.
    public RequestBytes beginArray(int elements) {
        return line('*', elements);
    }

    private RequestBytes line(char mark, long number) {
        last.writeByte(mark);
        ByteBufUtil.writeAscii(last, Long.toString(number));
        return add(CRLF);
    }

    /// Adds a word of Redis' protocol in ASCII.
    public RequestBytes bulk(String word) {
        line('$', word.length());
        ByteBufUtil.writeAscii(last, word);
        return add(CRLF);
    }

    /// Adds a word of Redis' protocol.
    public RequestBytes bulk(byte[] bytes) {
        return line('$', bytes.length).add(bytes).add(CRLF);
    }

    /// Adds the readable bytes of a native buffer as a word of Redis' protocol. The buffer is retained.
    public RequestBytes bulk(ByteBuf bytes) {
        return line('$', bytes.readableBytes()).add(bytes).add(CRLF);
    }

    /// Adds a value where it lies as a word of Redis' protocol. Its caller holds it until [#release].
    public RequestBytes bulk(PinnedValue value) {
        return line('$', value.bytes()).add(value).add(CRLF);
    }

    /// Returns the memory of all bytes, until [#release].
    public List<MemorySegment> segments() {
        return pieces.stream()
                .filter(ByteBuf::isReadable)
                .map(piece -> MemorySegment.ofBuffer(piece.nioBuffer()))
                .toList();
    }

    /// Gives the buffers free.
    public void release() {
        pieces.forEach(ByteBuf::release);
    }

    /// A value that a client sends and another server is to store, in native memory meanwhile.
    ///
    /// **Ownership.** Of its buffer, until [#release].
    public static final class PassedValue {

        private final ByteBuf bytes;
        private final ByteBudget incoming;

        private PassedValue(ByteBuf bytes, ByteBudget incoming) {
            this.bytes = bytes;
            this.incoming = incoming;
        }

        /// Takes room for a value.
        ///
        /// @param incoming limit on values that are being received
        /// @param length of it
        /// @return null when as much is being received as may be
        public static @Nullable PassedValue begin(ByteBudget incoming, long length) {
            return incoming.tryAcquire(length)
                    ? new PassedValue(PooledByteBufAllocator.DEFAULT.directBuffer((int) length, (int) length), incoming)
                    : null;
        }

        /// The buffer, as large as the value.
        public ByteBuf bytes() {
            return bytes;
        }

        /// Gives the room free.
        public void release() {
            incoming.release(bytes.capacity());
            bytes.release();
        }
    }
}
