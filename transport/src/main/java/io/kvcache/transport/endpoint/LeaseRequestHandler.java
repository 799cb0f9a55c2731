package io.kvcache.transport.endpoint;

import io.kvcache.core.BlockTable;
import io.kvcache.core.KvCache;
import io.kvcache.core.LocalKvCache;
import io.kvcache.core.ObjectView;
import io.kvcache.core.codec.BlockCodec.CodedBlock;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.shm.SharedMemory;
import io.kvcache.transport.endpoint.ClientSession.HandleTable;
import io.kvcache.transport.endpoint.EndpointRequest.RequestException;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.OutboundFrame;
import io.kvcache.transport.wire.OutboundFrame.Payload;
import io.kvcache.transport.wire.ProtocolException;
import io.kvcache.transport.wire.SharedMemoryCodec;
import io.kvcache.transport.wire.SharedMemoryCodec.FabricDescriptor;
import io.kvcache.transport.wire.Status;
import java.lang.foreign.MemorySegment;
import java.nio.LongBuffer;
import java.time.Duration;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// Requests of one connection that read blocks and objects under a lease.
///
/// Bytes go from the slots to the connection without a copy. A client on this host may ask for their places
/// instead, and read the store's memory itself.
final class LeaseRequestHandler {

    /// The kinds of places that a client asks for: none, the block's handle, or its offset in the slots and
    /// checksum.
    private static final int NOTHING = 0;

    private static final int HANDLES = 1;
    private static final int OFFSETS = 2;

    /// Places in one reply: as many as fit the longest body.
    private static final int MAX_PLACES = 250_000;

    private final EndpointContext context;
    private final ClientSession session;
    private final ChainCache chains;

    /// The lease in the reply to the last request. If the connection breaks now, the client may not know of it.
    private long unconfirmed;

    LeaseRequestHandler(EndpointContext context, ClientSession session, ChainCache chains) {
        this.context = context;
        this.session = session;
        this.chains = chains;
    }

    /// The client sent another request, so it has the last reply.
    void onNextRequest() {
        unconfirmed = HandleTable.NONE;
    }

    void onClosed() {
        Lease lease = session.leases().expire(unconfirmed);
        if (lease != null) {
            lease.end();
        }
    }

    /// `chain, u32 from, u32 most to send, u64 timeout[, u8 places[, u8 coded]]` → `u64 lease, u32 ready, u32
    /// end, u32 sent[, places]` and as many DATA as sent; then PROGRESS until all has arrived that will.
    void acquire(EndpointRequest request, BodyReader body) throws ProtocolException, RequestException {
        BlockChain chain = chains.read(body);
        int from = body.count("from");
        int most = body.count("most");
        Duration timeout = Duration.ofNanos(body.nonNegativeLong("timeout"));
        int places = placeKind(body, NOTHING);
        boolean coded = mayBeCoded(body);
        context.requireNotDraining();
        BlockTable table = session.isServer() && context.cache() instanceof LocalKvCache local
                ? local.acquireCopy(chain, from, timeout)
                : context.cache().acquire(chain, from, timeout);
        if (table.blocks() == 0) {
            table.close();
            request.reply(
                    new BodyWriter().i64(HandleTable.NONE).i32(0).i32(from).i32(0));
        } else {
            sendTable(request, NumberedPartsTable.of(table, chain.namespace()), new Wanted(most, places, coded));
        }
    }

    /// What a client wants of a table at once.
    ///
    /// @param blocks that are sent at most
    /// @param places the kind of places
    /// @param coded whether blocks may come coded
    private record Wanted(int blocks, int places, boolean coded) {}

    private void sendTable(EndpointRequest request, BlockTable table, Wanted wanted) throws RequestException {
        Lease lease = Lease.of(table);
        long number = grantAndEnter(lease);
        try {
            int end = table.endBlock();
            int ready = table.readyBlocks();
            int sent = Math.min(ready, wanted.blocks);
            BodyWriter reply = new BodyWriter().i64(number).i32(ready).i32(end).i32(sent);
            if (wanted.places != NOTHING) {
                writePlaces(table, table.firstBlock(), ready, wanted.places, reply);
            }
            if (request.reply(reply)) {
                send(request, table, table.firstBlock(), sent, wanted.coded);
                if (ready < end - table.firstBlock()) {
                    watchProgress(request, number, ready);
                }
            }
        } finally {
            lease.leave();
        }
    }

    /// Tells the client whenever more has arrived.
    private void watchProgress(EndpointRequest request, long number, int known) throws RequestException {
        Lease lease = enterLease(number);
        try {
            BlockTable table = tableOf(lease);
            int first = table.firstBlock();
            table.onReady(first + known + 1, context.executor())
                    .thenAccept(readyEnd -> sendProgress(request, number, readyEnd - first));
        } finally {
            lease.leave();
        }
    }

