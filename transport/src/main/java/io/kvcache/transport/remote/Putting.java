package io.kvcache.transport.remote;

import io.kvcache.core.PutOutcome;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.Namespace;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.Outcomes;
import io.kvcache.transport.wire.Violation;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// Reserves room there and memory here. Whatever is missing, there is no room.
final class Putting {

    private static final byte[] NO_TRAILER = {};

    private final Wiring wiring;
    private final Asking asking;

    Putting(Wiring wiring, Asking asking) {
        this.wiring = wiring;
        this.asking = asking;
    }

    /// What the server says.
    ///
    /// @param reservation if there is one
    private record Reserved(PutOutcome outcome, long reservation) {

        static Reserved read(BodyReader reply) throws Violation {
            PutOutcome outcome = Outcomes.put(reply.u8("outcome"), reply.u8("cause"));
            return new Reserved(outcome, reply.skip(6).i64("reservation"));
        }
    }

    Outgoing block(BlockChain chain, int index, int part, long timeoutNanos) {
        long bytes = chain.namespace().parts().get(part).bytes();
        return reserve(bytes, NO_TRAILER, late -> {
            Asking.Question<Reserved> question = asking.about(
                    chain,
                    timeoutNanos,
                    body -> {
                        body.i32(index).i32(part).i64(timeoutNanos);
                        return new Asking.Asked<>(MessageType.RESERVE, Reserved::read);
                    },
                    late);
            return question;
        });
    }

    Outgoing object(Namespace namespace, byte[] key, long bytes, long timeoutNanos) {
        long patience = wiring.options().patienceNanos(timeoutNanos);
        return reserve(bytes, key.clone(), late -> attachment -> {
            BodyWriter body = new BodyWriter(64 + key.length);
            body.i32(attachment.number(namespace))
                    .i32(key.length)
                    .i64(bytes)
                    .i64(timeoutNanos)
                    .bytes(key);
            return ControlLine.await(
                    attachment
                            .control()
                            .ask(new ControlLine.Question<>(
                                    MessageType.RESERVE_OBJECT, body, Reserved::read, patience)),
                    patience,
                    late);
        });
    }

    /// A question whose late answers are disposed of.
    @FunctionalInterface
    private interface Late {
        Asking.Question<Reserved> with(Consumer<Reserved> late);
    }

    private Outgoing reserve(long bytes, byte[] trailer, Late question) {
        return asking.or(Outgoing.none(wiring, PutOutcome.NO_ROOM), attachment -> {
            Place place = place(attachment, bytes);
            if (place == null) {
                wiring.counters().noMemory.increment();
                return Outgoing.none(wiring, PutOutcome.NO_ROOM);
            }
            boolean kept = false;
            try {
                Reserved reserved =
                        question.with(late -> abandon(attachment, late)).ask(attachment);
                kept = reserved.outcome == PutOutcome.RESERVED;
                return kept
                        ? Outgoing.into(
                                wiring, new Outgoing.Room(attachment, reserved.reservation, place, bytes, trailer))
                        : Outgoing.none(wiring, reserved.outcome);
            } finally {
                if (!kept) {
                    place.free();
                }
            }
        });
    }

    /// Where the server can read it, if there is room; else where it is sent from; null when there is none
    /// either.
    private @Nullable Place place(Attachment attachment, long bytes) {
        Place staged = attachment.staging().take(bytes);
        return staged == null ? wiring.memory().take(bytes) : staged;
    }

    private static void abandon(Attachment attachment, Reserved late) {
        if (late.outcome == PutOutcome.RESERVED && !attachment.over()) {
            attachment.control().tell(MessageType.ABANDON, new BodyWriter().i64(late.reservation));
        }
    }
}
