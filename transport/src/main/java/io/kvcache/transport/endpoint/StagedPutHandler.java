package io.kvcache.transport.endpoint;

import io.kvcache.core.BlockWriter;
import io.kvcache.core.KvCache;
import io.kvcache.core.ObjectWriter;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.memory.ChunkedCrc;
import io.kvcache.core.shm.SharedMemory;
import io.kvcache.core.shm.StagingArea;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.ProtocolException;
import io.kvcache.transport.wire.StagedRange;
import io.kvcache.transport.wire.StagingDescriptor;
import io.kvcache.transport.wire.Status;
import java.lang.foreign.MemorySegment;
import java.util.List;

/// Requests of clients on the same host that have written their bytes into memory they share with this
/// process.
///
/// **What is there can change at any moment**, as the client can write to it while it is read here. So it is
/// copied into the room first, and what lies in the room is summed: a client that writes too early spoils
/// its own block, which then has not the checksum that it told.
final class StagedPutHandler {

    /// What is copied at once: it is still in a second-level cache when it is summed.
    private static final long TILE_BYTES = 128 << 10;

    private final EndpointContext endpointContext;
    private final ClientSession session;
    private final ChainCache chains;
    private final SharedMemoryHandler share;
    private final UploadReservation.UploadCompletion uploadCompletion;

    StagedPutHandler(
            EndpointContext endpointContext, ClientSession session, ChainCache chains, SharedMemoryHandler share) {
        this.endpointContext = endpointContext;
        this.session = session;
        this.chains = chains;
        this.share = share;
        uploadCompletion = new UploadReservation.UploadCompletion(endpointContext);
    }

    /// `u64 bytes` → see [StagingDescriptor]
    RequestDispatcher.RequestAction stage(EndpointRequest request, BodyReader body) throws ProtocolException {
        long bytes = body.nonNegativeLong("bytes");
        return () -> {
            StagingArea area = area(share.memory(), bytes);
            BodyWriter reply = new BodyWriter(64);
            new StagingDescriptor(area.bytes(), area.header(), area.file()).write(reply);
            request.reply(reply);
        };
    }

    private StagingArea area(SharedMemory memory, long bytes) throws RequestException {
        if (memory.maxStagingBytes() == 0) {
            throw new RequestException(Status.UNSUPPORTED, "this server has no memory for clients to write into");
        }
        try {
            return session.staging().areaOrCreate(() -> memory.createStagingArea(bytes));
        } catch (IllegalStateException none) {
            throw new RequestException(Status.BUSY, String.valueOf(none.getMessage()));
        }
    }

    /// `u64 reservation`, [StagedRange] → `u8 outcome`
    RequestDispatcher.RequestAction fill(EndpointRequest request, BodyReader body) throws ProtocolException {
        long number = body.i64("reservation");
        StagedRange staged = StagedRange.read(body);
        return () -> {
            UploadReservation reservation = session.reservations().remove(number);
            if (reservation == null) {
                throw new RequestException(Status.GONE, "reservation " + number + " is over");
            }
            seal(request, reservation, staged, UploadReservation.UploadCompletion.forFill(staged.checksum()));
        };
    }

    /// `chain, u32 index, u32 part`, [StagedRange] → `u8 outcome, u8 sealed, 6 × 0`
    RequestDispatcher.RequestAction put(EndpointRequest request, BodyReader body)
            throws ProtocolException, RequestException {
        BlockChain chain = chains.read(body);
        int index = body.count("index");
        int part = body.count("part");
        StagedRange staged = StagedRange.read(body);
        return () -> {
            BlockWriter writer = endpointContext.cache().put(chain, index, part, KvCache.NO_WAIT);
            if (writer.outcome() == PutOutcome.RESERVED) {
                seal(
                        request,
                        new UploadReservation.BlockReservation(writer),
                        staged,
                        UploadReservation.UploadCompletion.forPut(staged.checksum()));
            } else {
                writer.close();
                request.reply(UploadReservation.UploadCompletion.rejectedPutReply(writer.outcome()));
            }
        };
    }

    /// `u32 namespace, u32 key bytes`, [StagedRange], `key` → as [#put]
    RequestDispatcher.RequestAction putObject(EndpointRequest request, BodyReader body) throws ProtocolException {
        Namespace namespace = ObjectRequestHandler.namespace(session, body);
        int keyBytes = body.count("key bytes");
        StagedRange staged = StagedRange.read(body);
        byte[] key = body.bytes("key", keyBytes);
        return () -> {
            ObjectWriter writer = endpointContext.cache().putObject(namespace, key, staged.bytes(), KvCache.NO_WAIT);
            if (writer.outcome() == PutOutcome.RESERVED) {
                seal(
                        request,
                        new UploadReservation.ObjectReservation(writer, key),
                        staged,
                        UploadReservation.UploadCompletion.forPut(staged.checksum()));
            } else {
                writer.close();
                request.reply(UploadReservation.UploadCompletion.rejectedPutReply(writer.outcome()));
            }
        };
    }

    private void seal(
            EndpointRequest request,
            UploadReservation reservation,
            StagedRange staged,
            UploadReservation.UploadCompletion.ExpectedUpload expectedUpload)
            throws RequestException {
        ChunkedCrc sum = new ChunkedCrc();
        boolean there = false;
        try {
            copy(staged, reservation.pieces(), sum);
            there = true;
        } finally {
            if (!there) {
                reservation.close();
            }
        }
        endpointContext.counters().bytesStaged.add(staged.bytes());
        uploadCompletion.seal(request, reservation, sum, expectedUpload);
    }

    private void copy(StagedRange staged, List<MemorySegment> room, ChunkedCrc sum) throws RequestException {
        StagingArea area = session.staging().area();
        if (area == null) {
            throw new RequestException(Status.INVALID, "this session has no staging memory; allowed: after STAGE");
        }
        long bytes = room.stream().mapToLong(MemorySegment::byteSize).sum();
        if (bytes != staged.bytes()) {
            throw new RequestException(
                    Status.INVALID, "%d staged bytes; the room is for %d".formatted(staged.bytes(), bytes));
        }
        if (staged.offset() > area.bytes() - bytes) {
            throw new RequestException(
                    Status.INVALID,
                    "%d staged bytes from %d on; allowed: up to %d".formatted(bytes, staged.offset(), area.bytes()));
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
}
