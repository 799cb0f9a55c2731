package io.kvcache.server.lm;

import io.kvcache.server.keyspace.PinnedValue.TensorMetadata;
import io.kvcache.server.lm.LmSession.LmRequest;
import io.netty.buffer.ByteBuf;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;

/// The layout of `lm://`. Integers are 32 bits, little-endian; the key is 150 bytes, padded with spaces.
///
/// | offset | request | reply |
/// |---|---|---|
/// | 0, 4 | command, length | code, length |
/// | 8, 12 | fmt, dtype | fmt, dtype |
/// | 16 | location | shape of four |
/// | 20 | shape of four | |
/// | 32 | | location |
/// | 36 | key | |
///
/// Source: LMCache's `protocol.py` of August 2025 and later, by the tables of our notes.
final class LmCodec {

    static final int REQUEST_BYTES = 186;
    static final int REPLY_BYTES = 36;

    /// First bytes of a request that show whether it has this layout.
    static final int CHECKED_BYTES = 36;

    private static final int KEY_BYTES = 150;
    private static final byte PADDING = ' ';

    private LmCodec() {}

    /// Returns whether a request's first 36 bytes have the key of an older layout where this one has numbers: keys
    /// have no zero bytes, and the numbers are small, so that their highest bytes are zero.
    static boolean isOlder(ByteBuf first) {
        return first.getByte(first.readerIndex() + 11) != 0 || first.getByte(first.readerIndex() + 35) != 0;
    }

    /// Reads a request's header.
    static LmRequest readRequest(ByteBuf in) {
        int command = in.readIntLE();
        int length = in.readIntLE();
        TensorMetadata note = new TensorMetadata(
                in.readIntLE(),
                in.readIntLE(),
                in.readIntLE(),
                in.readIntLE(),
                in.readIntLE(),
                in.readIntLE(),
                in.readIntLE());
        byte[] key = new byte[KEY_BYTES];
        in.readBytes(key);
        int end = KEY_BYTES;
        while (end > 0 && key[end - 1] == PADDING) {
            end--;
        }
        return new LmRequest(command, length, note, Arrays.copyOf(key, end));
    }

    /// Returns a request's header.
    static byte[] header(LmRequest request) {
        ByteBuffer out = ByteBuffer.allocate(REQUEST_BYTES).order(ByteOrder.LITTLE_ENDIAN);
        out.putInt(request.command()).putInt(request.length());
        request.note().writeTo(out).put(request.key());
        Arrays.fill(out.array(), out.position(), REQUEST_BYTES, PADDING);
        return out.array();
    }

    /// Writes a reply's header. The location is last there, where the request has it before the shape.
    static void writeReply(int code, int length, TensorMetadata note, ByteBuf out) {
        out.writeIntLE(code)
                .writeIntLE(length)
                .writeIntLE(note.fmt())
                .writeIntLE(note.dtype())
                .writeIntLE(note.shape0())
                .writeIntLE(note.shape1())
                .writeIntLE(note.shape2())
                .writeIntLE(note.shape3())
                .writeIntLE(note.location());
    }
}
