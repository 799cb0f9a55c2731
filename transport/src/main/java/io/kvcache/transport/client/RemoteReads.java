package io.kvcache.transport.client;

import io.kvcache.core.BlockTable;
import io.kvcache.core.Match;
import io.kvcache.core.ObjectView;
import io.kvcache.core.RangeQuery;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.memory.ChunkedCrc;
import io.kvcache.core.tree.RecordHandle;
import io.kvcache.transport.client.RemoteContext.RpcException;
import io.kvcache.transport.net.PayloadSink;
import io.kvcache.transport.shm.SharedStore;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.FrameHeader;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.ProtocolException;
import io.kvcache.transport.wire.RangeRequest;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;

/// Fetches blocks and objects. Every failure is a shorter prefix or a miss.
final class RemoteReads {

    /// Result of what must be asked for in another way.
    private static final int INCONCLUSIVE = -1;

    private final RemoteContext client;

    RemoteReads(RemoteContext client) {
        this.client = client;
    }

    /// Matches a chain in the server's memory, without a message. Null when the server must be asked: always where
    /// it has a device, of which the records do not tell.
    @Nullable
    Match matchMapped(BlockChain chain) {
        RemoteSession session = currentSession();
        SharedStore store = session == null ? null : session.sharedStore();
        Integer number = session == null ? null : session.recordNamespaceNumber(chain.namespace());
        boolean isPlain = chain.namespace().groups().isEmpty(); // windows and states are the server's matter
        if (store == null || number == null || !isPlain || store.hasDevice() || !store.retain()) {
            return null;
        }
        try {
            SharedStore.ChainQuery chainQuery = new SharedStore.ChainQuery(chain, number);
            int host = store.countResident(chainQuery, chain.length());
            int known = host < 0 ? INCONCLUSIVE : store.countKnown(chainQuery, host);
            return known < 0 ? null : known == 0 ? Match.NOTHING : new Match(0, host, known - host);
        } finally {
            store.release();
        }
    }

    /// Copies leading blocks out of the server's memory, from block `from` on. -1 when the server must be asked.
    int copyMapped(BlockChain chain, int from, List<MemorySegment> into) {
        RemoteSession session = currentSession();
        SharedStore store = session == null ? null : session.sharedStore();
        Integer number = session == null ? null : session.recordNamespaceNumber(chain.namespace());
        if (session == null || store == null || number == null) {
            return INCONCLUSIVE;
        }
        boolean isPlain = chain.namespace().groups().isEmpty();
        if (chain.namespace().parts().isEmpty() || !isPlain || !store.retain()) {
            return INCONCLUSIVE;
        }
        try {
            long blockBytes = chain.namespace().blockBytes();
            SharedStore.ChainQuery chainQuery = new SharedStore.ChainQuery(chain, number);
            SharedStore.CopyResult copyResult = store.copy(chainQuery, from, blockBytes, into);
            if (RecordHandle.isFound(copyResult.lastHandle())) {
                session.reportAccess(copyResult.lastHandle());
            }
            return copyResult.blocks();
        } finally {
            store.release();
        }
    }

    /// Returns whether blocks in the server's memory can be read there.
    boolean isMapped() {
        RemoteSession session = currentSession();
        return session != null && session.sharedStore() != null;
    }

    /// Copies the same bytes of several blocks. -1 when a server sends none so
    /// large.
    int getRange(RangeQuery query, long timeoutNanos) {
        return client.callOrDefault(
                0,
                session -> RangeRequest.maxBlocks(query.range().bytes()) > 0
                        ? RangeReceiver.read(client, session, query, timeoutNanos)
                        : INCONCLUSIVE);
    }

    private @Nullable RemoteSession currentSession() {
        try {
            return client.keeper().currentSession();
        } catch (RpcException away) {
            return null;
        }
    }

    /// Acquires the resident blocks; all of them are here on return.
    BlockTable acquireResident(BlockChain chain, int from) {
        BlockReceiver.BlockQuery query = new BlockReceiver.BlockQuery(chain, from);
        return client.callOrDefault(
                BlockTable.empty(from),
                session -> RemotePartsTable.of(BlockReceiver.acquire(client, session, query), chain.namespace()));
    }

    /// Acquires the resident blocks and those that become resident in time. They arrive after the return.
    BlockTable acquireLoading(BlockChain chain, int from, long timeoutNanos) {
        return client.callOrDefault(
                BlockTable.empty(from),
                session -> RemotePartsTable.of(begin(session, chain, from, timeoutNanos), chain.namespace()));
    }

    private RemoteBlockTable begin(RemoteSession session, BlockChain chain, int from, long timeoutNanos)
            throws RpcException {
        RemoteContext.SessionCall<RemoteBlockTable> call = client.chainCall(
                new RemoteContext.ChainCall<>(
                        MessageType.ACQUIRE,
                        chain,
                        body -> body.i32(from).i32(0).i64(timeoutNanos),
                        reply -> openTable(session, chain, from, timeoutNanos, reply)),
                timeoutNanos,
                RemoteBlockTable::close);
        return call.call(session);
    }

