package io.kvcache.server.resp;

import io.kvcache.server.keyspace.PinnedValue;
import io.kvcache.server.net.SlotIo;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.channel.ChannelHandlerContext;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// Writes replies, in the version that the client asked for. What is small is collected and leaves together; values
/// leave from their slots.
///
/// **Threads.** The connection's loop.
final class RespEncoder {

    /// Values up to this are copied, which costs less than a piece of their own in the gathering write.
    private static final int MAX_COPIED_BYTES = 4096;

    /// Small replies that are collected before they are handed over.
    private static final int MAX_COLLECTED_BYTES = 32 << 10;

    private static final int INITIAL_BYTES = 512;
    private static final ThreadLocal<byte[]> COPY_BUFFER = ThreadLocal.withInitial(() -> new byte[MAX_COPIED_BYTES]);
    private static final byte[] CRLF = {'\r', '\n'};
    private static final byte[] OK = "+OK\r\n".getBytes(StandardCharsets.US_ASCII);
    private static final byte[] NIL = "$-1\r\n".getBytes(StandardCharsets.US_ASCII);
    private static final byte[] NIL_3 = "_\r\n".getBytes(StandardCharsets.US_ASCII);

    private final ChannelHandlerContext context;
    private @Nullable ByteBuf collected;
    private int version = 2;

    RespEncoder(ChannelHandlerContext context) {
        this.context = context;
    }

    int protocolVersion() {
        return version;
    }

    /// @param asked 2 or 3
    void protocolVersion(int asked) {
        version = asked;
    }

    void writeOk() {
        collectBuffer().writeBytes(OK);
    }

    void writeNull() {
        collectBuffer().writeBytes(version == 3 ? NIL_3 : NIL);
    }

    /// A word of the protocol.
    void writeSimple(String word) {
        writeLine('+', word);
    }

    /// An error with its code in front; line ends in it become blanks.
    void writeError(String text) {
        writeLine('-', text.replace('\r', ' ').replace('\n', ' '));
    }

    void writeInteger(long value) {
        writeLine(':', value);
    }

    void writeBulk(byte[] bytes) {
        writeLine('$', bytes.length);
        collectBuffer().writeBytes(bytes).writeBytes(CRLF);
    }

    void writeBulk(String text) {
        writeBulk(text.getBytes(StandardCharsets.UTF_8));
    }

    /// Text for people.
    void writeVerbatim(String text) {
        if (version == 2) {
            writeBulk(text);
            return;
        }
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        writeLine('=', bytes.length + 4);
        ByteBuf out = collectBuffer();
        ByteBufUtil.writeAscii(out, "txt:");
        out.writeBytes(bytes).writeBytes(CRLF);
    }

    /// Begins an array; its elements follow.
    void beginArray(int elements) {
        writeLine('*', elements);
    }

    /// Begins a map; its keys and values follow, in turn.
    void beginMap(int pairs) {
        if (version == 3) {
            writeLine('%', pairs);
        } else {
            beginArray(2 * pairs);
        }
    }

    /// Begins a set; its elements follow.
    void beginSet(int elements) {
        writeLine(version == 3 ? '~' : '*', elements);
    }

    /// A range of a value, from its slots. Takes the value over.
    void writeValue(PinnedValue value, long offset, long length) {
        writeLine('$', length);
        if (length <= MAX_COPIED_BYTES) {
            try (value) {
                value.visit(offset, length, this::copyBytes);
            }
        } else {
            writeCollected();
            SlotIo.write(context, length, each -> value.visit(offset, length, each), value::close);
        }
        collectBuffer().writeBytes(CRLF);
    }

    /// A reply of another server as it came. The memory is native.
    ///
    /// @param release run when the memory is no longer needed
    void writeReply(List<MemorySegment> pieces, Runnable release) {
        long bytes = pieces.stream().mapToLong(MemorySegment::byteSize).sum();
        if (bytes <= MAX_COPIED_BYTES) {
            pieces.forEach(piece -> collectBuffer().writeBytes(piece.asByteBuffer()));
            release.run();
        } else {
            writeCollected();
            SlotIo.write(
                    context,
                    bytes,
                    each -> pieces.forEach(piece -> each.visitSegment(piece, 0, piece.byteSize())),
                    release);
        }
    }

    /// By way of the heap: twice so few bytes take less time than the objects that once would take.
    private void copyBytes(MemorySegment memory, long from, long bytes) {
        byte[] between = COPY_BUFFER.get();
        MemorySegment.copy(memory, ValueLayout.JAVA_BYTE, from, between, 0, (int) bytes);
        collectBuffer().writeBytes(between, 0, (int) bytes);
    }

    private void writeLine(char mark, String text) {
        ByteBuf out = collectBuffer();
        out.writeByte(mark);
        ByteBufUtil.writeUtf8(out, text);
        out.writeBytes(CRLF);
    }

    private void writeLine(char mark, long number) {
        ByteBuf out = collectBuffer();
        out.writeByte(mark);
        IntegerCodec.write(number, out);
        out.writeBytes(CRLF);
    }

    private ByteBuf collectBuffer() {
        ByteBuf out = collected;
        if (out != null && out.readableBytes() > MAX_COLLECTED_BYTES) {
            writeCollected();
            out = null;
        }
        if (out == null) {
            out = context.alloc().directBuffer(INITIAL_BYTES);
            collected = out;
        }
        return out;
    }

    private void writeCollected() {
        ByteBuf out = collected;
        if (out != null) {
            collected = null;
            context.write(out, context.voidPromise());
        }
    }

    /// Sends what was written.
    void flush() {
        writeCollected();
        context.flush();
    }

    /// Throws away what was not handed over.
    void discard() {
        if (collected != null) {
            collected.release();
            collected = null;
        }
    }
}
