package io.kvcache.transport.client;

import io.kvcache.core.Match;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.PutSummary;
import io.kvcache.core.SealOutcome;
import io.kvcache.core.check.Preconditions;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.memory.ChunkedCrc;
import io.kvcache.transport.client.RemoteContext.RpcException;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.OutboundFrame;
import io.kvcache.transport.wire.OutboundFrame.Payload;
import io.kvcache.transport.wire.OutcomeCodec;
import io.kvcache.transport.wire.ProtocolException;
import io.kvcache.transport.wire.SharedMemoryCodec.StagedRange;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Function;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// Stores bytes that are at hand. Where the server can, room, bytes and answer take one round trip, and
/// those of a run overlap; what has to wait for room, or meets a server that cannot, goes by the writers,
/// which reserve first.
final class RemoteWrites {

    private final RemoteContext client;

    RemoteWrites(RemoteContext client) {
        this.client = client;
    }

    PutSummary putBlocks(BlockChain chain, int from, List<MemorySegment> blocks, long timeoutNanos) {
        long start = System.nanoTime();
        int stored = 0;
        int present = 0;
        PutOutcome last = PutOutcome.PRESENT;
        boolean begunAgain = false;
        while (stored + present < blocks.size()) {
            int at = stored + present;
            long begun = System.nanoTime();
            PutPipeline run = putPipelined(chain, from + at, blocks.subList(at, blocks.size()));
            stored += run.storedCount();
            present += run.presentCount();
            last = run.acceptedCount() > 0 ? run.lastOutcome() : last;
            PutOutcome refusal = run.rejection();
            long left = Math.max(0, timeoutNanos - (System.nanoTime() - start));
            boolean parentGone = refusal == PutOutcome.NO_PARENT && !run.isDropped() && at + run.acceptedCount() > 0;
            if (parentGone && !begunAgain) { // another put has evicted the last block of the run
                begunAgain = true;
                stored = 0;
                present = 0;
                continue;
            }
            if (refusal != null && (refusal != PutOutcome.NO_ROOM || left == 0)) {
                return new PutSummary(stored, present, refusal);
            }
            if (run.acceptedCount() == 0 && isTimedOut(begun, left)) {
                return new PutSummary(stored, present, PutOutcome.NO_ROOM);
            }
            if (run.acceptedCount() == 0) {
                last = putReserved(chain, from + at, blocks.get(at), left);
                stored += last == PutOutcome.RESERVED ? 1 : 0;
                present += last == PutOutcome.PRESENT || last == PutOutcome.BUSY ? 1 : 0;
                if (!last.allowsNextBlock()) {
                    return new PutSummary(stored, present, last);
                }
            }
        }
        return new PutSummary(stored, present, last);
    }

    /// Returns whether a call that began at a moment timed out, and no time is left for another way.
    private boolean isTimedOut(long begunNanos, long leftNanos) {
        return System.nanoTime() - begunNanos >= client.options().totalTimeoutNanos(leftNanos);
    }

    /// As many as can be put without waiting for room.
    private PutPipeline putPipelined(BlockChain chain, int from, List<MemorySegment> blocks) {
        PutPipeline run = new PutPipeline(client, chain, from, blocks);
        attempt(session -> {
            int number = session.namespaceNumber(chain.namespace());
            if (blocks.size() > 1) {
                run.skipPresent(countResident(chain) - from);
            }
            session.data().withConnection((line, _) -> run.run(line, session.staging(), number));
        });
        run.requireSizes();
        return run;
    }

    /// Leading blocks whose bytes need not go there.
    private int countResident(BlockChain chain) {
        Match match = client.callOrDefault(
                Match.NOTHING,
                client.chainCall(new RemoteContext.ChainCall<>(
                        MessageType.MATCH, chain, body -> {}, RemoteKvCache::parseMatch)));
        return match.deviceBlocks() + match.hostBlocks();
    }

    /// A put over the session that there is.
    @FunctionalInterface
    private interface PutAttempt {
        void run(RemoteSession session) throws RpcException;
    }

    private void attempt(PutAttempt attempt) {
        try {
            client.keeper().call(session -> {
                attempt.run(session);
                return true;
            });
        } catch (RpcException failed) {
            client.onFailure(failed);
        }
    }

