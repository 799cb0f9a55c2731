package io.kvcache.server.keyspace;

import io.kvcache.core.ObjectView;
import org.jspecify.annotations.Nullable;

/// Which values count as gone although the store still has them; they are dropped when that is seen.
///
/// **Threads.** Any.
final class Lapses {

    private final Ground ground;
    private final Removal removal;
    private final Adoption adoption;

    Lapses(Ground ground, Removal removal, Adoption adoption) {
        this.ground = ground;
        this.removal = removal;
        this.adoption = adoption;
    }

    /// Whether the index knows better than the store: the key has expired, or its other half is gone. Drops it then,
    /// and counts why.
    boolean isGone(Key key) {
        byte[] other = Halves.other(key.bytes());
        if (other == null && ground.index().timedCount() == 0) {
            return false;
        }
        KeyEntry entry = ground.index().find(ground.hash(key));
        if (entry == null) {
            return false;
        }
        long now = ground.wall().millis();
        if (entry.expired(now)) {
            ground.counters().expired.increment();
            removal.expire(entry, now);
            return true;
        }
        if (other != null && entry.paired() && !ground.stores(new Key(other))) {
            ground.counters().halved.increment();
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
        long now = ground.wall().millis();
        if (ground.index().find(ground.hash(key)) != null || value.expiresAtMillis() > now) {
            return false;
        }
        ground.counters().expired.increment();
        KeyEntry entry = adoption.adopt(key, value);
        if (entry != null) {
            removal.expire(entry, now);
        }
        return true;
    }
}
