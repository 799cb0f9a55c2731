package io.kvcache.core.store;

import static io.kvcache.core.policy.RecordView.NONE;

import io.kvcache.core.event.CacheEvent;
import io.kvcache.core.event.EventKind;
import io.kvcache.core.event.EventLog;
import io.kvcache.core.event.TierKind;
import io.kvcache.core.tree.RecordPool;
import org.jspecify.annotations.Nullable;

/// What is told of records that come and go: events, and counts by namespace and cause.
///
/// **Threads.** Owned by the store's lock.
final class Reports {

    private final RecordPool pool;
    private final Namespaces namespaces;
    private final EventLog events;
    private @Nullable EventLog withoutPuts;
    private final Tally<EventKind> removed = new Tally<>(EventKind.class);

    Reports(RecordPool pool, Namespaces namespaces, EventLog events) {
        this.pool = pool;
        this.namespaces = namespaces;
        this.events = events;
    }

    /// A record became known.
    void entered(int record) {
        NamespaceEntry entry = entryOf(record);
        entry.live++;
        entry.liveBytes += pool.bytes(record);
    }

    /// A record that was known is so no longer.
    void left(int record) {
        NamespaceEntry entry = entryOf(record);
        entry.live--;
        entry.liveBytes -= pool.bytes(record);
    }

    /// A record came to a tier.
    void stored(int record, TierKind tier) {
        tell(record, EventKind.STORED, tier);
    }

    /// A record left a tier.
    void removed(int record, EventKind cause, TierKind tier) {
        if (tier == TierKind.HOST) {
            removed.add(cause);
        }
        tell(record, cause, tier);
    }

    private void tell(int record, EventKind kind, TierKind tier) {
        CacheEvent event = describe(record, kind, tier);
        events.record(event);
        EventLog others = withoutPuts;
        boolean put =
                (kind == EventKind.STORED || kind == EventKind.REPLACED) && Identity.isObject(pool.identity(record));
        if (others != null && !put) {
            others.record(event);
        }
    }

    /// What is kept for [io.kvcache.core.event.EventStream#withoutObjectPuts], from the first time
    /// on that somebody asks.
    EventLog withoutPuts() {
        EventLog others = withoutPuts;
        if (others == null) {
            others = new EventLog(events.capacity());
            withoutPuts = others;
        }
        return others;
    }

    /// What an event says of a record.
    CacheEvent describe(int record, EventKind kind, TierKind tier) {
        int parent = pool.parent(record);
        return new CacheEvent(
                -1,
                kind,
                tier,
                Identity.namespace(pool.identity(record)),
                pool.keyHi(record),
                pool.keyLo(record),
                parent == NONE ? 0 : pool.keyHi(parent),
                parent == NONE ? 0 : pool.keyLo(parent),
                pool.depth(record),
                pool.engineHash(record),
                parent == NONE ? 0 : pool.engineHash(parent));
    }

    /// How many records left host memory by this cause.
    long removedFromHost(EventKind cause) {
        return removed.of(cause);
    }

    private NamespaceEntry entryOf(int record) {
        return namespaces.byId(Identity.namespace(pool.identity(record)));
    }
}
