package io.kvcache.transport.wire;

import io.kvcache.core.hash.Utf8;
import io.kvcache.transport.wire.OutboundFrame.Payload;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.List;

/// Collects the fields of a body in order, and makes a frame of them.
public final class BodyWriter {

    private static final int DEFAULT_BYTES = 64;
    private static final int MAX_TEXT_BYTES = 0xFFFF;

    private ByteBuffer body;

    public BodyWriter() {
        this(DEFAULT_BYTES);
    }

    /// @param bytes that will probably be needed
    public BodyWriter(int bytes) {
        body = allocate(bytes);
        body.position(FrameHeader.BYTES);
    }

    private static ByteBuffer allocate(int bytes) {
        return ByteBuffer.allocate(FrameHeader.BYTES + bytes).order(ByteOrder.LITTLE_ENDIAN);
    }

    public BodyWriter u8(int value) {
        ensureCapacity(1).put((byte) value);
        return this;
    }

    /// One byte: the place of a value in a list, which must have it.
    public <T> BodyWriter oneOf(T value, List<T> values) {
        int code = values.indexOf(value);
        if (code < 0) {
            throw new IllegalArgumentException(value + " has no code; allowed: " + values);
        }
        return u8(code);
    }

    public BodyWriter u16(int value) {
        ensureCapacity(Short.BYTES).putShort((short) value);
        return this;
    }

    public BodyWriter i32(int value) {
        ensureCapacity(Integer.BYTES).putInt(value);
        return this;
    }

    public BodyWriter i64(long value) {
        ensureCapacity(Long.BYTES).putLong(value);
        return this;
    }

    /// Half a key: bytes in the order of the digest.
    public BodyWriter bigEndian(long value) {
        return i64(Long.reverseBytes(value));
    }

    public BodyWriter bytes(byte[] bytes) {
        ensureCapacity(bytes.length).put(bytes);
        return this;
    }

    /// A text: u16 length in bytes, then UTF-8.
    public BodyWriter text(String text) {
        byte[] utf8 = Utf8.encode("text", text);
        u16(Math.min(utf8.length, MAX_TEXT_BYTES));
        return bytes(utf8.length <= MAX_TEXT_BYTES ? utf8 : Arrays.copyOf(utf8, MAX_TEXT_BYTES));
    }

    /// The fields of another body, after those of this one.
    public BodyWriter append(BodyWriter other) {
        ensureCapacity(other.size()).put(other.body.duplicate().flip().position(FrameHeader.BYTES));
        return this;
    }

    /// Bytes so far.
    public int size() {
        return body.position() - FrameHeader.BYTES;
    }

    private ByteBuffer ensureCapacity(int bytes) {
        if (body.remaining() < bytes) {
            ByteBuffer larger = allocate(2 * body.capacity() + bytes);
            body = larger.put(body.flip());
        }
        return body;
    }

    /// The fields so far, for bytes that are no frame.
    public byte[] toBytes() {
        byte[] fields = new byte[size()];
        body.get(FrameHeader.BYTES, fields);
        return fields;
    }

    /// A request with this body.
    ///
    /// @param deadlineNanos how long the reply will be waited for, from now
    public OutboundFrame request(MessageType type, long request, long deadlineNanos) {
        return frame(type, 0, request, deadlineNanos, Payload.NONE);
    }

    /// A request with this body and a payload.
    public OutboundFrame request(MessageType type, long request, long deadlineNanos, Payload payload) {
        return frame(type, 0, request, deadlineNanos, payload);
    }

    /// A reply with this body.
    public OutboundFrame reply(MessageType type, long request) {
        return frame(type, FrameHeader.REPLY, request, Status.OK.code(), Payload.NONE);
    }

    /// A reply with this body and a payload.
    public OutboundFrame reply(MessageType type, long request, Payload payload) {
        return frame(type, FrameHeader.REPLY, request, Status.OK.code(), payload);
    }

    /// A reply that says what is wrong.
    ///
    /// @param type as in the request, known or not
    public static OutboundFrame errorReply(int type, long request, Status status, String text) {
        return shortened(text).frame(type, FrameHeader.REPLY, request, status.code(), Payload.NONE);
    }

    /// The same, and whether it is for the chain that the request is about.
    public static OutboundFrame errorReply(int type, long request, Status status, String text, boolean ofChain) {
        BodyWriter body = shortened(text);
        if (status == Status.BUSY || status == Status.INVALID) {
            body.u8(ofChain ? 1 : 0);
        }
        return body.frame(type, FrameHeader.REPLY, request, status.code(), Payload.NONE);
    }

    private static BodyWriter shortened(String text) {
        int most = 4000;
        String shown = text.length() <= most ? text : text.substring(0, most);
        return new BodyWriter().text(printable(shown));
    }

    /// Without halves of surrogate pairs, which cutting may leave.
    private static String printable(String text) {
        return text.codePoints()
                .map(point -> Character.getType(point) == Character.SURROGATE ? '?' : point)
                .collect(StringBuilder::new, StringBuilder::appendCodePoint, StringBuilder::append)
                .toString();
    }

    private OutboundFrame frame(MessageType type, int flags, long request, long word, Payload payload) {
        return frame(type.code(), flags, request, word, payload);
    }

    private OutboundFrame frame(int type, int flags, long request, long word, Payload payload) {
        int end = body.position();
        new FrameHeader(type, flags, request, size(), (int) payload.bytes(), word).write(body.position(0));
        body.position(end);
        return new OutboundFrame(body.duplicate().flip(), payload);
    }
}
