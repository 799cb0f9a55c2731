package io.kvcache.transport.client;

import io.kvcache.core.codec.StoredLayout;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.memory.ChunkedCrc;
import io.kvcache.core.memory.Pages;
import io.kvcache.transport.client.RemoteContext.RpcException;
import io.kvcache.transport.net.FabricReader;
import io.kvcache.transport.net.PayloadSink;
import io.kvcache.transport.shm.SharedStore;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.FrameHeader;
import io.kvcache.transport.wire.LeaseNumbers;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.ProtocolException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// Brings the blocks of one lease into a table. The first block that does not arrive as it was sealed is the last.
///
/// | the session has | the reply carries | blocks |
/// |---|---|---|
/// | the server's memory mapped | handles | stay where they lie |
/// | the server's memory over a fabric | offsets and checksums | are read out of it here |
/// | neither | blocks | are received into buffers |
///
/// The lease keeps blocks where they are. After a read over a fabric the receiver asks whether the lease still
/// held, as this side does not hear in time that a session has ended.
final class BlockReceiver implements DataConnection.ReplyHandler, PayloadSink.CompletionListener {

    /// The kinds of places in a reply: handles, or offsets and checksums.
    private static final int HANDLES = 1;

    private static final int OFFSETS = 2;

    private static final int NO_PLACES = 0;

    private final RemoteContext client;
    private final RemoteSession session;
    private final @Nullable SharedStore store;
    private final @Nullable FabricReader fabric;

    /// Query whose reply opens the table; null if the table exists already.
    private final @Nullable BlockQuery query;

    private @Nullable RemoteBlockTable table;
    private int next;
    private boolean replied;
    private boolean broken;

    /// Blocks that the server still sends.
    private int expected;

    private @Nullable PayloadSink payloadSink;

    /// Buffer of the block that is arriving; its checksum follows.
    private ReceiveBuffers.@Nullable PooledBuffer buffer;

    private int checksum;

    /// Of the block that is arriving.
    private long blockBytes;

    /// How the arriving block is coded.
    private StoredLayout layout = StoredLayout.PLAIN;

    /// Whether blocks were asked for as coded ones.
    private boolean coded;

    private final long beganNanos = System.nanoTime();
    private final List<SlotLocation> locations;

    /// Where a block lies in the server's slots, and its checksum.
    private record SlotLocation(long offset, int checksum, long bytes) {}

    /// Part of a chain that a caller wants.
    ///
    /// @param from first block wanted
    record BlockQuery(BlockChain chain, int from) {

        long blockBytes() {
            return chain.namespace().blockBytes();
        }

        /// Blocks, and entries of windows and states, that a match of the whole chain has.
        int most() {
            return new LeaseNumbers(chain.namespace(), chain.length()).total() - from;
        }
    }

    private BlockReceiver(
            RemoteContext client,
            RemoteSession session,
            int first,
            @Nullable BlockQuery query,
            @Nullable RemoteBlockTable table) {
        this.client = client;
        this.session = session;
        this.query = query;
        this.table = table;
        next = first;
        store = session.sharedStore();
        fabric = store == null ? session.fabric() : null;
        locations = fabric == null ? List.of() : new ArrayList<>();
    }

    /// Leases the resident blocks and waits until they are here.
    static RemoteBlockTable acquire(RemoteContext client, RemoteSession session, BlockQuery query) throws RpcException {
        BlockReceiver receiver = new BlockReceiver(client, session, query.from, query, null);
        int number = session.namespaceNumber(query.chain.namespace());
        long until = session.data().deadlineNanos();
        try {
            session.data().withConnection(until, (line, patience) -> {
                DataConnection.ChainRequest request = new DataConnection.ChainRequest(
                        MessageType.ACQUIRE, query.chain, number, body -> receiver.writeAcquire(query, body));
                line.call(request, patience, receiver);
            });
        } catch (RpcException failed) {
            receiver.abort();
            if (receiver.table == null) {
                throw failed;
            }
        }
        RemoteBlockTable table = receiver.table;
        if (table == null) {
            throw RpcException.noReply("no table came");
        }
        receiver.readFabric(until);
        receiver.countTransfer(query.from, query.blockBytes());
        table.end();
        return table;
    }

    /// Counts blocks that came over the connection, and how long they took.
    private void countTransfer(int first, long blockBytes) {
        if (store == null && fabric == null && !broken) {
            client.coding().onTransfer(coded, (next - first) * blockBytes, System.nanoTime() - beganNanos);
        }
    }

    /// Returns whether blocks are asked for as coded ones, which all have one size then.
    private boolean isCodable(Namespace namespace) {
        return namespace.groups().isEmpty() && client.coding().isWanted(namespace.blockBytes());
    }

    private void writeAcquire(BlockQuery of, BodyWriter body) {
        if (store != null || fabric != null) {
            body.i32(of.from).i32(0).i64(0).u8(store == null ? OFFSETS : HANDLES);
        } else {
            long affordable = client.buffers().availableBuffers(of.blockBytes());
            coded = isCodable(of.chain.namespace());
            body.i32(of.from).i32((int) Math.min(affordable, of.most())).i64(0);
            if (coded) {
                body.u8(NO_PLACES).u8(1);
            }
        }
    }

