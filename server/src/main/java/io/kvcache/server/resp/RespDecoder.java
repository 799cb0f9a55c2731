package io.kvcache.server.resp;

import io.kvcache.server.resp.RespRequest.RequestMemory;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// Turns bytes into requests, wherever the network cuts them.
///
/// Nothing is buffered but the argument or line that is being read: what has arrived is taken at once, values to
/// their slots. A request is an array of bulk strings, or a line of words.
///
/// **Threads.** The connection's loop.
final class RespDecoder implements AutoCloseable {

    /// Arguments of one request.
    private static final int MAX_ARGUMENTS = 1 << 16;

    /// Bytes of one argument that is no value: keys have at most 4 KiB, and only ECHO and PING take more.
    private static final int MAX_ARGUMENT_BYTES = 1 << 16;

    /// Bytes of all arguments of one request together. Values do not count, as they go straight to their slots.
    private static final int MAX_REQUEST_BYTES = 4 << 20;

    /// Highest length that is believed; more ends the connection, as with Redis.
    private static final long MAX_BULK_BYTES = 512L << 20;

    /// A length with its mark has no more; longer lines are not lengths.
    private static final int MAX_LENGTH_LINE = 32;

    /// Less is copied sooner than read by a call of its own.
    private static final int MIN_DIRECT_READ = 8 << 10;

    /// No sum over so many digits is too large for a number.
    private static final int MAX_SHORT_DIGITS = 9;

    private static final long NOT_SHORT = -1;
    private static final short CRLF = '\r' << 8 | '\n';

    /// Longest line of words, as with Redis.
    private static final int MAX_INLINE = 64 << 10;

    /// The receiver of the requests.
    interface RequestSink {

        /// The first byte of a request was read.
        void onRequestStart();

        /// A request begins, and others may have come behind it.
        ///
        /// @param in where it begins; to be looked at only
        /// @return how many of them need not be shown again
        default int lookAhead(ByteBuf in) {
            return 0;
        }

        /// Whether an argument is a value that goes to a slot; null when it is an argument like any other.
        ///
        /// @param soFar the arguments before it
        /// @param count arguments that the request will have
        /// @param bytes of this argument
        @Nullable
        ValueUpload beginValue(RespRequest soFar, int count, long bytes);

        /// A request is complete, or was empty.
        void onRequest(RespRequest request);

        /// Returns whether no more requests are wanted for now.
        boolean isPaused();
    }

    private static final byte[] NOTHING = new byte[0];

    private enum State {
        START,
        COUNT,
        LENGTH,
        ARGUMENT,
        VALUE,
        END_OF_BULK,
        INLINE
    }

    private final RequestMemory requestMemory;
    private final RequestSink sink;
    private State state = State.START;
    private RespRequest request = new RespRequest();
    private byte[] line = new byte[MAX_LENGTH_LINE];
    private int lineLength;
    private int count;
    private int collected;
    private byte[] argument = NOTHING;
    private int argumentLength;
    private @Nullable ValueUpload value;
    private long valueLeft;
    private int endBytes;
    /// Requests that begin here and were shown to the sink before.
    private int seenAhead;

    /// @param requestMemory what they take of the heap, given back by [#releaseMemory]
    RespDecoder(RequestMemory requestMemory, RequestSink sink) {
        this.requestMemory = requestMemory;
        this.sink = sink;
    }

    /// Takes bytes until there are no more, or the sink pauses.
    ///
    /// @throws RespException when they are not the protocol; nothing may follow
    void decode(ByteBuf in) throws RespException {
        while (in.isReadable() && (state != State.START || !sink.isPaused())) {
            switch (state) {
                case START -> readStart(in);
                case COUNT -> readCount(in);
                case LENGTH -> readLength(in);
                case ARGUMENT -> readArgument(in);
                case VALUE -> readValue(in);
                case END_OF_BULK -> readBulkEnd(in);
                case INLINE -> readInline(in);
            }
        }
    }

    private void readStart(ByteBuf in) {
        if (seenAhead == 0) {
            seenAhead = sink.lookAhead(in);
        }
        seenAhead = Math.max(0, seenAhead - 1);
        sink.onRequestStart();
        lineLength = 0;
        collected = 0;
        if (in.getByte(in.readerIndex()) == '*') {
            in.skipBytes(1);
            state = State.COUNT;
        } else {
            state = State.INLINE;
        }
    }

    private void readCount(ByteBuf in) throws RespException {
        long asked = readShortNumber(in, 0);
        if (asked == NOT_SHORT) {
            if (!readLine(in, MAX_LENGTH_LINE, "too big mbulk count string")) {
                return;
            }
            asked = parseNumber("invalid multibulk length");
        }
        if (asked > MAX_ARGUMENTS) {
            throw new RespException("invalid multibulk length");
        }
        count = (int) Math.max(0, asked);
        if (count == 0) {
            onRequestComplete();
        } else {
            state = State.LENGTH;
        }
    }

