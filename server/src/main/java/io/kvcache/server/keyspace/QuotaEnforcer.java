package io.kvcache.server.keyspace;

import io.kvcache.core.identity.Namespace;
import io.kvcache.core.time.Clock;
import io.kvcache.server.quota.EvictableStock;
import io.kvcache.server.quota.Quota;
import org.jspecify.annotations.Nullable;

/// Keeps a keyspace within its quota and the server within its bounds: what is over it pushes out the keyspace's own
/// values and blocks, never another's.
///
/// **Threads.** Any.
final class QuotaEnforcer implements EvictableStock {

    /// Values that one put evicts at the most: some tens of milliseconds. A large value in place of very many small
    /// ones is refused until enough of them have gone.
    private static final int MAX_EVICTIONS_PER_PUT = 10_000;

    /// Values that are spared and that one eviction passes over: a tenant may have no others.
    private static final int MAX_PROTECTED_SKIPS = 1000;

    private final Quota quota;
    private final QuotaLru quotaLru;
    private final KeyspaceLimits keyspaceLimits;
    private final KeyIndex index;
    private final KeyRemover keyRemover;
    private final UnindexedKeys unindexedKeys;
    private final Clock clock;

    QuotaEnforcer(
            Quota quota,
            QuotaLru quotaLru,
            KeyspaceLimits keyspaceLimits,
            KeyIndex index,
            KeyRemover keyRemover,
            UnindexedKeys unindexedKeys,
            Clock clock) {
        this.quota = quota;
        this.quotaLru = quotaLru;
        this.keyspaceLimits = keyspaceLimits;
        this.index = index;
        this.keyRemover = keyRemover;
        this.unindexedKeys = unindexedKeys;
        this.clock = clock;
        quota.register(this);
    }

    /// What a value takes while it is written; null when it may not be.
    InFlightWrites.@Nullable WriteReservation reserve(InFlightWrites inFlightWrites, Key key, long bytes) {
        if (!keyspaceLimits.incoming().tryAcquire(bytes)) {
            return null;
        }
        Quota.QuotaReservation quotaReservation = reserveQuota(key, bytes);
        if (quotaReservation == null) {
            keyspaceLimits.incoming().release(bytes);
            return null;
        }
        return inFlightWrites
        .new WriteReservation(
                key, quotaReservation, () -> keyspaceLimits.incoming().release(bytes));
    }

    /// Room for a value, made by evicting what the tenant did not use for longest; null when it cannot be made.
    private Quota.@Nullable QuotaReservation reserveQuota(Key key, long valueBytes) {
        long bytes = QuotaLru.chargedBytes(key, valueBytes);
        if (!quota.canFit(bytes)) {
            return null;
        }
        Quota.QuotaReservation quotaReservation = quota.reserve(bytes);
        for (int i = 0; quotaReservation == null && i < MAX_EVICTIONS_PER_PUT; i++) {
            if (!evictLeastRecentlyUsed(key)) {
                return null; // The rest is being written.
            }
            quotaReservation = quota.reserve(bytes);
        }
        return quotaReservation;
    }

    @SuppressWarnings("ReferenceEquality") // this very one
    private boolean evictLeastRecentlyUsed(Key by) {
        EvictableStock stalest = quota.leastRecentlyUsed();
        if (stalest == this) {
            return evictOne(by);
        }
        return stalest != null && stalest.evictOldest();
    }

    @Override
    public long oldestUse() {
        return quotaLru.oldestUse();
    }

    @Override
    public boolean evictOldest() {
        return evictOne(null);
    }

    private boolean evictOne(@Nullable Key by) {
        if (unindexedKeys.evictOne()) {
            quotaLru.countEvicted();
            return true;
        }
        KeyEntry oldest = nextVictim();
        if (oldest == null) {
            return false;
        }
        if (keyRemover.evict(oldest, by)) {
            quotaLru.countEvicted();
        } else {
            quotaLru.touch(oldest); // It is replaced soon: others go before it.
        }
        return true;
    }

    /// What goes next: what is spared goes behind all others first.
    private @Nullable KeyEntry nextVictim() {
        long now = clock.nanos();
        KeyEntry oldest = quotaLru.oldest();
        for (int i = 0; i < MAX_PROTECTED_SKIPS && oldest != null && oldest.isProtected(now); i++) {
            quotaLru.touch(oldest);
            oldest = quotaLru.oldest();
        }
        return oldest;
    }

    KeyspaceStats.Usage usage() {
        return new KeyspaceStats.Usage(quota.usedBytes(), quota.limitBytes(), quotaLru.evictedCount());
    }

    /// A value is used.
    void recordUse(Key key, Namespace namespace) {
        KeyEntry entry = quota.isLimited() ? index.find(key.digest(namespace)) : null;
        if (entry != null) {
            quotaLru.touch(entry);
        }
    }
}