    /// Brings blocks of a lease into its table.
    ///
    /// @return whether all of them came
    static boolean read(RemoteContext client, RemoteSession session, RemoteBlockTable table, int from, int count) {
        BlockReceiver receiver = new BlockReceiver(client, session, from, null, table);
        long until = session.data().deadlineNanos();
        boolean sent = receiver.store == null && receiver.fabric == null;
        BodyWriter body = new BodyWriter().i64(table.lease()).i32(from).i32(count);
        if (receiver.fabric != null) {
            body.u8(OFFSETS);
        }
        receiver.coded = sent && receiver.isCodable(table.namespace());
        if (receiver.coded) {
            body.u8(1);
        }
        try {
            session.data()
                    .withConnection(
                            until,
                            (line, patience) ->
                                    line.call(sent ? MessageType.READ : MessageType.PLACES, body, patience, receiver));
            receiver.readFabric(until);
            receiver.countTransfer(from, table.namespace().blockBytes());
            return !receiver.broken && receiver.next == from + count;
        } catch (RpcException failed) {
            client.countFailure();
            receiver.abort();
            return false;
        }
    }

    @Override
    public void onReply(BodyReader body) throws ProtocolException {
        RemoteBlockTable into = table;
        boolean sent = store == null && fabric == null;
        if (into == null) {
            into = openTable(body);
        } else if (sent) {
            expected = body.count("count");
        }
        replied = true;
        if (!sent) {
            readPlaces(body, into);
        }
    }

    private RemoteBlockTable openTable(BodyReader reply) throws ProtocolException {
        if (query == null) {
            throw new IllegalStateException("a reply without a query opens no table");
        }
        long lease = reply.i64("lease");
        int ready = reply.count("ready");
        int end = reply.count("end");
        int sent = reply.count("sent");
        if (store == null && fabric == null) {
            if (sent > ready || sent > query.most()) {
                throw new ProtocolException("%s blocks sent; allowed: 0 to %s".formatted(sent, ready));
            }
            expected = sent;
        }
        RemoteBlockTable opened = new RemoteBlockTable(
                client,
                session,
                new RemoteBlockTable.LeasedRange(lease, query.from, end, query.chain.namespace(), Long.MAX_VALUE));
        table = opened;
        return opened;
    }

    private void readPlaces(BodyReader body, RemoteBlockTable into) throws ProtocolException {
        int count = body.hasRemaining() ? body.count("places") : 0;
        if (count > 0) {
            body.skip(Integer.BYTES);
        }
        if (store != null) {
            addMapped(store, into, body, count);
            return;
        }
        for (int i = 0; i < count; i++) {
            locations.add(new SlotLocation(body.i64("offset"), body.i32("checksum"), into.bytes(next + i)));
            body.skip(Integer.BYTES);
        }
    }

    /// Adds the blocks of a reply until one is not where its handle says.
    private void addMapped(SharedStore from, RemoteBlockTable into, BodyReader body, int count)
            throws ProtocolException {
        if (count == 0) {
            return;
        }
        if (!from.retain()) {
            broken = true;
            return;
        }
        List<RemoteBlockTable.MappedBlock> blocks = new ArrayList<>();
        try {
            for (int i = 0; i < count && !broken; i++) {
                long handle = body.i64("handle");
                long bytes = into.bytes(next + i);
                int page = from.page(handle, bytes);
                broken = page < 0;
                if (!broken) {
                    blocks.add(new RemoteBlockTable.MappedBlock(from, handle, page, bytes));
                }
            }
        } finally { // also of a reply that is shorter than it says: the table releases the store
            into.addMapped(next, from, blocks);
            client.counters().mapped.add(blocks.size());
            next += blocks.size();
        }
    }

    @Override
    public PayloadSink onData(FrameHeader header, BodyReader body) throws ProtocolException {
        RemoteBlockTable into = table;
        int index = body.count("index");
        checksum = body.i32("checksum");
        if (into == null || expected == 0 || index != next) {
            throw new ProtocolException("block %s; allowed: %s of %s more".formatted(index, next, expected));
        }
        layout = readLayout(body);
        blockBytes = into.bytes(index);
        long bytes = layout.isCoded() ? Pages.offset(layout.pages((int) blockBytes)) : blockBytes;
        if (header.payloadBytes() != bytes || bytes > Pages.roundUp(blockBytes)) {
            throw new ProtocolException(
                    "a block of %s bytes of layout %s; allowed: %s".formatted(header.payloadBytes(), layout, bytes));
        }
        next = index + 1;
        buffer = broken ? null : client.buffers().allocate(blockBytes);
        if (buffer == null) {
            if (!broken) {
                client.counters().outOfMemory.increment();
            }
            broken = true;
            return PayloadSink.discard(header.payloadBytes(), sum -> expected--);
        }
        ByteBuffer room = layout.isCoded()
                ? wholePages(buffer).asSlice(Pages.roundUp(blockBytes) - bytes).asByteBuffer()
                : buffer.buffer(blockBytes);
        payloadSink = payloadSink == null ? PayloadSink.into(room, this) : payloadSink.reuse(room);
        return payloadSink;
    }

