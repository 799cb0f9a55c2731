package io.kvcache.transport.wire;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Locale;

/// The 32 bytes before every body.
///
/// ```
///  0 u32 magic "KVC1"     4 u16 type     6 u16 flags     8 u64 request
/// 16 u32 body bytes      20 u32 payload bytes           24 u64 deadline or status
/// ```
///
/// @param type [MessageType#code], or one that is not known here
/// @param flags [#REPLY] or 0; bits that are not known are ignored
/// @param request number that the reply repeats; 0 where no reply is wanted
/// @param bodyBytes 0 to [#MAX_BODY_BYTES]
/// @param payloadBytes 0 to [#MAX_PAYLOAD_BYTES]
/// @param deadlineOrStatus of a request how many nanoseconds its sender will wait for the reply (0: not told), of a
///     reply its [Status]
public record FrameHeader(int type, int flags, long request, int bodyBytes, int payloadBytes, long deadlineOrStatus) {

    public static final int BYTES = 32;

    /// "KVC1" in the order of the bytes.
    public static final int MAGIC = 'K' | 'V' << 8 | 'C' << 16 | '1' << 24;

    /// Set in a reply and in whatever belongs to one.
    public static final int REPLY = 1;

    /// A chain of 170,000 blocks, or 70,000 events.
    public static final int MAX_BODY_BYTES = 4 << 20;

    /// The largest block and the largest object.
    public static final int MAX_PAYLOAD_BYTES = 256 << 20;

    private static final int U16 = 0xFFFF;

    /// Reads a header at the buffer's position and moves behind it.
    ///
    /// @throws ProtocolException when it is none
    public static FrameHeader read(ByteBuffer from) throws ProtocolException {
        from.order(ByteOrder.LITTLE_ENDIAN);
        int magic = from.getInt();
        if (magic != MAGIC) {
            throw new ProtocolException(
                    String.format(Locale.ROOT, "magic = 0x%08x; allowed: 0x%08x, \"KVC1\"", magic, MAGIC));
        }
        int type = from.getShort() & U16;
        int flags = from.getShort() & U16;
        long request = from.getLong();
        long body = Integer.toUnsignedLong(from.getInt());
        long payload = Integer.toUnsignedLong(from.getInt());
        check("body", body, MAX_BODY_BYTES);
        check("payload", payload, MAX_PAYLOAD_BYTES);
        return new FrameHeader(type, flags, request, (int) body, (int) payload, from.getLong());
    }

    private static void check(String what, long bytes, int most) throws ProtocolException {
        if (bytes > most) {
            throw new ProtocolException("a %s of %s bytes; allowed: 0 to %s".formatted(what, bytes, most));
        }
    }

    /// Writes the header at the buffer's position and moves behind it.
    public void write(ByteBuffer to) {
        to.order(ByteOrder.LITTLE_ENDIAN);
        to.putInt(MAGIC).putShort((short) type).putShort((short) flags).putLong(request);
        to.putInt(bodyBytes).putInt(payloadBytes).putLong(deadlineOrStatus);
    }

    /// Returns whether this is a reply or belongs to one.
    public boolean isReply() {
        return (flags & REPLY) != 0;
    }

    /// The status of a reply.
    public Status status() {
        return Status.of(deadlineOrStatus);
    }
}
