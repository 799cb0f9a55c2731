package io.kvcache.transport.remote;

import io.kvcache.core.Match;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.tree.RecordHandle;
import io.kvcache.transport.shm.CopyResult;
import io.kvcache.transport.shm.SharedStore;
import java.lang.foreign.MemorySegment;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// Answers from the server's memory, without a message. What cannot be answered so is for the caller to
/// ask.
final class MappedReads {

    private static final int INCONCLUSIVE = -1;

    private final RemoteCacheContext remoteCacheContext;

    MappedReads(RemoteCacheContext remoteCacheContext) {
        this.remoteCacheContext = remoteCacheContext;
    }

    /// What of a chain is there, or null when that has to be asked.
    @Nullable
    Match match(BlockChain chain) {
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

    /// Copies leading blocks from block `from` on; -1 when that has to be asked for.
    int copy(BlockChain chain, int from, List<MemorySegment> into) {
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
            CopyResult copyResult = store.copy(chainQuery, from, blockBytes, into);
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
}
