package io.kvcache.transport.client;

import io.kvcache.core.BlockWriter;
import io.kvcache.core.ObjectWriter;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.SealOutcome;
import io.kvcache.core.check.Preconditions;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.identity.PartGroup;
import io.kvcache.core.memory.ChunkedCrc;
import io.kvcache.transport.client.RemoteContext.RpcException;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.OutboundFrame.Payload;
import io.kvcache.transport.wire.OutcomeCodec;
import io.kvcache.transport.wire.ProtocolException;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Objects;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// Collects a block or an object in one piece of memory here, for room that is reserved on the server, and sends it
/// when it is sealed.
///
/// Not safe for several threads at once, as no writer is.
final class RemoteSlotWriter implements BlockWriter, ObjectWriter {

    private static final byte[] NO_TRAILER = {};

    private final RemoteContext client;
    private final PutOutcome outcome;
    private final @Nullable ReservedSlot reservedSlot;
    private final SegmentLifetime scope;
    private boolean open;
    private boolean summed;
    private int checksum;
    private long writtenBytes;

    /// Block or object to write.
    ///
    /// @param name in error messages
    /// @param trailer bytes that the checksum covers after those of the block or object
    @SuppressWarnings("ArrayRecordComponent") // never compared
    private record Contents(String name, long bytes, byte[] trailer) {}

    /// Room there, and memory here.
    private record ReservedSlot(RemoteSession session, long reservation, PutBuffer buffer, Contents contents) {

        long bytes() {
            return contents.bytes;
        }

        MemorySegment segment() {
            return buffer.segment(contents.bytes);
        }
    }

    /// Reply to a reservation.
    ///
    /// @param reservation if there is one
    private record ReserveReply(PutOutcome outcome, long reservation) {

        static ReserveReply read(BodyReader reply) throws ProtocolException {
            PutOutcome outcome = OutcomeCodec.put(reply.u8("outcome"), reply.u8("cause"));
            return new ReserveReply(outcome, reply.skip(6).i64("reservation"));
        }
    }

    private RemoteSlotWriter(RemoteContext client, PutOutcome outcome, @Nullable ReservedSlot reservedSlot) {
        this.client = client;
        this.outcome = outcome;
        this.reservedSlot = reservedSlot;
        open = reservedSlot != null;
        scope = new SegmentLifetime(client.options().checked() && open);
        if (reservedSlot != null) {
            client.openHandles().incrementAndGet();
        }
    }

    /// Reserves room for a block. The outcome is [PutOutcome#NO_ROOM] too when the server is unreachable or this
    /// client lacks memory.
    static RemoteSlotWriter reserveBlock(
            RemoteContext client, BlockChain chain, int index, int part, long timeoutNanos) {
        PartGroup group = chain.namespace().groupOf(part);
        if (group != null) {
            int _ = group.entryBehind(index); // refuses a place between two entries
        }
        long bytes = (group == null ? chain.namespace() : group.namespace()).blockBytes();
        Contents contents = new Contents("a block of this namespace", bytes, NO_TRAILER);
        return reserve(
                client,
                contents,
                late -> client.chainCall(
                        new RemoteContext.ChainCall<>(
                                MessageType.RESERVE,
                                chain,
                                body -> body.i32(index).i32(part).i64(timeoutNanos),
                                ReserveReply::read),
                        timeoutNanos,
                        late));
    }

    /// Reserves room for an object. The outcome is [PutOutcome#NO_ROOM] too when the server is unreachable or this
    /// client lacks memory.
    static RemoteSlotWriter reserveObject(
            RemoteContext client, Namespace namespace, byte[] key, long bytes, long timeoutNanos) {
        long patience = client.options().totalTimeoutNanos(timeoutNanos);
        return reserve(client, new Contents("the room", bytes, key.clone()), late -> session -> {
            BodyWriter body = new BodyWriter(64 + key.length);
            body.i32(session.namespaceNumber(namespace)).i32(key.length);
            body.i64(bytes).i64(timeoutNanos).bytes(key);
            return ControlConnection.await(
                    session.control()
                            .call(new ControlConnection.CallRequest<>(
                                    MessageType.RESERVE_OBJECT, body, ReserveReply::read, patience)),
                    patience,
                    late);
        });
    }

    /// A reserve request. If its reply comes after the timeout, a handler abandons the reservation.
    @FunctionalInterface
    private interface ReserveCall {
        RemoteContext.SessionCall<ReserveReply> withLateReply(Consumer<ReserveReply> late);
    }

