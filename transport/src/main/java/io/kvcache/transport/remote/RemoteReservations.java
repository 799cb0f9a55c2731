package io.kvcache.transport.remote;

import io.kvcache.core.PutOutcome;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.Namespace;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.OutcomeCodec;
import io.kvcache.transport.wire.ProtocolException;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// Reserves room there and memory here. Whatever is missing, there is no room.
final class RemoteReservations {

    private static final byte[] NO_TRAILER = {};

    private final RemoteCacheContext remoteCacheContext;
    private final RpcClient rpcClient;

    RemoteReservations(RemoteCacheContext remoteCacheContext, RpcClient rpcClient) {
        this.remoteCacheContext = remoteCacheContext;
        this.rpcClient = rpcClient;
    }

    /// What the server says.
    ///
    /// @param reservation if there is one
    private record ReserveReply(PutOutcome outcome, long reservation) {

        static ReserveReply read(BodyReader reply) throws ProtocolException {
            PutOutcome outcome = OutcomeCodec.put(reply.u8("outcome"), reply.u8("cause"));
            return new ReserveReply(outcome, reply.skip(6).i64("reservation"));
        }
    }

    RemoteSlotWriter reserveBlock(BlockChain chain, int index, int part, long timeoutNanos) {
        long bytes = chain.namespace().parts().get(part).bytes();
        return reserve(bytes, NO_TRAILER, late -> {
            RpcClient.SessionCall<ReserveReply> sessionCall = rpcClient.chainCall(
                    chain,
                    timeoutNanos,
                    body -> {
                        body.i32(index).i32(part).i64(timeoutNanos);
                        return new RpcClient.CallSpec<>(MessageType.RESERVE, ReserveReply::read);
                    },
                    late);
            return sessionCall;
        });
    }

    RemoteSlotWriter reserveObject(Namespace namespace, byte[] key, long bytes, long timeoutNanos) {
        long patience = remoteCacheContext.options().totalTimeoutNanos(timeoutNanos);
        return reserve(bytes, key.clone(), late -> remoteSession -> {
            BodyWriter body = new BodyWriter(64 + key.length);
            body.i32(remoteSession.namespaceNumber(namespace))
                    .i32(key.length)
                    .i64(bytes)
                    .i64(timeoutNanos)
                    .bytes(key);
            return ControlConnection.await(
                    remoteSession
                            .control()
                            .call(new ControlConnection.CallRequest<>(
                                    MessageType.RESERVE_OBJECT, body, ReserveReply::read, patience)),
                    patience,
                    late);
        });
    }

    /// A question whose late answers are disposed of.
    @FunctionalInterface
    private interface ReserveCall {
        RpcClient.SessionCall<ReserveReply> withLateReply(Consumer<ReserveReply> late);
    }

    private RemoteSlotWriter reserve(long bytes, byte[] trailer, ReserveCall question) {
        return rpcClient.callOrDefault(
                RemoteSlotWriter.rejected(remoteCacheContext, PutOutcome.NO_ROOM), remoteSession -> {
                    PutBuffer putBuffer = allocateBuffer(remoteSession, bytes);
                    if (putBuffer == null) {
                        remoteCacheContext.counters().outOfMemory.increment();
                        return RemoteSlotWriter.rejected(remoteCacheContext, PutOutcome.NO_ROOM);
                    }
                    boolean kept = false;
                    try {
                        ReserveReply reserveReply = question.withLateReply(late -> abandon(remoteSession, late))
                                .call(remoteSession);
                        kept = reserveReply.outcome == PutOutcome.RESERVED;
                        return kept
                                ? RemoteSlotWriter.forSlot(
                                        remoteCacheContext,
                                        new RemoteSlotWriter.ReservedSlot(
                                                remoteSession, reserveReply.reservation, putBuffer, bytes, trailer))
                                : RemoteSlotWriter.rejected(remoteCacheContext, reserveReply.outcome);
                    } finally {
                        if (!kept) {
                            putBuffer.free();
                        }
                    }
                });
    }

    /// Where the server can read it, if there is room; else where it is sent from; null when there is none
    /// either.
    private @Nullable PutBuffer allocateBuffer(RemoteSession remoteSession, long bytes) {
        PutBuffer staged = remoteSession.stagingClient().allocate(bytes);
        return staged == null ? remoteCacheContext.buffers().allocate(bytes) : staged;
    }

    private static void abandon(RemoteSession remoteSession, ReserveReply late) {
        if (late.outcome == PutOutcome.RESERVED && !remoteSession.isClosed()) {
            remoteSession.control().sendOneWay(MessageType.ABANDON, new BodyWriter().i64(late.reservation));
        }
    }
}
