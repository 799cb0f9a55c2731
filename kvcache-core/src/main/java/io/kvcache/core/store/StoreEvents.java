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
final class StoreEvents {

    private final RecordPool pool;
    private final NamespaceRegistry namespaceRegistry;
    private final EventLog events;
    private @Nullable EventLog logWithoutPuts;
    private final EnumCounters<EventKind> removed = new EnumCounters<>(EventKind.class);

    StoreEvents(RecordPool pool, NamespaceRegistry namespaceRegistry, EventLog events) {
        this.pool = pool;
        this.namespaceRegistry = namespaceRegistry;
        this.events = events;
    }

    /// A record became known.
    void onKnown(int record) {
        NamespaceEntry entry = entryOf(record);
        entry.live++;
        entry.liveBytes += pool.bytes(record);
    }

    /// A record that was known is so no longer.
    void onForgotten(int record) {
        NamespaceEntry entry = entryOf(record);
        entry.live--;
        entry.liveBytes -= pool.bytes(record);
    }

    /// A record came to a tier.
    void onStored(int record, TierKind tier) {
        publish(record, EventKind.STORED, tier);
    }

    /// A record left a tier.
    void onRemoved(int record, EventKind cause, TierKind tier) {
        if (tier == TierKind.HOST) {
            removed.add(cause);
        }
        publish(record, cause, tier);
    }

    private void publish(int record, EventKind kind, TierKind tier) {
        CacheEvent event = describe(record, kind, tier);
        events.record(event);
        EventLog others = logWithoutPuts;
        boolean put =
                (kind == EventKind.STORED || kind == EventKind.REPLACED) && RecordFlags.isObject(pool.flags(record));
        if (others != null && !put) {
            others.record(event);
        }
    }

    /// What is kept for [io.kvcache.core.event.EventStream#withoutObjectPuts], from the first time
    /// on that somebody asks.
    EventLog eventsWithoutPuts() {
        EventLog others = logWithoutPuts;
        if (others == null) {
            others = new EventLog(events.capacity());
            logWithoutPuts = others;
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
                RecordFlags.namespaceId(pool.flags(record)),
                pool.keyHi(record),
                pool.keyLo(record),
                parent == NONE ? 0 : pool.keyHi(parent),
                parent == NONE ? 0 : pool.keyLo(parent),
                pool.depth(record),
                pool.engineHash(record),
                parent == NONE ? 0 : pool.engineHash(parent));
    }

    /// How many records left host memory by this cause.
    long hostRemovals(EventKind cause) {
        return removed.total(cause);
    }

    private NamespaceEntry entryOf(int record) {
        return namespaceRegistry.byId(RecordFlags.namespaceId(pool.flags(record)));
    }
}
