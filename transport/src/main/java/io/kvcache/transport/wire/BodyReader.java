package io.kvcache.transport.wire;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.List;

/// Reads the fields of a body in order. What is left at the end is of a later version and ignored.
///
/// **Ownership.** Reads the connection's buffer: valid only while the frame is being handled.
public final class BodyReader {

    private final ByteBuffer body;

    /// @param body from its position to its limit; it is the reader's from now on
    public BodyReader(ByteBuffer body) {
        this.body = body.order(ByteOrder.LITTLE_ENDIAN);
    }

    public int u8(String field) throws ProtocolException {
        return requireBytes(field, 1).get() & 0xFF;
    }

    /// One byte: the place of a value in a list.
    public <T> T oneOf(String field, List<T> values) throws ProtocolException {
        int code = u8(field);
        if (code >= values.size()) {
            throw new ProtocolException("%s = %s; allowed: 0 to %s".formatted(field, code, values.size() - 1));
        }
        return values.get(code);
    }

    public int u16(String field) throws ProtocolException {
        return requireBytes(field, Short.BYTES).getShort() & 0xFFFF;
    }

    /// A count or an index.
    ///
    /// @throws ProtocolException when it is above 2^31 - 1
    public int count(String field) throws ProtocolException {
        int value = i32(field);
        if (value < 0) {
            throw new ProtocolException(
                    "%s = %s; allowed: 0 to %s".formatted(field, Integer.toUnsignedLong(value), Integer.MAX_VALUE));
        }
        return value;
    }

    public int i32(String field) throws ProtocolException {
        return requireBytes(field, Integer.BYTES).getInt();
    }

    public long i64(String field) throws ProtocolException {
        return requireBytes(field, Long.BYTES).getLong();
    }

    /// A length of time or a size.
    ///
    /// @throws ProtocolException when it is above 2^63 - 1
    public long nonNegativeLong(String field) throws ProtocolException {
        long value = i64(field);
        if (value < 0) {
            throw new ProtocolException(
                    "%s = %s; allowed: 0 to %s".formatted(field, Long.toUnsignedString(value), Long.MAX_VALUE));
        }
        return value;
    }

    /// A copy of the next bytes.
    public byte[] bytes(String field, int count) throws ProtocolException {
        requireBytes(field, count);
        byte[] copy = new byte[count];
        body.get(copy);
        return copy;
    }

    /// A copy of all that is left.
    public byte[] rest() {
        byte[] copy = new byte[body.remaining()];
        body.get(copy);
        return copy;
    }

    /// The next bytes in place.
    public ByteBuffer slice(String field, long count) throws ProtocolException {
        requireBytes(field, count);
        ByteBuffer span = body.slice(body.position(), (int) count).order(ByteOrder.LITTLE_ENDIAN);
        body.position(body.position() + (int) count);
        return span;
    }

    /// A text: u16 length in bytes, then UTF-8.
    public String text(String field) throws ProtocolException {
        ByteBuffer utf8 = slice(field, u16(field));
        try {
            return StandardCharsets.UTF_8.newDecoder().decode(utf8).toString();
        } catch (CharacterCodingException e) {
            throw new ProtocolException(field + " is not UTF-8; allowed: well-formed UTF-8");
        }
    }

    /// Returns whether more fields follow, which earlier versions did not send.
    public boolean hasRemaining() {
        return body.hasRemaining();
    }

    /// Passes over bytes that mean nothing yet.
    public BodyReader skip(int count) throws ProtocolException {
        slice("reserved", count);
        return this;
    }

    private ByteBuffer requireBytes(String field, long count) throws ProtocolException {
        if (count > body.remaining()) {
            throw new ProtocolException("the body ends %s bytes after its byte %s; allowed: at least %s for %s"
                    .formatted(body.remaining(), body.position(), count, field));
        }
        return body;
    }
}
