package io.kvcache.transport.remote;

import io.kvcache.core.memory.ChunkedCrc;
import io.kvcache.transport.ucx.UcxReader;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.ProtocolException;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// Leased blocks that this side reads out of the server's memory by itself. The lease keeps them where they are;
/// whether it did is asked when they are here, as nobody hears in time that a session has ended.
final class FabricBlockReceiver implements DataConnection.ReplyHandler {

    /// What of places is asked for: offsets and checksums.
    private static final int OFFSETS = 2;

    private final RemoteCacheContext remoteCacheContext;
    private final UcxReader reader;
    private final TableOpener tableOpener;
    private final List<SlotLocation> places = new ArrayList<>();
    private @Nullable RemoteBlockTable table;
    private boolean replied;

    /// Makes the table of a reply, up to where the places begin.
    @FunctionalInterface
    private interface TableOpener {
        RemoteBlockTable open(BodyReader reply) throws ProtocolException;
    }

    /// Where a block lies in the slots, and the checksum it has there.
    private record SlotLocation(long offset, int checksum) {}

    private FabricBlockReceiver(RemoteCacheContext remoteCacheContext, UcxReader reader, TableOpener tableOpener) {
        this.remoteCacheContext = remoteCacheContext;
        this.reader = reader;
        this.tableOpener = tableOpener;
    }

    /// Leases what is resident, and waits until it is here.
    static RemoteBlockTable acquire(
            RemoteCacheContext remoteCacheContext,
            RemoteSession remoteSession,
            UcxReader reader,
            BlockReceiver.BlockQuery blockQuery)
            throws RpcException {
        FabricBlockReceiver blocks = new FabricBlockReceiver(
                remoteCacheContext,
                reader,
                reply -> MappedBlockReceiver.openTable(remoteCacheContext, remoteSession, blockQuery, reply));
        long until = System.nanoTime() + remoteCacheContext.options().requestTimeoutNanos();
        int number = remoteSession.namespaceNumber(blockQuery.chain().namespace());
        try {
            remoteSession.data().withConnection(until, (line, patience) -> {
                DataConnection.ChainRequest chainRequest = new DataConnection.ChainRequest(
                        MessageType.ACQUIRE,
                        blockQuery.chain(),
                        number,
                        body -> body.i32(blockQuery.from()).i32(0).i64(0).u8(OFFSETS));
                line.call(chainRequest, patience, blocks);
            });
        } catch (RpcException failed) {
            if (blocks.table == null) {
                throw failed;
            }
        }
        RemoteBlockTable table = blocks.table;
        if (table == null) {
            throw RpcException.noReply("no table came");
        }
        blocks.readBlocks(new ReadTarget(remoteSession, table, blockQuery.from(), until));
        table.end();
        return table;
    }

    /// Brings blocks of a lease into its table.
    ///
    /// @return whether all of them came
    static boolean read(
            RemoteCacheContext remoteCacheContext,
            RemoteSession remoteSession,
            UcxReader reader,
            RemoteBlockTable table,
            MappedBlockReceiver.BlockRange blockRange) {
        FabricBlockReceiver blocks = new FabricBlockReceiver(remoteCacheContext, reader, reply -> table);
        long until = System.nanoTime() + remoteCacheContext.options().requestTimeoutNanos();
        try {
            BodyWriter body = new BodyWriter()
                    .i64(table.lease())
                    .i32(blockRange.from())
                    .i32(blockRange.count())
                    .u8(OFFSETS);
            remoteSession
                    .data()
                    .withConnection(until, (line, patience) -> line.call(MessageType.PLACES, body, patience, blocks));
            return blocks.readBlocks(new ReadTarget(remoteSession, table, blockRange.from(), until))
                    == blockRange.count();
        } catch (RpcException failed) {
            remoteCacheContext.counters().failed.increment();
            return false;
        }
    }

    @Override
    public void onReply(BodyReader body) throws ProtocolException {
        table = tableOpener.open(body);
        replied = true;
        int count = body.hasRemaining() ? body.count("places") : 0;
        if (count > 0) {
            body.skip(Integer.BYTES);
        }
        for (int i = 0; i < count; i++) {
            places.add(new SlotLocation(body.i64("offset"), body.i32("checksum")));
            body.skip(Integer.BYTES);
        }
    }

    @Override
    public boolean isComplete() {
        return replied;
    }

    /// Where blocks go.
    ///
    /// @param first block of the chain
    /// @param untilNanos when nobody waits any longer
    private record ReadTarget(RemoteSession remoteSession, RemoteBlockTable table, int first, long untilNanos) {}

    /// Reads the blocks and hands those to the table that came as they were sealed, up to the first that did not.
    ///
    /// @return how many
    private int readBlocks(ReadTarget to) {
        RemoteBlockTable into = to.table;
        List<ReceiveBuffers.PooledBuffer> slots = new ArrayList<>();
        List<UcxReader.RemoteRead> pieces = new ArrayList<>();
        for (SlotLocation slotLocation : places) {
            ReceiveBuffers.PooledBuffer pooledBuffer = reader.contains(slotLocation.offset, into.blockBytes())
                    ? remoteCacheContext.buffers().allocate(into.blockBytes())
                    : null;
            if (pooledBuffer == null) {
                remoteCacheContext.counters().outOfMemory.increment();
                break;
            }
            slots.add(pooledBuffer);
            pieces.add(new UcxReader.RemoteRead(slotLocation.offset, pooledBuffer.segment(into.blockBytes())));
        }
        UcxReader.Outcome outcome = reader.read(pieces, Math.max(1, to.untilNanos - System.nanoTime()));
        if (outcome == UcxReader.Outcome.BUFFERS_UNSAFE) {
            return 0; // And the slots stay in use for good.
        }
        int good = outcome == UcxReader.Outcome.DONE && isLeaseHeld(to) ? countValid(pieces) : 0;
        for (int i = 0; i < slots.size(); i++) {
            if (i < good) {
                into.addBlock(
                        to.first + i,
                        new RemoteBlockTable.ReceivedBlock(slots.get(i), into.blockBytes(), places.get(i).checksum));
            } else {
                slots.get(i).free();
            }
        }
        remoteCacheContext.counters().fetched.add(good);
        remoteCacheContext.counters().bytesIn.add(good * into.blockBytes());
        return good;
    }

    /// How many leading blocks have their checksums.
    private int countValid(List<UcxReader.RemoteRead> pieces) {
        int good = 0;
        while (good < pieces.size() && ChunkedCrc.of(pieces.get(good).into()) == places.get(good).checksum) {
            good++;
        }
        remoteCacheContext.counters().corrupt.add(good < pieces.size() ? 1 : 0);
        return good;
    }

    /// Whether the server has kept the blocks in their places until now.
    private boolean isLeaseHeld(ReadTarget to) {
        try {
            BodyWriter body = new BodyWriter().i64(to.table.lease()).i32(0).i32(0);
            to.remoteSession
                    .data()
                    .withConnection(
                            to.untilNanos,
                            (line, patience) -> line.call(MessageType.PLACES, body, patience, new Ack()));
            return true;
        } catch (RpcException gone) {
            remoteCacheContext.counters().failed.increment();
            return false;
        }
    }

    /// An answer of which nothing matters but that it is not a refusal.
    static final class Ack implements DataConnection.ReplyHandler {

        private boolean replied;

        @Override
        public void onReply(BodyReader body) {
            replied = true;
        }

        @Override
        public boolean isComplete() {
            return replied;
        }
    }
}
