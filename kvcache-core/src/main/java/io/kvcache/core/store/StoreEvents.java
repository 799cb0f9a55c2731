package io.kvcache.core.store;

import static io.kvcache.core.policy.RecordView.NONE;

import io.kvcache.core.event.CacheEvent;
import io.kvcache.core.event.EventBatch;
import io.kvcache.core.event.EventKind;
import io.kvcache.core.event.EventLog;
import io.kvcache.core.event.EventStream;
import io.kvcache.core.event.StoreSnapshot;
import io.kvcache.core.event.TierKind;
import io.kvcache.core.tree.RecordPool;
import java.util.EnumMap;
import java.util.Objects;
import java.util.concurrent.locks.ReentrantLock;
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

    /// The events but for objects that are put, out of a log of their own: half a million puts a second
    /// would run over one between two looks at it, and then the little that went would have to be
    /// looked for among all that is stored.
    ///
    /// **Threads.** Any.
    static final class FilteredEventStream implements EventStream {

        private final EventLog log;
        private final EventStream all;
        private final ReentrantLock lock;

        /// @param log under the lock
        /// @param all asked for snapshots
        FilteredEventStream(EventLog log, EventStream all, ReentrantLock lock) {
            this.log = log;
            this.all = all;
            this.lock = lock;
        }

        @Override
        public long nextSequence() {
            lock.lock();
            try {
                return log.nextSequence();
            } finally {
                lock.unlock();
            }
        }

        @Override
        public EventBatch since(long sequence, int max) {
            lock.lock();
            try {
                return log.since(sequence, max);
            } finally {
                lock.unlock();
            }
        }

        /// Of some time after its number was taken.
        @Override
        public StoreSnapshot snapshot() {
            long next = nextSequence();
            StoreSnapshot now = all.snapshot();
            return new StoreSnapshot(next, now.stored(), now.namespaces());
        }
    }

    /// One counter for each constant of an enum. Owned by the store's lock.
    static final class EnumCounters<E extends Enum<E>> {

        private final EnumMap<E, long[]> counts;

        EnumCounters(Class<E> kinds) {
            counts = new EnumMap<>(kinds);
            for (E each : kinds.getEnumConstants()) {
                counts.put(each, new long[1]);
            }
        }

        void add(E kind) {
            count(kind)[0]++;
        }

        long total(E kind) {
            return count(kind)[0];
        }

        private long[] count(E kind) {
            return Objects.requireNonNull(counts.get(kind));
        }
    }
}