    private static RemoteSlotWriter reserve(RemoteContext client, Contents contents, ReserveCall question) {
        return client.callOrDefault(new RemoteSlotWriter(client, PutOutcome.NO_ROOM, null), session -> {
            PutBuffer buffer = allocateBuffer(client, session, contents.bytes);
            if (buffer == null) {
                client.counters().outOfMemory.increment();
                return new RemoteSlotWriter(client, PutOutcome.NO_ROOM, null);
            }
            boolean kept = false;
            try {
                ReserveReply reply = question.withLateReply(late -> {
                            if (late.outcome == PutOutcome.RESERVED) {
                                abandon(session, late.reservation);
                            }
                        })
                        .call(session);
                kept = reply.outcome == PutOutcome.RESERVED;
                ReservedSlot slot = kept ? new ReservedSlot(session, reply.reservation, buffer, contents) : null;
                return new RemoteSlotWriter(client, reply.outcome, slot);
            } finally {
                if (!kept) {
                    buffer.free();
                }
            }
        });
    }

    /// Returns staging memory, which the server can read, or else a buffer to send from. Returns null when neither
    /// has room.
    private static @Nullable PutBuffer allocateBuffer(RemoteContext client, RemoteSession session, long bytes) {
        PutBuffer staged = session.staging().allocate(bytes);
        return staged == null ? client.buffers().allocate(bytes) : staged;
    }

    private static void abandon(RemoteSession session, long reservation) {
        if (!session.isClosed()) {
            session.control().sendOneWay(MessageType.ABANDON, new BodyWriter().i64(reservation));
        }
    }

    @Override
    public PutOutcome outcome() {
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

    @Override
    public MemorySegment segment() {
        return scope.confine(requireOpen().segment());
    }

    @Override
    public List<MemorySegment> segments() {
        return List.of(segment());
    }

    @Override
    public void copyFrom(MemorySegment source) {
        ReservedSlot to = requireOpen();
        Preconditions.checkSource(source.byteSize(), to.bytes(), to.contents.name);
        ChunkedCrc crc = new ChunkedCrc();
        crc.copy(source, 0, to.segment());
        sum(crc, to);
    }

    /// Bytes are in their place; they are summed when all are.
    @Override
    public void advance(long bytes) {
        Objects.checkFromIndexSize(writtenBytes, bytes, requireOpen().bytes());
        writtenBytes += bytes;
    }

    private void sum(ChunkedCrc crc, ReservedSlot of) {
        byte[] trailer = of.contents.trailer;
        if (trailer.length > 0) {
            crc.update(MemorySegment.ofArray(trailer));
        }
        checksum = crc.value();
        summed = true;
    }

    @Override
    public SealOutcome seal() {
        ReservedSlot from = requireOpen();
        if (!summed) {
            ChunkedCrc crc = new ChunkedCrc();
            crc.update(from.segment());
            sum(crc, from);
        }
        return seal(checksum);
    }

    /// Sends the bytes; if that fails they are lost.
    @Override
    public SealOutcome seal(int sum) {
        ReservedSlot from = requireOpen();
        open = false;
        scope.close();
        DataConnection.SingleReply<SealOutcome> reply =
                new DataConnection.SingleReply<>(body -> OutcomeCodec.seal(body.u8("outcome")));
        try {
            from.session.data().withConnection((line, patience) -> fill(line, from, sum, patience, reply));
            client.counters().bytesOut.add(from.bytes());
            return reply.value();
        } catch (RpcException failed) {
            client.countFailure();
            abandon(from.session, from.reservation);
            return SealOutcome.DROPPED;
        } finally {
            releaseSlot(from);
        }
    }

    private void fill(
            DataConnection line, ReservedSlot from, int sum, long timeoutNanos, DataConnection.ReplyHandler reply)
            throws RpcException {
        BodyWriter body = new BodyWriter().i64(from.reservation);
        switch (from.buffer) {
            case PutBuffer.StagedBuffer staged -> {
                staged.toRange(from.bytes(), sum).write(body);
                line.call(MessageType.FILL_STAGED, body, timeoutNanos, reply);
                client.counters().staged.increment();
            }
            case ReceiveBuffers.PooledBuffer pooled -> {
                Payload payload = Payload.of(pooled.segment(from.bytes()));
                line.call(MessageType.FILL, body.i32(sum).i32(0), payload, timeoutNanos, reply);
            }
        }
    }

    /// Waits until the server knows that the room is not needed. The next request may use another connection and
    /// would otherwise overtake that message. Without an answer nothing is lost, as the session will end.
    private void awaitAbandoned(RemoteSession session) {
        if (session.isClosed()) {
            return;
        }
        try {
            session.call(MessageType.PING, new BodyWriter(), reply -> true, 0);
        } catch (RpcException unanswered) {
            client.countFailure();
        }
    }

    private void releaseSlot(ReservedSlot from) {
        from.buffer.free();
        client.openHandles().decrementAndGet();
    }

    @Override
    public void close() {
        if (open) {
            ReservedSlot from = requireOpen();
            open = false;
            try {
                scope.close();
            } finally {
                abandon(from.session, from.reservation);
                awaitAbandoned(from.session);
                releaseSlot(from);
            }
        }
    }
}
