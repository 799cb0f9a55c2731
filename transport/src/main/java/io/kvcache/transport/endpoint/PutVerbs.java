package io.kvcache.transport.endpoint;

import io.kvcache.core.BlockWriter;
import io.kvcache.core.ObjectWriter;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.Namespace;
import io.kvcache.transport.link.Landing;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.FrameHeader;
import io.kvcache.transport.wire.Outcomes;
import io.kvcache.transport.wire.Status;
import io.kvcache.transport.wire.Violation;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// Requests that bring blocks and objects in: reserve, fill, abandon, or all in one.
final class PutVerbs {

    private final Service service;
    private final Session session;
    private final ChainSlots chains;
    private final ChainHolds holds;
    private final Sealing sealing;

    /// What the payload that is coming in over this connection fills.
    private @Nullable Reservation filling;

    PutVerbs(Service service, Session session, ChainSlots chains) {
        this.service = service;
        this.session = session;
        this.chains = chains;
        holds = new ChainHolds(service.common().chains());
        sealing = new Sealing(service);
    }

    /// `chain, u32 index, u32 part, u64 timeout` → `u8 outcome, u8 cause, 6 × 0, u64 reservation`
    Requests.Parsed reserve(Request request, BodyReader body) throws Violation, Refused {
        ChainSlots.Told told = chains.told(body);
        int index = body.count("index");
        int part = body.count("part");
        long timeout = request.bounded(body.amount("timeout"));
        return () -> now(request, timeout, holds.of(told), () -> {
            BlockWriter writer = service.cache().put(told.chain(), index, part, timeout);
            answer(request, writer.outcome(), new Reservation.Block(writer));
        });
    }

    /// `u32 namespace, u32 key bytes, u64 bytes, u64 timeout, key` → as [#reserve]
    Requests.Parsed reserveObject(Request request, BodyReader body) throws Violation {
        Namespace namespace = ObjectVerbs.namespace(session, body);
        int keyBytes = body.count("key bytes");
        long bytes = body.amount("bytes");
        long timeout = request.bounded(body.amount("timeout"));
        byte[] key = body.bytes("key", keyBytes);
        return () -> now(request, timeout, Service.Hold.NONE, () -> {
            ObjectWriter writer = service.cache().putObject(namespace, key, bytes, timeout);
            answer(request, writer.outcome(), new Reservation.Opaque(writer, key));
        });
    }

    /// At once if it cannot wait, else beside the connection.
    ///
    /// @param hold what is kept for its chain while it waits
    private void now(Request request, long timeoutNanos, Service.Hold hold, Service.Step step) throws Refused {
        if (timeoutNanos == 0) {
            step.run();
        } else {
            service.later(session, request, hold, step);
        }
    }

    private void answer(Request request, PutOutcome outcome, Reservation reservation) throws Refused {
        long number = 0;
        if (outcome == PutOutcome.RESERVED) {
            number = grant(reservation);
        } else {
            reservation.close();
        }
        request.reply(new BodyWriter()
                .u8(Outcomes.code(outcome))
                .u8(Outcomes.cause(outcome))
                .u16(0)
                .i32(0)
                .i64(number));
    }

    private long grant(Reservation reservation) throws Refused {
        int most = service.options().most().claims();
        if (session.reservations().size() >= most) {
            reservation.close();
            throw new Refused(Status.BUSY, "%d reservations are held; allowed: %1$d".formatted(most));
        }
        long number = session.reservations().grant(reservation);
        if (number == Claims.NONE) {
            reservation.close();
            throw new Refused(Status.GONE, "the session is over");
        }
        return number;
    }

    /// `u64 reservation`, no reply
    Requests.Parsed abandon(BodyReader body) throws Violation {
        long number = body.i64("reservation");
        return () -> {
            Reservation reservation = session.reservations().take(number);
            if (reservation != null) {
                reservation.close();
            }
        };
    }

    /// `u64 reservation, u32 checksum, u32 0`, payload → `u8 outcome`
    Landing fill(FrameHeader header, Request request, BodyReader body) throws Violation {
        long number = body.i64("reservation");
        int checksum = body.i32("checksum");
        Reservation reservation = session.reservations().take(number);
        if (reservation == null) {
            String text = "reservation " + number + " is over";
            return Landing.discard(header.payloadBytes(), sum -> request.refuse(Status.GONE, text));
        }
        return land(header, request, reservation, Sealing.ofFill(checksum));
    }

    private Landing land(FrameHeader header, Request request, Reservation reservation, Sealing.Told told) {
        List<MemorySegment> room = reservation.pieces();
        long bytes = 0;
        for (MemorySegment piece : room) {
            bytes += piece.byteSize();
        }
        if (bytes != header.payloadBytes()) {
            reservation.close();
            String text = "a payload of %d bytes; the room is for %d".formatted(header.payloadBytes(), bytes);
            return Landing.discard(header.payloadBytes(), sum -> request.refuse(Status.INVALID, text));
        }
        filling = reservation;
        return Landing.into(room, sum -> {
            filling = null;
            service.counters().bytesIn.add(header.payloadBytes());
            sealing.seal(request, reservation, sum, told);
        });
    }

    /// `chain, u32 index, u32 part, u32 checksum, u32 0`, payload → `u8 outcome, u8 sealed, 6 × 0`
    Landing put(FrameHeader header, Request request, BodyReader body) throws Violation, Refused {
        BlockChain chain = chains.read(body);
        int index = body.count("index");
        int part = body.count("part");
        int checksum = body.i32("checksum");
        return straight(header, request, checksum, () -> {
            BlockWriter writer = service.cache().put(chain, index, part, 0);
            return new Direct(writer.outcome(), new Reservation.Block(writer));
        });
    }

    /// `u32 namespace, u32 key bytes, u32 checksum, u32 0, key`, payload → as [#put]
    Landing putObject(FrameHeader header, Request request, BodyReader body) throws Violation {
        Namespace namespace = ObjectVerbs.namespace(session, body);
        int keyBytes = body.count("key bytes");
        int checksum = body.i32("checksum");
        byte[] key = body.skip(Integer.BYTES).bytes("key", keyBytes);
        return straight(header, request, checksum, () -> {
            ObjectWriter writer = service.cache().putObject(namespace, key, header.payloadBytes(), 0);
            return new Direct(writer.outcome(), new Reservation.Opaque(writer, key));
        });
    }

    private record Direct(PutOutcome outcome, Reservation reservation) {}

    /// Reserves while the payload is on its way, which has to come off the connection whatever there is to
    /// say.
    private Landing straight(FrameHeader header, Request request, int checksum, Supplier<Direct> reserve) {
        if (service.draining().begun()) {
            return Landing.discard(header.payloadBytes(), sum -> request.refuse(Status.BUSY, Draining.TEXT));
        }
        Direct direct;
        try {
            direct = reserve.get();
        } catch (RuntimeException failed) {
            return Landing.discard(
                    header.payloadBytes(),
                    sum -> service.attempt(request, () -> {
                        throw failed;
                    }));
        }
        if (direct.outcome != PutOutcome.RESERVED) {
            direct.reservation.close();
            return Landing.discard(header.payloadBytes(), sum -> request.reply(Sealing.refused(direct.outcome)));
        }
        return land(header, request, direct.reservation, Sealing.ofPut(checksum));
    }

    /// The connection is over, perhaps in the middle of a payload.
    void closed() {
        if (filling != null) {
            filling.close();
            filling = null;
        }
    }
}
