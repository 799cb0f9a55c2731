package io.kvcache.transport.endpoint;

import io.kvcache.core.BlockWriter;
import io.kvcache.core.KvCache;
import io.kvcache.core.ObjectWriter;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.SealOutcome;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.memory.ChunkedCrc;
import io.kvcache.core.shm.SharedMemory;
import io.kvcache.core.shm.StagingArea;
import io.kvcache.transport.endpoint.ClientSession.HandleTable;
import io.kvcache.transport.endpoint.EndpointRequest.RequestException;
import io.kvcache.transport.net.PayloadSink;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.FrameHeader;
import io.kvcache.transport.wire.OutcomeCodec;
import io.kvcache.transport.wire.ProtocolException;
import io.kvcache.transport.wire.SharedMemoryCodec.ChecksumCodec;
import io.kvcache.transport.wire.SharedMemoryCodec.StagedRange;
import io.kvcache.transport.wire.SharedMemoryCodec.StagingDescriptor;
import io.kvcache.transport.wire.Status;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.function.Function;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// Put requests of one connection, for blocks and objects: reserve, fill, abandon, or all in one.
///
/// Bytes come as a payload, or lie in staging memory that the client shares with this process. **Staged bytes can
/// change at any moment**, as the client can write while they are read here. So the server copies them first, and
/// computes the checksum of the copy. A client that writes too early spoils only its own block, as the checksum
/// then differs.
final class PutRequestHandler {

    /// Bytes copied from staging memory at a time: small enough to stay in the second-level cache for the
    /// checksum.
    private static final long TILE_BYTES = 128 << 10;

    private final EndpointContext context;
    private final ClientSession session;
    private final ChainCache chains;
    private final ChainCache.ChainRetention retention;

    /// Reservation that the payload on this connection fills.
    private @Nullable UploadReservation filling;

    PutRequestHandler(EndpointContext context, ClientSession session, ChainCache chains) {
        this.context = context;
        this.session = session;
        this.chains = chains;
        retention = new ChainCache.ChainRetention(context.chains());
    }

    /// `chain, u32 index, u32 part, u64 timeout` → `u8 outcome, u8 cause, 6 × 0, u64 reservation`
    void reserve(EndpointRequest request, BodyReader body) throws ProtocolException, RequestException {
        ChainCache.ResolvedChain resolved = chains.resolve(body);
        int index = body.count("index");
        int part = body.count("part");
        long timeout = request.boundedTimeout(body.nonNegativeLong("timeout"));
        context.requireNotDraining();
        runReserve(request, timeout, retention.retain(resolved), () -> {
            BlockWriter writer = context.cache().put(resolved.chain(), index, part, Duration.ofNanos(timeout));
            sendReservation(request, writer.outcome(), new UploadReservation.BlockReservation(writer));
        });
    }

    /// `u32 namespace, u32 key bytes, u64 bytes, u64 timeout, key` → as [#reserve]
    void reserveObject(EndpointRequest request, BodyReader body) throws ProtocolException, RequestException {
        Namespace namespace = session.requireNamespace(body);
        int keyBytes = body.count("key bytes");
        long bytes = body.nonNegativeLong("bytes");
        long timeout = request.boundedTimeout(body.nonNegativeLong("timeout"));
        byte[] key = body.bytes("key", keyBytes);
        context.requireNotDraining();
        runReserve(request, timeout, null, () -> {
            ObjectWriter writer = context.cache().putObject(namespace, key, bytes, Duration.ofNanos(timeout));
            sendReservation(request, writer.outcome(), new UploadReservation.ObjectReservation(writer, key));
        });
    }

