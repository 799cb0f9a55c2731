package io.kvcache.transport.net;

import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.FrameHeader;
import io.kvcache.transport.wire.ProtocolException;
import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;

/// Makes frames of bytes: ask [#writableBuffer()] where the next ones go, put some there, tell by [#bytesWritten].
///
/// Headers and bodies go through a buffer; a payload goes to its slot at once, but for what came in one
/// piece with its header. A buffer for a body grows with the bytes that come, not with those that are
/// announced, is never larger than the handler [allows][FrameHandler#maxBodyBytes] at the moment, and one
/// for a long body is not kept.
///
/// **Threads.** One at a time.
public final class FrameReader {

    private static final int INITIAL_BODY_BYTES = 256;

    /// Largest buffer that a connection keeps for its next body: enough for all but long chains and pages of
    /// events.
    private static final int MAX_RETAINED_BODY_BYTES = 128 << 10;

    private final FrameHandler handler;
    private final ByteBuffer input;
    private int consumed;
    private int filled;
    private @Nullable FrameHeader header;
    private ByteBuffer body = ByteBuffer.allocate(INITIAL_BODY_BYTES);
    private @Nullable PayloadSink payloadSink;

    /// @param bufferBytes at least a header; what a payload starts with is copied if it comes within this
    ///     many bytes
    public FrameReader(FrameHandler handler, int bufferBytes) {
        this.handler = handler;
        input = ByteBuffer.allocateDirect(bufferBytes);
    }

    /// Returns a new reader. If its buffer does not fit into memory, tells the handler that the connection is over.
    ///
    /// @throws OutOfMemoryError if its buffer does not fit
    public static FrameReader open(FrameHandler handler, int bufferBytes) {
        try {
            return new FrameReader(handler, bufferBytes);
        } catch (OutOfMemoryError noMemory) {
            handler.onClosed(DisconnectReason.INTERNAL);
            throw noMemory;
        }
    }

    /// Returns the buffer for the next bytes, with room for one at least.
    public ByteBuffer writableBuffer() {
        if (payloadSink != null) {
            return payloadSink.writableBuffer();
        }
        if (consumed > 0) {
            input.limit(filled).position(consumed);
            input.compact();
            filled -= consumed;
            consumed = 0;
        }
        return input.limit(input.capacity()).position(filled);
    }

    /// As many bytes lie at the last target, whose position is behind them.
    ///
    /// @throws ProtocolException when they are not what the protocol allows; the reader must not be used any more
    public void bytesWritten(int bytes) throws ProtocolException {
        handler.onBytesReceived();
        if (payloadSink != null) {
            copyPayload(payloadSink, bytes);
            return;
        }
        filled += bytes;
        boolean more = true;
        while (more) {
            more = step();
        }
    }

    /// Returns whether a frame has begun and is not complete.
    public boolean isInFrame() {
        return header != null || filled > consumed;
    }

    private boolean step() throws ProtocolException {
        if (payloadSink != null) {
            return copyPayload(payloadSink);
        }
        return header == null ? readHeader() : readBody(header);
    }

    private boolean readHeader() throws ProtocolException {
        if (filled - consumed < FrameHeader.BYTES) {
            return false;
        }
        FrameHeader next = FrameHeader.read(input.limit(filled).position(consumed));
        int most = handler.maxBodyBytes();
        if (next.bodyBytes() > most) {
            throw new ProtocolException(
                    "a body of %s bytes; allowed at this moment: 0 to %s".formatted(next.bodyBytes(), most));
        }
        header = next;
        consumed += FrameHeader.BYTES;
        body.clear();
        return true;
    }

    private boolean readBody(FrameHeader of) throws ProtocolException {
        int bytes = Math.min(filled - consumed, of.bodyBytes() - body.position());
        copy(bytes, ensureCapacity(bytes, of.bodyBytes()));
        if (body.position() < of.bodyBytes()) {
            return false;
        }
        BodyReader reader = new BodyReader(body.flip());
        if (of.payloadBytes() > 0) {
            payloadSink = handler.onPayload(of, reader);
            if (payloadSink.remainingBytes() != of.payloadBytes()) {
                throw new AssertionError("room for %s bytes of a payload of %s"
                        .formatted(payloadSink.remainingBytes(), of.payloadBytes()));
            }
        } else {
            header = null;
            handler.onMessage(of, reader);
        }
        releaseLargeBody();
        return true;
    }

    /// The last body is not needed any more.
    private void releaseLargeBody() {
        if (body.capacity() > MAX_RETAINED_BODY_BYTES) {
            body = ByteBuffer.allocate(INITIAL_BODY_BYTES);
        }
    }

    /// Bytes of the heap that are kept for bodies.
    int retainedBytes() {
        return body.capacity();
    }

    private ByteBuffer ensureCapacity(int bytes, int most) {
        if (body.remaining() < bytes) {
            int larger = Math.min(most, Math.max(2 * body.capacity(), body.position() + bytes));
            body = ByteBuffer.allocate(larger).put(body.flip());
        }
        return body;
    }

    /// Copies to its slot what came in one piece with the header.
    private boolean copyPayload(PayloadSink into) throws ProtocolException {
        int there = filled - consumed;
        if (there == 0) {
            return false;
        }
        ByteBuffer target = into.writableBuffer();
        int bytes = (int) Math.min(into.remainingBytes(), Math.min(there, target.remaining()));
        copy(bytes, target);
        copyPayload(into, bytes);
        return true;
    }

    /// The next bytes of what came, to a buffer's position, which moves.
    private void copy(int bytes, ByteBuffer to) {
        to.put(to.position(), input, consumed, bytes).position(to.position() + bytes);
        consumed += bytes;
    }

    private void copyPayload(PayloadSink into, int bytes) throws ProtocolException {
        boolean last = into.remainingBytes() == bytes;
        if (last) {
            payloadSink = null;
            header = null;
        }
        into.bytesWritten(bytes);
    }
}
