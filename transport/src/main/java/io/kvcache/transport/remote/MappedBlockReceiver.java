package io.kvcache.transport.remote;

import io.kvcache.transport.shm.SharedStore;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.ProtocolException;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/// Blocks that are leased where they lie: nothing is sent but their places.
final class MappedBlockReceiver implements DataConnection.ReplyHandler {

    private final RemoteCacheContext remoteCacheContext;
    private final SharedStore store;
    private final TableOpener tableOpener;
    private @Nullable RemoteBlockTable table;
    private int next;
    private boolean all;
    private boolean replied;

    /// Makes the table of a reply, up to where the places begin.
    @FunctionalInterface
    private interface TableOpener {
        RemoteBlockTable open(BodyReader reply) throws ProtocolException;
    }

    private MappedBlockReceiver(
            RemoteCacheContext remoteCacheContext, SharedStore store, int first, TableOpener tableOpener) {
        this.remoteCacheContext = remoteCacheContext;
        this.store = store;
        this.tableOpener = tableOpener;
        next = first;
    }

    /// Leases what is resident.
    static RemoteBlockTable acquire(
            RemoteCacheContext remoteCacheContext,
            RemoteSession remoteSession,
            SharedStore store,
            BlockReceiver.BlockQuery blockQuery)
            throws RpcException {
        MappedBlockReceiver places = new MappedBlockReceiver(
                remoteCacheContext,
                store,
                blockQuery.from(),
                reply -> openTable(remoteCacheContext, remoteSession, blockQuery, reply));
        int number = remoteSession.namespaceNumber(blockQuery.chain().namespace());
        try {
            remoteSession.data().withConnection((line, patience) -> {
                DataConnection.ChainRequest chainRequest = new DataConnection.ChainRequest(
                        MessageType.ACQUIRE,
                        blockQuery.chain(),
                        number,
                        body -> body.i32(blockQuery.from()).i32(0).i64(0).u8(1));
                line.call(chainRequest, patience, places);
            });
        } catch (RpcException failed) {
            if (places.table == null) {
                throw failed;
            }
        }
        RemoteBlockTable table = places.table;
        if (table == null) {
            throw RpcException.noReply("no table came");
        }
        table.end();
        return table;
    }

    /// The table of an answer to ACQUIRE, up to where the places begin.
    static RemoteBlockTable openTable(
            RemoteCacheContext remoteCacheContext,
            RemoteSession remoteSession,
            BlockReceiver.BlockQuery blockQuery,
            BodyReader reply)
            throws ProtocolException {
        long lease = reply.i64("lease");
        reply.count("ready");
        int end = reply.count("end");
        reply.count("sent");
        return new RemoteBlockTable(
                remoteCacheContext,
                remoteSession,
                new RemoteBlockTable.LeasedRange(
                        lease, blockQuery.from(), end, blockQuery.blockBytes(), Long.MAX_VALUE));
    }

    /// Brings the places of blocks of a lease into its table.
    ///
    /// @return whether all of them came
    static boolean read(
            RemoteCacheContext remoteCacheContext,
            RemoteSession remoteSession,
            SharedStore store,
            RemoteBlockTable table,
            BlockRange blockRange) {
        MappedBlockReceiver places =
                new MappedBlockReceiver(remoteCacheContext, store, blockRange.from, reply -> table);
        try {
            remoteSession.data().withConnection((line, patience) -> {
                BodyWriter body =
                        new BodyWriter().i64(table.lease()).i32(blockRange.from).i32(blockRange.count);
                line.call(MessageType.PLACES, body, patience, places);
            });
            return places.all && places.next == blockRange.from + blockRange.count;
        } catch (RpcException failed) {
            remoteCacheContext.counters().failed.increment();
            return false;
        }
    }

    /// Blocks of a chain.
    record BlockRange(int from, int count) {}

    @Override
    public void onReply(BodyReader body) throws ProtocolException {
        RemoteBlockTable into = tableOpener.open(body);
        table = into;
        replied = true;
        all = true;
        int count = body.hasRemaining() ? body.count("places") : 0;
        if (count > 0) {
            body.skip(Integer.BYTES);
        }
        for (int i = 0; i < count && all; i++) {
            addBlock(into, body.i64("handle"));
        }
    }

    private void addBlock(RemoteBlockTable into, long handle) {
        MappedBlock block = MappedBlock.of(store, handle, into.blockBytes());
        all = block != null;
        if (block != null) {
            into.addBlock(next, block);
            remoteCacheContext.counters().mapped.increment();
            next++;
        }
    }

    @Override
    public boolean isComplete() {
        return replied;
    }

    /// A block where it lies in the server's memory, which is mapped here read-only. The server keeps it there
    /// for as long as the lease lasts.
    static final class MappedBlock implements RemoteBlockTable.Block {

        private final SharedStore store;
        private final long handle;
        private final MemorySegment slot;

        private MappedBlock(SharedStore store, long handle, MemorySegment slot) {
            this.store = store;
            this.handle = handle;
            this.slot = slot;
        }

        /// The block that a handle of a lease stands for; null when it is not there as it should be, or the
        /// memory is not mapped any more.
        static @Nullable MappedBlock of(SharedStore store, long handle, long bytes) {
            if (!store.retain()) {
                return null;
            }
            MemorySegment slot = store.view(handle, bytes);
            if (slot == null) {
                store.release();
                return null;
            }
            return new MappedBlock(store, handle, slot);
        }

        @Override
        public MemorySegment segment() {
            return slot;
        }

        @Override
        public int checksum() {
            return store.checksum(handle);
        }

        @Override
        public boolean isValid() {
            return store.isCurrent(handle);
        }

        @Override
        public void free() {
            store.release();
        }
    }
}
