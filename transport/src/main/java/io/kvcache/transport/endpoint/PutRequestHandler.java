package io.kvcache.transport.endpoint;

import io.kvcache.core.BlockWriter;
import io.kvcache.core.KvCache;
import io.kvcache.core.ObjectWriter;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.Namespace;
import io.kvcache.transport.link.PayloadSink;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.FrameHeader;
import io.kvcache.transport.wire.OutcomeCodec;
import io.kvcache.transport.wire.ProtocolException;
import io.kvcache.transport.wire.Status;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.List;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// Requests that bring blocks and objects in: reserve, fill, abandon, or all in one.
final class PutRequestHandler {

    private final EndpointContext endpointContext;
    private final ClientSession session;
    private final ChainCache chains;
    private final ChainCache.ChainRetention holds;
    private final UploadReservation.UploadCompletion uploadCompletion;

    /// What the payload that is coming in over this connection fills.
    private @Nullable UploadReservation filling;

    PutRequestHandler(EndpointContext endpointContext, ClientSession session, ChainCache chains) {
        this.endpointContext = endpointContext;
        this.session = session;
        this.chains = chains;
        holds = new ChainCache.ChainRetention(endpointContext.shared().chains());
        uploadCompletion = new UploadReservation.UploadCompletion(endpointContext);
    }

    /// `chain, u32 index, u32 part, u64 timeout` → `u8 outcome, u8 cause, 6 × 0, u64 reservation`
    RequestDispatcher.RequestAction reserve(EndpointRequest request, BodyReader body)
            throws ProtocolException, RequestException {
        ChainCache.ResolvedChain resolvedChain = chains.resolve(body);
        int index = body.count("index");
        int part = body.count("part");
        long timeout = request.boundedTimeout(body.nonNegativeLong("timeout"));
        return () -> runReserve(request, timeout, holds.retain(resolvedChain), () -> {
            BlockWriter writer =
                    endpointContext.cache().put(resolvedChain.chain(), index, part, Duration.ofNanos(timeout));
            sendReservation(request, writer.outcome(), new UploadReservation.BlockReservation(writer));
        });
    }

    /// `u32 namespace, u32 key bytes, u64 bytes, u64 timeout, key` → as [#reserve]
    RequestDispatcher.RequestAction reserveObject(EndpointRequest request, BodyReader body) throws ProtocolException {
        Namespace namespace = ObjectRequestHandler.namespace(session, body);
        int keyBytes = body.count("key bytes");
        long bytes = body.nonNegativeLong("bytes");
        long timeout = request.boundedTimeout(body.nonNegativeLong("timeout"));
        byte[] key = body.bytes("key", keyBytes);
        return () -> runReserve(request, timeout, EndpointContext.HeapReservation.NONE, () -> {
            ObjectWriter writer = endpointContext.cache().putObject(namespace, key, bytes, Duration.ofNanos(timeout));
            sendReservation(request, writer.outcome(), new UploadReservation.ObjectReservation(writer, key));
        });
    }

    /// At once if it cannot wait, else beside the connection.
    ///
    /// @param heapReservation what is kept for its chain while it waits
    private void runReserve(
            EndpointRequest request,
            long timeoutNanos,
            EndpointContext.HeapReservation heapReservation,
            EndpointContext.RequestStep step)
            throws RequestException {
        if (timeoutNanos == 0) {
            step.run();
        } else {
            endpointContext.later(session, request, heapReservation, step);
        }
    }

    private void sendReservation(EndpointRequest request, PutOutcome outcome, UploadReservation reservation)
            throws RequestException {
        long number = 0;
        if (outcome == PutOutcome.RESERVED) {
            number = grant(reservation);
        } else {
            reservation.close();
        }
        request.reply(new BodyWriter()
                .u8(OutcomeCodec.code(outcome))
                .u8(OutcomeCodec.cause(outcome))
                .u16(0)
                .i32(0)
                .i64(number));
    }

    private long grant(UploadReservation reservation) throws RequestException {
        int most = endpointContext.options().limits().handles();
        if (session.reservations().size() >= most) {
            reservation.close();
            throw new RequestException(Status.BUSY, "%d reservations are held; allowed: %1$d".formatted(most));
        }
        long number = session.reservations().grant(reservation);
        if (number == HandleTable.NONE) {
            reservation.close();
            throw new RequestException(Status.GONE, "the session is over");
        }
        return number;
    }

    /// `u64 reservation`, no reply
    RequestDispatcher.RequestAction abandon(BodyReader body) throws ProtocolException {
        long number = body.i64("reservation");
        return () -> {
            UploadReservation reservation = session.reservations().remove(number);
            if (reservation != null) {
                reservation.close();
            }
        };
    }

