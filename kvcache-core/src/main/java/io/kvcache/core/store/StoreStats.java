package io.kvcache.core.store;

import io.kvcache.core.CacheStats;
import io.kvcache.core.event.CacheEvent;
import io.kvcache.core.event.EventBatch;
import io.kvcache.core.event.EventKind;
import io.kvcache.core.event.EventStream;
import io.kvcache.core.event.StoreSnapshot;
import io.kvcache.core.event.TierKind;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.policy.LruFallback;
import io.kvcache.core.policy.RecordView;
import io.kvcache.core.store.PutReserver.PutCounters;
import io.kvcache.core.store.StoreEvents.FilteredEventStream;
import io.kvcache.core.tree.ControlWord;
import io.kvcache.core.tree.RecordLayout;
import io.kvcache.core.tree.RecordPool;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.locks.ReentrantLock;

/// The store as an operator or a router sees it: statistics, events, a snapshot, and a check of everything.
///
/// **Threads.** Any. A snapshot takes the lock for a bounded number of records at a time and then applies the
/// events that came meanwhile, so that it is exact and nobody waits for it.
public final class StoreStats implements EventStream {

    private static final int SCAN_BATCH = 4096;
    private static final int MAX_SNAPSHOT_ATTEMPTS = 4;

    private final StoreComponents parts;
    private final Counters counters;
    private final ReentrantLock lock;

    record Counters(SlotAllocator slotAllocator, PutCounters puts, AccessDrain accessDrain) {}

    StoreStats(StoreComponents parts, Counters counters, ReentrantLock lock) {
        this.parts = parts;
        this.counters = counters;
        this.lock = lock;
    }

    /// Statistics of this moment.
    ///
    /// @param openTables what the caller counts of tables and views
    public CacheStats stats(long openTables) {
        lock.lock();
        try {
            SlabPool slabs = parts.slabs();
            RecordPool pool = parts.pool();
            StoreEvents storeEvents = parts.storeEvents();
            return new CacheStats(
                    new CacheStats.Memory(
                            slabs.capacityBytes(),
                            slabs.heldBytes(),
                            slabs.slabs(),
                            slabs.unusedSlabs(),
                            counters.slotAllocator().slabMoves()),
                    new CacheStats.Records(pool.capacity(), pool.live(), bytesPerRecord()),
                    counters.puts().stats(),
                    new CacheStats.Removals(
                            storeEvents.hostRemovals(EventKind.EVICTED),
                            storeEvents.hostRemovals(EventKind.DROPPED),
                            storeEvents.hostRemovals(EventKind.REPLACED),
                            storeEvents.hostRemovals(EventKind.QUOTA)),
                    openTables,
                    counters.accessDrain().dropped(),
                    parts.namespaceRegistry().all().stream()
                            .map(NamespaceEntry::stats)
                            .toList());
        } finally {
            lock.unlock();
        }
    }

    /// What a policy that learns finds beside plain LRU, over all slot classes.
    public LruFallback.Report fallbackReport() {
        lock.lock();
        try {
            return parts.slotClassPolicies().fallbackReport();
        } finally {
            lock.unlock();
        }
    }

    /// Out of which share a namespace holds host memory, and how much that is.
    public MemoryShare share(NamespaceEntry entry) {
        lock.lock();
        try {
            int group = parts.memoryShares().groupOf(entry.id());
            return new MemoryShare(group, parts.memoryShares().guaranteedBytes(group));
        } finally {
            lock.unlock();
        }
    }

    /// A part of host memory.
    ///
    /// @param group whose it is: namespaces of one group have it together
    /// @param bytes that the group may hold however much others want
    public record MemoryShare(int group, long bytes) {}

    private long bytesPerRecord() {
        return RecordLayout.HOT_BYTES
                + RecordLayout.COLD_BYTES
                + RecordLayout.INDEX_BYTES
                + parts.slotClassPolicies().bytesPerRecord();
    }

    @Override
    public long nextSequence() {
        lock.lock();
        try {
            return parts.events().nextSequence();
        } finally {
            lock.unlock();
        }
    }

    @Override
    public EventBatch since(long sequence, int max) {
        lock.lock();
        try {
            return parts.events().since(sequence, max);
        } finally {
            lock.unlock();
        }
    }

    @Override
    public EventStream withoutObjectPuts() {
        lock.lock();
        try {
            return new FilteredEventStream(parts.storeEvents().eventsWithoutPuts(), this, lock);
        } finally {
            lock.unlock();
        }
    }

    @Override
    public StoreSnapshot snapshot() {
        for (int attempt = 1; attempt < MAX_SNAPSHOT_ATTEMPTS; attempt++) {
            Map<Stored, CacheEvent> stored = new LinkedHashMap<>();
            long start = nextSequence();
            for (int from = 0; from < parts.pool().capacity() && collect(from, stored); from += SCAN_BATCH) {}
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
            for (int from = 0; from < parts.pool().capacity() && collect(from, stored); from += SCAN_BATCH) {}
            return snapshot(parts.events().nextSequence(), stored);
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
            RecordPool pool = parts.pool();
            int to = Math.min(pool.highWaterMark(), from + SCAN_BATCH);
            for (int record = from; record < to; record++) {
                int state = ControlWord.state(pool.control(record));
                if (state == ControlWord.SEALED) {
                    apply(parts.storeEvents().describe(record, EventKind.STORED, TierKind.HOST), stored);
                }
                if (ControlWord.isKnown(state) && pool.diskAddress(record) != RecordView.NONE) {
                    apply(parts.storeEvents().describe(record, EventKind.STORED, TierKind.DISK), stored);
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
        parts.namespaceRegistry().all().forEach(entry -> names.put(entry.id(), entry.namespace()));
        return new StoreSnapshot(nextSequence, parentsFirst, names);
    }

    /// Checks every link, count and slot against the others; for tests and for a doubtful operator. Takes the
    /// lock throughout.
    ///
    /// @throws AssertionError that names what does not agree
    public void validate() {
        lock.lock();
        try {
            counters.accessDrain().drain();
            StoreValidator.run(parts);
        } finally {
            lock.unlock();
        }
    }

    /// Records under each policy, for tests.
    int policySize() {
        int size = 0;
        for (int id = 0; id < parts.slotClassPolicies().classes(); id++) {
            size += parts.slotClassPolicies().size(id);
        }
        return size;
    }
}
