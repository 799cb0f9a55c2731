package io.kvcache.server.forward;

import io.netty.buffer.ByteBuf;
import java.nio.charset.StandardCharsets;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/// Finds where a reply ends.
///
/// Not safe for several threads.
public interface ReplyFramer {

    /// Looks at more bytes of a reply.
    ///
    /// @param part left as it is
    /// @return whether the reply ends with these bytes
    /// @throws IllegalStateException when the bytes are no reply, or go on behind its end
    boolean isEnd(ByteBuf part);

    /// Finds the end of one reply of Redis' protocol.
    final class Resp implements ReplyFramer {

        private static final int MAX_LINE_BYTES = 1 << 20;

        /// Replies that are still to come: the elements of arrays, and the reply itself.
        private long left = 1;

        /// Bytes of a bulk and of the end of its line that are still to come.
        private long bulkLeft;

        private final StringBuilder line = new StringBuilder();

        @Override
        public boolean isEnd(ByteBuf part) {
            int at = part.readerIndex();
            int end = part.writerIndex();
            while (at < end) {
                if (left == 0 && bulkLeft == 0) {
                    throw new IllegalStateException((end - at) + " bytes behind the end of a reply");
                }
                if (bulkLeft > 0) {
                    int skipped = (int) Math.min(bulkLeft, end - at);
                    bulkLeft -= skipped;
                    at += skipped;
                } else {
                    at = readLine(part, at, end);
                }
            }
            return left == 0 && bulkLeft == 0;
        }

        private int readLine(ByteBuf part, int from, int end) {
            int newline = part.indexOf(from, end, (byte) '\n');
            int to = newline < 0 ? end : newline + 1;
            if (line.length() + to - from > MAX_LINE_BYTES) {
                throw new IllegalStateException("a line of more than " + MAX_LINE_BYTES + " bytes in a reply");
            }
            line.append(part.toString(from, to - from, StandardCharsets.ISO_8859_1));
            if (newline >= 0) {
                onLine(line.toString().stripTrailing());
                line.setLength(0);
            }
            return to;
        }

        private void onLine(String text) {
            left--;
            char mark = text.isEmpty() ? ' ' : text.charAt(0);
            switch (mark) {
                case '$', '=', '!' -> {
                    long bytes = number(text);
                    bulkLeft = bytes < 0 ? 0 : bytes + 2;
                }
                case '*', '~', '>' -> left += Math.max(0, number(text));
                case '%' -> left += 2 * Math.max(0, number(text));
                case '+', '-', ':', '_', '#', ',', '(' -> {}
                default -> throw new IllegalStateException("a reply that begins with '" + mark + "'");
            }
        }

        private static long number(String text) {
            try {
                return Long.parseLong(text, 1, text.length(), 10);
            } catch (NumberFormatException wrong) {
                throw new IllegalStateException("a reply with the length '" + text.substring(1) + "'", wrong);
            }
        }
    }

    /// Finds the end of one reply of HTTP/1.1 of a known length.
    final class Http implements ReplyFramer {

        private static final int MAX_HEAD_BYTES = 16 << 10;
        private static final String HEAD_END = "\r\n\r\n";
        private static final Pattern LENGTH = Pattern.compile("(?i)\r\ncontent-length: *(\\d{1,18})\r\n");
        private static final Set<String> WITHOUT_BODY = Set.of("204", "304");

        /// Behind `HTTP/1.1`.
        private static final int STATUS_START = 9;

        private final boolean hasBody;
        private final StringBuilder head = new StringBuilder();
        private boolean headRead;
        private long bodyLeft;

        /// @param hasBody false for replies to HEAD
        public Http(boolean hasBody) {
            this.hasBody = hasBody;
        }

        @Override
        public boolean isEnd(ByteBuf part) {
            int bodyBytes = part.readableBytes();
            if (!headRead) {
                bodyBytes -= readHead(part);
            }
            bodyLeft -= bodyBytes;
            if (bodyLeft < 0) {
                throw new IllegalStateException(-bodyLeft + " bytes behind the end of a reply");
            }
            return headRead && bodyLeft == 0;
        }

        /// Returns how many bytes of a part are of the head.
        private int readHead(ByteBuf part) {
            int before = head.length();
            int most = Math.min(part.readableBytes(), MAX_HEAD_BYTES - before);
            head.append(part.toString(part.readerIndex(), most, StandardCharsets.ISO_8859_1));
            int end = head.indexOf(HEAD_END);
            if (end < 0) {
                if (head.length() == MAX_HEAD_BYTES) {
                    throw new IllegalStateException("the head of a reply has more than " + MAX_HEAD_BYTES + " bytes");
                }
                return most;
            }
            headRead = true;
            Matcher length = LENGTH.matcher(head).region(0, end + 2);
            if (hasBody && !WITHOUT_BODY.contains(head.substring(STATUS_START, STATUS_START + 3))) {
                if (!length.find()) {
                    throw new IllegalStateException("a reply of HTTP without Content-Length");
                }
                bodyLeft = Long.parseLong(length.group(1));
            }
            return end + HEAD_END.length() - before;
        }
    }
}
