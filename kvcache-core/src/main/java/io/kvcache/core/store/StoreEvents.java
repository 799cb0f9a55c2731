package io.kvcache.core.store;

import static io.kvcache.core.policy.RecordView.NONE;

import io.kvcache.core.event.CacheEvent;
import io.kvcache.core.event.EventBatch;
import io.kvcache.core.event.EventKind;
import io.kvcache.core.event.EventStream;
import io.kvcache.core.event.StoreSnapshot;
import io.kvcache.core.event.TierKind;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.store.DiskUsage.DiskUsageTable;
import io.kvcache.core.store.NamespaceRegistry.NamespaceEntry;
import io.kvcache.core.tree.ControlWord;
import io.kvcache.core.tree.RecordFlags;
import io.kvcache.core.tree.RecordPool;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/// Events of records that come and go, counts by namespace and cause, and a snapshot of all records.
///
/// **Threads.** Any for the methods of [EventStream]; the others are owned by the store's lock. A snapshot takes the
/// lock for a bounded number of records at a time and then applies the events that came meanwhile, so it is exact and
/// no caller waits for it long.
public final class StoreEvents implements EventStream {

    private static final int SCAN_BATCH = 4096;
    private static final int MAX_SNAPSHOT_ATTEMPTS = 4;

    private final RecordPool pool;
    private final NamespaceRegistry namespaceRegistry;
    private final DiskUsageTable disks;
    private final EventLog events;
    private final ReentrantLock lock;
    private @Nullable EventLog logWithoutPuts;
    /// By [EventKind].
    private final long[] removed = new long[EventKind.values().length];

