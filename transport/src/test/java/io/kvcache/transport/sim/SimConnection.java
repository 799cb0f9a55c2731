package io.kvcache.transport.sim;

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
import java.util.Collection;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/// One side of a connection of a [SimNetwork].
final class SimConnection implements FrameConnection {

    private final SimPipe in;
    private final SimPipe out;
    private final FrameHandler handler;
    private final FrameReader reader;
    private final ConnectionLog connectionLog;
    private final ReentrantLock writing = new ReentrantLock();
    private final AtomicReference<@Nullable DisconnectReason> reason = new AtomicReference<>();
    private volatile long writeSince;
    private volatile long readSince;
    private boolean ended;

    /// Who hears of it.
    ///
    /// @param name of this side, for the journal
    /// @param bugs what nobody expects goes there
    record ConnectionLog(String name, RunJournal journal, Collection<Throwable> bugs) {}

    SimConnection(SimPipe in, SimPipe out, Function<FrameSink, FrameHandler> handler, ConnectionLog connectionLog) {
        this.in = in;
        this.out = out;
        this.connectionLog = connectionLog;
        this.handler = handler.apply(this);
        reader = new FrameReader(this.handler, 8 << 10);
    }

    @Override
    public void share() {}

    @Override
    public boolean pump() {
        try {
            int bytes = in.read(reader.writableBuffer());
            if (bytes < 0) {
                close(reader.isInFrame() ? DisconnectReason.BROKEN : DisconnectReason.PEER_CLOSED);
            } else {
                reader.bytesWritten(bytes);
                readSince = reader.isInFrame() ? System.nanoTime() | 1 : 0;
            }
        } catch (ProtocolException malformed) {
            send(BodyWriter.errorReply(MessageType.ERROR.code(), 0, Status.INVALID, String.valueOf(malformed)));
            close(DisconnectReason.MALFORMED);
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
            close(DisconnectReason.BROKEN);
        } catch (RuntimeException | Error bug) {
            connectionLog.bugs.add(bug);
            close(DisconnectReason.INTERNAL);
        }
        return isOpen() || end();
    }

    private boolean end() {
        DisconnectReason why = reason.get();
        if (why != null && !ended) {
            ended = true;
            handler.onClosed(why);
        }
        return false;
    }

    @Override
    public boolean send(OutboundFrame frame) {
        writing.lock();
        try {
            writeSince = System.nanoTime() | 1;
            boolean sent = out.write(frame.head().duplicate());
            for (MemorySegment piece : frame.payload().pieces()) {
                writeSince = System.nanoTime() | 1;
                sent = sent && out.write(piece.asByteBuffer());
            }
            if (!sent) {
                close(DisconnectReason.BROKEN);
            }
            return sent;
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
            close(DisconnectReason.BROKEN);
            return false;
        } finally {
            writeSince = 0;
            writing.unlock();
        }
    }

    @Override
    public boolean isOpen() {
        return reason.get() == null;
    }

    @Override
    public long stalledNanos() {
        long now = System.nanoTime();
        return Math.max(since(writeSince, now), since(readSince, now));
    }

    private static long since(long start, long now) {
        return start == 0 ? 0 : Math.max(0, now - start);
    }

    @Override
    public void close(DisconnectReason why) {
        if (reason.compareAndSet(null, why)) {
            connectionLog.journal.note(connectionLog.name + " is over: " + why);
            in.breakUp();
            out.end();
        }
    }

    @Override
    public String toString() {
        return connectionLog.name + ", stalled for " + stalledNanos() / 1_000_000 + " ms, comes: " + in + ", goes: "
                + out;
    }
}
