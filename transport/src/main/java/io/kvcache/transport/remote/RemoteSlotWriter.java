package io.kvcache.transport.remote;

import io.kvcache.core.BlockWriter;
import io.kvcache.core.ObjectWriter;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.SealOutcome;
import io.kvcache.core.memory.ChunkedCrc;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.OutcomeCodec;
import io.kvcache.transport.wire.Payload;
import io.kvcache.transport.wire.ProtocolException;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/// Bytes that are collected here for room that is reserved there: what block and object writers have in
/// common.
///
/// Not safe for several threads at once, as no writer is.
final class RemoteSlotWriter {

    private final RemoteCacheContext remoteCacheContext;
    private final PutOutcome outcome;
    private final @Nullable ReservedSlot reservedSlot;
    private final SegmentLifetime scope;
    private boolean open;
    private boolean summed;
    private int checksum;
    private long writtenBytes;

    /// Room there, and memory here.
    ///
    /// @param trailer what is summed after the bytes
    @SuppressWarnings("ArrayRecordComponent") // never compared
    record ReservedSlot(RemoteSession remoteSession, long reservation, PutBuffer buffer, long bytes, byte[] trailer) {

        MemorySegment segment() {
            return buffer.segment(bytes);
        }
    }

    private RemoteSlotWriter(
            RemoteCacheContext remoteCacheContext, PutOutcome outcome, @Nullable ReservedSlot reservedSlot) {
        this.remoteCacheContext = remoteCacheContext;
        this.outcome = outcome;
        this.reservedSlot = reservedSlot;
        open = reservedSlot != null;
        scope = new SegmentLifetime(remoteCacheContext.options().checked() && open);
        if (reservedSlot != null) {
            remoteCacheContext.openHandles().incrementAndGet();
            reservedSlot.remoteSession.users().add();
        }
    }

    /// Nothing to write.
    static RemoteSlotWriter rejected(RemoteCacheContext remoteCacheContext, PutOutcome outcome) {
        return new RemoteSlotWriter(remoteCacheContext, outcome, null);
    }

    static RemoteSlotWriter forSlot(RemoteCacheContext remoteCacheContext, ReservedSlot reservedSlot) {
        return new RemoteSlotWriter(remoteCacheContext, PutOutcome.RESERVED, reservedSlot);
    }

    PutOutcome outcome() {
        return outcome;
    }

    private ReservedSlot requireOpen() {
        if (outcome != PutOutcome.RESERVED) {
            throw new IllegalStateException("nothing is reserved: the outcome is " + outcome);
        }
        if (!open) {
            throw new IllegalStateException("the writer is sealed or closed");
        }
        return Objects.requireNonNull(reservedSlot);
    }

    MemorySegment segment() {
        return scope.confine(requireOpen().segment());
    }

    /// Fills it all, summing on the way.
    void copyFrom(MemorySegment source, String what) {
        ReservedSlot to = requireOpen();
        Preconditions.checkSource(source.byteSize(), to.bytes, what);
        ChunkedCrc crc = new ChunkedCrc();
        crc.copy(source, 0, to.segment());
        sum(crc, to);
    }

    /// Bytes are in their place; they are summed when all are.
    void onBytesWritten(long bytes) {
        Objects.checkFromIndexSize(writtenBytes, bytes, requireOpen().bytes);
        writtenBytes += bytes;
    }

    private void sum(ChunkedCrc crc, ReservedSlot of) {
        if (of.trailer.length > 0) {
            crc.update(MemorySegment.ofArray(of.trailer));
        }
        checksum = crc.value();
        summed = true;
    }

    SealOutcome seal() {
        ReservedSlot from = requireOpen();
        if (!summed) {
            ChunkedCrc crc = new ChunkedCrc();
            crc.update(from.segment());
            sum(crc, from);
        }
        return seal(checksum);
    }

    /// Sends the bytes; if that fails they are lost.
    SealOutcome seal(int sum) {
        ReservedSlot from = requireOpen();
        open = false;
        scope.close();
        FillReply fillReply = new FillReply();
        try {
            from.remoteSession
                    .data()
                    .withConnection((line, patience) -> fill(line, new FillRequest(from, sum, patience), fillReply));
            remoteCacheContext.counters().bytesOut.add(from.bytes);
            return fillReply.outcome;
        } catch (RpcException failed) {
            remoteCacheContext.counters().failed.increment();
            abandon(from);
            return SealOutcome.DROPPED;
        } finally {
            releaseSlot(from);
        }
    }

