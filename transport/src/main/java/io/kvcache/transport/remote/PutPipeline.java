package io.kvcache.transport.remote;

import io.kvcache.core.PutOutcome;
import io.kvcache.core.SealOutcome;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.memory.ChunkedCrc;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.OutboundFrame;
import io.kvcache.transport.wire.OutcomeCodec;
import io.kvcache.transport.wire.Payload;
import io.kvcache.transport.wire.ProtocolException;
import io.kvcache.transport.wire.StagedRange;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.function.Function;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// A run of blocks on its way over one connection, by a PUT or PUT_STAGED each. It ends before its end at a block that
/// is refused, that is there already, as then the next ones may be too, or that is of another size.
///
/// Not safe for several threads.
final class PutPipeline implements DataConnection.RequestPipeline {

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
    private record InFlightPut(@Nullable StagedBuffer buffer) {

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
        StagedBuffer place = stagingClient == null ? null : stagingClient.allocate(blockBytes);
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
                .request(MessageType.PUT, number, remoteCacheContext.options().requestTimeoutNanos(), payload));
    }

    private OutboundFrame stagedFrame(MemorySegment block, StagedBuffer place, long number) {
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

    /// The request for the next block, after what has to be told of its chain. To be called when nothing can
    /// be missing any more: a line takes for told what it was asked to tell.
    private OutboundFrame withChain(Function<BodyWriter, OutboundFrame> request) {
        ChainDictionary.ChainReference told = chainReference == null ? chainDefiner.get() : chainReference;
        BodyWriter body = new BodyWriter().u8(told.slot()).u8(0).u16(0).i32(chain.length());
        OutboundFrame frame = request.apply(body.i32(from + sentCount).i32(0));
        chainReference = told.before().isEmpty() ? told : new ChainDictionary.ChainReference(told.slot(), List.of());
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
