package io.kvcache.server.resp;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// Turns bytes into requests, wherever the network cuts them.
///
/// Nothing is buffered but the argument or line that is being read: what has arrived is taken at once, values to their
/// slots. A request is an array of bulk strings, or a line of words.
///
/// **Threads.** The connection's loop.
final class RespDecoder implements AutoCloseable {

    /// A length with its mark has no more; longer lines are no lengths.
    private static final int MOST_LENGTH_LINE = 32;

    /// Less is copied sooner than read by a call of its own.
    private static final int LEAST_LANDING = 8 << 10;

    /// No sum over so many digits is too large for a number.
    private static final int MOST_SHORT_DIGITS = 9;

    private static final long NOT_SHORT = -1;
    private static final short CRLF = '\r' << 8 | '\n';

    /// Longest line of words, as with Redis.
    private static final int MOST_INLINE = 64 << 10;

    /// Who the requests are for.
    interface Sink {

        /// The first byte of a request was read.
        void begins();

        /// Whether an argument is a value that goes to a slot; null when it is an argument like any other.
        ///
        /// @param soFar the arguments before it
        /// @param count arguments that the request will have
        /// @param bytes of this argument
        @Nullable
        IncomingValue value(Request soFar, int count, long bytes);

        /// A request is complete, or was empty.
        void ends(Request request);

        /// Whether no more requests are wanted for now.
        boolean paused();
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

    private final RespLimits limits;
    private final Arguments arguments;
    private final Sink sink;
    private State state = State.START;
    private Request request = new Request();
    private byte[] line = new byte[MOST_LENGTH_LINE];
    private int lineLength;
    private int count;
    private int collected;
    private byte[] argument = NOTHING;
    private int argumentLength;
    private @Nullable IncomingValue value;
    private long valueLeft;
    private int endBytes;

    /// @param arguments what they take of the heap, given back by [#answered]
    RespDecoder(RespLimits limits, Arguments arguments, Sink sink) {
        this.limits = limits;
        this.arguments = arguments;
        this.sink = sink;
    }

    /// Takes bytes until there are no more, or the sink pauses.
    ///
    /// @throws RespException when they are not the protocol; nothing may follow
    void decode(ByteBuf in) throws RespException {
        while (in.isReadable() && (state != State.START || !sink.paused())) {
            switch (state) {
                case START -> start(in);
                case COUNT -> count(in);
                case LENGTH -> length(in);
                case ARGUMENT -> argument(in);
                case VALUE -> value(in);
                case END_OF_BULK -> endOfBulk(in);
                case INLINE -> inline(in);
            }
        }
    }

    private void start(ByteBuf in) {
        sink.begins();
        lineLength = 0;
        collected = 0;
        if (in.getByte(in.readerIndex()) == '*') {
            in.skipBytes(1);
            state = State.COUNT;
        } else {
            state = State.INLINE;
        }
    }

    private void count(ByteBuf in) throws RespException {
        long asked = shortNumber(in, 0);
        if (asked == NOT_SHORT) {
            if (!line(in, MOST_LENGTH_LINE, "too big mbulk count string")) {
                return;
            }
            asked = number("invalid multibulk length");
        }
        if (asked > limits.arguments()) {
            throw new RespException("invalid multibulk length");
        }
        count = (int) Math.max(0, asked);
        if (count == 0) {
            complete();
        } else {
            state = State.LENGTH;
        }
    }

    private void length(ByteBuf in) throws RespException {
        byte mark = lineLength == 0 ? in.getByte(in.readerIndex()) : (byte) '$';
        if (mark != '$') {
            throw new RespException("expected '$', got '" + (mark > ' ' && mark < 0x7f ? (char) mark : '?') + "'");
        }
        long bytes = shortNumber(in, 1);
        if (bytes == NOT_SHORT) {
            if (!line(in, MOST_LENGTH_LINE, "too big bulk count string")) {
                return;
            }
            bytes = number("invalid bulk length");
        }
        if (bytes < 0 || bytes > limits.bulkBytes()) {
            throw new RespException("invalid bulk length");
        }
        IncomingValue incoming = sink.value(request, count, bytes);
        if (incoming != null) {
            value = incoming;
            request.add(incoming);
            arguments.addValue();
            valueLeft = bytes;
            state = bytes == 0 ? State.END_OF_BULK : State.VALUE;
            endBytes = 0;
            return;
        }
        collected += (int) Math.min(bytes, limits.requestBytes());
        if (bytes > limits.argumentBytes() || collected > limits.requestBytes()) {
            throw new RespException("argument of " + bytes + " bytes; it takes up to " + limits.argumentBytes()
                    + " each, " + limits.requestBytes() + " in all, where no value is expected");
        }
        arguments.add(bytes);
        argument = new byte[(int) bytes];
        argumentLength = 0;
        state = State.ARGUMENT;
        if (bytes == 0) {
            argumentComplete();
        }
    }

