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
final class ProtocolSniffer {

    /// Longest first line that is looked through. HTTP servers take 8 KiB.
    static final int MAX_BYTES = 8192;

    private static final int MAX_LM_COMMAND = 5;
    private static final byte[] HTTP = " HTTP/1.".getBytes(StandardCharsets.US_ASCII);

    /// What can be said so far.
    ///
    /// @param kind the protocol, when it is known
    /// @param needsMore whether more bytes may tell
    record Detection(@Nullable ProtocolKind kind, boolean needsMore) {
        static final Detection UNKNOWN = new Detection(null, false);
        static final Detection NEEDS_MORE = new Detection(null, true);
    }

    private ProtocolSniffer() {}

    static Detection detect(ByteBuf in) {
        if (!in.isReadable()) {
            return Detection.NEEDS_MORE;
        }
        int first = in.getUnsignedByte(in.readerIndex());
        if (first == '*') {
            return new Detection(ProtocolKind.RESP, false);
        }
        if (first >= 1 && first <= MAX_LM_COMMAND) {
            return detectLm(in);
        }
        return (Character.isLetter(first) && first < 0x80) || first == '\r' || first == '\n'
                ? detectFromLine(in)
                : Detection.UNKNOWN;
    }

    private static Detection detectLm(ByteBuf in) {
        int known = Math.min(4, in.readableBytes());
        for (int i = 1; i < known; i++) {
            if (in.getByte(in.readerIndex() + i) != 0) {
                return Detection.UNKNOWN;
            }
        }
        return known == 4 ? new Detection(ProtocolKind.LM, false) : Detection.NEEDS_MORE;
    }

    private static Detection detectFromLine(ByteBuf in) {
        int length = in.bytesBefore((byte) '\n');
        if (length < 0) {
            return in.readableBytes() < MAX_BYTES ? Detection.NEEDS_MORE : detectOverlong(in);
        }
        String line = in.toString(in.readerIndex(), length, StandardCharsets.ISO_8859_1);
        int version = line.lastIndexOf(new String(HTTP, StandardCharsets.US_ASCII));
        boolean http = version > 0 && line.strip().length() == version + HTTP.length + 1;
        return new Detection(http ? ProtocolKind.HTTP : ProtocolKind.RESP, false);
    }

    /// A line this long is a request for a path that HTTP will refuse, or nothing.
    private static Detection detectOverlong(ByteBuf in) {
        String start = in.toString(in.readerIndex(), 10, StandardCharsets.ISO_8859_1);
        boolean http = List.of("GET /", "PUT /", "HEAD /", "POST /", "DELETE /").stream()
                .anyMatch(start::startsWith);
        return http ? new Detection(ProtocolKind.HTTP, false) : Detection.UNKNOWN;
    }
}
