package io.kvcache.transport.aeron;

import io.aeron.ExclusivePublication;
import io.aeron.Image;
import io.aeron.logbuffer.BufferClaim;
import io.aeron.logbuffer.ControlledFragmentHandler;
import io.aeron.logbuffer.Header;
import io.kvcache.transport.link.CloseReason;
import io.kvcache.transport.link.FrameHandler;
import io.kvcache.transport.link.FrameReader;
import io.kvcache.transport.link.Line;
import io.kvcache.transport.link.LineState;
import io.kvcache.transport.link.Outlet;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.Frame;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.Status;
import io.kvcache.transport.wire.Violation;
import java.nio.ByteBuffer;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Function;
import org.agrona.DirectBuffer;

/// One connection over Aeron, of either side. The streams carry the bytes of frames without regard to where
/// a fragment ends: what fits is claimed in the term and filled from slots, and fragments are copied to where
/// [FrameReader] wants them.
///
/// A side that does not read stops the other once the window of the term is full; the one that writes waits
/// for room, which [#stalledNanos] tells.
final class AeronLine implements Line {

    /// What of a payload came with its header is copied: little, and most messages fit.
    private static final int BUFFER_BYTES = 8 << 10;

    /// Of 64 KiB and less, after which whoever pumps looks up.
    private static final int FRAGMENTS = 16;

    private static final System.Logger LOG = System.getLogger(AeronLine.class.getName());

    private final Streams streams;
    private final Image in;
    private final ExclusivePublication out;
    private final FrameHandler handler;
    private final FrameReader reader;
    private final ControlledFragmentHandler fragments = this::fragment;
    private final BufferClaim claim = new BufferClaim();
    private final Pause reading;
    private final Pause writing;
    private final ReentrantLock sending = new ReentrantLock();
    private final LineState state = new LineState();

    /// @param streams which are closed with it
    /// @param handler of this line, which must not use it yet
    AeronLine(Streams streams, boolean dedicated, Function<Outlet, FrameHandler> handler) {
        this.streams = streams;
        in = streams.in();
        out = streams.out();
        reading = Pause.ofConnection(dedicated);
        writing = Pause.ofConnection(dedicated);
        this.handler = handler.apply(this);
        reader = FrameReader.open(this.handler, BUFFER_BYTES);
    }

    @Override
    public String place() {
        String source = in.sourceIdentity();
        return source.substring(0, Math.max(0, source.lastIndexOf(':')));
    }

    @Override
    public boolean pump() {
        if (state.live() && streams.enter()) {
            try {
                reading.reset();
                while (state.live() && !poll()) {
                    reading.idle();
                }
            } finally {
                streams.exit();
            }
        }
        if (state.live()) {
            return true;
        }
        state.tell(handler);
        return false;
    }

    /// Hands on what is there; answers whether anything was.
    private boolean poll() {
        if (in.controlledPoll(fragments, FRAGMENTS) > 0) {
            return true;
        }
        if (in.isClosed() || in.isEndOfStream()) {
            close(reader.inFrame() ? CloseReason.BROKEN : CloseReason.PEER_CLOSED);
        }
        return false;
    }

    /// Takes one fragment; what it throws would go to a handler of errors instead of to the caller.
    private ControlledFragmentHandler.Action fragment(DirectBuffer from, int offset, int bytes, Header header) {
        try {
            take(from, offset, bytes);
            state.received(reader.inFrame());
        } catch (Violation malformed) {
            send(BodyWriter.refusal(
                    MessageType.ERROR.code(), 0, Status.INVALID, String.valueOf(malformed.getMessage())));
            close(CloseReason.MALFORMED);
        } catch (RuntimeException | Error bug) {
            close(CloseReason.INTERNAL);
            LOG.log(System.Logger.Level.ERROR, "a connection is closed because of a bug", bug);
        }
        return state.live() ? ControlledFragmentHandler.Action.COMMIT : ControlledFragmentHandler.Action.BREAK;
    }

    private void take(DirectBuffer from, int offset, int bytes) throws Violation {
        int taken = 0;
        while (taken < bytes && state.live()) {
            // Whoever hears a frame may wait for long, and the term of a stream that ended meanwhile is unmapped soon.
            if (in.isClosed()) {
                close(CloseReason.BROKEN);
                return;
            }
            ByteBuffer target = reader.target();
            int some = Math.min(bytes - taken, target.remaining());
            from.getBytes(offset + taken, target, some);
            taken += some;
            reader.received(some);
        }
    }

    @Override
    public boolean send(Frame frame) {
        sending.lock();
        try {
            if (!open() || !streams.enter()) {
                return false;
            }
            try {
                return write(new Gather(frame));
            } finally {
                state.written();
                streams.exit();
            }
        } finally {
            sending.unlock();
        }
    }

    private boolean write(Gather bytes) {
        writing.reset();
        state.writing();
        while (bytes.left() > 0) {
            int some = (int) Math.min(bytes.left(), out.maxPayloadLength());
            long position = out.tryClaim(some, claim);
            if (position > 0) {
                fill(bytes, some);
                writing.reset();
                state.writing();
            } else if (position != ExclusivePublication.BACK_PRESSURED
                    && position != ExclusivePublication.ADMIN_ACTION) {
                close(CloseReason.BROKEN);
                return false;
            } else if (!open()) {
                return false;
            } else {
                writing.idle();
            }
        }
        return true;
    }

    private void fill(Gather bytes, int some) {
        boolean good = false;
        try {
            bytes.copy(claim.buffer(), claim.offset(), some);
            good = true;
        } finally {
            if (good) {
                claim.commit();
            } else {
                claim.abort();
                close(CloseReason.INTERNAL);
            }
        }
    }

    @Override
    public boolean open() {
        return state.live() && !in.isClosed();
    }

    @Override
    public long stalledNanos() {
        return state.stalledNanos();
    }

    @Override
    public void close(CloseReason why) {
        if (state.end(why)) {
            streams.close();
        }
    }
}