    /// `u64 reservation, u32 checksum, u32 0`, payload → `u8 outcome`
    PayloadSink fill(FrameHeader header, EndpointRequest request, BodyReader body) throws ProtocolException {
        long number = body.i64("reservation");
        int checksum = body.i32("checksum");
        UploadReservation reservation = session.reservations().remove(number);
        if (reservation == null) {
            String text = "reservation " + number + " is over";
            return PayloadSink.discard(header.payloadBytes(), sum -> request.reject(Status.GONE, text));
        }
        return receiveInto(header, request, reservation, UploadReservation.UploadCompletion.forFill(checksum));
    }

    private PayloadSink receiveInto(
            FrameHeader header,
            EndpointRequest request,
            UploadReservation reservation,
            UploadReservation.UploadCompletion.ExpectedUpload expectedUpload) {
        List<MemorySegment> room = reservation.pieces();
        long bytes = 0;
        for (MemorySegment piece : room) {
            bytes += piece.byteSize();
        }
        if (bytes != header.payloadBytes()) {
            reservation.close();
            String text = "a payload of %d bytes; the room is for %d".formatted(header.payloadBytes(), bytes);
            return PayloadSink.discard(header.payloadBytes(), sum -> request.reject(Status.INVALID, text));
        }
        filling = reservation;
        return PayloadSink.into(room, sum -> {
            filling = null;
            endpointContext.counters().bytesIn.add(header.payloadBytes());
            uploadCompletion.seal(request, reservation, sum, expectedUpload);
        });
    }

    /// `chain, u32 index, u32 part, u32 checksum, u32 0`, payload → `u8 outcome, u8 sealed, 6 × 0`
    PayloadSink put(FrameHeader header, EndpointRequest request, BodyReader body)
            throws ProtocolException, RequestException {
        BlockChain chain = chains.read(body);
        int index = body.count("index");
        int part = body.count("part");
        int checksum = body.i32("checksum");
        return receiveDirect(header, request, checksum, () -> {
            BlockWriter writer = endpointContext.cache().put(chain, index, part, KvCache.NO_WAIT);
            return new OneStepPut(writer.outcome(), new UploadReservation.BlockReservation(writer));
        });
    }

    /// `u32 namespace, u32 key bytes, u32 checksum, u32 0, key`, payload → as [#put]
    PayloadSink putObject(FrameHeader header, EndpointRequest request, BodyReader body) throws ProtocolException {
        Namespace namespace = ObjectRequestHandler.namespace(session, body);
        int keyBytes = body.count("key bytes");
        int checksum = body.i32("checksum");
        byte[] key = body.skip(Integer.BYTES).bytes("key", keyBytes);
        return receiveDirect(header, request, checksum, () -> {
            ObjectWriter writer =
                    endpointContext.cache().putObject(namespace, key, header.payloadBytes(), KvCache.NO_WAIT);
            return new OneStepPut(writer.outcome(), new UploadReservation.ObjectReservation(writer, key));
        });
    }

    private record OneStepPut(PutOutcome outcome, UploadReservation reservation) {}

    /// Reserves while the payload is on its way, which has to come off the connection whatever there is to
    /// say.
    private PayloadSink receiveDirect(
            FrameHeader header, EndpointRequest request, int checksum, Supplier<OneStepPut> reserve) {
        if (endpointContext.gracefulShutdown().isStarted()) {
            return PayloadSink.discard(
                    header.payloadBytes(), sum -> request.reject(Status.BUSY, GracefulShutdown.REJECTION_MESSAGE));
        }
        OneStepPut oneStepPut;
        try {
            oneStepPut = reserve.get();
        } catch (RuntimeException failed) {
            return PayloadSink.discard(
                    header.payloadBytes(),
                    sum -> endpointContext.runOrReject(request, () -> {
                        throw failed;
                    }));
        }
        if (oneStepPut.outcome != PutOutcome.RESERVED) {
            oneStepPut.reservation.close();
            return PayloadSink.discard(
                    header.payloadBytes(),
                    sum -> request.reply(UploadReservation.UploadCompletion.rejectedPutReply(oneStepPut.outcome)));
        }
        return receiveInto(
                header, request, oneStepPut.reservation, UploadReservation.UploadCompletion.forPut(checksum));
    }

    /// The connection is over, perhaps in the middle of a payload.
    void onClosed() {
        if (filling != null) {
            filling.close();
            filling = null;
        }
    }
}