    StoreEvents(
            RecordPool pool,
            NamespaceRegistry namespaceRegistry,
            DiskUsageTable disks,
            EventLog events,
            ReentrantLock lock) {
        this.pool = pool;
        this.namespaceRegistry = namespaceRegistry;
        this.disks = disks;
        this.events = events;
        this.lock = lock;
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
    @SuppressWarnings("EnumOrdinal") // counters of this process alone
    void onRemoved(int record, EventKind cause, TierKind tier) {
        if (tier == TierKind.HOST) {
            removed[cause.ordinal()]++;
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

    /// Returns the log for [#withoutObjectPuts], which is kept from its first call on.
    private EventLog eventsWithoutPuts() {
        EventLog others = logWithoutPuts;
        if (others == null) {
            others = new EventLog(events.capacity());
            logWithoutPuts = others;
        }
        return others;
    }

    /// Returns an event on a record.
    private CacheEvent describe(int record, EventKind kind, TierKind tier) {
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
    @SuppressWarnings("EnumOrdinal") // counters of this process alone
    long hostRemovals(EventKind cause) {
        return removed[cause.ordinal()];
    }

    private NamespaceEntry entryOf(int record) {
        return namespaceRegistry.byId(RecordFlags.namespaceId(pool.flags(record)));
    }

    @Override
    public long nextSequence() {
        lock.lock();
        try {
            return events.nextSequence();
        } finally {
            lock.unlock();
        }
    }

    @Override
    public EventBatch since(long sequence, int max) {
        lock.lock();
        try {
            return events.since(sequence, max);
        } finally {
            lock.unlock();
        }
    }

    @Override
    public EventStream withoutObjectPuts() {
        lock.lock();
        try {
            return new FilteredEventStream(eventsWithoutPuts(), this, lock);
        } finally {
            lock.unlock();
        }
    }

    @Override
    public StoreSnapshot snapshot() {
        for (int attempt = 1; attempt < MAX_SNAPSHOT_ATTEMPTS; attempt++) {
            Map<Stored, CacheEvent> stored = new LinkedHashMap<>();
            long start = nextSequence();
            for (int from = 0; from < pool.capacity() && collect(from, stored); from += SCAN_BATCH) {}
            EventBatch meanwhile = since(start, 1 << 16);
            boolean complete = !meanwhile.hasGap() && meanwhile.events().size() < 1 << 16;
            if (complete) {
                meanwhile.events().forEach(event -> apply(event, stored));
                return snapshot(meanwhile.nextSequence(), stored);
            }
        }
        return snapshotUnderLock();
    }

    private StoreSnapshot snapshotUnderLock() {
        lock.lock();
        try {
            Map<Stored, CacheEvent> stored = new LinkedHashMap<>();
            for (int from = 0; from < pool.capacity() && collect(from, stored); from += SCAN_BATCH) {}
            return snapshot(events.nextSequence(), stored);
        } finally {
            lock.unlock();
        }
    }

    /// A key in a tier.
    private record Stored(long keyHi, long keyLo, TierKind tier) {}

    /// Adds the sealed records of one run of numbers; answers whether there may be more.
    private boolean collect(int from, Map<Stored, CacheEvent> stored) {
        lock.lock();
        try {
            int to = Math.min(pool.highWaterMark(), from + SCAN_BATCH);
            for (int record = from; record < to; record++) {
                int state = ControlWord.state(pool.control(record));
                if (state == ControlWord.SEALED) {
                    apply(describe(record, EventKind.STORED, TierKind.HOST), stored);
                }
                if (ControlWord.isKnown(state) && disks.isOnDisk(pool.diskAddress(record))) {
                    apply(describe(record, EventKind.STORED, TierKind.DISK), stored);
                }
                if (ControlWord.isKnown(state) && RecordFlags.has(pool.flags(record), RecordFlags.ON_DEVICE)) {
                    apply(describe(record, EventKind.STORED, TierKind.DEVICE), stored);
                }
            }
            return to < pool.highWaterMark();
        } finally {
            lock.unlock();
        }
    }

    private static void apply(CacheEvent event, Map<Stored, CacheEvent> stored) {
        Stored key = new Stored(event.keyHi(), event.keyLo(), event.tier());
        if (event.kind().isAddition()) {
            stored.put(key, event);
        } else {
            stored.remove(key);
        }
    }

    private StoreSnapshot snapshot(long nextSequence, Map<Stored, CacheEvent> stored) {
        List<CacheEvent> parentsFirst = new ArrayList<>(stored.values());
        parentsFirst.sort(Comparator.comparingInt(CacheEvent::depth));
        Map<Integer, Namespace> names = new HashMap<>();
        namespaceRegistry.all().forEach(entry -> names.put(entry.id(), entry.namespace()));
        return new StoreSnapshot(nextSequence, parentsFirst, names);
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

        /// Returns a snapshot that may be newer than its sequence number.
        @Override
        public StoreSnapshot snapshot() {
            long next = nextSequence();
            StoreSnapshot now = all.snapshot();
            return new StoreSnapshot(next, now.stored(), now.namespaces());
        }
    }

    /// The last events in a ring of longs, so that recording one allocates nothing.
    ///
    /// **Threads.** Owned by the store's lock.
    public static final class EventLog {

        /// Seven longs an event; 65,536 events are 4 MiB and some seconds of a busy store.
        public static final int DEFAULT_CAPACITY = 1 << 16;

        private static final int FIELDS = 7;
        private static final EventKind[] KINDS = EventKind.values();
        private static final TierKind[] TIERS = TierKind.values();

        private final long[] ring;
        /// As numbers: storing a reference for each event would have the collector look at it.
        private final byte[] kinds;

        private final byte[] tiers;
        private final int mask;
        private long next;

        /// @param capacity events kept; a power of two
        public EventLog(int capacity) {
            if (capacity < 2 || Integer.bitCount(capacity) != 1 || capacity > 1 << 24) {
                throw new IllegalArgumentException(
                        "event capacity is " + capacity + "; it takes a power of two from 2 to " + (1 << 24));
            }
            ring = new long[capacity * FIELDS];
            kinds = new byte[capacity];
            tiers = new byte[capacity];
            mask = capacity - 1;
        }

        /// Records an event and gives it the next sequence number; the number in `event` is not looked at.
        @SuppressWarnings("EnumOrdinal") // these numbers never leave the log
        public void record(CacheEvent event) {
            int at = (int) (next & mask) * FIELDS;
            ring[at] = event.keyHi();
            ring[at + 1] = event.keyLo();
            ring[at + 2] = event.parentHi();
            ring[at + 3] = event.parentLo();
            ring[at + 4] = event.engineHash();
            ring[at + 5] = (long) event.depth() << 32 | event.namespaceId();
            ring[at + 6] = event.parentEngineHash();
            kinds[(int) (next & mask)] = (byte) event.kind().ordinal();
            tiers[(int) (next & mask)] = (byte) event.tier().ordinal();
            next++;
        }

        /// Events kept.
        public int capacity() {
            return mask + 1;
        }

        public long nextSequence() {
            return next;
        }

        /// Events from `sequence` on, at most `max`.
        public EventBatch since(long sequence, int max) {
            if (max < 1 || max > 1 << 16) {
                throw new IllegalArgumentException("max is " + max + "; it takes 1 to " + (1 << 16));
            }
            long oldest = Math.max(0, next - mask - 1);
            long from = Math.clamp(sequence, oldest, next);
            long to = Math.min(next, from + max);
            List<CacheEvent> events = new ArrayList<>((int) (to - from));
            for (long at = from; at < to; at++) {
                events.add(read(at));
            }
            return new EventBatch(events, sequence < oldest, to);
        }

        private CacheEvent read(long sequence) {
            int at = (int) (sequence & mask) * FIELDS;
            long packed = ring[at + 5];
            return new CacheEvent(
                    sequence,
                    KINDS[kinds[(int) (sequence & mask)]],
                    TIERS[tiers[(int) (sequence & mask)]],
                    (int) packed,
                    ring[at],
                    ring[at + 1],
                    ring[at + 2],
                    ring[at + 3],
                    (int) (packed >>> 32),
                    ring[at + 4],
                    ring[at + 6]);
        }
    }
}