    private static StoredLayout readLayout(BodyReader body) throws ProtocolException {
        int bits = body.hasRemaining() ? body.i32("layout") : 0;
        if (bits != 0
                && (!StoredLayout.areLayout(bits) || !StoredLayout.ofBits(bits).isCoded())) {
            throw new ProtocolException("layout = %s; allowed: 0, and 257 to 511".formatted(bits));
        }
        return StoredLayout.ofBits(bits);
    }

    /// The memory of a block, as long as whole pages.
    private MemorySegment wholePages(ReceiveBuffers.PooledBuffer of) {
        return of.segment(Pages.roundUp(blockBytes));
    }

    /// Returns whether the block that came is the one that was sealed.
    private boolean isSealed(ReceiveBuffers.PooledBuffer filled, ChunkedCrc sum) {
        if (!layout.isCoded()) {
            return sum.value() == checksum;
        }
        client.counters().bytesSaved.add(blockBytes - Pages.offset(layout.pages((int) blockBytes)));
        return client.coding().decode(layout, wholePages(filled), (int) blockBytes, checksum);
    }

    @Override
    public void onComplete(ChunkedCrc sum) {
        RemoteBlockTable into = table;
        ReceiveBuffers.PooledBuffer filled = buffer;
        if (into == null || filled == null) {
            throw new IllegalStateException("a block came that was not asked for");
        }
        buffer = null;
        expected--;
        client.counters().bytesIn.add(blockBytes);
        if (isSealed(filled, sum)) {
            into.addBlock(next - 1, new RemoteBlockTable.ReceivedBlock(filled, blockBytes, checksum));
        } else {
            client.counters().corrupt.increment();
            broken = true;
            filled.free();
        }
    }

    @Override
    public boolean isComplete() {
        return replied && expected == 0;
    }

    /// Frees the buffer of a block that did not arrive whole.
    private void abort() {
        if (buffer != null) {
            buffer.free();
            buffer = null;
        }
    }

    /// Reads the blocks at the locations, if a fabric is used. Adds them to the table, up to the first that does
    /// not match its checksum.
    private void readFabric(long untilNanos) {
        RemoteBlockTable into = table;
        if (fabric == null || into == null) {
            return;
        }
        List<ReceiveBuffers.PooledBuffer> slots = new ArrayList<>();
        List<FabricReader.RemoteRead> pieces = new ArrayList<>();
        for (SlotLocation location : locations) {
            ReceiveBuffers.PooledBuffer slot = fabric.contains(location.offset, location.bytes)
                    ? client.buffers().allocate(location.bytes)
                    : null;
            if (slot == null) {
                client.counters().outOfMemory.increment();
                break;
            }
            slots.add(slot);
            pieces.add(new FabricReader.RemoteRead(location.offset, slot.segment(location.bytes)));
        }
        if (pieces.isEmpty()) {
            return; // Nothing to read, and on a miss there is no lease to ask for.
        }
        FabricReader.Outcome outcome = fabric.read(pieces, Math.max(1, untilNanos - System.nanoTime()));
        if (outcome == FabricReader.Outcome.BUFFERS_UNSAFE) {
            return; // And the slots stay in use for good.
        }
        boolean held = outcome == FabricReader.Outcome.DONE && isLeaseHeld(into, untilNanos);
        addRead(into, slots, held ? countValid(pieces) : 0);
    }

    private void addRead(RemoteBlockTable into, List<ReceiveBuffers.PooledBuffer> slots, int good) {
        for (int i = 0; i < slots.size(); i++) {
            SlotLocation from = locations.get(i);
            if (i < good) {
                into.addBlock(next, new RemoteBlockTable.ReceivedBlock(slots.get(i), from.bytes, from.checksum));
                next++;
                client.counters().bytesIn.add(from.bytes);
            } else {
                slots.get(i).free();
            }
        }
        client.counters().fetched.add(good);
    }

    /// Returns the number of leading blocks that match their checksums.
    private int countValid(List<FabricReader.RemoteRead> pieces) {
        int good = 0;
        while (good < pieces.size() && ChunkedCrc.of(pieces.get(good).into()) == locations.get(good).checksum) {
            good++;
        }
        client.counters().corrupt.add(good < pieces.size() ? 1 : 0);
        return good;
    }

    /// Returns whether the server has kept the blocks in their places until now.
    private boolean isLeaseHeld(RemoteBlockTable of, long untilNanos) {
        try {
            BodyWriter body = new BodyWriter().i64(of.lease()).i32(0).i32(0);
            return session.data().call(untilNanos, MessageType.PLACES, body, reply -> true);
        } catch (RpcException gone) {
            client.countFailure();
            return false;
        }
    }
}
