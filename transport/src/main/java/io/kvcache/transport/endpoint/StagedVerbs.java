package io.kvcache.transport.endpoint;

import io.kvcache.core.BlockWriter;
import io.kvcache.core.ObjectWriter;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.SharedMemory;
import io.kvcache.core.StagingArea;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.store.ChunkedCrc;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.StagedBytes;
import io.kvcache.transport.wire.StagingPlace;
import io.kvcache.transport.wire.Status;
import io.kvcache.transport.wire.Violation;
import java.lang.foreign.MemorySegment;
import java.util.List;

/// Requests of clients on the same host that have written their bytes into memory they share with this
/// process.
///
/// **What is there can change at any moment**, as the client can write to it while it is read here. So it is
/// copied into the room first, and what lies in the room is summed: a client that writes too early spoils
/// its own block, which then has not the checksum that it told.
final class StagedVerbs {

    /// What is copied at once: it is still in a second-level cache when it is summed.
    private static final long TILE_BYTES = 128 << 10;

    private final Service service;
    private final Session session;
    private final ChainSlots chains;
    private final ShareVerbs share;
    private final Sealing sealing;

    StagedVerbs(Service service, Session session, ChainSlots chains, ShareVerbs share) {
        this.service = service;
        this.session = session;
        this.chains = chains;
        this.share = share;
        sealing = new Sealing(service);
    }

    /// `u64 bytes` → see [StagingPlace]
    Requests.Parsed stage(Request request, BodyReader body) throws Violation {
        long bytes = body.amount("bytes");
        return () -> {
            StagingArea area = area(share.memory(), bytes);
            BodyWriter reply = new BodyWriter(64);
            new StagingPlace(area.bytes(), area.header(), area.file()).write(reply);
            request.reply(reply);
        };
    }

    private StagingArea area(SharedMemory memory, long bytes) throws Refused {
        if (memory.maxStagingBytes() == 0) {
            throw new Refused(Status.UNSUPPORTED, "this server has no memory for clients to write into");
        }
        try {
            return session.staging().areaOr(() -> memory.createStagingArea(bytes));
        } catch (IllegalStateException none) {
            throw new Refused(Status.BUSY, String.valueOf(none.getMessage()));
        }
    }

    /// `u64 reservation`, [StagedBytes] → `u8 outcome`
    Requests.Parsed fill(Request request, BodyReader body) throws Violation {
        long number = body.i64("reservation");
        StagedBytes staged = StagedBytes.read(body);
        return () -> {
            Reservation reservation = session.reservations().take(number);
            if (reservation == null) {
                throw new Refused(Status.GONE, "reservation " + number + " is over");
            }
            seal(request, reservation, staged, Sealing.ofFill(staged.checksum()));
        };
    }

    /// `chain, u32 index, u32 part`, [StagedBytes] → `u8 outcome, u8 sealed, 6 × 0`
    Requests.Parsed put(Request request, BodyReader body) throws Violation, Refused {
        BlockChain chain = chains.read(body);
        int index = body.count("index");
        int part = body.count("part");
        StagedBytes staged = StagedBytes.read(body);
        return () -> {
            BlockWriter writer = service.cache().put(chain, index, part, 0);
            if (writer.outcome() == PutOutcome.RESERVED) {
                seal(request, new Reservation.Block(writer), staged, Sealing.ofPut(staged.checksum()));
            } else {
                writer.close();
                request.reply(Sealing.refused(writer.outcome()));
            }
        };
    }

    /// `u32 namespace, u32 key bytes`, [StagedBytes], `key` → as [#put]
    Requests.Parsed putObject(Request request, BodyReader body) throws Violation {
        Namespace namespace = ObjectVerbs.namespace(session, body);
        int keyBytes = body.count("key bytes");
        StagedBytes staged = StagedBytes.read(body);
        byte[] key = body.bytes("key", keyBytes);
        return () -> {
            ObjectWriter writer = service.cache().putObject(namespace, key, staged.bytes(), 0);
            if (writer.outcome() == PutOutcome.RESERVED) {
                seal(request, new Reservation.Opaque(writer, key), staged, Sealing.ofPut(staged.checksum()));
            } else {
                writer.close();
                request.reply(Sealing.refused(writer.outcome()));
            }
        };
    }

    private void seal(Request request, Reservation reservation, StagedBytes staged, Sealing.Told told) throws Refused {
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
        service.counters().bytesStaged.add(staged.bytes());
        sealing.seal(request, reservation, sum, told);
    }

    private void copy(StagedBytes staged, List<MemorySegment> room, ChunkedCrc sum) throws Refused {
        StagingArea area = session.staging().area();
        if (area == null) {
            throw new Refused(Status.INVALID, "this session has no staging memory; allowed: after STAGE");
        }
        long bytes = room.stream().mapToLong(MemorySegment::byteSize).sum();
        if (bytes != staged.bytes()) {
            throw new Refused(Status.INVALID, "%d staged bytes; the room is for %d".formatted(staged.bytes(), bytes));
        }
        if (staged.offset() > area.bytes() - bytes) {
            throw new Refused(
                    Status.INVALID,
                    "%d staged bytes from %d on; allowed: up to %d".formatted(bytes, staged.offset(), area.bytes()));
        }
        long from = staged.offset();
        for (MemorySegment piece : room) {
            copy(area, from, piece, sum);
            from += piece.byteSize();
        }
    }

    private static void copy(StagingArea area, long offset, MemorySegment piece, ChunkedCrc sum) throws Refused {
        long size = piece.byteSize();
        for (long at = 0; at < size; at += TILE_BYTES) {
            MemorySegment tile = piece.asSlice(at, Math.min(TILE_BYTES, size - at));
            if (!area.read(offset + at, tile)) {
                throw new Refused(Status.GONE, "the staging memory is closed, or was cut short");
            }
            sum.update(tile);
        }
    }
}