    private void argument(ByteBuf in) {
        int part = Math.min(in.readableBytes(), argument.length - argumentLength);
        in.readBytes(argument, argumentLength, part);
        argumentLength += part;
        if (argumentLength == argument.length) {
            argumentComplete();
        }
    }

    private void argumentComplete() {
        request.add(argument);
        endBytes = 0;
        state = State.END_OF_BULK;
    }

    private void value(ByteBuf in) {
        int part = (int) Math.min(in.readableBytes(), valueLeft);
        if (value != null) {
            value.take(in, part);
        }
        valueLeft -= part;
        if (valueLeft == 0) {
            endBytes = 0;
            state = State.END_OF_BULK;
        }
    }

    /// The slot that the next bytes belong to, when they are of a value and enough to matter.
    @Nullable
    ByteBuffer landing() {
        return state == State.VALUE && value != null && valueLeft >= LEAST_LANDING ? value.room() : null;
    }

    /// Bytes of the value were put into its slot.
    void landed(int bytes) {
        if (value != null) {
            value.landed(bytes);
        }
        valueLeft -= bytes;
        if (valueLeft == 0) {
            endBytes = 0;
            state = State.END_OF_BULK;
        }
    }

    private void endOfBulk(ByteBuf in) throws RespException {
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
                complete();
            }
        }
    }

    private void inline(ByteBuf in) throws RespException {
        if (!line(in, MOST_INLINE, "too big inline request")) {
            return;
        }
        List<byte[]> words = InlineWords.split(Arrays.copyOf(line, lineLength));
        for (byte[] word : words) {
            IncomingValue incoming = sink.value(request, words.size(), word.length);
            if (incoming == null) {
                request.add(word);
            } else {
                incoming.take(Unpooled.wrappedBuffer(word), word.length);
                request.add(incoming);
            }
        }
        line = new byte[MOST_LENGTH_LINE];
        complete();
    }

    private void complete() {
        Request done = request;
        request = new Request(done);
        value = null;
        argument = NOTHING;
        state = State.START;
        sink.ends(done);
    }

    /// Reads on to the end of a line; answers whether it is there. The line then has no line end.
    private boolean line(ByteBuf in, int most, String tooLong) throws RespException {
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
    /// every one is: read where it lies. Any other is left to [#line] and [#number].
    ///
    /// @param mark bytes before the digits
    /// @return [#NOT_SHORT] when nothing was read
    private long shortNumber(ByteBuf in, int mark) {
        if (lineLength > 0) {
            return NOT_SHORT;
        }
        int from = in.readerIndex() + mark;
        int end = Math.min(in.writerIndex() - 1, from + MOST_SHORT_DIGITS + 1);
        long value = 0;
        for (int at = from; at < end; at++) {
            int each = in.getByte(at);
            if (each == '\r' && at > from && in.getByte(at + 1) == '\n') {
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
    private long number(String mistake) throws RespException {
        int from = lineLength > 0 && line[0] == '$' ? 1 : 0;
        try {
            return Numbers.parse(line, from, lineLength);
        } catch (NumberFormatException _) {
            throw new RespException(mistake);
        } finally {
            lineLength = 0;
        }
    }

    /// The last request that was complete is answered, and nothing of it needed any more.
    void answered() {
        arguments.release();
    }

    /// Gives up a request that is not complete.
    @Override
    public void close() {
        arguments.release();
        request.close();
    }
}