    private void sendProgress(EndpointRequest request, long number, int ready) {
        Lease lease = session.leases().find(number);
        if (lease == null || !lease.enter()) {
            return;
        }
        try {
            BlockTable table = tableOf(lease);
            int end = table.endBlock();
            BodyWriter news = new BodyWriter().i64(number).i32(ready).i32(end);
            boolean heard = request.frameSink().send(news.request(MessageType.PROGRESS, 0, 0));
            if (heard && ready < end - table.firstBlock()) {
                watchProgress(request, number, ready);
            }
        } catch (RequestException over) {
            // The lease ended meanwhile, so the client waits for no progress.
        } finally {
            lease.leave();
        }
    }

    /// `u64 lease, u32 block, u32 count[, u8 coded]` → `u32 count` and as many DATA; of an object block 0, count 1.
    void read(EndpointRequest request, BodyReader body) throws ProtocolException, RequestException {
        long number = body.i64("lease");
        int from = body.count("block");
        int count = body.count("count");
        boolean coded = mayBeCoded(body);
        Lease lease = enterLease(number);
        try {
            ObjectView view = lease.view();
            if (view != null) {
                request.reply(new BodyWriter().i32(1));
                send(request, view);
            } else {
                BlockTable table = tableOf(lease);
                int end = table.readyEnd();
                if (from < table.firstBlock() || count > end - from) {
                    throw new RequestException(
                            Status.INVALID,
                            "blocks %s to %s; ready are %s to %s"
                                    .formatted(from, from + count, table.firstBlock(), end));
                }
                request.reply(new BodyWriter().i32(count));
                send(request, table, from, count, coded);
            }
        } finally {
            lease.leave();
        }
    }

    private static BlockTable tableOf(Lease lease) throws RequestException {
        BlockTable table = lease.table();
        if (table == null) {
            throw new RequestException(Status.INVALID, "the lease is on an object");
        }
        return table;
    }

    /// `u32 count, u32 0, as many u64 lease`, no reply
    void release(BodyReader body) throws ProtocolException {
        LongBuffer numbers = longs(body, "leases");
        while (numbers.hasRemaining()) {
            Lease lease = session.leases().remove(numbers.get());
            if (lease != null) {
                lease.end();
            }
        }
    }

    private static LongBuffer longs(BodyReader body, String field) throws ProtocolException {
        long count = body.count("count");
        return body.skip(Integer.BYTES).slice(field, count * Long.BYTES).asLongBuffer();
    }

    /// `u32 namespace, u32 key bytes, u8 send, u8 places, 6 × 0, u64 timeout, key` → `u64 lease (0: not
    /// here), u64 bytes, u8 sent`, [places][#writePlaces] and DATA if sent
    void getObject(EndpointRequest request, BodyReader body) throws ProtocolException, RequestException {
        Namespace namespace = session.requireNamespace(body);
        int keyBytes = body.count("key bytes");
        boolean send = body.u8("send") != 0;
        boolean places = body.u8("places") != 0;
        long timeout = request.boundedTimeout(body.skip(6).nonNegativeLong("timeout"));
        byte[] key = body.bytes("key", keyBytes);
        context.requireNotDraining();
        KvCache cache = context.cache();
        if (timeout == 0) {
            ObjectView view = cache.getObject(namespace, key);
            context.onRead(session, namespace, key, view);
            sendObject(request, view, send, places);
        } else {
            context.later(
                    session,
                    request,
                    () -> cache.fetchObject(namespace, key, Duration.ofNanos(timeout), context.executor()),
                    view -> {
                        context.onRead(session, namespace, key, view);
                        sendObject(request, view, false, places);
                    });
        }
    }

    private void sendObject(EndpointRequest request, @Nullable ObjectView view, boolean bytes, boolean places)
            throws RequestException {
        if (view == null) {
            request.reply(new BodyWriter().i64(HandleTable.NONE).i64(0).u8(0));
            return;
        }
        Lease lease = Lease.of(view);
        long number = grantAndEnter(lease);
        try {
            BodyWriter reply = new BodyWriter().i64(number).i64(view.bytes()).u8(bytes ? 1 : 0);
            if (places) {
                writePlaces(view, reply);
            }
            if (request.reply(reply) && bytes) {
                send(request, view);
            }
        } finally {
            lease.leave();
        }
    }

    /// Keeps a table or view open for the client and enters its lease, which the caller leaves. Ends the lease if
    /// that is not possible.
    private long grantAndEnter(Lease lease) throws RequestException {
        int most = context.options().limits().handles();
        if (session.leases().size() >= most) {
            lease.end();
            throw new RequestException(Status.BUSY, "%s leases are held; allowed: %1$s".formatted(most));
        }
        long number = session.leases().grant(lease);
        if (number == HandleTable.NONE) {
            lease.end();
            throw new RequestException(Status.GONE, "the session is over");
        }
        unconfirmed = number;
        if (!lease.enter()) {
            throw new RequestException(Status.GONE, "the session is over");
        }
        return number;
    }