    private void readLength(ByteBuf in) throws RespException {
        byte mark = lineLength == 0 ? in.getByte(in.readerIndex()) : (byte) '$';
        if (mark != '$') {
            throw new RespException("expected '$', got '" + (mark > ' ' && mark < 0x7f ? (char) mark : '?') + "'");
        }
        long bytes = readShortNumber(in, 1);
        if (bytes == NOT_SHORT) {
            if (!readLine(in, MAX_LENGTH_LINE, "too big bulk count string")) {
                return;
            }
            bytes = parseNumber("invalid bulk length");
        }
        if (bytes < 0 || bytes > MAX_BULK_BYTES) {
            throw new RespException("invalid bulk length");
        }
        ValueUpload incoming = sink.beginValue(request, count, bytes);
        if (incoming != null) {
            value = incoming;
            request.add(incoming);
            requestMemory.reserveValue();
            valueLeft = bytes;
            state = bytes == 0 ? State.END_OF_BULK : State.VALUE;
            endBytes = 0;
            return;
        }
        collected += (int) Math.min(bytes, MAX_REQUEST_BYTES);
        if (bytes > MAX_ARGUMENT_BYTES || collected > MAX_REQUEST_BYTES) {
            throw new RespException("argument of " + bytes + " bytes; it takes up to " + MAX_ARGUMENT_BYTES + " each, "
                    + MAX_REQUEST_BYTES + " in all, where no value is expected");
        }
        requestMemory.reserveArgument(bytes);
        argument = new byte[(int) bytes];
        argumentLength = 0;
        state = State.ARGUMENT;
        if (bytes == 0) {
            onArgument();
        }
    }

    private void readArgument(ByteBuf in) {
        int part = Math.min(in.readableBytes(), argument.length - argumentLength);
        in.readBytes(argument, argumentLength, part);
        argumentLength += part;
        if (argumentLength == argument.length) {
            onArgument();
        }
    }

    private void onArgument() {
        request.add(argument);
        endBytes = 0;
        state = State.END_OF_BULK;
    }

    private void readValue(ByteBuf in) {
        int part = (int) Math.min(in.readableBytes(), valueLeft);
        if (value != null) {
            value.onBytes(in, part);
        }
        valueLeft -= part;
        if (valueLeft == 0) {
            endBytes = 0;
            state = State.END_OF_BULK;
        }
    }

    /// The slot that the next bytes belong to, when they are of a value and enough to matter.
    @Nullable
    ByteBuffer writableBuffer() {
        return state == State.VALUE && value != null && valueLeft >= MIN_DIRECT_READ ? value.writableBuffer() : null;
    }

    /// Bytes of the value were put into its slot.
    void bytesWritten(int bytes) {
        if (value != null) {
            value.bytesWritten(bytes);
        }
        valueLeft -= bytes;
        if (valueLeft == 0) {
            endBytes = 0;
            state = State.END_OF_BULK;
        }
    }

    private void readBulkEnd(ByteBuf in) throws RespException {
        if (endBytes == 0 && in.readableBytes() >= 2 && in.getShort(in.readerIndex()) == CRLF) {
            in.skipBytes(2);
            endBytes = 2;
        } else {
            byte expected = (byte) (endBytes == 0 ? '\r' : '\n');
            if (in.readByte() != expected) {
                throw new RespException("expected CRLF after a bulk string");
            }
            endBytes++;
        }
        if (endBytes == 2) {
            lineLength = 0;
            state = State.LENGTH;
            if (request.count() == count) {
                onRequestComplete();
            }
        }
    }

    private void readInline(ByteBuf in) throws RespException {
        if (!readLine(in, MAX_INLINE, "too big inline request")) {
            return;
        }
        List<byte[]> words = InlineParser.split(Arrays.copyOf(line, lineLength));
        for (byte[] word : words) {
            ValueUpload incoming = sink.beginValue(request, words.size(), word.length);
            if (incoming == null) {
                request.add(word);
            } else {
                incoming.onBytes(Unpooled.wrappedBuffer(word), word.length);
                request.add(incoming);
            }
        }
        line = new byte[MAX_LENGTH_LINE];
        onRequestComplete();
    }

    private void onRequestComplete() {
        RespRequest done = request;
        request = new RespRequest(done);
        value = null;
        argument = NOTHING;
        state = State.START;
        sink.onRequest(done);
    }

