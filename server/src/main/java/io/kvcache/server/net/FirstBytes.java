package io.kvcache.server.net;

import io.netty.buffer.ByteBuf;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// Tells protocols apart by the bytes that a client sends first.
///
/// A request of `lm://` begins with a command of 1 to 5, as four bytes little-endian. One of RESP begins with `*`, or
/// is a line of words (telnet, a shell); one of HTTP is a line that ends in `HTTP/1.x`. Words and HTTP can only be
/// told apart at the end of the line, except that no HTTP method is followed by anything but a path.
final class FirstBytes {

    /// Longest first line that is looked through. HTTP servers take 8 KiB.
    static final int MOST_BYTES = 8192;

    private static final int HIGHEST_LM_COMMAND = 5;
    private static final byte[] HTTP = " HTTP/1.".getBytes(StandardCharsets.US_ASCII);

    /// What can be said so far.
    ///
    /// @param kind the protocol, when it is known
    /// @param more whether more bytes may tell
    record Verdict(@Nullable ProtocolKind kind, boolean more) {
        static final Verdict UNKNOWN = new Verdict(null, false);
        static final Verdict MORE = new Verdict(null, true);
    }

    private FirstBytes() {}

    static Verdict tell(ByteBuf in) {
        if (!in.isReadable()) {
            return Verdict.MORE;
        }
        int first = in.getUnsignedByte(in.readerIndex());
        if (first == '*') {
            return new Verdict(ProtocolKind.RESP, false);
        }
        if (first >= 1 && first <= HIGHEST_LM_COMMAND) {
            return lm(in);
        }
        return (Character.isLetter(first) && first < 0x80) || first == '\r' || first == '\n'
                ? line(in)
                : Verdict.UNKNOWN;
    }

    private static Verdict lm(ByteBuf in) {
        int known = Math.min(4, in.readableBytes());
        for (int i = 1; i < known; i++) {
            if (in.getByte(in.readerIndex() + i) != 0) {
                return Verdict.UNKNOWN;
            }
        }
        return known == 4 ? new Verdict(ProtocolKind.LM, false) : Verdict.MORE;
    }

    private static Verdict line(ByteBuf in) {
        int length = in.bytesBefore((byte) '\n');
        if (length < 0) {
            return in.readableBytes() < MOST_BYTES ? Verdict.MORE : overlong(in);
        }
        String line = in.toString(in.readerIndex(), length, StandardCharsets.ISO_8859_1);
        int version = line.lastIndexOf(new String(HTTP, StandardCharsets.US_ASCII));
        boolean http = version > 0 && line.strip().length() == version + HTTP.length + 1;
        return new Verdict(http ? ProtocolKind.HTTP : ProtocolKind.RESP, false);
    }

    /// A line this long is a request for a path that HTTP will refuse, or nothing.
    private static Verdict overlong(ByteBuf in) {
        String start = in.toString(in.readerIndex(), 10, StandardCharsets.ISO_8859_1);
        boolean http = List.of("GET /", "PUT /", "HEAD /", "POST /", "DELETE /").stream()
                .anyMatch(start::startsWith);
        return http ? new Verdict(ProtocolKind.HTTP, false) : Verdict.UNKNOWN;
    }
}