    /// Returns the lease with this number, entered: the caller leaves it.
    private Lease enterLease(long number) throws RequestException {
        Lease lease = session.leases().find(number);
        if (lease == null || !lease.enter()) {
            throw new RequestException(Status.GONE, "lease " + number + " is over");
        }
        return lease;
    }

    private static boolean mayBeCoded(BodyReader body) throws ProtocolException {
        return body.hasRemaining() && body.u8("coded") != 0;
    }

    /// @param from block of the chain
    /// @param coded whether blocks may be sent coded
    private void send(EndpointRequest request, BlockTable table, int from, int count, boolean coded) {
        OutboundFrame.DataFrames frames = request.dataFrames();
        long bytes = coded && count > 0 ? table.segment(from).byteSize() : 0;
        try (LinkCoders.LinkCoder coder = bytes > 0 ? context.coders().acquire(bytes) : null) {
            boolean heard = true;
            for (int index = from; heard && index < from + count; index++) {
                MemorySegment block = table.segment(index);
                CodedBlock form = coder == null ? null : coder.encode(block);
                heard = form == null
                        ? request.send(frames.next(index, table.checksum(index), Payload.of(block)))
                        : request.sendCoded(
                                frames.next(index, table.checksum(index), form.layout(), Payload.of(form.bytes())),
                                block.byteSize());
            }
        }
    }

    private static void send(EndpointRequest request, ObjectView view) {
        request.send(request.dataFrames().next(0, view.checksum(), Payload.of(view.segments())));
    }

    /// → see [SharedMemoryCodec]
    void share(EndpointRequest request) throws RequestException {
        BodyWriter reply = new BodyWriter(256);
        SharedMemoryCodec.write(context.requireSharedMemory(session).files(), reply);
        request.reply(reply);
    }

    /// → see [SharedMemoryCodec.FabricDescriptor]
    void fabric(EndpointRequest request) throws RequestException {
        FabricDescriptor place = context.options().fabric();
        if (place == null) {
            throw new RequestException(Status.UNSUPPORTED, "this server's memory is on no fabric");
        }
        context.requireSharedMemory(session);
        BodyWriter reply = new BodyWriter(1024);
        place.write(reply);
        request.reply(reply);
    }

    /// `u64 lease, u32 block, u32 count[, u8 places]` → as [#writePlaces]; with a count of 0 for any lease, to
    /// learn whether it is held
    void places(EndpointRequest request, BodyReader body) throws ProtocolException, RequestException {
        long number = body.i64("lease");
        int from = body.count("block");
        int count = body.count("count");
        int kind = placeKind(body, HANDLES);
        Lease lease = enterLease(number);
        try {
            BlockTable table = lease.table();
            if (count > 0 && (table == null || from < table.firstBlock())) {
                throw new RequestException(Status.INVALID, "block " + from + " is none of lease " + number);
            }
            BodyWriter reply = new BodyWriter(8 + 16 * Math.min(count, MAX_PLACES));
            if (table == null || count == 0) {
                reply.i32(0).i32(0);
            } else {
                writePlaces(table, from, Math.min(count, table.readyEnd() - from), kind, reply);
            }
            request.reply(reply);
        } finally {
            lease.leave();
        }
    }

    /// The kind of places that a client asks for, at the end of a body that may lack it.
    private static int placeKind(BodyReader body, int defaultValue) throws ProtocolException {
        int kind = body.hasRemaining() ? body.u8("places") : defaultValue;
        if (kind > OFFSETS) {
            throw new ProtocolException("places = %s; allowed: 0 to %s".formatted(kind, OFFSETS));
        }
        return kind;
    }

    /// Writes where blocks of a table lie: `u32 count, u32 0`, then of each its `u64 handle`, or `u64 offset, u32
    /// checksum, u32 0`.
    private void writePlaces(BlockTable table, int from, int count, int kind, BodyWriter to) throws RequestException {
        int told = Math.clamp(count, 0, MAX_PLACES);
        SharedMemory memory = told > 0 && kind == OFFSETS ? context.requireSharedMemory(session) : null;
        to.i32(told).i32(0);
        for (int index = from; index < from + told; index++) {
            if (memory == null) {
                to.i64(table.handle(index));
            } else {
                to.i64(memory.offsetOf(table.segment(index)))
                        .i32(table.checksum(index))
                        .i32(0);
            }
        }
    }

    /// Writes where an object lies, for a client that may see it there: `3 × 0, u32 checksum, u64 handle, u32
    /// count, u32 0, as many u64 offset in the slots, u64 bytes`.
    private void writePlaces(ObjectView view, BodyWriter to) {
        SharedMemory memory = context.sharedMemory();
        if (memory == null || !session.mayMap(memory)) {
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
    void touch(BodyReader body) throws ProtocolException, RequestException {
        LongBuffer handles = longs(body, "handles");
        SharedMemory memory = context.requireSharedMemory(session);
        while (handles.hasRemaining()) {
            memory.recordAccess(handles.get());
        }
    }
}
