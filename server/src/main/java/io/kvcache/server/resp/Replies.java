package io.kvcache.server.resp;

import io.kvcache.server.keyspace.PinnedValue;
import io.kvcache.server.net.ZeroCopyIo;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.channel.ChannelHandlerContext;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import org.jspecify.annotations.Nullable;

/// Writes replies, in the version that the client asked for. What is small is collected and leaves together; values
/// leave from their slots.
///
/// **Threads.** The connection's loop.
final class Replies {

    /// Values up to this are copied, which costs less than a piece of their own in the gathering write.
    private static final int COPIED_BYTES = 4096;

    /// Small replies that are collected before they are handed over.
    private static final int COLLECTED_BYTES = 32 << 10;

    private static final int FIRST_BYTES = 512;
    private static final ThreadLocal<byte[]> BETWEEN = ThreadLocal.withInitial(() -> new byte[COPIED_BYTES]);
    private static final byte[] CRLF = {'\r', '\n'};
    private static final byte[] OK = "+OK\r\n".getBytes(StandardCharsets.US_ASCII);
    private static final byte[] NIL = "$-1\r\n".getBytes(StandardCharsets.US_ASCII);
    private static final byte[] NIL_3 = "_\r\n".getBytes(StandardCharsets.US_ASCII);

    private final ChannelHandlerContext context;
    private @Nullable ByteBuf collected;
    private int version = 2;

    Replies(ChannelHandlerContext context) {
        this.context = context;
    }

    int version() {
        return version;
    }

    /// @param asked 2 or 3
    void version(int asked) {
        version = asked;
    }

    void ok() {
        room().writeBytes(OK);
    }

    void nil() {
        room().writeBytes(version == 3 ? NIL_3 : NIL);
    }

    /// A word of the protocol.
    void simple(String word) {
        line('+', word);
    }

    /// An error with its code in front; line ends in it become blanks.
    void error(String text) {
        line('-', text.replace('\r', ' ').replace('\n', ' '));
    }

    void integer(long value) {
        line(':', value);
    }

    void bulk(byte[] bytes) {
        line('$', bytes.length);
        room().writeBytes(bytes).writeBytes(CRLF);
    }

    void bulk(String text) {
        bulk(text.getBytes(StandardCharsets.UTF_8));
    }

    /// Text for people.
    void verbatim(String text) {
        if (version == 2) {
            bulk(text);
            return;
        }
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        line('=', bytes.length + 4);
        ByteBuf out = room();
        ByteBufUtil.writeAscii(out, "txt:");
        out.writeBytes(bytes).writeBytes(CRLF);
    }

    /// Begins an array; its elements follow.
    void array(int elements) {
        line('*', elements);
    }

    /// Begins a map; its keys and values follow, in turn.
    void map(int pairs) {
        if (version == 3) {
            line('%', pairs);
        } else {
            array(2 * pairs);
        }
    }

    /// Begins a set; its elements follow.
    void set(int elements) {
        line(version == 3 ? '~' : '*', elements);
    }

    /// A range of a value, from its slots. Takes the value over.
    void value(PinnedValue value, long offset, long length) {
        line('$', length);
        if (length <= COPIED_BYTES) {
            try (value) {
                value.visit(offset, length, this::copy);
            }
        } else {
            handOver();
            ZeroCopyIo.write(context, length, each -> value.visit(offset, length, each), value::close);
        }
        room().writeBytes(CRLF);
    }

    /// By way of the heap: twice so few bytes take less time than the objects that once would take.
    private void copy(MemorySegment memory, long from, long bytes) {
        byte[] between = BETWEEN.get();
        MemorySegment.copy(memory, ValueLayout.JAVA_BYTE, from, between, 0, (int) bytes);
        room().writeBytes(between, 0, (int) bytes);
    }

    private void line(char mark, String text) {
        ByteBuf out = room();
        out.writeByte(mark);
        ByteBufUtil.writeUtf8(out, text);
        out.writeBytes(CRLF);
    }

    private void line(char mark, long number) {
        ByteBuf out = room();
        out.writeByte(mark);
        Numbers.write(number, out);
        out.writeBytes(CRLF);
    }

    private ByteBuf room() {
        ByteBuf out = collected;
        if (out != null && out.readableBytes() > COLLECTED_BYTES) {
            handOver();
            out = null;
        }
        if (out == null) {
            out = context.alloc().directBuffer(FIRST_BYTES);
            collected = out;
        }
        return out;
    }

    private void handOver() {
        ByteBuf out = collected;
        if (out != null) {
            collected = null;
            context.write(out, context.voidPromise());
        }
    }

    /// Sends what was written.
    void flush() {
        handOver();
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