    /// Puts one block as a writer does; RESERVED when it is stored.
    private PutOutcome putReserved(BlockChain chain, int index, MemorySegment block, long timeoutNanos) {
        try (RemoteSlotWriter writer = RemoteSlotWriter.reserveBlock(client, chain, index, 0, timeoutNanos)) {
            if (writer.outcome() != PutOutcome.RESERVED) {
                return writer.outcome();
            }
            writer.copyFrom(block);
            return writer.seal() == SealOutcome.DROPPED ? PutOutcome.NO_PARENT : PutOutcome.RESERVED;
        }
    }

    boolean putObject(Namespace namespace, byte[] key, MemorySegment value, long timeoutNanos) {
        long start = System.nanoTime();
        AtomicReference<PutPipeline.@Nullable PutReply> answer = new AtomicReference<>();
        attempt(session -> answer.set(send(session, new NamedObject(namespace, key), value)));
        PutPipeline.PutReply reply = answer.get();
        if (reply != null && (reply.outcome() == PutOutcome.RESERVED || timeoutNanos == 0)) {
            return reply.isStored();
        }
        if (reply == null && isTimedOut(start, timeoutNanos)) {
            return false;
        }
        try (RemoteSlotWriter writer =
                RemoteSlotWriter.reserveObject(client, namespace, key, value.byteSize(), timeoutNanos)) {
            if (writer.outcome() != PutOutcome.RESERVED) {
                return false;
            }
            writer.copyFrom(value);
            return writer.seal() != SealOutcome.DROPPED;
        }
    }

    /// Puts an object in one request; null when there was no memory to send it from.
    private PutPipeline.@Nullable PutReply send(RemoteSession session, NamedObject object, MemorySegment value)
            throws RpcException {
        PutBuffer.StagedBuffer place = session.staging().allocate(value.byteSize());
        PutPipeline.PutReply reply =
                place == null ? sendInline(session, object, value) : sendStaged(session, object, value, place);
        if (reply != null && reply.isStored()) {
            client.counters().bytesOut.add(value.byteSize());
            client.counters().staged.add(place == null ? 0 : 1);
        }
        return reply;
    }

    /// Name of an object.
    @SuppressWarnings("ArrayRecordComponent") // never compared
    private record NamedObject(Namespace namespace, byte[] key) {

        BodyWriter beginBody(RemoteSession session) throws RpcException {
            return new BodyWriter(64 + key.length)
                    .i32(session.namespaceNumber(namespace))
                    .i32(key.length);
        }
    }

    private static PutPipeline.PutReply sendStaged(
            RemoteSession session, NamedObject object, MemorySegment value, PutBuffer.StagedBuffer place)
            throws RpcException {
        try {
            long bytes = value.byteSize();
            ChunkedCrc crc = new ChunkedCrc();
            crc.copy(value, 0, place.segment(bytes));
            crc.update(MemorySegment.ofArray(object.key));
            BodyWriter body = object.beginBody(session);
            place.toRange(bytes, crc.value()).write(body).bytes(object.key);
            DataConnectionPool data = session.data();
            return data.call(data.deadlineNanos(), MessageType.PUT_OBJECT_STAGED, body, PutPipeline.PutReply::read);
        } finally {
            place.free(); // If there was no answer the server may still copy what is there: it has its checksum.
        }
    }

    private PutPipeline.@Nullable PutReply sendInline(RemoteSession session, NamedObject object, MemorySegment value)
            throws RpcException {
        try (SendBuffer sendable = SendBuffer.of(value, client)) {
            if (sendable == null) {
                return null;
            }
            ChunkedCrc crc = sendable.copyAndChecksum(value);
            crc.update(MemorySegment.ofArray(object.key));
            BodyWriter body = object.beginBody(session).i32(crc.value()).i32(0).bytes(object.key);
            Payload payload = Payload.of(sendable.segment());
            DataConnectionPool data = session.data();
            return data.call(data.deadlineNanos(), MessageType.PUT_OBJECT, body, payload, PutPipeline.PutReply::read);
        }
    }

    /// A run of blocks on its way over one connection, by a PUT or PUT_STAGED each. It ends before its end at a
    /// block that is refused, that is there already, as then the next ones may be too, or that is of another size.
    ///
    /// Not safe for several threads.
    static final class PutPipeline implements DataConnection.RequestPipeline {

        /// Bytes on their way at a time: enough that the server never waits for the next block, and its answers fit
        /// the connection's buffers.
        private static final long MAX_BYTES_IN_FLIGHT = 4 << 20;

        private static final int MAX_IN_FLIGHT = 16;

