package io.kvcache.transport.endpoint;

import io.kvcache.core.BlockTable;
import io.kvcache.core.ObjectView;
import io.kvcache.core.shm.SharedMemory;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.FabricDescriptor;
import io.kvcache.transport.wire.ProtocolException;
import io.kvcache.transport.wire.SharedMemoryCodec;
import io.kvcache.transport.wire.Status;
import java.lang.foreign.MemorySegment;
import java.nio.LongBuffer;
import java.util.List;

/// Requests of clients on the same host that read the store's memory themselves.
final class SharedMemoryHandler {

    /// What a client wants to be told of a block's place: nothing, its handle, or its offset in the slots and its
    /// checksum.
    static final int NOTHING = 0;

    static final int HANDLES = 1;
    static final int OFFSETS = 2;

    /// Places in one reply: what fits the longest body.
    private static final int MAX_PLACES = 250_000;

    private final EndpointContext endpointContext;
    private final ClientSession session;
    private final BlockSender blockSender;

    SharedMemoryHandler(EndpointContext endpointContext, ClientSession session, BlockSender blockSender) {
        this.endpointContext = endpointContext;
        this.session = session;
        this.blockSender = blockSender;
    }

    /// → see [SharedMemoryCodec]
    RequestDispatcher.RequestAction share(EndpointRequest request) {
        return () -> {
            BodyWriter reply = new BodyWriter(256);
            SharedMemoryCodec.write(memory().files(), reply);
            request.reply(reply);
        };
    }

    /// → see [io.kvcache.transport.wire.FabricDescriptor]
    RequestDispatcher.RequestAction fabric(EndpointRequest request) {
        return () -> {
            FabricDescriptor place = endpointContext.options().fabric();
            if (place == null) {
                throw new RequestException(Status.UNSUPPORTED, "this server's memory is on no fabric");
            }
            memory();
            BodyWriter reply = new BodyWriter(1024);
            place.write(reply);
            request.reply(reply);
        };
    }

    /// What a client wants to be told of places, which it may not say.
    static int placeKind(BodyReader body, int defaultValue) throws ProtocolException {
        int kind = body.hasRemaining() ? body.u8("places") : defaultValue;
        if (kind > OFFSETS) {
            throw new ProtocolException("places = %d; allowed: 0 to %d".formatted(kind, OFFSETS));
        }
        return kind;
    }

    /// The memory, for a client that may see all that is in it.
    SharedMemory memory() throws RequestException {
        SharedMemory memory = endpointContext.sharedMemory();
        if (memory == null) {
            throw new RequestException(Status.UNSUPPORTED, "this server keeps its memory to itself");
        }
        String only = session.onlyTenant();
        if (only != null && !memory.mayBeMappedBy(only)) {
            throw new RequestException(Status.FORBIDDEN, "the memory is of another trust domain than \"" + only + "\"");
        }
        return memory;
    }

    /// `u64 lease, u32 block, u32 count[, u8 places]` → as [#writePlaces]; with a count of 0 for any lease, to
    /// learn whether it is held
    RequestDispatcher.RequestAction places(EndpointRequest request, BodyReader body) throws ProtocolException {
        long number = body.i64("lease");
        int from = body.count("block");
        int count = body.count("count");
        int kind = placeKind(body, HANDLES);
        return () -> {
            Lease lease = blockSender.enterLease(number);
            try {
                BlockTable table = lease.table();
                if (count > 0 && (table == null || from < table.firstBlock())) {
                    throw new RequestException(Status.INVALID, "block " + from + " is none of lease " + number);
                }
                BodyWriter reply = new BodyWriter(8 + 16 * Math.min(count, MAX_PLACES));
                if (table == null || count == 0) {
                    reply.i32(0).i32(0);
                } else {
                    int end = table.readyEnd();
                    writePlaces(table, new BlockRange(from, Math.min(count, end - from), kind), reply);
                }
                request.reply(reply);
            } finally {
                lease.leave();
            }
        };
    }

    /// Blocks of a chain, and what of their places is told.
    record BlockRange(int from, int count, int kind) {}

    /// Says where blocks of a table lie: `u32 count, u32 0`, then of each its `u64 handle`, or `u64 offset, u32
    /// checksum, u32 0`.
    void writePlaces(BlockTable table, BlockRange blockRange, BodyWriter to) throws RequestException {
        int told = Math.clamp(blockRange.count, 0, MAX_PLACES);
        SharedMemory memory = told > 0 && blockRange.kind == OFFSETS ? memory() : null;
        to.i32(told).i32(0);
        for (int index = blockRange.from; index < blockRange.from + told; index++) {
            if (memory == null) {
                to.i64(table.handle(index));
            } else {
                to.i64(memory.offsetOf(table.segment(index)))
                        .i32(table.checksum(index))
                        .i32(0);
            }
        }
    }

    /// Says where an object lies, to a client that may see it there: `3 × 0, u32 checksum, u64 handle, u32
    /// count, u32 0, as many u64 offset in the slots, u64 bytes`.
    void writePlaces(ObjectView view, BodyWriter to) {
        SharedMemory memory = endpointContext.sharedMemory();
        String only = session.onlyTenant();
        if (memory == null || (only != null && !memory.mayBeMappedBy(only))) {
            return;
        }
        List<MemorySegment> pieces = view.segments();
        to.u8(0).u16(0).i32(view.checksum()).i64(view.handle());
        to.i32(pieces.size()).i32(0);
        for (MemorySegment piece : pieces) {
            to.i64(memory.offsetOf(piece)).i64(piece.byteSize());
        }
    }

    /// `u32 count, u32 0, as many u64 handle`, no reply
    RequestDispatcher.RequestAction touch(BodyReader body) throws ProtocolException {
        long count = body.count("count");
        LongBuffer handles =
                body.skip(Integer.BYTES).slice("handles", count * Long.BYTES).asLongBuffer();
        return () -> {
            SharedMemory memory = memory();
            while (handles.hasRemaining()) {
                memory.recordAccess(handles.get());
            }
        };
    }
}
