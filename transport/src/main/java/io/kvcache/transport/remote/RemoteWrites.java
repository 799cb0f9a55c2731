package io.kvcache.transport.remote;

import io.kvcache.core.Match;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.PutSummary;
import io.kvcache.core.SealOutcome;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.memory.ChunkedCrc;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.OutboundFrame;
import io.kvcache.transport.wire.OutcomeCodec;
import io.kvcache.transport.wire.Payload;
import io.kvcache.transport.wire.ProtocolException;
import io.kvcache.transport.wire.StagedRange;
import io.kvcache.transport.wire.Status;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.function.Function;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// Stores bytes that are at hand. Where the server can, room, bytes and answer take one round trip, and
/// those of a run overlap; what has to wait for room, or meets a server that cannot, goes by the writers,
/// which reserve first.
final class RemoteWrites {

    private final RemoteCacheContext remoteCacheContext;
    private final RpcClient rpcClient;
    private final RemoteReservations remoteReservations;

    RemoteWrites(RemoteCacheContext remoteCacheContext, RpcClient rpcClient, RemoteReservations remoteReservations) {
        this.remoteCacheContext = remoteCacheContext;
        this.rpcClient = rpcClient;
        this.remoteReservations = remoteReservations;
    }

    PutSummary putBlocks(BlockChain chain, int from, List<MemorySegment> blocks, long timeoutNanos) {
        long start = System.nanoTime();
        int stored = 0;
        int present = 0;
        PutOutcome last = PutOutcome.PRESENT;
        while (stored + present < blocks.size()) {
            int at = stored + present;
            long begun = System.nanoTime();
            PutPipeline run = putPipelined(chain, from + at, blocks.subList(at, blocks.size()));
            stored += run.storedCount();
            present += run.presentCount();
            last = run.acceptedCount() > 0 ? run.lastOutcome() : last;
            PutOutcome refusal = run.rejection();
            long left = Math.max(0, timeoutNanos - (System.nanoTime() - start));
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

    /// Whether an answer was waited for in vain since a moment, and no more time is left to try otherwise.
    private boolean isTimedOut(long begunNanos, long leftNanos) {
        return System.nanoTime() - begunNanos >= remoteCacheContext.options().totalTimeoutNanos(leftNanos);
    }

    /// As many as can be put without waiting for room; none when the server takes them one by one only.
    private PutPipeline putPipelined(BlockChain chain, int from, List<MemorySegment> blocks) {
        PutPipeline run = new PutPipeline(remoteCacheContext, chain, from, blocks);
        attempt(remoteSession -> {
            int number = remoteSession.namespaceNumber(chain.namespace());
            if (blocks.size() > 1) {
                run.skipPresent(countResident(chain) - from);
            }
            remoteSession.data().withConnection((line, _) -> run.run(line, remoteSession.stagingClient(), number));
        });
        run.requireSizes();
        return run;
    }

    /// Leading blocks whose bytes need not go there.
    private int countResident(BlockChain chain) {
        Match match = rpcClient.callOrDefault(
                Match.NOTHING,
                rpcClient.chainCall(
                        chain,
                        0,
                        body -> new RpcClient.CallSpec<>(MessageType.MATCH, RemoteKvCache::parseMatch),
                        late -> {}));
        return match.deviceBlocks() + match.hostBlocks();
    }

    /// Something that only some servers can.
    @FunctionalInterface
    private interface PutAttempt {
        void run(RemoteSession remoteSession) throws RpcException;
    }

    private void attempt(PutAttempt attempt) {
        try {
            remoteCacheContext.sessions().call(remoteSession -> {
                if (remoteSession.supportsPut()) {
                    attempt.run(remoteSession);
                }
                return true;
            });
        } catch (RpcException failed) {
            remoteCacheContext.counters().failed.increment();
            if (failed.hasReply() && failed.status() == Status.INVALID) {
                throw new IllegalArgumentException(failed.getMessage());
            }
        }
    }

    /// Puts one block as a writer does; RESERVED when it is stored.
    private PutOutcome putReserved(BlockChain chain, int index, MemorySegment block, long timeoutNanos) {
        RemoteSlotWriter remoteSlotWriter = remoteReservations.reserveBlock(chain, index, 0, timeoutNanos);
        try {
            if (remoteSlotWriter.outcome() != PutOutcome.RESERVED) {
                return remoteSlotWriter.outcome();
            }
            remoteSlotWriter.copyFrom(block, "a block of this namespace");
            return remoteSlotWriter.seal() == SealOutcome.DROPPED ? PutOutcome.NO_PARENT : PutOutcome.RESERVED;
        } finally {
            remoteSlotWriter.close();
        }
    }

    boolean putObject(Namespace namespace, byte[] key, MemorySegment value, long timeoutNanos) {
        long start = System.nanoTime();
        ObjectPutReply put = new ObjectPutReply();
        attempt(remoteSession -> send(remoteSession, new NamedObject(namespace, key), value, put));
        PutPipeline.PutReply putReply = put.putReply;
        if (putReply != null && (putReply.outcome() == PutOutcome.RESERVED || timeoutNanos == 0)) {
            return putReply.isStored();
        }
        if (putReply == null && isTimedOut(start, timeoutNanos)) {
            return false;
        }
        RemoteSlotWriter remoteSlotWriter =
                remoteReservations.reserveObject(namespace, key, value.byteSize(), timeoutNanos);
        try {
            if (remoteSlotWriter.outcome() != PutOutcome.RESERVED) {
                return false;
            }
            remoteSlotWriter.copyFrom(value, "the room");
            return remoteSlotWriter.seal() != SealOutcome.DROPPED;
        } finally {
            remoteSlotWriter.close();
        }
    }

    private void send(RemoteSession remoteSession, NamedObject object, MemorySegment value, ObjectPutReply put)
            throws RpcException {
        PutBuffer.StagedBuffer place = remoteSession.supportsStagedObjectPut()
                ? remoteSession.stagingClient().allocate(value.byteSize())
                : null;
        if (place == null) {
            sendInline(remoteSession, object, value, put);
        } else {
            sendStaged(remoteSession, object, new StagedValue(value, place), put);
        }
        if (put.isStored()) {
            remoteCacheContext.counters().bytesOut.add(value.byteSize());
            remoteCacheContext.counters().staged.add(place == null ? 0 : 1);
        }
    }

    /// What an object is called.
    @SuppressWarnings("ArrayRecordComponent") // never compared
    private record NamedObject(Namespace namespace, byte[] key) {

        BodyWriter beginBody(RemoteSession remoteSession) throws RpcException {
            return new BodyWriter(64 + key.length)
                    .i32(remoteSession.namespaceNumber(namespace))
                    .i32(key.length);
        }
    }

    /// A value, and where the server can read it.
    private record StagedValue(MemorySegment value, PutBuffer.StagedBuffer buffer) {}

    private static void sendStaged(
            RemoteSession remoteSession, NamedObject object, StagedValue stagedValue, ObjectPutReply put)
            throws RpcException {
        PutBuffer.StagedBuffer place = stagedValue.buffer;
        try {
            long bytes = stagedValue.value.byteSize();
            ChunkedCrc crc = new ChunkedCrc();
            crc.copy(stagedValue.value, 0, place.segment(bytes));
            crc.update(MemorySegment.ofArray(object.key));
            BodyWriter body = place.toRange(bytes, crc.value())
                    .write(object.beginBody(remoteSession))
                    .bytes(object.key);
            remoteSession
                    .data()
                    .withConnection((line, patience) -> line.call(MessageType.PUT_OBJECT_STAGED, body, patience, put));
        } finally {
            place.free(); // If there was no answer the server may still copy what is there: it has its checksum.
        }
    }

    private void sendInline(RemoteSession remoteSession, NamedObject object, MemorySegment value, ObjectPutReply put)
            throws RpcException {
        try (SendBuffer sendBuffer = SendBuffer.of(value, remoteCacheContext)) {
            if (sendBuffer == null) {
                return;
            }
            ChunkedCrc crc = sendBuffer.copyAndChecksum(value);
            crc.update(MemorySegment.ofArray(object.key));
            BodyWriter body =
                    object.beginBody(remoteSession).i32(crc.value()).i32(0).bytes(object.key);
            Payload payload = Payload.of(sendBuffer.segment());
            remoteSession
                    .data()
                    .withConnection(
                            (line, patience) -> line.call(MessageType.PUT_OBJECT, body, payload, patience, put));
        }
    }

    /// The answer to PUT_OBJECT and PUT_OBJECT_STAGED.
    private static final class ObjectPutReply implements DataConnection.ReplyHandler {

        private PutPipeline.@Nullable PutReply putReply;

        boolean isStored() {
            return putReply != null && putReply.isStored();
        }

        @Override
        public void onReply(BodyReader body) throws ProtocolException {
            putReply = PutPipeline.PutReply.read(body);
        }

        @Override
        public boolean isComplete() {
            return putReply != null;
        }
    }

    /// A run of blocks on its way over one connection, by a PUT or PUT_STAGED each. It ends before its end at a
    /// block that is refused, that is there already, as then the next ones may be too, or that is of another size.
    ///
    /// Not safe for several threads.
    static final class PutPipeline implements DataConnection.RequestPipeline {

        /// So much is on its way at a time that the server never waits for the next block, and its answers fit
        /// the connection's buffers.
        private static final long MAX_BYTES_IN_FLIGHT = 4 << 20;

        private static final int MAX_IN_FLIGHT = 16;

        private final RemoteCacheContext remoteCacheContext;
        private final BlockChain chain;
        private final int from;
        private final List<MemorySegment> blocks;
        private final long blockBytes;
        private Supplier<ChainDictionary.ChainReference> chainDefiner =
                () -> new ChainDictionary.ChainReference(0, List.of());
        private ChainDictionary.@Nullable ChainReference chainReference;
        private @Nullable StagingClient stagingClient;
        private final Deque<InFlightPut> inFlight = new ArrayDeque<>();
        private @Nullable SendBuffer sending;
        private int sentCount;
        private int storedCount;
        private int presentCount;
        private PutOutcome lastOutcome = PutOutcome.PRESENT;
        private @Nullable PutOutcome rejection;
        private boolean paused;
        private boolean sizeMismatch;
        private @Nullable RpcException failure;

        /// @param from block of the chain that the first one is
        PutPipeline(RemoteCacheContext remoteCacheContext, BlockChain chain, int from, List<MemorySegment> blocks) {
            this.remoteCacheContext = remoteCacheContext;
            this.chain = chain;
            this.from = from;
            this.blocks = blocks;
            blockBytes = chain.namespace().parts().getFirst().bytes();
        }

        /// What the server says of one PUT.
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

        /// The first so many are there.
        void skipPresent(int blocksThere) {
            presentCount = Math.clamp(blocksThere, 0, blocks.size());
            sentCount = presentCount;
        }

        /// Puts what is left.
        ///
        /// @param places where the server can read it; what finds none there is sent
        void run(DataConnection line, StagingClient places, int namespace) throws RpcException {
            stagingClient = places;
            chainDefiner = () -> line.defineChain(chain, namespace);
            int ahead = Math.clamp(MAX_BYTES_IN_FLIGHT / blockBytes, 2, MAX_IN_FLIGHT);
            try {
                line.call(this, ahead, remoteCacheContext.options().requestTimeoutNanos());
                if (failure != null && line.invalidateChains(failure)) {
                    resumeAfterRejection();
                    line.call(this, ahead, remoteCacheContext.options().requestTimeoutNanos());
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
            chainReference = null;
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
            PutBuffer.StagedBuffer place = stagingClient == null ? null : stagingClient.allocate(blockBytes);
            return place == null ? inlineFrame(block, number) : stagedFrame(block, place, number);
        }

        private @Nullable OutboundFrame inlineFrame(MemorySegment block, long number) {
            SendBuffer sendBuffer = SendBuffer.of(block, remoteCacheContext);
            if (sendBuffer == null) {
                return null;
            }
            sending = sendBuffer;
            inFlight.addLast(new InFlightPut(null));
            int checksum = sendBuffer.copyAndChecksum(block).value();
            Payload payload = Payload.of(sendBuffer.segment());
            return withChain(body -> body.i32(checksum)
                    .i32(0)
                    .request(
                            MessageType.PUT,
                            number,
                            remoteCacheContext.options().requestTimeoutNanos(),
                            payload));
        }

        private OutboundFrame stagedFrame(MemorySegment block, PutBuffer.StagedBuffer place, long number) {
            inFlight.addLast(new InFlightPut(place));
            ChunkedCrc crc = new ChunkedCrc();
            crc.copy(block, 0, place.segment(blockBytes));
            StagedRange there = place.toRange(blockBytes, crc.value());
            return withChain(body -> there.write(body)
                    .request(
                            MessageType.PUT_STAGED,
                            number,
                            remoteCacheContext.options().requestTimeoutNanos()));
        }

        /// The request for the next block, after what has to be told of its chain. To be called when nothing
        /// can be missing any more: a line takes for told what it was asked to tell.
        private OutboundFrame withChain(Function<BodyWriter, OutboundFrame> request) {
            ChainDictionary.ChainReference told = chainReference == null ? chainDefiner.get() : chainReference;
            BodyWriter body = new BodyWriter().u8(told.slot()).u8(0).u16(0).i32(chain.length());
            OutboundFrame frame = request.apply(body.i32(from + sentCount).i32(0));
            chainReference =
                    told.before().isEmpty() ? told : new ChainDictionary.ChainReference(told.slot(), List.of());
            sentCount++;
            return told.prependTo(frame);
        }

        /// What was sent last is not needed any more.
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
                remoteCacheContext.counters().staged.add(staged ? 1 : 0);
                lastOutcome = PutOutcome.RESERVED;
                remoteCacheContext.counters().bytesOut.add(blockBytes);
            } else if (putReply.outcome == PutOutcome.RESERVED) {
                rejection = PutOutcome.NO_PARENT;
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

        int storedCount() {
            return storedCount;
        }

        int presentCount() {
            return presentCount;
        }

        int acceptedCount() {
            return storedCount + presentCount;
        }

        /// Of the last block that was accepted.
        PutOutcome lastOutcome() {
            return lastOutcome;
        }

        /// Why the block after those was not, or null when nothing is said of it.
        @Nullable
        PutOutcome rejection() {
            return rejection;
        }
    }

    /// Bytes of a caller where they can be sent from: where they lie when that is native memory, else in a slot
    /// that they are copied to.
    ///
    /// @param pooledBuffer null when none is needed
    record SendBuffer(MemorySegment segment, ReceiveBuffers.@Nullable PooledBuffer pooledBuffer)
            implements AutoCloseable {

        /// For bytes like these, or null when there is no memory for a copy.
        static @Nullable SendBuffer of(MemorySegment source, RemoteCacheContext remoteCacheContext) {
            if (source.isNative()) {
                return new SendBuffer(source, null);
            }
            ReceiveBuffers.PooledBuffer pooledBuffer =
                    remoteCacheContext.buffers().allocate(source.byteSize());
            if (pooledBuffer == null) {
                remoteCacheContext.counters().outOfMemory.increment();
                return null;
            }
            return new SendBuffer(pooledBuffer.segment(source.byteSize()), pooledBuffer);
        }

        /// Brings them there, and sums them.
        ChunkedCrc copyAndChecksum(MemorySegment source) {
            ChunkedCrc crc = new ChunkedCrc();
            if (pooledBuffer == null) {
                crc.update(source);
            } else {
                crc.copy(source, 0, segment);
            }
            return crc;
        }

        @Override
        public void close() {
            if (pooledBuffer != null) {
                pooledBuffer.free();
            }
        }
    }
}
