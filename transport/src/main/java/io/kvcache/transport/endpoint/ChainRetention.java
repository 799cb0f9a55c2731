package io.kvcache.transport.endpoint;

import io.kvcache.core.identity.BlockChain;
import java.util.IdentityHashMap;

/// What requests that wait keep of the chains of one connection, which may tell its slots anew
/// meanwhile. A chain counts once, however many wait with it.
///
/// **Threads.** Any. Its lock comes before that of the share.
final class ChainRetention {

    private final HeapBudget budget;
    private final IdentityHashMap<BlockChain, Integer> waiting = new IdentityHashMap<>();

    /// @param shared by all connections
    ChainRetention(HeapBudget shared) {
        this.budget = shared;
    }

    /// For one request.
    EndpointContext.HeapReservation retain(ChainCache.ResolvedChain resolvedChain) {
        return new EndpointContext.HeapReservation() {

            @Override
            public boolean begin() {
                return ChainRetention.this.addWaiter(resolvedChain);
            }

            @Override
            public void end() {
                ChainRetention.this.removeWaiter(resolvedChain);
            }
        };
    }

    private synchronized boolean addWaiter(ChainCache.ResolvedChain resolvedChain) {
        int others = waiting.getOrDefault(resolvedChain.cachedChain(), 0);
        boolean kept = others > 0 || budget.reserve(resolvedChain.bytes());
        if (kept) {
            waiting.put(resolvedChain.cachedChain(), others + 1);
        }
        return kept;
    }

    private synchronized void removeWaiter(ChainCache.ResolvedChain resolvedChain) {
        int left = waiting.getOrDefault(resolvedChain.cachedChain(), 0) - 1;
        if (left > 0) {
            waiting.put(resolvedChain.cachedChain(), left);
        } else {
            waiting.remove(resolvedChain.cachedChain());
            budget.release(resolvedChain.bytes());
        }
    }
}
