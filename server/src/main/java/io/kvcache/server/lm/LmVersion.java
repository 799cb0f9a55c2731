package io.kvcache.server.lm;

import io.kvcache.server.keyspace.PinnedValue.TensorMetadata;
import io.kvcache.server.lm.LmSession.LmRequest;
import io.netty.buffer.ByteBuf;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;

/// The three layouts of `lm://`. Integers are 32 bits, little-endian; the key is 150 bytes, padded with spaces.
///
/// | offset | V0 | V1A | V1B |
/// |---|---|---|---|
/// | 0, 4 | command, length | command, length | command, length |
/// | 8, 12 | key | fmt, dtype | fmt, dtype |
/// | 16 | | shape of four | location |
/// | 20 | | | shape of four |
/// | 32 | | key | |
/// | 36 | | | key |
///
/// A reply has code, length, fmt, dtype, shape, and in V1B location **last**, where the request has it before the
/// shape;
/// in V0 code and length only.
///
/// Source: LMCache's `protocol.py` of 2024, June 2025 and 2026, by the tables of our notes.
public enum LmVersion {
    /// 2024.
    V0(158, 8),
    /// January to July 2025.
    V1A(182, 32),
    /// August 2025 and later.
    V1B(186, 36);

    /// Bytes that tell the layouts apart.
    static final int DETECTION_BYTES = 36;

    private static final int KEY_BYTES = 150;
    private static final byte PADDING = ' ';

    private final int requestBytes;
    private final int replyBytes;

    LmVersion(int requestBytes, int replyBytes) {
        this.requestBytes = requestBytes;
        this.replyBytes = replyBytes;
    }

    int requestBytes() {
        return requestBytes;
    }

    int replyBytes() {
        return replyBytes;
    }

    /// Tells the layout by a connection's first 36 bytes: keys have no zero bytes, and the numbers are small, so that
    /// their highest bytes are zero.
    static LmVersion detect(ByteBuf first) {
        if (first.getByte(first.readerIndex() + 11) != 0) {
            return V0;
        }
        return first.getByte(first.readerIndex() + 35) != 0 ? V1A : V1B;
    }

    /// Reads a request's header.
    LmRequest readRequest(ByteBuf in) {
        int command = in.readIntLE();
        int length = in.readIntLE();
        TensorMetadata note = this == V0 ? TensorMetadata.NONE : readTensorMetadata(in);
        byte[] key = new byte[KEY_BYTES];
        in.readBytes(key);
        int end = KEY_BYTES;
        while (end > 0 && key[end - 1] == PADDING) {
            end--;
        }
        return new LmRequest(command, length, note, Arrays.copyOf(key, end));
    }

    private TensorMetadata readTensorMetadata(ByteBuf in) {
        int fmt = in.readIntLE();
        int dtype = in.readIntLE();
        int location = this == V1B ? in.readIntLE() : 0;
        return new TensorMetadata(fmt, dtype, location, in.readIntLE(), in.readIntLE(), in.readIntLE(), in.readIntLE());
    }

    /// Returns a request's header.
    byte[] header(LmRequest request) {
        TensorMetadata note = request.note();
        ByteBuffer out = ByteBuffer.allocate(requestBytes).order(ByteOrder.LITTLE_ENDIAN);
        out.putInt(request.command()).putInt(request.length());
        if (this != V0) {
            out.putInt(note.fmt()).putInt(note.dtype());
        }
        if (this == V1B) {
            out.putInt(note.location());
        }
        if (this != V0) {
            out.putInt(note.shape0())
                    .putInt(note.shape1())
                    .putInt(note.shape2())
                    .putInt(note.shape3());
        }
        out.put(request.key());
        Arrays.fill(out.array(), out.position(), requestBytes, PADDING);
        return out.array();
    }

    /// Writes a reply's header.
    void writeReply(int code, int length, TensorMetadata note, ByteBuf out) {
        out.writeIntLE(code).writeIntLE(length);
        if (this == V0) {
            return;
        }
        out.writeIntLE(note.fmt())
                .writeIntLE(note.dtype())
                .writeIntLE(note.shape0())
                .writeIntLE(note.shape1())
                .writeIntLE(note.shape2())
                .writeIntLE(note.shape3());
        if (this == V1B) {
            out.writeIntLE(note.location());
        }
    }
}
