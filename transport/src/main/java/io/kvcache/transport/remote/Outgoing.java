package io.kvcache.transport.remote;

import io.kvcache.core.PutOutcome;
import io.kvcache.core.SealOutcome;
import io.kvcache.core.store.ChunkedCrc;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.Outcomes;
import io.kvcache.transport.wire.Payload;
import io.kvcache.transport.wire.Violation;
import java.lang.foreign.MemorySegment;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/// Bytes that are collected here for room that is reserved there: what block and object writers have in
/// common.
///
/// Not safe for several threads at once, as no writer is.
final class Outgoing {

    private final Wiring wiring;
    private final PutOutcome outcome;
    private final @Nullable Room room;
    private final ViewScope scope;
    private boolean open;
    private boolean summed;
    private int checksum;
    private long arrived;

    /// Room there, and memory here.
    ///
    /// @param trailer what is summed after the bytes
    @SuppressWarnings("ArrayRecordComponent") // never compared
    record Room(Attachment attachment, long reservation, Place place, long bytes, byte[] trailer) {

        MemorySegment segment() {
            return place.segment(bytes);
        }
    }

    private Outgoing(Wiring wiring, PutOutcome outcome, @Nullable Room room) {
        this.wiring = wiring;
        this.outcome = outcome;
        this.room = room;
        open = room != null;
        scope = new ViewScope(wiring.options().checked() && open);
        if (room != null) {
            wiring.open().incrementAndGet();
            room.attachment.users().stay();
        }
    }

    /// Nothing to write.
    static Outgoing none(Wiring wiring, PutOutcome outcome) {
        return new Outgoing(wiring, outcome, null);
    }

    static Outgoing into(Wiring wiring, Room room) {
        return new Outgoing(wiring, PutOutcome.RESERVED, room);
    }

    PutOutcome outcome() {
        return outcome;
    }

    private Room requireOpen() {
        if (outcome != PutOutcome.RESERVED) {
            throw new IllegalStateException("nothing is reserved: the outcome is " + outcome);
        }
        if (!open) {
            throw new IllegalStateException("the writer is sealed or closed");
        }
        return Objects.requireNonNull(room);
    }

    MemorySegment segment() {
        return scope.limit(requireOpen().segment());
    }

    /// Fills it all, summing on the way.
    void copyFrom(MemorySegment source, String what) {
        Room to = requireOpen();
        Arguments.source(source.byteSize(), to.bytes, what);
        ChunkedCrc crc = new ChunkedCrc();
        crc.copy(source, 0, to.segment());
        sum(crc, to);
    }

    /// Bytes are in their place; they are summed when all are.
    void arrived(long bytes) {
        Objects.checkFromIndexSize(arrived, bytes, requireOpen().bytes);
        arrived += bytes;
    }

    private void sum(ChunkedCrc crc, Room of) {
        if (of.trailer.length > 0) {
            crc.update(MemorySegment.ofArray(of.trailer));
        }
        checksum = crc.value();
        summed = true;
    }

    SealOutcome seal() {
        Room from = requireOpen();
        if (!summed) {
            ChunkedCrc crc = new ChunkedCrc();
            crc.update(from.segment());
            sum(crc, from);
        }
        return seal(checksum);
    }

    /// Sends the bytes; if that fails they are lost.
    SealOutcome seal(int sum) {
        Room from = requireOpen();
        open = false;
        scope.close();
        Sealing sealing = new Sealing();
        try {
            from.attachment.data().use((line, patience) -> fill(line, new Filling(from, sum, patience), sealing));
            wiring.counters().bytesOut.add(from.bytes);
            return sealing.outcome;
        } catch (CallFailed failed) {
            wiring.counters().failed.increment();
            abandon(from);
            return SealOutcome.DROPPED;
        } finally {
            over(from);
        }
    }

    /// What is sent for the room, and how long its answer may take.
    private record Filling(Room from, int sum, long patienceNanos) {}

    private void fill(DataLine line, Filling filling, Sealing sealing) throws CallFailed {
        Room from = filling.from;
        int sum = filling.sum;
        long patience = filling.patienceNanos;
        BodyWriter body = new BodyWriter().i64(from.reservation);
        switch (from.place) {
            case StagedPlace staged -> {
                line.run(MessageType.FILL_STAGED, staged.told(from.bytes, sum).write(body), patience, sealing);
                wiring.counters().staged.increment();
            }
            case ArrivalMemory.Slot slot -> {
                Payload payload = Payload.of(slot.segment(from.bytes));
                line.run(MessageType.FILL, body.i32(sum).i32(0), payload, patience, sealing);
            }
        }
    }

    /// The answer to FILL.
    private static final class Sealing implements DataLine.Exchange {

        private SealOutcome outcome = SealOutcome.DROPPED;
        private boolean done;

        @Override
        public void reply(BodyReader body) throws Violation {
            outcome = Outcomes.seal(body.u8("outcome"));
            done = true;
        }

        @Override
        public boolean done() {
            return done;
        }
    }

    private static void abandon(Room from) {
        if (!from.attachment.over()) {
            from.attachment.control().tell(MessageType.ABANDON, new BodyWriter().i64(from.reservation));
        }
    }

    /// Waits until the server has heard that the room is not needed: what comes next may go over another
    /// connection and overtake it. If there is no answer nothing is lost, the session will end.
    private void heard(Room from) {
        if (from.attachment.over()) {
            return;
        }
        try {
            from.attachment.ask(MessageType.PING, new BodyWriter(), reply -> true, 0);
        } catch (CallFailed unanswered) {
            wiring.counters().failed.increment();
        }
    }

    private void over(Room from) {
        from.place.free();
        wiring.open().decrementAndGet();
        from.attachment.users().leave();
    }

    void close() {
        if (open) {
            Room from = requireOpen();
            open = false;
            try {
                scope.close();
            } finally {
                abandon(from);
                heard(from);
                over(from);
            }
        }
    }
}
