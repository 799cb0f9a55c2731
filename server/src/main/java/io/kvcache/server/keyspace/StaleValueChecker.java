package io.kvcache.server.keyspace;

import io.kvcache.core.ObjectView;
import org.jspecify.annotations.Nullable;

/// Which values count as gone although the store still has them; they are dropped when that is seen.
///
/// **Threads.** Any.
final class StaleValueChecker {

    private final KeyspaceContext keyspaceContext;
    private final KeyRemover keyRemover;
    private final IndexBackfill indexBackfill;

    StaleValueChecker(KeyspaceContext keyspaceContext, KeyRemover keyRemover, IndexBackfill indexBackfill) {
        this.keyspaceContext = keyspaceContext;
        this.keyRemover = keyRemover;
        this.indexBackfill = indexBackfill;
    }

    /// Whether the index knows better than the store: the key has expired, or its other half is gone. Drops it then,
    /// and counts why.
    boolean isStale(Key key) {
        byte[] other = LmcacheKeyPair.otherKey(key.bytes());
        if (other == null && keyspaceContext.index().expiringCount() == 0) {
            return false;
        }
        KeyEntry entry = keyspaceContext.index().find(keyspaceContext.digestOf(key));
        if (entry == null) {
            return false;
        }
        long now = keyspaceContext.wallClock().millis();
        if (entry.isExpired(now)) {
            keyspaceContext.counters().expired.increment();
            keyRemover.expire(entry, now);
            return true;
        }
        if (other != null && entry.isPaired() && !keyspaceContext.isStored(new Key(other))) {
            keyspaceContext.counters().otherHalfMissing.increment();
            keyRemover.removeStale(entry);
            return true;
        }
        return false;
    }

    /// As [#isStale(Key)]; gives the view back when it is.
    boolean isStale(Key key, @Nullable ObjectView view) {
        boolean gone = isStale(key);
        if (gone && view != null) {
            view.close();
        }
        return gone;
    }

    /// Whether a value has expired that was not known to have an end: one from before a restart. From now on it is, so
    /// that who writes the key at this moment finds it absent.
    boolean isExpiredUnindexed(Key key, PinnedValue value) {
        long now = keyspaceContext.wallClock().millis();
        if (keyspaceContext.index().find(keyspaceContext.digestOf(key)) != null || value.expiresAtMillis() > now) {
            return false;
        }
        keyspaceContext.counters().expired.increment();
        KeyEntry entry = indexBackfill.backfill(key, value);
        if (entry != null) {
            keyRemover.expire(entry, now);
        }
        return true;
    }
}
