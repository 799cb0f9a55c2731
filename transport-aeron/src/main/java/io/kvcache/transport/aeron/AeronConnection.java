package io.kvcache.transport.aeron;

import io.aeron.ExclusivePublication;
import io.aeron.Image;
import io.aeron.Subscription;
import io.aeron.logbuffer.BufferClaim;
import io.aeron.logbuffer.ControlledFragmentHandler;
import io.aeron.logbuffer.Header;
import io.kvcache.transport.net.CleanupThread;
import io.kvcache.transport.net.ConnectionState;
import io.kvcache.transport.net.DisconnectReason;
import io.kvcache.transport.net.FrameConnection;
import io.kvcache.transport.net.FrameHandler;
import io.kvcache.transport.net.FrameReader;
import io.kvcache.transport.net.FrameSink;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.OutboundFrame;
import io.kvcache.transport.wire.ProtocolException;
import io.kvcache.transport.wire.Status;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Function;
import org.agrona.DirectBuffer;
import org.agrona.MutableDirectBuffer;
import org.jspecify.annotations.Nullable;

/// One connection over Aeron, of either side. The streams carry the bytes of frames without regard to where
/// a fragment ends: what fits is claimed in the term and filled from slots, and fragments are copied to where
/// [FrameReader] wants them.
///
/// A side that does not read stops the other once the window of the term is full; the one that writes waits
/// for room, which [#stalledNanos] tells.
final class AeronConnection implements FrameConnection {

    /// Most messages fit. Payload bytes that arrive with their header are copied, so the buffer is small.
    private static final int BUFFER_BYTES = 8 << 10;

    /// Fragments, each of 64 KiB at most, that a poll handles before the pumping thread looks at other things.
    private static final int FRAGMENTS = 16;

    private static final System.Logger LOG = System.getLogger(AeronConnection.class.getName());

    private final StreamPair streamPair;
    private final Image in;
    private final ExclusivePublication out;
    private final FrameHandler handler;
    private final FrameReader reader;
    private final ControlledFragmentHandler fragments = this::onFragment;
    private final BufferClaim claim = new BufferClaim();
    private final AdaptiveIdleStrategy reading;
    private final AdaptiveIdleStrategy writing;
    private final ReentrantLock sending = new ReentrantLock();

    /// An interrupt of the thread that has that lock, put aside.
    private boolean interrupted;

    private final ConnectionState state = new ConnectionState();

    /// @param streamPair which are closed with it
    /// @param handler of this line, which must not use it yet
    AeronConnection(StreamPair streamPair, boolean dedicated, Function<FrameSink, FrameHandler> handler) {
        this.streamPair = streamPair;
        in = streamPair.in();
        out = streamPair.out();
        reading = AdaptiveIdleStrategy.forConnection(dedicated);
        writing = AdaptiveIdleStrategy.forConnection(dedicated);
        this.handler = handler.apply(this);
        reader = FrameReader.open(this.handler, BUFFER_BYTES);
    }

    @Override
    public String peerAddress() {
        String source = in.sourceIdentity();
        return source.substring(0, Math.max(0, source.lastIndexOf(':')));
    }

    /// An interrupt of a thread that sends does not reach the streams.
    @Override
    public void share() {}

    @Override
    public boolean pump() {
        if (state.isOpen() && streamPair.enter()) {
            try {
                reading.reset();
                while (state.isOpen() && !poll()) {
                    reading.idle();
                    if (Thread.currentThread().isInterrupted()) { // it would not sleep any more
                        close(DisconnectReason.BROKEN);
                    }
                }
            } finally {
                streamPair.exit();
            }
        }
        if (state.isOpen()) {
            return true;
        }
        state.notifyClosed(handler);
        return false;
    }

    /// Hands on what is there; answers whether anything was.
    private boolean poll() {
        if (in.controlledPoll(fragments, FRAGMENTS) > 0) {
            return true;
        }
        if (in.isClosed() || in.isEndOfStream()) {
            close(reader.isInFrame() ? DisconnectReason.BROKEN : DisconnectReason.PEER_CLOSED);
        }
        return false;
    }

    /// Takes one fragment; what it throws would go to a handler of errors instead of to the caller.
    private ControlledFragmentHandler.Action onFragment(DirectBuffer from, int offset, int bytes, Header header) {
        try {
            receive(from, offset, bytes);
            state.onBytesReceived(reader.isInFrame());
        } catch (ProtocolException malformed) {
            send(BodyWriter.errorReply(
                    MessageType.ERROR.code(), 0, Status.INVALID, String.valueOf(malformed.getMessage())));
            close(DisconnectReason.MALFORMED);
        } catch (RuntimeException | Error bug) {
            close(DisconnectReason.INTERNAL);
            LOG.log(System.Logger.Level.ERROR, "a connection is closed because of a bug", bug);
        }
        return state.isOpen() ? ControlledFragmentHandler.Action.COMMIT : ControlledFragmentHandler.Action.BREAK;
    }

