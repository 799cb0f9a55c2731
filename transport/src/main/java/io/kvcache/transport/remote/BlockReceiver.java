package io.kvcache.transport.remote;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.memory.ChunkedCrc;
import io.kvcache.transport.link.PayloadSink;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.FrameHeader;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.ProtocolException;
import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;

/// Blocks on their way into a table. The first that does not arrive as it was sealed is the last: what
/// comes after it is thrown away.
final class BlockReceiver implements DataConnection.ReplyHandler, PayloadSink.CompletionListener {

    private final RemoteCacheContext remoteCacheContext;
    private final TableOpener tableOpener;
    private @Nullable RemoteBlockTable table;
    private int expected;
    private int next;
    private boolean replied;
    private boolean broken;
    private @Nullable PayloadSink payloadSink;

    /// Of the block that is on its way.
    private ReceiveBuffers.@Nullable PooledBuffer pooledBuffer;

    private int checksum;

    /// Makes the table of a reply, and says how many blocks come.
    @FunctionalInterface
    private interface TableOpener {
        OpenedTable open(BodyReader reply) throws ProtocolException;
    }

    private record OpenedTable(RemoteBlockTable table, int count) {}

    private BlockReceiver(RemoteCacheContext remoteCacheContext, int first, TableOpener tableOpener) {
        this.remoteCacheContext = remoteCacheContext;
        this.tableOpener = tableOpener;
        next = first;
    }

    /// What a caller wants of a chain.
    ///
    /// @param from first block wanted
    record BlockQuery(BlockChain chain, int from) {

        long blockBytes() {
            return chain.namespace().parts().getFirst().bytes();
        }
    }

    /// Asks for what is resident and waits until it is here.
    ///
    /// @return null when there was no answer at all
    static @Nullable RemoteBlockTable acquire(
            RemoteCacheContext remoteCacheContext, RemoteSession remoteSession, BlockQuery blockQuery)
            throws RpcException {
        BlockReceiver arrivals = new BlockReceiver(
                remoteCacheContext,
                blockQuery.from,
                reply -> openTable(remoteCacheContext, remoteSession, blockQuery, reply));
        int number = remoteSession.namespaceNumber(blockQuery.chain.namespace());
        try {
            remoteSession.data().withConnection((line, patience) -> {
                DataConnection.ChainRequest chainRequest = new DataConnection.ChainRequest(
                        MessageType.ACQUIRE,
                        blockQuery.chain,
                        number,
                        body -> body.i32(blockQuery.from)
                                .i32(affordableBlocks(remoteCacheContext, blockQuery))
                                .i64(0));
                line.call(chainRequest, patience, arrivals);
            });
        } catch (RpcException failed) {
            arrivals.abort();
            if (arrivals.table == null) {
                throw failed;
            }
        }
        RemoteBlockTable table = arrivals.table;
        if (table != null) {
            table.end();
        }
        return table;
    }

    private static int affordableBlocks(RemoteCacheContext remoteCacheContext, BlockQuery blockQuery) {
        long slots = remoteCacheContext.buffers().availableBuffers(blockQuery.blockBytes());
        return (int) Math.min(slots, blockQuery.chain.length() - blockQuery.from);
    }

    private static OpenedTable openTable(
            RemoteCacheContext remoteCacheContext, RemoteSession remoteSession, BlockQuery blockQuery, BodyReader reply)
            throws ProtocolException {
        long lease = reply.i64("lease");
        int ready = reply.count("ready");
        int end = reply.count("end");
        int sent = reply.count("sent");
        if (sent > ready || sent > blockQuery.chain.length() - blockQuery.from) {
            throw new ProtocolException("%d blocks sent; allowed: 0 to %d".formatted(sent, ready));
        }
        RemoteBlockTable.LeasedRange leasedRange =
                new RemoteBlockTable.LeasedRange(lease, blockQuery.from, end, blockQuery.blockBytes(), Long.MAX_VALUE);
        return new OpenedTable(new RemoteBlockTable(remoteCacheContext, remoteSession, leasedRange), sent);
    }

    /// Brings blocks of a lease into its table.
    ///
    /// @return whether all of them came
    static boolean read(
            RemoteCacheContext remoteCacheContext,
            RemoteSession remoteSession,
            RemoteBlockTable table,
            int from,
            int count) {
        BlockReceiver arrivals =
                new BlockReceiver(remoteCacheContext, from, reply -> new OpenedTable(table, reply.count("count")));
        try {
            remoteSession.data().withConnection((line, patience) -> {
                BodyWriter body = new BodyWriter().i64(table.lease()).i32(from).i32(count);
                line.call(MessageType.READ, body, patience, arrivals);
            });
            return !arrivals.broken;
        } catch (RpcException failed) {
            remoteCacheContext.counters().failed.increment();
            arrivals.abort();
            return false;
        }
    }

    @Override
    public void onReply(BodyReader body) throws ProtocolException {
        OpenedTable openedTable = tableOpener.open(body);
        table = openedTable.table;
        expected = openedTable.count;
        replied = true;
    }

    @Override
    public PayloadSink onData(FrameHeader header, BodyReader body) throws ProtocolException {
        RemoteBlockTable into = table;
        int index = body.count("index");
        checksum = body.i32("checksum");
        if (into == null || expected == 0 || index != next) {
            throw new ProtocolException("block %d; allowed: %d of %d more".formatted(index, next, expected));
        }
        if (header.payloadBytes() != into.blockBytes()) {
            throw new ProtocolException(
                    "a block of %d bytes; allowed: %d".formatted(header.payloadBytes(), into.blockBytes()));
        }
        next = index + 1;
        pooledBuffer = broken ? null : remoteCacheContext.buffers().allocate(into.blockBytes());
        if (pooledBuffer == null) {
            dropRemaining();
            return PayloadSink.discard(header.payloadBytes(), sum -> expected--);
        }
        ByteBuffer room = pooledBuffer.buffer(into.blockBytes());
        payloadSink = payloadSink == null ? PayloadSink.into(room, this) : payloadSink.reuse(room);
        return payloadSink;
    }

    private void dropRemaining() {
        if (!broken) {
            remoteCacheContext.counters().outOfMemory.increment();
        }
        broken = true;
    }

    @Override
    public void onComplete(ChunkedCrc sum) {
        RemoteBlockTable into = table;
        ReceiveBuffers.PooledBuffer filled = pooledBuffer;
        if (into == null || filled == null) {
            throw new IllegalStateException("a block came that nobody waits for");
        }
        pooledBuffer = null;
        expected--;
        remoteCacheContext.counters().bytesIn.add(into.blockBytes());
        if (sum.value() == checksum) {
            into.addBlock(next - 1, new RemoteBlockTable.ReceivedBlock(filled, into.blockBytes(), checksum));
        } else {
            remoteCacheContext.counters().corrupt.increment();
            broken = true;
            filled.free();
        }
    }

    @Override
    public boolean isComplete() {
        return replied && expected == 0;
    }

    /// The connection is over, perhaps in the middle of a block.
    private void abort() {
        if (pooledBuffer != null) {
            pooledBuffer.free();
            pooledBuffer = null;
        }
    }
}
