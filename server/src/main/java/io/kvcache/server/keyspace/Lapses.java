package io.kvcache.server.keyspace;

import io.kvcache.core.KvCache;
import io.kvcache.core.ObjectView;
import io.kvcache.core.identity.Namespace;
import java.time.InstantSource;
import org.jspecify.annotations.Nullable;

/// Which values count as gone although the store still has them; they are dropped when that is seen.
///
/// **Threads.** Any.
final class Lapses {

    private final KvCache cache;
    private final Namespace namespace;
    private final KeyIndex index;
    private final Removal removal;
    private final Adoption adoption;
    private final InstantSource wall;
    private final KeyspaceCounters counters;

    Lapses(
            KvCache cache,
            Namespace namespace,
            KeyIndex index,
            Removal removal,
            Adoption adoption,
            InstantSource wall,
            KeyspaceCounters counters) {
        this.cache = cache;
        this.namespace = namespace;
        this.index = index;
        this.removal = removal;
        this.adoption = adoption;
        this.wall = wall;
        this.counters = counters;
    }

    /// Whether the index knows better than the store: the key has expired, or its other half is gone. Drops it then,
    /// and counts why.
    boolean isGone(Key key) {
        byte[] other = Halves.other(key.bytes());
        if (other == null && index.timedCount() == 0) {
            return false;
        }
        KeyEntry entry = index.find(key.digest(namespace));
        if (entry == null) {
            return false;
        }
        long now = wall.millis();
        if (entry.expired(now)) {
            counters.expired.increment();
            removal.expire(entry, now);
            return true;
        }
        if (other != null && entry.paired() && !cache.containsObject(namespace, other)) {
            counters.halved.increment();
            removal.lapse(entry);
            return true;
        }
        return false;
    }

    /// As [#isGone(Key)]; gives the view back when it is.
    boolean isGone(Key key, @Nullable ObjectView view) {
        boolean gone = isGone(key);
        if (gone && view != null) {
            view.close();
        }
        return gone;
    }

    /// Whether a value has expired that was not known to have an end: one from before a restart. From now on it is, so
    /// that who writes the key at this moment finds it absent.
    boolean isGoneUnknown(Key key, Value value) {
        long now = wall.millis();
        if (index.find(key.digest(namespace)) != null || value.expiresAtMillis() > now) {
            return false;
        }
        counters.expired.increment();
        KeyEntry entry = adoption.adopt(key, value);
        if (entry != null) {
            removal.expire(entry, now);
        }
        return true;
    }
}
