package io.kvcache.server.keyspace;

import io.kvcache.core.Clock;
import io.kvcache.core.identity.Namespace;
import io.kvcache.server.quota.Quota;
import io.kvcache.server.quota.Stock;
import org.jspecify.annotations.Nullable;

/// Keeps a keyspace within its quota and the server within its bounds: what is over it pushes out the keyspace's own
/// values and blocks, never another's.
///
/// **Threads.** Any.
final class Allowance implements Stock {

    /// Values that one put evicts at the most: some tens of milliseconds. A large value in place of very many small
    /// ones is refused until enough of them have gone.
    private static final int EVICT_AT_ONCE = 10_000;

    /// Values that are spared and that one eviction passes over: a tenant may have no others.
    private static final int SPARED_AT_ONCE = 1000;

    private final Quota quota;
    private final Holdings holdings;
    private final Bounds bounds;
    private final KeyIndex index;
    private final Removal removal;
    private final Strangers strangers;
    private final Clock clock;

    Allowance(
            Quota quota,
            Holdings holdings,
            Bounds bounds,
            KeyIndex index,
            Removal removal,
            Strangers strangers,
            Clock clock) {
        this.quota = quota;
        this.holdings = holdings;
        this.bounds = bounds;
        this.index = index;
        this.removal = removal;
        this.strangers = strangers;
        this.clock = clock;
        quota.add(this);
    }

    /// What a value takes while it is written; null when it may not be.
    Writings.@Nullable Claim claim(Writings writings, Key key, long bytes) {
        if (!bounds.arriving().begin(bytes)) {
            return null;
        }
        Quota.Share share = share(key, bytes);
        if (share == null) {
            bounds.arriving().end(bytes);
            return null;
        }
        return writings.new Claim(key, share, () -> bounds.arriving().end(bytes));
    }

    /// Room for a value, made by evicting what the tenant did not use for longest; null when it cannot be made.
    private Quota.@Nullable Share share(Key key, long valueBytes) {
        long bytes = Holdings.bytes(key, valueBytes);
        if (!quota.fits(bytes)) {
            return null;
        }
        Quota.Share share = quota.take(bytes);
        for (int i = 0; share == null && i < EVICT_AT_ONCE; i++) {
            if (!evictStalest(key)) {
                return null; // The rest is being written.
            }
            share = quota.take(bytes);
        }
        return share;
    }

    @SuppressWarnings("ReferenceEquality") // this very one
    private boolean evictStalest(Key by) {
        Stock stalest = quota.stalest();
        if (stalest == this) {
            return evictOne(by);
        }
        return stalest != null && stalest.evictOldest();
    }

    @Override
    public long oldestUse() {
        return holdings.oldestUse();
    }

    @Override
    public boolean evictOldest() {
        return evictOne(null);
    }

    private boolean evictOne(@Nullable Key by) {
        if (strangers.evictOne()) {
            holdings.countEvicted();
            return true;
        }
        KeyEntry oldest = oldest();
        if (oldest == null) {
            return false;
        }
        if (removal.evict(oldest, by)) {
            holdings.countEvicted();
        } else {
            holdings.use(oldest); // It is replaced soon: others go before it.
        }
        return true;
    }

    /// What goes next: what is spared goes behind all others first.
    private @Nullable KeyEntry oldest() {
        long now = clock.nanos();
        KeyEntry oldest = holdings.oldest();
        for (int i = 0; i < SPARED_AT_ONCE && oldest != null && oldest.isSpared(now); i++) {
            holdings.use(oldest);
            oldest = holdings.oldest();
        }
        return oldest;
    }

    KeyspaceStats.Usage usage() {
        return new KeyspaceStats.Usage(quota.usedBytes(), quota.limitBytes(), holdings.evictedCount());
    }

    /// A value is used.
    void used(Key key, Namespace namespace) {
        KeyEntry entry = quota.limited() ? index.find(key.digest(namespace)) : null;
        if (entry != null) {
            holdings.use(entry);
        }
    }
}
