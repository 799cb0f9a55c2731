package io.kvcache.transport.endpoint;

import io.kvcache.core.BlockTable;
import io.kvcache.core.ObjectView;
import io.kvcache.core.SharedMemory;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.ShareCodec;
import io.kvcache.transport.wire.Status;
import io.kvcache.transport.wire.Violation;
import java.lang.foreign.MemorySegment;
import java.nio.LongBuffer;
import java.util.List;

/// Requests of clients on the same host that read the store's memory themselves.
final class ShareVerbs {

    /// Handles in one reply: what fits the longest body.
    private static final int MOST_PLACES = 500_000;

    private final Service service;
    private final Session session;
    private final Bytes bytes;

    ShareVerbs(Service service, Session session, Bytes bytes) {
        this.service = service;
        this.session = session;
        this.bytes = bytes;
    }

    /// → see [ShareCodec]
    Requests.Parsed share(Request request) {
        return () -> {
            BodyWriter reply = new BodyWriter(256);
            ShareCodec.write(memory().files(), reply);
            request.reply(reply);
        };
    }

    /// The memory, for a client that may see all that is in it.
    private SharedMemory memory() throws Refused {
        SharedMemory memory = service.cache().sharedMemory();
        if (memory == null) {
            throw new Refused(Status.UNSUPPORTED, "this server keeps its memory to itself");
        }
        String only = session.onlyTenant();
        if (only != null && !memory.mayBeMappedBy(only)) {
            throw new Refused(Status.FORBIDDEN, "the memory is of another trust domain than \"" + only + "\"");
        }
        return memory;
    }

    /// `u64 lease, u32 block, u32 count` → `u32 count, u32 0, as many u64 handle`
    Requests.Parsed places(Request request, BodyReader body) throws Violation {
        long number = body.i64("lease");
        int from = body.count("block");
        int count = body.count("count");
        return () -> {
            Lease lease = bytes.enter(number);
            try {
                BlockTable table = lease.table();
                if (table == null || from < table.firstBlock()) {
                    throw new Refused(Status.INVALID, "block " + from + " is none of lease " + number);
                }
                BodyWriter reply = new BodyWriter(8 + 8 * Math.min(count, MOST_PLACES));
                write(table, from, Math.min(count, table.firstBlock() + table.readyBlocks() - from), reply);
                request.reply(reply);
            } finally {
                lease.leave();
            }
        };
    }

    /// Says where blocks of a table lie.
    ///
    /// @param from block of the chain
    static void write(BlockTable table, int from, int count, BodyWriter to) {
        int told = Math.clamp(count, 0, MOST_PLACES);
        to.i32(told).i32(0);
        for (int index = from; index < from + told; index++) {
            to.i64(table.handle(index));
        }
    }

    /// Says where an object lies, to a client that may see it there: `3 × 0, u32 checksum, u64 handle, u32
    /// count, u32 0, as many u64 offset in the slots, u64 bytes`.
    void write(ObjectView view, BodyWriter to) {
        SharedMemory memory = service.cache().sharedMemory();
        String only = session.onlyTenant();
        if (memory == null || (only != null && !memory.mayBeMappedBy(only))) {
            return;
        }
        List<MemorySegment> pieces = view.pieces();
        to.u8(0).u16(0).i32(view.checksum()).i64(view.handle());
        to.i32(pieces.size()).i32(0);
        for (MemorySegment piece : pieces) {
            to.i64(memory.place(piece)).i64(piece.byteSize());
        }
    }

    /// `u32 count, u32 0, as many u64 handle`, no reply
    Requests.Parsed touch(BodyReader body) throws Violation {
        long count = body.count("count");
        LongBuffer handles =
                body.skip(Integer.BYTES).span("handles", count * Long.BYTES).asLongBuffer();
        return () -> {
            SharedMemory memory = memory();
            while (handles.hasRemaining()) {
                memory.touched(handles.get());
            }
        };
    }
}
