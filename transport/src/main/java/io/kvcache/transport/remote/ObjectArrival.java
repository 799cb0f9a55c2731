package io.kvcache.transport.remote;

import io.kvcache.core.ObjectView;
import io.kvcache.core.store.ChunkedCrc;
import io.kvcache.transport.link.PayloadSink;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.FrameHeader;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.Violation;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/// One object on its way here.
final class ObjectArrival implements DataLine.Exchange {

    private final Wiring wiring;
    private final Attachment attachment;
    private final Wanted wanted;
    private Found found;
    private boolean coming;
    private boolean replied;
    private ArrivalMemory.@Nullable Slot landing;
    private @Nullable ObjectView view;

    /// What the server has found.
    ///
    /// @param lease 0 when it is not here
    /// @param sent whether its bytes follow
    /// @param places where it lies, if that was asked for and told
    record Found(
            long lease, long bytes, boolean sent, @Nullable ObjectPlaces places) {

        static final Found NOTHING = new Found(0, 0, false, null);

        static Found read(BodyReader body) throws Violation {
            long lease = body.i64("lease");
            return new Found(lease, body.amount("bytes"), body.u8("sent") != 0, ObjectPlaces.read(body));
        }
    }

    /// What a caller wants.
    ///
    /// @param untilNanos when he waits no longer
    @SuppressWarnings("ArrayRecordComponent") // never compared
    record Wanted(byte[] key, long untilNanos) {}

    private ObjectArrival(Wiring wiring, Attachment attachment, Wanted wanted, Found found) {
        this.wiring = wiring;
        this.attachment = attachment;
        this.wanted = wanted;
        this.found = found;
    }

    /// Asks for a resident object, and waits until it is here.
    ///
    /// @param body of GET_OBJECT
    static @Nullable ObjectView get(Wiring wiring, Attachment attachment, Wanted wanted, BodyWriter body)
            throws CallFailed {
        ObjectArrival arrival = new ObjectArrival(wiring, attachment, wanted, Found.NOTHING);
        return arrival.run(MessageType.GET_OBJECT, body);
    }

    /// Reads an object of a lease.
    static @Nullable ObjectView read(Wiring wiring, Attachment attachment, Wanted wanted, Found found)
            throws CallFailed {
        ObjectArrival arrival = new ObjectArrival(wiring, attachment, wanted, found);
        return arrival.run(
                MessageType.READ, new BodyWriter().i64(found.lease).i32(0).i32(1));
    }

    private @Nullable ObjectView run(MessageType type, BodyWriter body) throws CallFailed {
        try {
            attachment.data().use(wanted.untilNanos, (line, patience) -> line.run(type, body, patience, this));
            return view;
        } finally {
            if (view == null) {
                if (landing != null) {
                    landing.free();
                    landing = null;
                }
                attachment.release(found.lease);
            }
        }
    }

    @Override
    public void reply(BodyReader body) throws Violation {
        if (found.lease == 0) {
            found = Found.read(body);
            coming = found.sent;
        } else {
            coming = body.count("count") > 0;
        }
        replied = true;
    }

    @Override
    public PayloadSink data(FrameHeader header, BodyReader body) throws Violation {
        body.count("index");
        int checksum = body.i32("checksum");
        if (!coming || header.payloadBytes() != found.bytes) {
            throw new Violation("an object of %d bytes; allowed: %d".formatted(header.payloadBytes(), found.bytes));
        }
        ArrivalMemory.Slot slot = wiring.memory().take(found.bytes);
        if (slot == null) {
            wiring.counters().noMemory.increment();
            return PayloadSink.discard(header.payloadBytes(), sum -> coming = false);
        }
        landing = slot;
        return PayloadSink.into(slot.buffer(found.bytes), sum -> landed(slot, sum, checksum));
    }

    private void landed(ArrivalMemory.Slot slot, ChunkedCrc sum, int checksum) {
        coming = false;
        wiring.counters().bytesIn.add(found.bytes);
        sum.update(MemorySegment.ofArray(wanted.key));
        if (sum.value() == checksum) {
            landing = null;
            RemoteObjectView.Held held = new RemoteObjectView.Held(found.lease, slot, found.bytes, checksum);
            view = new RemoteObjectView(wiring, attachment, held);
        } else {
            wiring.counters().corrupt.increment();
        }
    }

    @Override
    public boolean done() {
        return replied && !coming;
    }
}