    /// Opens the table. It runs before the client reads any news of the lease.
    private RemoteBlockTable openTable(
            RemoteSession session, BlockChain chain, int from, long timeoutNanos, BodyReader reply)
            throws ProtocolException {
        long lease = reply.i64("lease");
        int ready = reply.count("ready");
        int end = reply.count("end");
        long until = System.nanoTime() + client.options().totalTimeoutNanos(timeoutNanos);
        RemoteBlockTable table = new RemoteBlockTable(
                client, session, new RemoteBlockTable.LeasedRange(lease, from, end, chain.namespace(), until));
        if (lease == 0) {
            table.end();
        } else {
            session.trackLease(lease, table);
            table.onProgress(ready, end);
        }
        return table;
    }

    @Nullable
    ObjectView getObject(Namespace namespace, byte[] key, long timeoutNanos) {
        Optional<ObjectView> view = client.callOrDefault(
                Optional.empty(), session -> Optional.ofNullable(requestObject(session, namespace, key, timeoutNanos)));
        return view.orElse(null);
    }

    private @Nullable ObjectView requestObject(
            RemoteSession session, Namespace namespace, byte[] key, long timeoutNanos) throws RpcException {
        long patience = client.options().totalTimeoutNanos(timeoutNanos);
        ObjectReceiver.ObjectQuery query = new ObjectReceiver.ObjectQuery(key, System.nanoTime() + patience);
        BodyWriter body = body(session, namespace, key, timeoutNanos);
        if (timeoutNanos == 0 && session.sharedStore() == null) {
            return ObjectReceiver.get(client, session, query, body);
        }
        if (timeoutNanos == 0) {
            return openView(
                    session,
                    query,
                    session.data()
                            .call(query.untilNanos(), MessageType.GET_OBJECT, body, ObjectReceiver.FoundObject::read));
        }
        ObjectReceiver.FoundObject found = ControlConnection.await(
                requestObject(session, body, patience), patience, late -> session.release(late.lease()));
        return openView(session, query, found);
    }

    /// Opens a view of the object in the server's memory, or of a copy.
    private @Nullable ObjectView openView(
            RemoteSession session, ObjectReceiver.ObjectQuery query, ObjectReceiver.FoundObject found)
            throws RpcException {
        if (found.lease() == 0) {
            return null;
        }
        ObjectView inPlace = LeasedObjectView.mapped(client, session, found);
        return inPlace == null ? ObjectReceiver.read(client, session, query, found) : inPlace;
    }

    CompletionStage<@Nullable ObjectView> fetchObject(
            Namespace namespace, byte[] key, long timeoutNanos, Executor executor) {
        CompletableFuture<LocatedObject> asked =
                client.callOrDefault(CompletableFuture.completedFuture(LocatedObject.NOT_FOUND), session -> {
                    BodyWriter body = body(session, namespace, key, Math.max(1, timeoutNanos));
                    return withTimeout(session, body, client.options().totalTimeoutNanos(timeoutNanos))
                            .handle((found, failed) -> new LocatedObject(
                                    session, failed == null ? found : ObjectReceiver.FoundObject.NOT_FOUND));
                });
        return asked.thenCompose(located -> CompletableFuture.completedFuture(located)
                .thenApplyAsync(found -> read(found, key), executor)
                .whenComplete((view, failed) -> located.releaseIf(failed)));
    }

    /// Ends the wait when the server does not reply in time. A later result is released.
    private static CompletableFuture<ObjectReceiver.FoundObject> withTimeout(
            RemoteSession session, BodyWriter body, long patienceNanos) {
        CompletableFuture<ObjectReceiver.FoundObject> answer = requestObject(session, body, patienceNanos);
        return answer.copy().orTimeout(patienceNanos, TimeUnit.NANOSECONDS).whenComplete((found, failed) -> {
            if (failed instanceof TimeoutException) {
                var _ = answer.thenAccept(late -> session.release(late.lease()));
            }
        });
    }

    /// A found object, and its session.
    private record LocatedObject(@Nullable RemoteSession session, ObjectReceiver.FoundObject found) {

        static final LocatedObject NOT_FOUND = new LocatedObject(null, ObjectReceiver.FoundObject.NOT_FOUND);

        /// Releases the object after a failure.
        ///
        /// @param failed why it was not used, or null
        void releaseIf(@Nullable Throwable failed) {
            if (session != null && failed != null) {
                session.release(found.lease());
            }
        }
    }

    private @Nullable ObjectView read(LocatedObject located, byte[] key) {
        RemoteSession session = located.session;
        if (session == null || located.found.lease() == 0) {
            return null;
        }
        long until = System.nanoTime() + client.options().requestTimeoutNanos();
        ObjectReceiver.ObjectQuery query = new ObjectReceiver.ObjectQuery(key, until);
        Optional<ObjectView> view = client.callOrDefault(
                Optional.empty(), current -> Optional.ofNullable(openView(session, query, located.found)));
        return view.orElse(null);
    }

