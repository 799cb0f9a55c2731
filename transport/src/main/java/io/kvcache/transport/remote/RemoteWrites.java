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
import io.kvcache.transport.wire.Payload;
import io.kvcache.transport.wire.ProtocolException;
import io.kvcache.transport.wire.Status;
import java.lang.foreign.MemorySegment;
import java.util.List;
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
        StagedBuffer place = remoteSession.supportsStagedObjectPut()
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
    private record StagedValue(MemorySegment value, StagedBuffer buffer) {}

    private static void sendStaged(
            RemoteSession remoteSession, NamedObject object, StagedValue stagedValue, ObjectPutReply put)
            throws RpcException {
        StagedBuffer place = stagedValue.buffer;
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
}
