package io.kvcache.transport.remote;

import io.kvcache.core.Match;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.PutSummary;
import io.kvcache.core.SealOutcome;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.store.ChunkedCrc;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.Payload;
import io.kvcache.transport.wire.Status;
import io.kvcache.transport.wire.Violation;
import java.lang.foreign.MemorySegment;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// Stores bytes that are at hand. Where the server can, room, bytes and answer take one round trip, and
/// those of a run overlap; what has to wait for room, or meets a server that cannot, goes by the writers,
/// which reserve first.
final class Storing {

    private final Wiring wiring;
    private final Asking asking;
    private final Putting putting;

    Storing(Wiring wiring, Asking asking, Putting putting) {
        this.wiring = wiring;
        this.asking = asking;
        this.putting = putting;
    }

    PutSummary blocks(BlockChain chain, int from, List<MemorySegment> blocks, long timeoutNanos) {
        long start = System.nanoTime();
        int stored = 0;
        int present = 0;
        PutOutcome last = PutOutcome.PRESENT;
        while (stored + present < blocks.size()) {
            int at = stored + present;
            long begun = System.nanoTime();
            PutRun run = straight(chain, from + at, blocks.subList(at, blocks.size()));
            stored += run.stored();
            present += run.present();
            last = run.accepted() > 0 ? run.last() : last;
            PutOutcome refusal = run.refusal();
            long left = Math.max(0, timeoutNanos - (System.nanoTime() - start));
            if (refusal != null && (refusal != PutOutcome.NO_ROOM || left == 0)) {
                return new PutSummary(stored, present, refusal);
            }
            if (run.accepted() == 0 && late(begun, left)) {
                return new PutSummary(stored, present, PutOutcome.NO_ROOM);
            }
            if (run.accepted() == 0) {
                last = reserved(chain, from + at, blocks.get(at), left);
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
    private boolean late(long begunNanos, long leftNanos) {
        return System.nanoTime() - begunNanos >= wiring.options().patienceNanos(leftNanos);
    }

    /// As many as can be put without waiting for room; none when the server takes them one by one only.
    private PutRun straight(BlockChain chain, int from, List<MemorySegment> blocks) {
        PutRun run = new PutRun(wiring, chain, from, blocks);
        attempt(attachment -> {
            int number = attachment.number(chain.namespace());
            if (blocks.size() > 1) {
                run.skip(resident(chain) - from);
            }
            attachment.data().use((line, _) -> run.over(line, attachment.staging(), number));
        });
        run.requireSizes();
        return run;
    }

    /// Leading blocks whose bytes need not go there.
    private int resident(BlockChain chain) {
        Match match = asking.or(
                Match.NOTHING,
                asking.about(
                        chain, 0, body -> new Asking.Asked<>(MessageType.MATCH, RemoteKvCache::matched), late -> {}));
        return match.deviceBlocks() + match.hostBlocks();
    }

    /// Something that only some servers can.
    @FunctionalInterface
    private interface Attempt {
        void with(Attachment attachment) throws CallFailed;
    }

    private void attempt(Attempt attempt) {
        try {
            wiring.uplink().ask(attachment -> {
                if (attachment.puts()) {
                    attempt.with(attachment);
                }
                return true;
            });
        } catch (CallFailed failed) {
            wiring.counters().failed.increment();
            if (failed.answered() && failed.status() == Status.INVALID) {
                throw new IllegalArgumentException(failed.getMessage());
            }
        }
    }

    /// Puts one block as a writer does; RESERVED when it is stored.
    private PutOutcome reserved(BlockChain chain, int index, MemorySegment block, long timeoutNanos) {
        Outgoing outgoing = putting.block(chain, index, 0, timeoutNanos);
        try {
            if (outgoing.outcome() != PutOutcome.RESERVED) {
                return outgoing.outcome();
            }
            outgoing.copyFrom(block, "a block of this namespace");
            return outgoing.seal() == SealOutcome.DROPPED ? PutOutcome.NO_PARENT : PutOutcome.RESERVED;
        } finally {
            outgoing.close();
        }
    }

    boolean object(Namespace namespace, byte[] key, MemorySegment value, long timeoutNanos) {
        long start = System.nanoTime();
        ObjectPut put = new ObjectPut();
        attempt(attachment -> send(attachment, new Named(namespace, key), value, put));
        PutRun.Answer answer = put.answer;
        if (answer != null && (answer.outcome() == PutOutcome.RESERVED || timeoutNanos == 0)) {
            return answer.stored();
        }
        if (answer == null && late(start, timeoutNanos)) {
            return false;
        }
        Outgoing outgoing = putting.object(namespace, key, value.byteSize(), timeoutNanos);
        try {
            if (outgoing.outcome() != PutOutcome.RESERVED) {
                return false;
            }
            outgoing.copyFrom(value, "the room");
            return outgoing.seal() != SealOutcome.DROPPED;
        } finally {
            outgoing.close();
        }
    }

    private void send(Attachment attachment, Named object, MemorySegment value, ObjectPut put) throws CallFailed {
        StagedPlace place =
                attachment.putsStagedObjects() ? attachment.staging().take(value.byteSize()) : null;
        if (place == null) {
            carry(attachment, object, value, put);
        } else {
            stage(attachment, object, new Placed(value, place), put);
        }
        if (put.stored()) {
            wiring.counters().bytesOut.add(value.byteSize());
            wiring.counters().staged.add(place == null ? 0 : 1);
        }
    }

    /// What an object is called.
    @SuppressWarnings("ArrayRecordComponent") // never compared
    private record Named(Namespace namespace, byte[] key) {

        BodyWriter begin(Attachment attachment) throws CallFailed {
            return new BodyWriter(64 + key.length)
                    .i32(attachment.number(namespace))
                    .i32(key.length);
        }
    }

    /// A value, and where the server can read it.
    private record Placed(MemorySegment value, StagedPlace place) {}

    private static void stage(Attachment attachment, Named object, Placed placed, ObjectPut put) throws CallFailed {
        StagedPlace place = placed.place;
        try {
            long bytes = placed.value.byteSize();
            ChunkedCrc crc = new ChunkedCrc();
            crc.copy(placed.value, 0, place.segment(bytes));
            crc.update(MemorySegment.ofArray(object.key));
            BodyWriter body = place.told(bytes, crc.value())
                    .write(object.begin(attachment))
                    .bytes(object.key);
            attachment.data().use((line, patience) -> line.run(MessageType.PUT_OBJECT_STAGED, body, patience, put));
        } finally {
            place.free(); // If there was no answer the server may still copy what is there: it has its checksum.
        }
    }

    private void carry(Attachment attachment, Named object, MemorySegment value, ObjectPut put) throws CallFailed {
        try (Bytes bytes = Bytes.of(value, wiring)) {
            if (bytes == null) {
                return;
            }
            ChunkedCrc crc = bytes.summed(value);
            crc.update(MemorySegment.ofArray(object.key));
            BodyWriter body = object.begin(attachment).i32(crc.value()).i32(0).bytes(object.key);
            Payload payload = Payload.of(bytes.segment());
            attachment.data().use((line, patience) -> line.run(MessageType.PUT_OBJECT, body, payload, patience, put));
        }
    }

    /// The answer to PUT_OBJECT and PUT_OBJECT_STAGED.
    private static final class ObjectPut implements DataLine.Exchange {

        private PutRun.@Nullable Answer answer;

        boolean stored() {
            return answer != null && answer.stored();
        }

        @Override
        public void reply(BodyReader body) throws Violation {
            answer = PutRun.Answer.read(body);
        }

        @Override
        public boolean done() {
            return answer != null;
        }
    }
}