    private void receive(DirectBuffer from, int offset, int bytes) throws ProtocolException {
        int taken = 0;
        while (taken < bytes && state.isOpen()) {
            // The handler of a frame may wait for long, and the term of a stream that ended meanwhile is unmapped
            // soon.
            if (in.isClosed()) {
                close(DisconnectReason.BROKEN);
                return;
            }
            ByteBuffer target = reader.writableBuffer();
            int some = Math.min(bytes - taken, target.remaining());
            from.getBytes(offset + taken, target, some);
            taken += some;
            reader.bytesWritten(some);
        }
    }

    /// Sends without an interrupt: Aeron ends the client of all connections for one, and no thread sleeps with one.
    @Override
    public boolean send(OutboundFrame frame) {
        sending.lock();
        interrupted = Thread.interrupted();
        try {
            if (!isOpen() || !streamPair.enter()) {
                return false;
            }
            try {
                return write(new GatherBuffer(frame));
            } finally {
                state.onWriteComplete();
                streamPair.exit();
            }
        } finally {
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
            sending.unlock();
        }
    }

    private boolean write(GatherBuffer bytes) {
        writing.reset();
        state.onWriteProgress();
        while (bytes.remainingBytes() > 0) {
            int some = (int) Math.min(bytes.remainingBytes(), out.maxPayloadLength());
            long position = out.tryClaim(some, claim);
            if (position > 0) {
                fill(bytes, some);
                writing.reset();
                state.onWriteProgress();
            } else if (position != ExclusivePublication.BACK_PRESSURED
                    && position != ExclusivePublication.ADMIN_ACTION) {
                close(DisconnectReason.BROKEN);
                return false;
            } else if (!isOpen()) {
                return false;
            } else {
                writing.idle();
                interrupted |= Thread.interrupted();
            }
        }
        return true;
    }

    private void fill(GatherBuffer bytes, int some) {
        boolean good = false;
        try {
            bytes.copy(claim.buffer(), claim.offset(), some);
            good = true;
        } finally {
            if (good) {
                claim.commit();
            } else {
                claim.abort();
                close(DisconnectReason.INTERNAL);
            }
        }
    }

    @Override
    public boolean isOpen() {
        return state.isOpen() && !in.isClosed();
    }

    @Override
    public long stalledNanos() {
        return state.stalledNanos();
    }

    @Override
    public void close(DisconnectReason why) {
        if (state.close(why)) {
            streamPair.close();
        }
    }

    /// The bytes of a frame, where they lie, in order.
    private static final class GatherBuffer {

        private final List<ByteBuffer> pieces = new ArrayList<>();
        private int piece;
        private long left;

        GatherBuffer(OutboundFrame frame) {
            pieces.add(frame.head().duplicate());
            for (MemorySegment each : frame.payload().pieces()) {
                pieces.add(each.asByteBuffer());
            }
            for (ByteBuffer each : pieces) {
                left += each.remaining();
            }
        }

        long remainingBytes() {
            return left;
        }

        /// Copies the next bytes.
        ///
        /// @param bytes no more than are left
        void copy(MutableDirectBuffer to, int offset, int bytes) {
            int copied = 0;
            while (copied < bytes) {
                ByteBuffer from = pieces.get(piece);
                int some = Math.min(from.remaining(), bytes - copied);
                to.putBytes(offset + copied, from, from.position(), some);
                from.position(from.position() + some);
                copied += some;
                if (!from.hasRemaining()) {
                    piece++;
                }
            }
            left -= bytes;
        }
    }

    /// The two streams of a connection. They go when it is closed and no thread is inside: they are mapped memory,
    /// which may not go while a thread copies.
    ///
    /// **Threads.** Any.
    static final class StreamPair {

        private final AeronDriver media;
        private final Image in;
        private final ExclusivePublication out;
        private final @Nullable Subscription own;

        /// Threads inside, and one until it is closed.
        private final AtomicInteger users = new AtomicInteger(1);

        /// @param media which is released in the end
        /// @param own what the incoming stream belongs to if nothing else does, or null
        StreamPair(AeronDriver media, Image in, ExclusivePublication out, @Nullable Subscription own) {
            this.media = media;
            this.in = in;
            this.out = out;
            this.own = own;
        }

        Image in() {
            return in;
        }

        ExclusivePublication out() {
            return out;
        }

        /// Returns whether the caller may use them until [#exit].
        boolean enter() {
            int now = users.get();
            while (now > 0) {
                if (users.compareAndSet(now, now + 1)) {
                    return true;
                }
                now = users.get();
            }
            return false;
        }

        /// The last one frees the streams. It waits for Aeron, where an interrupt would end the client of all
        /// connections, and requests that wait on a virtual thread are interrupted at the end of their session.
        void exit() {
            if (users.decrementAndGet() > 0) {
                return;
            }
            if (Thread.currentThread().isVirtual()) {
                CleanupThread.execute(this::free);
            } else {
                free();
            }
        }

        /// To be called once.
        void close() {
            exit();
        }

        private void free() {
            try {
                out.close();
                if (own != null) {
                    own.close();
                } else if (!in.isClosed() && !in.isEndOfStream()) {
                    // Unread bytes would hold up the sender for as long as they stay.
                    in.reject("the connection is closed");
                }
            } catch (RuntimeException gone) {
                System.getLogger(StreamPair.class.getName())
                        .log(System.Logger.Level.DEBUG, "the driver went before a stream did", gone);
            } finally {
                media.release();
            }
        }
    }
}
