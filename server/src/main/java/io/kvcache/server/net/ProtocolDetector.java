package io.kvcache.server.net;

import io.kvcache.server.net.Connection.CloseReason;
import io.kvcache.server.net.Protocol.ProtocolKind;
import io.netty.buffer.ByteBuf;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// Waits until a connection's first bytes say what it speaks, installs that protocol, gives it the bytes and
/// leaves.
final class ProtocolDetector extends ChannelInboundHandlerAdapter {

    private static final byte[] TOO_MANY_CLIENTS =
            "-ERR max number of clients reached\r\n".getBytes(StandardCharsets.US_ASCII);

    private final Map<ProtocolKind, Protocol> protocols;
    private final Connection connection;
    private @Nullable ByteBuf firstBytes;

    /// @param protocols those this listener speaks; when it is one, nothing is guessed
    ProtocolDetector(Map<ProtocolKind, Protocol> protocols, Connection connection) {
        this.protocols = protocols;
        this.connection = connection;
    }

    @Override
    public void channelRead(ChannelHandlerContext context, Object message) {
        connection.beginRequest();
        ByteBuf seen = firstBytes == null ? (ByteBuf) message : merge(context, firstBytes, (ByteBuf) message);
        firstBytes = seen;
        ProtocolSniffer.Detection detection = protocols.size() == 1
                ? new ProtocolSniffer.Detection(protocols.keySet().iterator().next(), false)
                : ProtocolSniffer.detect(seen);
        if (detection.needsMore()) {
            return;
        }
        Protocol told = detection.kind() == null ? null : protocols.get(detection.kind());
        if (told == null) {
            connection.close(CloseReason.UNKNOWN_PROTOCOL);
        } else if (connection.isOverLimit() && told.kind() != ProtocolKind.HTTP) {
            reject(context, told.kind());
        } else {
            install(context, told, seen);
        }
    }

    /// All connections are taken; a client of Redis' protocol gets an error in that protocol.
    private void reject(ChannelHandlerContext context, ProtocolKind kind) {
        if (kind == ProtocolKind.RESP) {
            ByteBuf told = context.alloc().buffer(TOO_MANY_CLIENTS.length);
            context.write(told.writeBytes(TOO_MANY_CLIENTS), context.voidPromise());
        }
        connection.closeAfterReplies(CloseReason.TOO_MANY);
    }

    private static ByteBuf merge(ChannelHandlerContext context, ByteBuf before, ByteBuf after) {
        ByteBuf both = context.alloc().buffer(before.readableBytes() + after.readableBytes());
        both.writeBytes(before).writeBytes(after);
        before.release();
        after.release();
        return both;
    }

    private void install(ChannelHandlerContext context, Protocol told, ByteBuf seen) {
        firstBytes = null;
        connection.protocol(told.kind());
        told.install(context.pipeline(), connection);
        context.pipeline().addLast(new Connection.Tail(connection));
        context.fireChannelRead(seen);
        context.fireChannelReadComplete();
        context.pipeline().remove(this);
    }

    @Override
    public void handlerRemoved(ChannelHandlerContext context) {
        if (firstBytes != null) {
            firstBytes.release();
            firstBytes = null;
        }
    }

    @Override
    public void channelInactive(ChannelHandlerContext context) {
        handlerRemoved(context);
        context.fireChannelInactive();
    }

    /// Tells protocols apart by the bytes that a client sends first.
    ///
    /// A request of `lm://` begins with a command of 1 to 5, as four bytes little-endian. One of RESP begins with
    /// `*`, or is a line of words (telnet, a shell); one of HTTP is a line that ends in `HTTP/1.x`. Words and HTTP
    /// can only be told apart at the end of the line, except that no HTTP method is followed by anything but a
    /// path.
    static final class ProtocolSniffer {

        /// Longest first line that is looked through. HTTP servers take 8 KiB.
        static final int MAX_BYTES = 8192;

        private static final int MAX_LM_COMMAND = 5;
        private static final byte[] HTTP = " HTTP/1.".getBytes(StandardCharsets.US_ASCII);

        /// The result for the bytes so far.
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
            boolean http = Stream.of("GET ", "PUT ", "HEAD ", "POST ", "DELETE ")
                    .anyMatch(method -> start.startsWith(method + "/") || start.startsWith(method + "ht"));
            return http ? new Detection(ProtocolKind.HTTP, false) : Detection.UNKNOWN;
        }
    }
}
