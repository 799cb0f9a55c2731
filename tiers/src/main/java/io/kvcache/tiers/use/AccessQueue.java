package io.kvcache.tiers.use;

import io.kvcache.core.AccessListener;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;

/// Uses on their way from requests to the thread that evaluates them. Takes no lock; what finds no room is
/// counted and gone.
///
/// **Threads.** Any may offer, one takes.
public final class AccessQueue {

    private final int maxKeys;
    private final ConcurrentLinkedQueue<Access> queue = new ConcurrentLinkedQueue<>();
    private final AtomicInteger keys = new AtomicInteger();
    private final LongAdder dropped = new LongAdder();

    /// @param maxKeys that may wait
    public AccessQueue(int maxKeys) {
        this.maxKeys = maxKeys;
    }

    /// Takes a use, or counts it as dropped.
    public void offer(Access access) {
        int more = access.keyCount();
        if (keys.addAndGet(more) > maxKeys) {
            keys.addAndGet(-more);
            dropped.increment();
            return;
        }
        queue.add(access);
    }

    /// The next one, or null.
    @Nullable
    public Access poll() {
        Access access = queue.poll();
        if (access != null) {
            keys.addAndGet(-access.keyCount());
        }
        return access;
    }

    /// Uses that found no room.
    public long dropped() {
        return dropped.sum();
    }

    /// One use of a store, as [AccessListener] receives it.
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
}