    private static BodyWriter body(RemoteSession session, Namespace namespace, byte[] key, long timeoutNanos)
            throws RpcException {
        BodyWriter body = new BodyWriter(64 + key.length);
        body.i32(session.namespaceNumber(namespace)).i32(key.length);
        boolean places = session.sharedStore() != null;
        return body.u8(timeoutNanos == 0 && !places ? 1 : 0)
                .u8(places ? 1 : 0)
                .u16(0)
                .i32(0)
                .i64(timeoutNanos)
                .bytes(key);
    }

    private static CompletableFuture<ObjectReceiver.FoundObject> requestObject(
            RemoteSession session, BodyWriter body, long patienceNanos) {
        return session.control()
                .call(new ControlConnection.CallRequest<>(
                        MessageType.GET_OBJECT, body, ObjectReceiver.FoundObject::read, patienceNanos));
    }

    /// Receives the same bytes of several blocks, by one request. The first range that does not arrive as it
    /// was sent is the last: it does not reach the caller's memory, nor does any behind it.
    static final class RangeReceiver implements DataConnection.ReplyHandler {

        private final RemoteContext client;
        private final RangeQuery query;
        private final RangeRequest request;

        /// Memory for one range.
        private final ReceiveBuffers.PooledBuffer buffer;

        private boolean replied;
        private boolean broken;
        private int next;
        private int copied;

        /// Ranges that the server still sends.
        private int expected;

        private RangeReceiver(
                RemoteContext client, RangeQuery query, RangeRequest request, ReceiveBuffers.PooledBuffer buffer) {
            this.client = client;
            this.query = query;
            this.request = request;
            this.buffer = buffer;
            next = request.from();
        }

        /// Copies the ranges that the server has or gets in time. A failure ends the run.
        ///
        /// @param timeoutNanos how long the server may wait
        /// @return the number of blocks
        /// @throws RpcException when not even the first request had a reply
        static int read(RemoteContext client, RemoteSession session, RangeQuery query, long timeoutNanos)
                throws RpcException {
            ReceiveBuffers.PooledBuffer buffer =
                    client.buffers().allocate(query.range().bytes());
            if (buffer == null) {
                client.counters().outOfMemory.increment();
                return 0;
            }
            try {
                return read(client, session, query, timeoutNanos, buffer);
            } finally {
                buffer.free();
            }
        }

        private static int read(
                RemoteContext client,
                RemoteSession session,
                RangeQuery query,
                long timeoutNanos,
                ReceiveBuffers.PooledBuffer buffer)
                throws RpcException {
            int bytes = (int) query.range().bytes();
            long start = System.nanoTime();
            int at = query.from();
            boolean more = true;
            while (more && at < query.end()) {
                int count = Math.min(query.end() - at, RangeRequest.maxBlocks(bytes));
                long left = Math.max(0, timeoutNanos - (System.nanoTime() - start));
                RangeRequest request =
                        new RangeRequest(at, count, (int) query.range().offset(), bytes, left);
                RangeReceiver receiver = new RangeReceiver(client, query, request, buffer);
                try {
                    receiver.call(session);
                } catch (RpcException failed) {
                    if (at + receiver.copied == query.from()) {
                        throw failed;
                    }
                    client.countFailure();
                    more = false;
                }
                at += receiver.copied;
                more &= receiver.copied == count;
            }
            return at - query.from();
        }

        private void call(RemoteSession session) throws RpcException {
            int number = session.namespaceNumber(query.chain().namespace());
            long until = System.nanoTime() + client.options().totalTimeoutNanos(request.timeoutNanos());
            DataConnection.ChainRequest call =
                    new DataConnection.ChainRequest(MessageType.READ_RANGE, query.chain(), number, request::write);
            session.data().withConnection(until, (line, patience) -> line.call(call, patience, this));
        }

        @Override
        public void onReply(BodyReader body) throws ProtocolException {
            int count = body.count("count");
            if (count > request.count()) {
                throw new ProtocolException("%s ranges; allowed: 0 to %s".formatted(count, request.count()));
            }
            expected = count;
            replied = true;
        }

        @Override
        public PayloadSink onData(FrameHeader header, BodyReader body) throws ProtocolException {
            int index = body.count("block");
            int checksum = body.i32("checksum");
            if (expected == 0 || index != next) {
                throw new ProtocolException("block %s; allowed: %s of %s more".formatted(index, next, expected));
            }
            if (header.payloadBytes() != request.bytes()) {
                throw new ProtocolException(
                        "a range of %s bytes; allowed: %s".formatted(header.payloadBytes(), request.bytes()));
            }
            next++;
            return broken
                    ? PayloadSink.discard(request.bytes(), sum -> expected--)
                    : PayloadSink.into(buffer.buffer(request.bytes()), sum -> onReceived(index, checksum, sum));
        }

        private void onReceived(int index, int checksum, ChunkedCrc sum) {
            expected--;
            client.counters().bytesIn.add(request.bytes());
            if (sum.value() == checksum) {
                MemorySegment.copy(
                        buffer.segment(request.bytes()), 0, query.into().get(index - query.from()), 0, request.bytes());
                copied++;
            } else {
                client.counters().corrupt.increment();
                broken = true;
            }
        }

        @Override
        public boolean isComplete() {
            return replied && expected == 0;
        }
    }
}
