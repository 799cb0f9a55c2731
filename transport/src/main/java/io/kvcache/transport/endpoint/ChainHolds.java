package io.kvcache.transport.endpoint;

import io.kvcache.core.identity.BlockChain;
import java.util.IdentityHashMap;

/// What requests that wait keep of the chains of one connection, which may tell its slots anew
/// meanwhile. A chain counts once, however many wait with it.
///
/// **Threads.** Any. Its lock comes before that of the share.
final class ChainHolds {

    private final HeapShare shared;
    private final IdentityHashMap<BlockChain, Integer> waiting = new IdentityHashMap<>();

    /// @param shared by all connections
    ChainHolds(HeapShare shared) {
        this.shared = shared;
    }

    /// For one request.
    Service.Hold of(ChainSlots.Told told) {
        return new Service.Hold() {

            @Override
            public boolean begin() {
                return ChainHolds.this.begin(told);
            }

            @Override
            public void end() {
                ChainHolds.this.end(told);
            }
        };
    }

    private synchronized boolean begin(ChainSlots.Told told) {
        int others = waiting.getOrDefault(told.whole(), 0);
        boolean kept = others > 0 || shared.take(told.bytes());
        if (kept) {
            waiting.put(told.whole(), others + 1);
        }
        return kept;
    }

    private synchronized void end(ChainSlots.Told told) {
        int left = waiting.getOrDefault(told.whole(), 0) - 1;
        if (left > 0) {
            waiting.put(told.whole(), left);
        } else {
            waiting.remove(told.whole());
            shared.give(told.bytes());
        }
    }
}
