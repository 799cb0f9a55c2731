package io.kvcache.transport.remote;

import io.kvcache.core.PutOutcome;
import io.kvcache.core.SealOutcome;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.store.ChunkedCrc;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.Frame;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.Outcomes;
import io.kvcache.transport.wire.Payload;
import io.kvcache.transport.wire.StagedBytes;
import io.kvcache.transport.wire.Violation;
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
final class PutRun implements DataLine.Series {

    /// So much is on its way at a time that the server never waits for the next block, and its answers fit
    /// the connection's buffers.
    private static final long BYTES_AHEAD = 4 << 20;

    private static final int MOST_AHEAD = 16;

    private final Wiring wiring;
    private final BlockChain chain;
    private final int from;
    private final List<MemorySegment> blocks;
    private final long blockBytes;
    private Supplier<ToldChains.Telling> tell = () -> new ToldChains.Telling(0, List.of());
    private ToldChains.@Nullable Telling telling;
    private @Nullable Staging staging;
    private final Deque<Sent> underWay = new ArrayDeque<>();
    private @Nullable Bytes sending;
    private int sent;
    private int stored;
    private int present;
    private PutOutcome last = PutOutcome.PRESENT;
    private @Nullable PutOutcome refusal;
    private boolean paused;
    private boolean misfit;
    private @Nullable CallFailed wrong;

    /// @param from block of the chain that the first one is
    PutRun(Wiring wiring, BlockChain chain, int from, List<MemorySegment> blocks) {
        this.wiring = wiring;
        this.chain = chain;
        this.from = from;
        this.blocks = blocks;
        blockBytes = chain.namespace().parts().getFirst().bytes();
    }

    /// What the server says of one PUT.
    ///
    /// @param sealed null when there was no room to fill
    record Answer(PutOutcome outcome, @Nullable SealOutcome sealed) {

        static Answer read(BodyReader reply) throws Violation {
            int code = reply.u8("outcome");
            int sealed = reply.u8("sealed");
            PutOutcome outcome = Outcomes.put(code, reply.u8("cause"));
            return new Answer(outcome, outcome == PutOutcome.RESERVED ? Outcomes.seal(sealed) : null);
        }

        boolean stored() {
            return sealed != null && sealed != SealOutcome.DROPPED;
        }
    }

    /// One request without an answer yet.
    ///
    /// @param place that its block is in until then, or null when it was sent
    private record Sent(@Nullable StagedPlace place) {

        /// Answers whether there was a place.
        boolean free() {
            if (place != null) {
                place.free();
            }
            return place != null;
        }
    }

    /// The first so many are there.
    void skip(int blocksThere) {
        present = Math.clamp(blocksThere, 0, blocks.size());
        sent = present;
    }

    /// Puts what is left.
    ///
    /// @param places where the server can read it; what finds none there is sent
    void over(DataLine line, Staging places, int namespace) throws CallFailed {
        staging = places;
        tell = () -> line.tell(chain, namespace);
        int ahead = Math.clamp(BYTES_AHEAD / blockBytes, 2, MOST_AHEAD);
        try {
            line.run(this, ahead, wiring.options().requestNanos());
            if (wrong != null && line.doubt(wrong)) {
                again();
                line.run(this, ahead, wiring.options().requestNanos());
            }
        } finally {
            done();
            // If the connection broke, the server may still copy what is there: it has its checksum.
            underWay.forEach(Sent::free);
            underWay.clear();
        }
        if (wrong != null) {
            throw wrong;
        }
    }

    /// From the block that was refused, after telling the chain again, which the server may have
    /// given up.
    private void again() {
        sent = accepted();
        telling = null;
        refusal = null;
        wrong = null;
    }

    @Override
    public @Nullable Frame next(long number) {
        if (sent == blocks.size() || paused || refusal != null) {
            return null;
        }
        MemorySegment block = blocks.get(sent);
        misfit = block.byteSize() != blockBytes;
        if (misfit) {
            return null;
        }
        return frame(block, number);
    }

    private @Nullable Frame frame(MemorySegment block, long number) {
        done();
        StagedPlace place = staging == null ? null : staging.take(blockBytes);
        return place == null ? carried(block, number) : staged(block, place, number);
    }

    private @Nullable Frame carried(MemorySegment block, long number) {
        Bytes bytes = Bytes.of(block, wiring);
        if (bytes == null) {
            return null;
        }
        sending = bytes;
        underWay.addLast(new Sent(null));
        int checksum = bytes.summed(block).value();
        Payload payload = Payload.of(bytes.segment());
        return told(body -> body.i32(checksum)
                .i32(0)
                .request(MessageType.PUT, number, wiring.options().requestNanos(), payload));
    }

    private Frame staged(MemorySegment block, StagedPlace place, long number) {
        underWay.addLast(new Sent(place));
        ChunkedCrc crc = new ChunkedCrc();
        crc.copy(block, 0, place.segment(blockBytes));
        StagedBytes there = place.told(blockBytes, crc.value());
        return told(body -> there.write(body)
                .request(MessageType.PUT_STAGED, number, wiring.options().requestNanos()));
    }

    /// The request for the next block, after what has to be told of its chain. To be called when nothing can
    /// be missing any more: a line takes for told what it was asked to tell.
    private Frame told(Function<BodyWriter, Frame> request) {
        ToldChains.Telling told = telling == null ? tell.get() : telling;
        BodyWriter body = new BodyWriter().u8(told.slot()).u8(0).u16(0).i32(chain.length());
        Frame frame = request.apply(body.i32(from + sent).i32(0));
        telling = told.before().isEmpty() ? told : new ToldChains.Telling(told.slot(), List.of());
        sent++;
        return told.then(frame);
    }

    /// What was sent last is not needed any more.
    private void done() {
        if (sending != null) {
            sending.close();
            sending = null;
        }
    }

    @Override
    public void reply(BodyReader body) throws Violation {
        Answer answer = Answer.read(body);
        boolean staged = underWay.removeFirst().free();
        if (refusal != null) {
            return;
        }
        if (answer.stored()) {
            stored++;
            wiring.counters().staged.add(staged ? 1 : 0);
            last = PutOutcome.RESERVED;
            wiring.counters().bytesOut.add(blockBytes);
        } else if (answer.outcome == PutOutcome.RESERVED) {
            refusal = PutOutcome.NO_PARENT;
        } else if (answer.outcome.allowsNextBlock()) {
            present++;
            last = answer.outcome;
            paused |= answer.outcome == PutOutcome.PRESENT;
        } else {
            refusal = answer.outcome;
        }
    }

    @Override
    public void refused(CallFailed failed) {
        underWay.removeFirst().free();
        refusal = PutOutcome.NO_ROOM;
        wrong = wrong == null ? failed : wrong;
    }

    /// Throws when the next block has not the size of a block.
    void requireSizes() {
        if (misfit) {
            Arguments.source(blocks.get(sent).byteSize(), blockBytes, "a block of this namespace");
        }
    }

    int stored() {
        return stored;
    }

    int present() {
        return present;
    }

    int accepted() {
        return stored + present;
    }

    /// Of the last block that was accepted.
    PutOutcome last() {
        return last;
    }

    /// Why the block after those was not, or null when nothing is said of it.
    @Nullable
    PutOutcome refusal() {
        return refusal;
    }
}