    /// Reads on to the end of a line; answers whether it is there. The line then has no line end.
    private boolean readLine(ByteBuf in, int most, String tooLong) throws RespException {
        int end = in.bytesBefore((byte) '\n');
        int part = end < 0 ? in.readableBytes() : end;
        if (lineLength + part > most) {
            throw new RespException(tooLong);
        }
        if (lineLength + part > line.length) {
            line = Arrays.copyOf(line, Math.min(most, Math.max(2 * line.length, lineLength + part)));
        }
        in.readBytes(line, lineLength, part);
        lineLength += part;
        if (end < 0) {
            return false;
        }
        in.skipBytes(1);
        if (lineLength > 0 && line[lineLength - 1] == '\r') {
            lineLength--;
        }
        return true;
    }

    /// The number of a line that is here as a whole, with few digits and nothing else, as nearly
    /// every one is: read where it lies. Any other is left to [#readLine] and [#parseNumber].
    ///
    /// @param mark bytes before the digits
    /// @return [#NOT_SHORT] when nothing was read
    private long readShortNumber(ByteBuf in, int mark) {
        if (lineLength > 0) {
            return NOT_SHORT;
        }
        int from = in.readerIndex() + mark;
        int end = Math.min(in.writerIndex() - 1, from + MAX_SHORT_DIGITS + 1);
        long value = 0;
        for (int at = from; at < end; at++) {
            int each = in.getByte(at);
            if (each == '\r' && at > from && in.getByte(at + 1) == '\n') {
                if (at > from + 1 && in.getByte(from) == '0') {
                    return NOT_SHORT;
                }
                in.readerIndex(at + 2);
                return value;
            }
            if (each < '0' || each > '9') {
                return NOT_SHORT;
            }
            value = 10 * value + each - '0';
        }
        return NOT_SHORT;
    }

    /// The number of the line that was read; behind the mark when that is part of it.
    private long parseNumber(String mistake) throws RespException {
        int from = lineLength > 0 && line[0] == '$' ? 1 : 0;
        try {
            return IntegerCodec.parse(line, from, lineLength);
        } catch (NumberFormatException _) {
            throw new RespException(mistake);
        } finally {
            lineLength = 0;
        }
    }

    /// The last request that was complete is answered, and nothing of it needed any more.
    void releaseMemory() {
        requestMemory.release();
    }

    /// Gives up a request that is not complete.
    @Override
    public void close() {
        requestMemory.release();
        request.close();
    }

    /// A line of words as typed into telnet: parted by blanks; in double quotes with escapes, in single quotes as
    /// they are.
    private static final class InlineParser {

        private final byte[] line;
        private final List<byte[]> words = new ArrayList<>();
        private int at;

        private InlineParser(byte[] line) {
            this.line = line;
        }

        /// @throws RespException when a quote is not closed
        static List<byte[]> split(byte[] line) throws RespException {
            InlineParser split = new InlineParser(line);
            while (split.skipBlanks()) {
                split.words.add(split.readWord());
            }
            return split.words;
        }

        private boolean skipBlanks() {
            while (at < line.length && isBlank(line[at])) {
                at++;
            }
            return at < line.length;
        }

        private byte[] readWord() throws RespException {
            ByteArrayOutputStream word = new ByteArrayOutputStream();
            while (at < line.length && !isBlank(line[at])) {
                byte each = line[at++];
                switch (each) {
                    case '"' -> readDoubleQuoted(word);
                    case '\'' -> readSingleQuoted(word);
                    default -> word.write(each);
                }
            }
            return word.toByteArray();
        }

        private void readDoubleQuoted(ByteArrayOutputStream word) throws RespException {
            while (at < line.length) {
                byte each = line[at++];
                if (each == '"') {
                    return;
                }
                word.write(each == '\\' && at < line.length ? readEscape() : each);
            }
            throw new RespException("unbalanced quotes in request");
        }

        private int readEscape() {
            byte each = line[at++];
            if (each == 'x' && at + 2 <= line.length && isHex(line[at]) && isHex(line[at + 1])) {
                at += 2;
                return HexFormat.fromHexDigit(line[at - 2]) << 4 | HexFormat.fromHexDigit(line[at - 1]);
            }
            return switch (each) {
                case 'n' -> '\n';
                case 'r' -> '\r';
                case 't' -> '\t';
                case 'b' -> '\b';
                case 'a' -> 7;
                default -> each;
            };
        }

        private void readSingleQuoted(ByteArrayOutputStream word) throws RespException {
            while (at < line.length) {
                byte each = line[at++];
                if (each == '\'') {
                    return;
                }
                word.write(each);
            }
            throw new RespException("unbalanced quotes in request");
        }

        private static boolean isHex(byte each) {
            return HexFormat.isHexDigit(each);
        }

        private static boolean isBlank(byte each) {
            return each == ' ' || each == '\t' || each == '\r' || each == '\n' || each == 0;
        }
    }

    /// The input is not RESP. The connection cannot continue, as the start of the next request is
    /// unknown.
    static final class RespException extends Exception {

        private static final long serialVersionUID = 1;

        RespException(String message) {
            super(message, null, false, false);
        }
    }
}