        private final RemoteContext client;
        private final BlockChain chain;
        private final int from;
        private final List<MemorySegment> blocks;
        private final long blockBytes;
        private Supplier<ChainDictionary.ChainReference> chainDefiner =
                () -> new ChainDictionary.ChainReference(0, List.of());
        private ChainDictionary.@Nullable ChainReference reference;
        private @Nullable StagingClient staging;
        private final Deque<InFlightPut> inFlight;
        private @Nullable SendBuffer sending;
        private int sentCount;
        private int storedCount;
        private int presentCount;
        private PutOutcome lastOutcome = PutOutcome.PRESENT;
        private @Nullable PutOutcome rejection;
        private boolean paused;
        private boolean sizeMismatch;
        private boolean dropped;
        private @Nullable RpcException failure;

        /// @param from block of the chain that the first one is
        PutPipeline(RemoteContext client, BlockChain chain, int from, List<MemorySegment> blocks) {
            this.client = client;
            this.chain = chain;
            this.from = from;
            this.blocks = blocks;
            inFlight = new ArrayDeque<>(Math.min(blocks.size(), MAX_IN_FLIGHT));
            blockBytes = chain.namespace().blockBytes();
        }

        /// Reply to one PUT.
        ///
        /// @param sealed null when there was no room to fill
        record PutReply(PutOutcome outcome, @Nullable SealOutcome sealed) {

            static PutReply read(BodyReader reply) throws ProtocolException {
                int code = reply.u8("outcome");
                int sealed = reply.u8("sealed");
                PutOutcome outcome = OutcomeCodec.put(code, reply.u8("cause"));
                return new PutReply(outcome, outcome == PutOutcome.RESERVED ? OutcomeCodec.seal(sealed) : null);
            }

            boolean isStored() {
                return sealed != null && sealed != SealOutcome.DROPPED;
            }
        }

        /// One request without an answer yet.
        ///
        /// @param buffer that its block is in until then, or null when it was sent
        private record InFlightPut(PutBuffer.@Nullable StagedBuffer buffer) {

            /// Answers whether there was a place.
            boolean freeBuffer() {
                if (buffer != null) {
                    buffer.free();
                }
                return buffer != null;
            }
        }

        /// The given number of leading ones are there.
        void skipPresent(int blocksThere) {
            presentCount = Math.clamp(blocksThere, 0, blocks.size());
            sentCount = presentCount;
        }

        /// Puts what is left.
        ///
        /// @param places where the server can read it; what finds none there is sent
        void run(DataConnection line, StagingClient places, int namespace) throws RpcException {
            staging = places;
            chainDefiner = () -> line.defineChain(chain, namespace);
            int ahead = Math.clamp(MAX_BYTES_IN_FLIGHT / blockBytes, 2, MAX_IN_FLIGHT);
            try {
                line.call(this, ahead, client.options().requestTimeoutNanos());
                if (failure != null && line.invalidateChains(failure)) {
                    resumeAfterRejection();
                    line.call(this, ahead, client.options().requestTimeoutNanos());
                }
            } finally {
                releaseSendBuffer();
                // If the connection broke, the server may still copy what is there: it has its checksum.
                inFlight.forEach(InFlightPut::freeBuffer);
                inFlight.clear();
            }
            if (failure != null) {
                throw failure;
            }
        }

        /// From the block that was refused, after telling the chain again, which the server may have
        /// given up.
        private void resumeAfterRejection() {
            sentCount = acceptedCount();
            reference = null;
            rejection = null;
            failure = null;
        }

        @Override
        public @Nullable OutboundFrame nextFrame(long number) {
            if (sentCount == blocks.size() || paused || rejection != null) {
                return null;
            }
            MemorySegment block = blocks.get(sentCount);
            sizeMismatch = block.byteSize() != blockBytes;
            if (sizeMismatch) {
                return null;
            }
            return frame(block, number);
        }

        private @Nullable OutboundFrame frame(MemorySegment block, long number) {
            releaseSendBuffer();
            PutBuffer.StagedBuffer place = staging == null ? null : staging.allocate(blockBytes);
            return place == null ? inlineFrame(block, number) : stagedFrame(block, place, number);
        }

        private @Nullable OutboundFrame inlineFrame(MemorySegment block, long number) {
            SendBuffer sendable = SendBuffer.of(block, client);
            if (sendable == null) {
                return null;
            }
            sending = sendable;
            inFlight.addLast(new InFlightPut(null));
            int checksum = sendable.copyAndChecksum(block).value();
            Payload payload = Payload.of(sendable.segment());
            return withChain(body -> body.i32(checksum)
                    .i32(0)
                    .request(MessageType.PUT, number, client.options().requestTimeoutNanos(), payload));
        }