    /// Runs a request at once if it cannot wait, else on a thread of its own.
    ///
    /// @param heap its chain, which it keeps while it waits, or null
    private void runReserve(
            EndpointRequest request,
            long timeoutNanos,
            ChainCache.@Nullable RetainedChain heap,
            EndpointContext.RequestStep step)
            throws RequestException {
        if (timeoutNanos == 0) {
            step.run();
        } else {
            context.later(session, request, heap, step);
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
        BodyWriter reply = new BodyWriter().u8(OutcomeCodec.code(outcome)).u8(OutcomeCodec.cause(outcome));
        request.reply(reply.u16(0).i32(0).i64(number));
    }

    private long grant(UploadReservation reservation) throws RequestException {
        int most = context.options().limits().handles();
        if (session.reservations().size() >= most) {
            reservation.close();
            throw new RequestException(Status.BUSY, "%s reservations are held; allowed: %1$s".formatted(most));
        }
        long number = session.reservations().grant(reservation);
        if (number == HandleTable.NONE) {
            reservation.close();
            throw new RequestException(Status.GONE, "the session is over");
        }
        return number;
    }

    /// `u64 reservation`, no reply
    void abandon(BodyReader body) throws ProtocolException {
        UploadReservation reservation = session.reservations().remove(body.i64("reservation"));
        if (reservation != null) {
            reservation.close();
        }
    }

    private UploadReservation takeReservation(long number) throws RequestException {
        UploadReservation reservation = session.reservations().remove(number);
        if (reservation == null) {
            throw new RequestException(Status.GONE, "reservation " + number + " is over");
        }
        return reservation;
    }

    /// `u64 reservation`, [checksum][ChecksumCodec], payload → `u8 outcome`
    PayloadSink fill(FrameHeader header, EndpointRequest request, BodyReader body)
            throws ProtocolException, RequestException {
        long number = body.i64("reservation");
        Integer checksum = ChecksumCodec.read(body);
        return receiveInto(header, request, takeReservation(number), ExpectedUpload.forFill(checksum));
    }

    private PayloadSink receiveInto(
            FrameHeader header, EndpointRequest request, UploadReservation reservation, ExpectedUpload expected)
            throws RequestException {
        List<MemorySegment> room = reservation.pieces();
        long bytes = bytes(room);
        if (bytes != header.payloadBytes()) {
            reservation.close();
            throw new RequestException(
                    Status.INVALID,
                    "a payload of %s bytes; the room is for %s".formatted(header.payloadBytes(), bytes));
        }
        filling = reservation;
        return PayloadSink.into(room, sum -> {
            filling = null;
            context.counters().bytesIn.add(header.payloadBytes());
            seal(request, reservation, sum, expected);
        });
    }

    private static long bytes(List<MemorySegment> pieces) {
        long bytes = 0;
        for (MemorySegment piece : pieces) {
            bytes += piece.byteSize();
        }
        return bytes;
    }

    /// `chain, u32 index, u32 part`, [checksum][ChecksumCodec], payload → `u8 outcome, u8 sealed, 6 × 0`
    PayloadSink put(FrameHeader header, EndpointRequest request, BodyReader body)
            throws ProtocolException, RequestException {
        BlockChain chain = chains.read(body);
        int index = body.count("index");
        int part = body.count("part");
        Integer checksum = ChecksumCodec.read(body);
        return receiveDirect(header, request, checksum, () -> {
            BlockWriter writer = context.cache().put(chain, index, part, KvCache.NO_WAIT);
            return new OneStepPut(writer.outcome(), new UploadReservation.BlockReservation(writer));
        });
    }

    /// `u32 namespace, u32 key bytes`, [checksum][ChecksumCodec], `key`, payload → as [#put]
    PayloadSink putObject(FrameHeader header, EndpointRequest request, BodyReader body)
            throws ProtocolException, RequestException {
        Namespace namespace = session.requireNamespace(body);
        int keyBytes = body.count("key bytes");
        Integer checksum = ChecksumCodec.read(body);
        byte[] key = body.bytes("key", keyBytes);
        return receiveDirect(header, request, checksum, () -> {
            ObjectWriter writer = context.cache().putObject(namespace, key, header.payloadBytes(), KvCache.NO_WAIT);
            return new OneStepPut(writer.outcome(), new UploadReservation.ObjectReservation(writer, key));
        });
    }

    private record OneStepPut(PutOutcome outcome, UploadReservation reservation) {}

    /// Reserves while the payload arrives. The payload must be read off the connection, whatever the outcome is.
    private PayloadSink receiveDirect(
            FrameHeader header, EndpointRequest request, @Nullable Integer checksum, Supplier<OneStepPut> reserve)
            throws RequestException {
        context.requireNotDraining();
        OneStepPut put;
        try {
            put = reserve.get();
        } catch (RuntimeException failed) {
            return PayloadSink.discard(header.payloadBytes(), sum -> context.reject(request, failed));
        }
        if (put.outcome != PutOutcome.RESERVED) {
            put.reservation.close();
            return PayloadSink.discard(header.payloadBytes(), sum -> request.reply(putReply(put.outcome, 0)));
        }
        return receiveInto(header, request, put.reservation, ExpectedUpload.forPut(checksum));
    }

    private static BodyWriter putReply(PutOutcome outcome, int sealed) {
        BodyWriter reply = new BodyWriter().u8(OutcomeCodec.code(outcome)).u8(sealed);
        return reply.u8(OutcomeCodec.cause(outcome)).u8(0).i32(0);
    }

    /// `u64 bytes` → see [StagingDescriptor]
    void stage(EndpointRequest request, BodyReader body) throws ProtocolException, RequestException {
        long bytes = body.nonNegativeLong("bytes");
        context.requireNotDraining();
        SharedMemory memory = context.requireSharedMemory(session);
        if (memory.maxStagingBytes() == 0) {
            throw new RequestException(Status.UNSUPPORTED, "this server has no memory for clients to write into");
        }
        StagingArea area;
        try {
            area = session.staging().areaOrCreate(() -> memory.createStagingArea(bytes));
        } catch (IllegalStateException none) {
            throw new RequestException(Status.BUSY, String.valueOf(none.getMessage()));
        }
        BodyWriter reply = new BodyWriter(64);
        new StagingDescriptor(area.bytes(), area.header(), area.file()).write(reply);
        request.reply(reply);
    }

    /// `u64 reservation`, [StagedRange] → `u8 outcome`
    void fillStaged(EndpointRequest request, BodyReader body) throws ProtocolException, RequestException {
        long number = body.i64("reservation");
        StagedRange staged = StagedRange.read(body);
        sealStaged(request, takeReservation(number), staged, ExpectedUpload.forFill(staged.checksum()));
    }

    /// `chain, u32 index, u32 part`, [StagedRange] → `u8 outcome, u8 sealed, 6 × 0`
    void putStaged(EndpointRequest request, BodyReader body) throws ProtocolException, RequestException {
        BlockChain chain = chains.read(body);
        int index = body.count("index");
        int part = body.count("part");
        StagedRange staged = StagedRange.read(body);
        context.requireNotDraining();
        BlockWriter writer = context.cache().put(chain, index, part, KvCache.NO_WAIT);
        putStaged(request, writer.outcome(), new UploadReservation.BlockReservation(writer), staged);
    }

    /// `u32 namespace, u32 key bytes`, [StagedRange], `key` → as [#putStaged]
    void putObjectStaged(EndpointRequest request, BodyReader body) throws ProtocolException, RequestException {
        Namespace namespace = session.requireNamespace(body);
        int keyBytes = body.count("key bytes");
        StagedRange staged = StagedRange.read(body);
        byte[] key = body.bytes("key", keyBytes);
        context.requireNotDraining();
        ObjectWriter writer = context.cache().putObject(namespace, key, staged.bytes(), KvCache.NO_WAIT);
        putStaged(request, writer.outcome(), new UploadReservation.ObjectReservation(writer, key), staged);
    }

    private void putStaged(
            EndpointRequest request, PutOutcome outcome, UploadReservation reservation, StagedRange staged)
            throws RequestException {
        if (outcome == PutOutcome.RESERVED) {
            sealStaged(request, reservation, staged, ExpectedUpload.forPut(staged.checksum()));
        } else {
            reservation.close();
            request.reply(putReply(outcome, 0));
        }
    }

    private void sealStaged(
            EndpointRequest request, UploadReservation reservation, StagedRange staged, ExpectedUpload expected)
            throws RequestException {
        ChunkedCrc sum = new ChunkedCrc();
        boolean copied = false;
        try {
            copy(staged, reservation.pieces(), sum);
            copied = true;
        } finally {
            if (!copied) {
                reservation.close();
            }
        }
        context.counters().bytesStaged.add(staged.bytes());
        seal(request, reservation, sum, expected);
    }

    private void copy(StagedRange staged, List<MemorySegment> room, ChunkedCrc sum) throws RequestException {
        StagingArea area = session.staging().area();
        if (area == null) {
            throw new RequestException(Status.INVALID, "this session has no staging memory; allowed: after STAGE");
        }
        long bytes = bytes(room);
        if (bytes != staged.bytes()) {
            throw new RequestException(
                    Status.INVALID, "%s staged bytes; the room is for %s".formatted(staged.bytes(), bytes));
        }
        if (staged.offset() > area.bytes() - bytes) {
            throw new RequestException(
                    Status.INVALID,
                    "%s staged bytes from %s on; allowed: up to %s".formatted(bytes, staged.offset(), area.bytes()));
        }
        long from = staged.offset();
        for (MemorySegment piece : room) {
            copy(area, from, piece, sum);
            from += piece.byteSize();
        }
    }

    private static void copy(StagingArea area, long offset, MemorySegment piece, ChunkedCrc sum)
            throws RequestException {
        long size = piece.byteSize();
        for (long at = 0; at < size; at += TILE_BYTES) {
            MemorySegment tile = piece.asSlice(at, Math.min(TILE_BYTES, size - at));
            if (!area.read(offset + at, tile)) {
                throw new RequestException(Status.GONE, "the staging memory is closed, or was cut short");
            }
            sum.update(tile);
        }
    }

    /// The client's checksum of its bytes, if it has one, and the reply after they are sealed.
    private record ExpectedUpload(@Nullable Integer checksum, Function<SealOutcome, BodyWriter> answer) {

        /// For a request that fills an earlier reservation.
        static ExpectedUpload forFill(@Nullable Integer checksum) {
            return new ExpectedUpload(checksum, outcome -> new BodyWriter().u8(OutcomeCodec.code(outcome)));
        }

        /// For a request that reserves and fills.
        static ExpectedUpload forPut(@Nullable Integer checksum) {
            return new ExpectedUpload(checksum, outcome -> putReply(PutOutcome.RESERVED, OutcomeCodec.code(outcome)));
        }
    }

    /// Seals the bytes of a reservation if they match the client's checksum, else drops them.
    ///
    /// @param sum of the bytes in the room
    private void seal(EndpointRequest request, UploadReservation reservation, ChunkedCrc sum, ExpectedUpload expected) {
        byte[] trailer = reservation.trailer();
        if (trailer.length > 0) {
            sum.update(MemorySegment.ofArray(trailer));
        }
        int found = sum.value();
        if (expected.checksum != null && found != expected.checksum) {
            context.counters().corrupt.increment();
            reservation.close();
            request.reject(
                    Status.CORRUPT,
                    String.format(Locale.ROOT, "checksum 0x%08x; told was 0x%08x", found, expected.checksum));
            return;
        }
        context.runOrReject(request, () -> request.reply(expected.answer.apply(reservation.seal(found))));
    }

    /// Releases a reservation whose payload did not arrive whole.
    void onClosed() {
        if (filling != null) {
            filling.close();
            filling = null;
        }
    }

    /// A reservation for a client's bytes. The caller that removes it from its session fills or closes it.
    sealed interface UploadReservation {

        List<MemorySegment> pieces();

        /// Returns the bytes that the checksum covers after those of the block or object.
        byte[] trailer();

        SealOutcome seal(int checksum);

        void close();

        /// For a block.
        record BlockReservation(BlockWriter writer) implements UploadReservation {

            private static final byte[] NOTHING = {};

            @Override
            public List<MemorySegment> pieces() {
                return List.of(writer.segment());
            }

            @Override
            public byte[] trailer() {
                return NOTHING;
            }

            @Override
            public SealOutcome seal(int checksum) {
                return writer.seal(checksum);
            }

            @Override
            public void close() {
                writer.close();
            }
        }

        /// For an object, whose key is summed with it.
        @SuppressWarnings("ArrayRecordComponent") // never compared
        record ObjectReservation(ObjectWriter writer, byte[] trailer) implements UploadReservation {

            @Override
            public List<MemorySegment> pieces() {
                return writer.segments();
            }

            @Override
            public SealOutcome seal(int checksum) {
                return writer.seal(checksum);
            }

            @Override
            public void close() {
                writer.close();
            }
        }
    }
}
