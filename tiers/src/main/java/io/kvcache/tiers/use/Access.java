package io.kvcache.tiers.use;

import io.kvcache.core.AccessListener;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import org.jspecify.annotations.Nullable;

/// One use of a store, as [AccessListener] is told of it.
public sealed interface Access {

    /// When, by the store's clock.
    long atNanos();

    /// How many keys it takes up.
    int keyCount();

    /// As [AccessListener#onAccess(BlockChain, int, int, int)].
    record ChainLookup(long atNanos, BlockChain chain, int from, int found, int blockBytes) implements Access {
        @Override
        public int keyCount() {
            return 1 + chain.length();
        }
    }

    /// As [AccessListener#onAccess(AccessListener.LookupKind, Namespace, BlockKey, long)].
    record KeyLookup(long atNanos, AccessListener.LookupKind kind, Namespace namespace, BlockKey key, long bytes)
            implements Access {
        @Override
        public int keyCount() {
            return 1;
        }
    }

    /// As [AccessListener#onPut].
    record Put(
            long atNanos,
            Namespace namespace,
            BlockKey key,
            @Nullable BlockKey after,
            long bytes,
            boolean replaces) implements Access {
        @Override
        public int keyCount() {
            return 1;
        }
    }
}