        private OutboundFrame stagedFrame(MemorySegment block, PutBuffer.StagedBuffer place, long number) {
            inFlight.addLast(new InFlightPut(place));
            ChunkedCrc crc = new ChunkedCrc();
            crc.copy(block, 0, place.segment(blockBytes));
            StagedRange there = place.toRange(blockBytes, crc.value());
            return withChain(body -> there.write(body)
                    .request(MessageType.PUT_STAGED, number, client.options().requestTimeoutNanos()));
        }

        /// The request for the next block, after what has to be told of its chain. To be called when nothing
        /// can be missing any more: a line takes for told what it was asked to tell.
        private OutboundFrame withChain(Function<BodyWriter, OutboundFrame> request) {
            ChainDictionary.ChainReference told = reference == null ? chainDefiner.get() : reference;
            BodyWriter body = new BodyWriter().u8(told.slot()).u8(0).u16(0).i32(chain.length());
            OutboundFrame frame = request.apply(body.i32(from + sentCount).i32(0));
            reference = told.before().isEmpty() ? told : new ChainDictionary.ChainReference(told.slot(), List.of());
            sentCount++;
            return told.prependTo(frame);
        }

        /// Releases the buffer that was sent last.
        private void releaseSendBuffer() {
            if (sending != null) {
                sending.close();
                sending = null;
            }
        }

        @Override
        public void onReply(BodyReader body) throws ProtocolException {
            PutReply putReply = PutReply.read(body);
            boolean staged = inFlight.removeFirst().freeBuffer();
            if (rejection != null) {
                return;
            }
            if (putReply.isStored()) {
                storedCount++;
                client.counters().staged.add(staged ? 1 : 0);
                lastOutcome = PutOutcome.RESERVED;
                client.counters().bytesOut.add(blockBytes);
            } else if (putReply.outcome == PutOutcome.RESERVED) {
                rejection = PutOutcome.NO_PARENT;
                dropped = true;
            } else if (putReply.outcome.allowsNextBlock()) {
                presentCount++;
                lastOutcome = putReply.outcome;
                paused |= putReply.outcome == PutOutcome.PRESENT;
            } else {
                rejection = putReply.outcome;
            }
        }

        @Override
        public void onRejected(RpcException failed) {
            inFlight.removeFirst().freeBuffer();
            rejection = PutOutcome.NO_ROOM;
            failure = failure == null ? failed : failure;
        }

        /// Throws when the next block has not the size of a block.
        void requireSizes() {
            if (sizeMismatch) {
                Preconditions.checkSource(blocks.get(sentCount).byteSize(), blockBytes, "a block of this namespace");
            }
        }

        /// Returns whether the run ended at a block that was dropped while it was written.
        boolean isDropped() {
            return dropped;
        }

        int storedCount() {
            return storedCount;
        }

        int presentCount() {
            return presentCount;
        }

        int acceptedCount() {
            return storedCount + presentCount;
        }

        /// Returns the outcome of the last block that was accepted.
        PutOutcome lastOutcome() {
            return lastOutcome;
        }

        /// Why the block after those was not, or null when nothing is said of it.
        @Nullable
        PutOutcome rejection() {
            return rejection;
        }
    }

    /// A caller's bytes in memory that can be sent from: in place when they are in native memory, else in a slot
    /// for a copy.
    ///
    /// @param buffer null when none is needed
    record SendBuffer(MemorySegment segment, ReceiveBuffers.@Nullable PooledBuffer buffer) implements AutoCloseable {

        /// Returns a buffer for these bytes, or null when the pool has no slot for a copy.
        static @Nullable SendBuffer of(MemorySegment source, RemoteContext client) {
            if (source.isNative()) {
                return new SendBuffer(source, null);
            }
            ReceiveBuffers.PooledBuffer buffer = client.buffers().allocate(source.byteSize());
            if (buffer == null) {
                client.counters().outOfMemory.increment();
                return null;
            }
            return new SendBuffer(buffer.segment(source.byteSize()), buffer);
        }

        /// Copies the bytes if a copy is needed, and returns their checksum.
        ChunkedCrc copyAndChecksum(MemorySegment source) {
            ChunkedCrc crc = new ChunkedCrc();
            if (buffer == null) {
                crc.update(source);
            } else {
                crc.copy(source, 0, segment);
            }
            return crc;
        }

        @Override
        public void close() {
            if (buffer != null) {
                buffer.free();
            }
        }
    }
}
