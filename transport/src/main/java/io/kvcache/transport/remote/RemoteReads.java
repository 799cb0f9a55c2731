package io.kvcache.transport.remote;

import io.kvcache.core.BlockTable;
import io.kvcache.core.Match;
import io.kvcache.core.ObjectView;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.tree.RecordHandle;
import io.kvcache.transport.shm.SharedStore;
import io.kvcache.transport.ucx.UcxReader;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.ProtocolException;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;

/// Brings blocks and objects here. Whatever fails, it is a shorter prefix or a miss.
final class RemoteReads {

    /// A look-up in mapped memory that only the server can decide.
    private static final int INCONCLUSIVE = -1;

    private final RemoteCacheContext remoteCacheContext;
    private final RpcClient rpcClient;

    RemoteReads(RemoteCacheContext remoteCacheContext, RpcClient rpcClient) {
        this.remoteCacheContext = remoteCacheContext;
        this.rpcClient = rpcClient;
    }

    /// Matches a chain in the server's memory, without a message. Null when the server must be asked.
    @Nullable
    Match matchMapped(BlockChain chain) {
        RemoteSession remoteSession = currentSession();
        SharedStore store = remoteSession == null ? null : remoteSession.sharedStore();
        Integer number = remoteSession == null ? null : remoteSession.recordNamespaceNumber(chain.namespace());
        if (store == null || number == null || !store.retain()) {
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
        RemoteSession remoteSession = currentSession();
        SharedStore store = remoteSession == null ? null : remoteSession.sharedStore();
        Integer number = remoteSession == null ? null : remoteSession.recordNamespaceNumber(chain.namespace());
        if (remoteSession == null || store == null || number == null) {
            return INCONCLUSIVE;
        }
        if (chain.namespace().parts().isEmpty() || !store.retain()) {
            return INCONCLUSIVE;
        }
        try {
            long blockBytes = chain.namespace().parts().getFirst().bytes();
            SharedStore.ChainQuery chainQuery = new SharedStore.ChainQuery(chain, number);
            SharedStore.CopyResult copyResult = store.copy(chainQuery, from, blockBytes, into);
            if (RecordHandle.isFound(copyResult.lastHandle())) {
                remoteSession.reportAccess(copyResult.lastHandle());
            }
            return copyResult.blocks();
        } finally {
            store.release();
        }
    }

    private @Nullable RemoteSession currentSession() {
        try {
            return remoteCacheContext.sessions().currentSession();
        } catch (RpcException away) {
            return null;
        }
    }

    /// What is resident, all of it here.
    BlockTable acquireResident(BlockChain chain, int from) {
        BlockReceiver.BlockQuery blockQuery = new BlockReceiver.BlockQuery(chain, from);
        Optional<BlockTable> table = rpcClient.callOrDefault(
                Optional.empty(), remoteSession -> Optional.ofNullable(acquireResident(remoteSession, blockQuery)));
        return table.orElseGet(() -> remoteCacheContext.emptyTable(from));
    }

    private @Nullable BlockTable acquireResident(RemoteSession remoteSession, BlockReceiver.BlockQuery blockQuery)
            throws RpcException {
        SharedStore store = remoteSession.sharedStore();
        if (store != null) {
            return MappedBlockReceiver.acquire(remoteCacheContext, remoteSession, store, blockQuery);
        }
        UcxReader fabric = remoteSession.fabric();
        return fabric == null
                ? BlockReceiver.acquire(remoteCacheContext, remoteSession, blockQuery)
                : FabricBlockReceiver.acquire(remoteCacheContext, remoteSession, fabric, blockQuery);
    }

    /// What is resident and what arrives in time; on its way here.
    BlockTable acquireLoading(BlockChain chain, int from, long timeoutNanos) {
        Optional<BlockTable> table = rpcClient.callOrDefault(
                Optional.empty(), remoteSession -> Optional.of(begin(remoteSession, chain, from, timeoutNanos)));
        return table.orElseGet(() -> remoteCacheContext.emptyTable(from));
    }

    private RemoteBlockTable begin(RemoteSession remoteSession, BlockChain chain, int from, long timeoutNanos)
            throws RpcException {
        RpcClient.SessionCall<RemoteBlockTable> sessionCall = rpcClient.chainCall(
                chain,
                timeoutNanos,
                body -> {
                    body.i32(from).i32(0).i64(timeoutNanos);
                    return new RpcClient.CallSpec<>(
                            MessageType.ACQUIRE, reply -> openTable(remoteSession, chain, from, timeoutNanos, reply));
                },
                RemoteBlockTable::close);
        return sessionCall.call(remoteSession);
    }

    /// Runs before any news of the lease is read.
    private RemoteBlockTable openTable(
            RemoteSession remoteSession, BlockChain chain, int from, long timeoutNanos, BodyReader reply)
            throws ProtocolException {
        long lease = reply.i64("lease");
        int ready = reply.count("ready");
        int end = reply.count("end");
        long until = System.nanoTime() + remoteCacheContext.options().totalTimeoutNanos(timeoutNanos);
        long blockBytes = chain.namespace().parts().getFirst().bytes();
        RemoteBlockTable table = new RemoteBlockTable(
                remoteCacheContext,
                remoteSession,
                new RemoteBlockTable.LeasedRange(lease, from, end, blockBytes, until));
        if (lease == 0) {
            table.end();
        } else {
            remoteSession.trackLease(lease, table);
            table.onProgress(ready, end);
        }
        return table;
    }

    @Nullable
    ObjectView getObject(Namespace namespace, byte[] key, long timeoutNanos) {
        Optional<ObjectView> view = rpcClient.callOrDefault(
                Optional.empty(),
                remoteSession -> Optional.ofNullable(requestObject(remoteSession, namespace, key, timeoutNanos)));
        return view.orElse(null);
    }

    private @Nullable ObjectView requestObject(
            RemoteSession remoteSession, Namespace namespace, byte[] key, long timeoutNanos) throws RpcException {
        long patience = remoteCacheContext.options().totalTimeoutNanos(timeoutNanos);
        ObjectReceiver.ObjectQuery objectQuery = new ObjectReceiver.ObjectQuery(key, System.nanoTime() + patience);
        BodyWriter body = body(remoteSession, namespace, key, timeoutNanos);
        if (timeoutNanos == 0 && remoteSession.sharedStore() == null) {
            return ObjectReceiver.get(remoteCacheContext, remoteSession, objectQuery, body);
        }
        if (timeoutNanos == 0) {
            return openView(
                    remoteSession, objectQuery, ObjectLookup.ask(remoteSession, objectQuery.untilNanos(), body));
        }
        ObjectReceiver.FoundObject foundObject = ControlConnection.await(
                requestObject(remoteSession, body, patience), patience, late -> remoteSession.release(late.lease()));
        return openView(remoteSession, objectQuery, foundObject);
    }

    /// What was found: in place, or brought here.
    private @Nullable ObjectView openView(
            RemoteSession remoteSession, ObjectReceiver.ObjectQuery objectQuery, ObjectReceiver.FoundObject foundObject)
            throws RpcException {
        if (foundObject.lease() == 0) {
            return null;
        }
        ObjectView inPlace = LeasedObjectView.MappedObjectView.of(remoteCacheContext, remoteSession, foundObject);
        return inPlace == null
                ? ObjectReceiver.read(remoteCacheContext, remoteSession, objectQuery, foundObject)
                : inPlace;
    }

    CompletionStage<@Nullable ObjectView> fetchObject(
            Namespace namespace, byte[] key, long timeoutNanos, Executor executor) {
        CompletableFuture<LocatedObject> asked =
                rpcClient.callOrDefault(CompletableFuture.completedFuture(LocatedObject.NOT_FOUND), remoteSession -> {
                    BodyWriter body = body(remoteSession, namespace, key, Math.max(1, timeoutNanos));
                    remoteSession.users().add();
                    return withTimeout(
                                    remoteSession,
                                    body,
                                    remoteCacheContext.options().totalTimeoutNanos(timeoutNanos))
                            .handle((foundObject, failed) -> new LocatedObject(
                                    remoteSession,
                                    failed == null ? foundObject : ObjectReceiver.FoundObject.NOT_FOUND));
                });
        return asked.thenCompose(locatedObject -> CompletableFuture.completedFuture(locatedObject)
                .thenApplyAsync(found -> read(found, key), executor)
                .whenComplete((view, failed) -> locatedObject.leave(failed)));
    }

    /// A server that never answers keeps nobody waiting; what it finds later is given back.
    private static CompletableFuture<ObjectReceiver.FoundObject> withTimeout(
            RemoteSession remoteSession, BodyWriter body, long patienceNanos) {
        CompletableFuture<ObjectReceiver.FoundObject> answer = requestObject(remoteSession, body, patienceNanos);
        return answer.copy().orTimeout(patienceNanos, TimeUnit.NANOSECONDS).whenComplete((foundObject, failed) -> {
            if (failed instanceof TimeoutException) {
                var _ = answer.thenAccept(late -> remoteSession.release(late.lease()));
            }
        });
    }

    /// An object that was found, and in which session.
    private record LocatedObject(@Nullable RemoteSession remoteSession, ObjectReceiver.FoundObject foundObject) {

        static final LocatedObject NOT_FOUND = new LocatedObject(null, ObjectReceiver.FoundObject.NOT_FOUND);

        /// Nobody uses it any more.
        ///
        /// @param failed why nobody has, or null
        void leave(@Nullable Throwable failed) {
            if (remoteSession != null) {
                if (failed != null) {
                    remoteSession.release(foundObject.lease());
                }
                remoteSession.users().leave();
            }
        }
    }

    private @Nullable ObjectView read(LocatedObject locatedObject, byte[] key) {
        RemoteSession remoteSession = locatedObject.remoteSession;
        if (remoteSession == null || locatedObject.foundObject.lease() == 0) {
            return null;
        }
        long until = System.nanoTime() + remoteCacheContext.options().requestTimeoutNanos();
        ObjectReceiver.ObjectQuery objectQuery = new ObjectReceiver.ObjectQuery(key, until);
        Optional<ObjectView> view = rpcClient.callOrDefault(
                Optional.empty(),
                current -> Optional.ofNullable(openView(remoteSession, objectQuery, locatedObject.foundObject)));
        return view.orElse(null);
    }

    private static BodyWriter body(RemoteSession remoteSession, Namespace namespace, byte[] key, long timeoutNanos)
            throws RpcException {
        BodyWriter body = new BodyWriter(64 + key.length);
        body.i32(remoteSession.namespaceNumber(namespace)).i32(key.length);
        boolean places = remoteSession.sharedStore() != null;
        return body.u8(timeoutNanos == 0 && !places ? 1 : 0)
                .u8(places ? 1 : 0)
                .u16(0)
                .i32(0)
                .i64(timeoutNanos)
                .bytes(key);
    }

    private static CompletableFuture<ObjectReceiver.FoundObject> requestObject(
            RemoteSession remoteSession, BodyWriter body, long patienceNanos) {
        return remoteSession
                .control()
                .call(new ControlConnection.CallRequest<>(
                        MessageType.GET_OBJECT, body, ObjectReceiver.FoundObject::read, patienceNanos));
    }

    /// Asks for a resident object and where it lies, without its bytes.
    static final class ObjectLookup implements DataConnection.ReplyHandler {

        private ObjectReceiver.FoundObject foundObject = ObjectReceiver.FoundObject.NOT_FOUND;
        private boolean replied;

        private ObjectLookup() {}

        /// @param untilNanos when nobody waits any longer
        /// @param body of GET_OBJECT
        static ObjectReceiver.FoundObject ask(RemoteSession remoteSession, long untilNanos, BodyWriter body)
                throws RpcException {
            ObjectLookup lookup = new ObjectLookup();
            remoteSession
                    .data()
                    .withConnection(
                            untilNanos, (line, patience) -> line.call(MessageType.GET_OBJECT, body, patience, lookup));
            return lookup.foundObject;
        }

        @Override
        public void onReply(BodyReader body) throws ProtocolException {
            foundObject = ObjectReceiver.FoundObject.read(body);
            replied = true;
        }

        @Override
        public boolean isComplete() {
            return replied;
        }
    }
}
