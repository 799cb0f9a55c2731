package io.kvcache.server.keyspace;

import io.kvcache.core.identity.Namespace;
import org.jspecify.annotations.Nullable;

/// Keeps a keyspace within its quota and the server within its bounds: what is over it pushes out the keyspace's own
/// values, never another's.
///
/// **Threads.** Any.
final class Allowance {

    /// Values that one put evicts at the most: some tens of milliseconds. A large value in place of very many small
    /// ones is refused until enough of them have gone.
    private static final int EVICT_AT_ONCE = 10_000;

    private final Quota quota;
    private final Bounds bounds;
    private final KeyIndex index;
    private final Removal removal;
    private final Strangers strangers;

    Allowance(Quota quota, Bounds bounds, KeyIndex index, Removal removal, Strangers strangers) {
        this.bounds = bounds;
        this.strangers = strangers;
        this.quota = quota;
        this.index = index;
        this.removal = removal;
    }

    /// What a value takes while it is written; null when it may not be.
    Writings.@Nullable Claim claim(Writings.Writing writing, Key key, long bytes) {
        if (!bounds.begin(bytes)) {
            return null;
        }
        Quota.Share share = share(key, bytes);
        if (share == null) {
            bounds.end(bytes);
            return null;
        }
        return new Writings.Claim(writing, share, () -> bounds.end(bytes));
    }

    /// Room for a value, made by evicting what was not used for longest; null when it cannot be made.
    private Quota.@Nullable Share share(Key key, long bytes) {
        if (!quota.fits(key, bytes)) {
            return null;
        }
        Quota.Share share = quota.take(key, bytes);
        for (int i = 0; share == null && i < EVICT_AT_ONCE; i++) {
            if (!evictOne(key)) {
                return null; // The rest is being written.
            }
            share = quota.take(key, bytes);
        }
        return share;
    }

    private boolean evictOne(Key by) {
        if (strangers.evictOne()) {
            quota.countEvicted();
            return true;
        }
        KeyEntry oldest = quota.oldest();
        if (oldest == null) {
            return false;
        }
        if (removal.evict(oldest, by)) {
            quota.countEvicted();
        } else {
            quota.use(oldest); // It is replaced soon: others go before it.
        }
        return true;
    }

    KeyspaceStats.Usage usage() {
        return new KeyspaceStats.Usage(quota.usedBytes(), quota.limitBytes(), quota.evictedCount());
    }

    /// A value is used.
    void used(Key key, Namespace namespace) {
        KeyEntry entry = quota.limited() ? index.find(key.digest(namespace)) : null;
        if (entry != null) {
            quota.use(entry);
        }
    }
}