    /// What is sent for the room, and how long its answer may take.
    private record FillRequest(ReservedSlot from, int sum, long timeoutNanos) {}

    private void fill(DataConnection line, FillRequest fillRequest, FillReply fillReply) throws RpcException {
        ReservedSlot from = fillRequest.from;
        int sum = fillRequest.sum;
        long patience = fillRequest.timeoutNanos;
        BodyWriter body = new BodyWriter().i64(from.reservation);
        switch (from.buffer) {
            case PutBuffer.StagedBuffer staged -> {
                line.call(
                        MessageType.FILL_STAGED, staged.toRange(from.bytes, sum).write(body), patience, fillReply);
                remoteCacheContext.counters().staged.increment();
            }
            case ReceiveBuffers.PooledBuffer pooledBuffer -> {
                Payload payload = Payload.of(pooledBuffer.segment(from.bytes));
                line.call(MessageType.FILL, body.i32(sum).i32(0), payload, patience, fillReply);
            }
        }
    }

    /// The answer to FILL.
    private static final class FillReply implements DataConnection.ReplyHandler {

        private SealOutcome outcome = SealOutcome.DROPPED;
        private boolean done;

        @Override
        public void onReply(BodyReader body) throws ProtocolException {
            outcome = OutcomeCodec.seal(body.u8("outcome"));
            done = true;
        }

        @Override
        public boolean isComplete() {
            return done;
        }
    }

    private static void abandon(ReservedSlot from) {
        if (!from.remoteSession.isClosed()) {
            from.remoteSession.control().sendOneWay(MessageType.ABANDON, new BodyWriter().i64(from.reservation));
        }
    }

    /// Waits until the server has heard that the room is not needed: what comes next may go over another
    /// connection and overtake it. If there is no answer nothing is lost, the session will end.
    private void abandonAndWait(ReservedSlot from) {
        if (from.remoteSession.isClosed()) {
            return;
        }
        try {
            from.remoteSession.call(MessageType.PING, new BodyWriter(), reply -> true, 0);
        } catch (RpcException unanswered) {
            remoteCacheContext.counters().failed.increment();
        }
    }

    private void releaseSlot(ReservedSlot from) {
        from.buffer.free();
        remoteCacheContext.openHandles().decrementAndGet();
        from.remoteSession.users().leave();
    }

    void close() {
        if (open) {
            ReservedSlot from = requireOpen();
            open = false;
            try {
                scope.close();
            } finally {
                abandon(from);
                abandonAndWait(from);
                releaseSlot(from);
            }
        }
    }

    /// Collects one block here and sends it when it is sealed.
    record RemoteBlockWriter(RemoteSlotWriter remoteSlotWriter) implements BlockWriter {

        @Override
        public PutOutcome outcome() {
            return remoteSlotWriter.outcome();
        }

        @Override
        public MemorySegment segment() {
            return remoteSlotWriter.segment();
        }

        @Override
        public void copyFrom(MemorySegment source) {
            remoteSlotWriter.copyFrom(source, "a block of this namespace");
        }

        @Override
        public SealOutcome seal() {
            return remoteSlotWriter.seal();
        }

        @Override
        public SealOutcome seal(int checksum) {
            return remoteSlotWriter.seal(checksum);
        }

        @Override
        public void close() {
            remoteSlotWriter.close();
        }
    }

    /// Collects one object here, in one piece, and sends it when it is sealed.
    record RemoteObjectWriter(RemoteSlotWriter remoteSlotWriter) implements ObjectWriter {

        @Override
        public PutOutcome outcome() {
            return remoteSlotWriter.outcome();
        }

        @Override
        public List<MemorySegment> segments() {
            return List.of(remoteSlotWriter.segment());
        }

        @Override
        public void copyFrom(MemorySegment source) {
            remoteSlotWriter.copyFrom(source, "the room");
        }

        @Override
        public void advance(long bytes) {
            remoteSlotWriter.onBytesWritten(bytes);
        }

        @Override
        public SealOutcome seal() {
            return remoteSlotWriter.seal();
        }

        @Override
        public SealOutcome seal(int checksum) {
            return remoteSlotWriter.seal(checksum);
        }

        @Override
        public void close() {
            remoteSlotWriter.close();
        }
    }
}
