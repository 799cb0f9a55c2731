package io.kvcache.transport.link;

import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.FrameHeader;
import io.kvcache.transport.wire.Violation;
import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;

/// Makes frames of bytes: ask [#target()] where the next ones go, put some there, tell by [#received].
///
/// Headers and bodies go through a buffer; a payload goes to its slot at once, but for what came in one
/// piece with its header. A buffer for a body grows with the bytes that come, not with those that are
/// announced, is never larger than the handler [allows][FrameHandler#longestBody] at the moment, and one
/// for a long body is not kept.
///
/// **Threads.** One at a time.
public final class FrameReader {

    private static final int FIRST_BODY_BYTES = 256;

    /// What a connection keeps for its next body: enough for all but long chains and pages of events.
    private static final int KEPT_BODY_BYTES = 128 << 10;

    private final FrameHandler handler;
    private final ByteBuffer input;
    private int consumed;
    private int filled;
    private @Nullable FrameHeader header;
    private ByteBuffer body = ByteBuffer.allocate(FIRST_BODY_BYTES);
    private @Nullable Landing landing;

    /// @param bufferBytes at least a header; what a payload starts with is copied if it comes within this
    ///     many bytes
    public FrameReader(FrameHandler handler, int bufferBytes) {
        this.handler = handler;
        input = ByteBuffer.allocateDirect(bufferBytes);
    }

    /// The same; where there is no memory for it the handler hears that the connection is over.
    ///
    /// @throws OutOfMemoryError then
    public static FrameReader open(FrameHandler handler, int bufferBytes) {
        try {
            return new FrameReader(handler, bufferBytes);
        } catch (OutOfMemoryError noMemory) {
            handler.closed(CloseReason.INTERNAL);
            throw noMemory;
        }
    }

    /// Where the next bytes go: at least one fits.
    public ByteBuffer target() {
        if (landing != null) {
            return landing.target();
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
    /// @throws Violation when they are not what the protocol allows; the reader must not be used any more
    public void received(int bytes) throws Violation {
        handler.arriving();
        if (landing != null) {
            land(landing, bytes);
            return;
        }
        filled += bytes;
        boolean more = true;
        while (more) {
            more = step();
        }
    }

    /// Whether a frame has begun and is not complete.
    public boolean inFrame() {
        return header != null || filled > consumed;
    }

    private boolean step() throws Violation {
        if (landing != null) {
            return land(landing);
        }
        return header == null ? readHeader() : readBody(header);
    }

    private boolean readHeader() throws Violation {
        if (filled - consumed < FrameHeader.BYTES) {
            return false;
        }
        FrameHeader next = FrameHeader.read(input.limit(filled).position(consumed));
        int most = handler.longestBody();
        if (next.bodyBytes() > most) {
            throw new Violation(
                    "a body of %d bytes; allowed at this moment: 0 to %d".formatted(next.bodyBytes(), most));
        }
        header = next;
        consumed += FrameHeader.BYTES;
        body.clear();
        return true;
    }

    private boolean readBody(FrameHeader of) throws Violation {
        int bytes = Math.min(filled - consumed, of.bodyBytes() - body.position());
        copy(bytes, room(bytes, of.bodyBytes()));
        if (body.position() < of.bodyBytes()) {
            return false;
        }
        BodyReader reader = new BodyReader(body.flip());
        if (of.payloadBytes() > 0) {
            landing = handler.payload(of, reader);
            if (landing.left() != of.payloadBytes()) {
                throw new AssertionError(
                        "room for %d bytes of a payload of %d".formatted(landing.left(), of.payloadBytes()));
            }
        } else {
            header = null;
            handler.message(of, reader);
        }
        shrink();
        return true;
    }

    /// Nobody needs the last body any more.
    private void shrink() {
        if (body.capacity() > KEPT_BODY_BYTES) {
            body = ByteBuffer.allocate(FIRST_BODY_BYTES);
        }
    }

    /// Bytes of the heap that are kept for bodies.
    int keptBytes() {
        return body.capacity();
    }

    private ByteBuffer room(int bytes, int most) {
        if (body.remaining() < bytes) {
            int larger = Math.min(most, Math.max(2 * body.capacity(), body.position() + bytes));
            body = ByteBuffer.allocate(larger).put(body.flip());
        }
        return body;
    }

    /// Copies to its slot what came in one piece with the header.
    private boolean land(Landing into) throws Violation {
        int there = filled - consumed;
        if (there == 0) {
            return false;
        }
        ByteBuffer target = into.target();
        int bytes = (int) Math.min(into.left(), Math.min(there, target.remaining()));
        copy(bytes, target);
        land(into, bytes);
        return true;
    }

    /// The next bytes of what came, to a buffer's position, which moves.
    private void copy(int bytes, ByteBuffer to) {
        to.put(to.position(), input, consumed, bytes).position(to.position() + bytes);
        consumed += bytes;
    }

    private void land(Landing into, int bytes) throws Violation {
        boolean last = into.left() == bytes;
        if (last) {
            landing = null;
            header = null;
        }
        into.landed(bytes);
    }
}
