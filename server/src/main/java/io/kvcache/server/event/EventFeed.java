package io.kvcache.server.event;

import io.kvcache.core.KvCache;
import io.kvcache.core.NamespaceStats;
import io.kvcache.core.event.EventBatch;
import io.kvcache.core.event.EventStream;
import io.kvcache.core.identity.Namespace;
import io.kvcache.server.http.HttpStream;
import io.kvcache.server.quota.FairSharePool;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Semaphore;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/// The store's events as followers need them: over HTTP and over ZeroMQ. It names their namespaces, wakes followers
/// when there are new ones, and makes snapshots of all that is stored.
///
/// The store keeps the history; each follower has only its place in it, so one that does not read costs
/// nothing, and falls out of the history in the end.
///
/// Snapshots are made as far as the heap can hold them: few at one time, and none that would take too much of it.
///
/// **Threads.** Any; [#tick] one at a time.
public final class EventFeed {

    /// Snapshots that are being made or sent at one time.
    static final int MAX_SNAPSHOTS = 2;

    /// Followers at one time, where there is memory for them.
    private static final int MAX_SUBSCRIBERS = 256;

    /// A follower takes this much for what its socket has not taken yet: what waits, and one more piece.
    private static final long BYTES_PER_SUBSCRIBER = HttpStream.MAX_UNSENT_BYTES + (128 << 10);

    /// Followers may take this fraction of the network's memory.
    private static final long MEMORY_FRACTION = 16;

    private static final int MIN_SUBSCRIBERS = 8;

    /// Heap that an entry takes while a snapshot is made.
    private static final long SNAPSHOT_ENTRY_BYTES = 250;

    /// One snapshot may take this fraction of the heap.
    private static final long HEAP_FRACTION = 8;

    private final KvCache cache;
    private final EventStream events;
    private final String epoch;
    private final FairSharePool subscriberSlots;
    private final Set<Subscriber> subscribers = ConcurrentHashMap.newKeySet();
    private final Semaphore snapshots = new Semaphore(MAX_SNAPSHOTS);
    private final LongSupplier entries;
    private final long maxEntries;
    private volatile List<Namespace> namespaces = List.of();

    /// @param epoch tells the sequence numbers of this run of the server from those of others
    /// @param places for followers, by tenant
    public EventFeed(KvCache cache, String epoch, FairSharePool places) {
        this(
                cache,
                epoch,
                places,
                () -> cache.stats().records().live(),
                Runtime.getRuntime().maxMemory() / HEAP_FRACTION / SNAPSHOT_ENTRY_BYTES);
    }

    /// @param entries about how many a snapshot would have now
    /// @param maxEntries that a snapshot may have
    public EventFeed(KvCache cache, String epoch, FairSharePool places, LongSupplier entries, long maxEntries) {
        this.cache = cache;
        events = cache.events();
        this.epoch = epoch;
        subscriberSlots = places;
        this.entries = entries;
        this.maxEntries = maxEntries;
    }

    /// As many places as the memory for the network has room for.
    ///
    /// @param networkBytes of that memory
    public static FairSharePool subscriberSlots(long networkBytes, int tenants) {
        return new FairSharePool(
                Math.clamp(networkBytes / MEMORY_FRACTION / BYTES_PER_SUBSCRIBER, MIN_SUBSCRIBERS, MAX_SUBSCRIBERS),
                tenants);
    }

    /// A follower.
    interface Subscriber {

        /// The tenant that it belongs to.
        String tenant();

        /// There are events up to `next`, exclusively, of which some may be new. Called by one thread
        /// at a time.
        void wake(long next);

        /// Nothing more will come.
        void end();
    }

    /// Adds a follower; answers false when there are too many, or too many of its tenant.
    boolean add(Subscriber subscriber) {
        return subscriberSlots.tryAcquire(subscriber.tenant()) && subscribers.add(subscriber);
    }

    void remove(Subscriber subscriber) {
        if (subscribers.remove(subscriber)) {
            subscriberSlots.release(subscriber.tenant());
        }
    }

    /// Followers that there may be.
    int maxSubscribers() {
        return subscriberSlots.capacity();
    }

    /// How many follow.
    public int subscriberCount() {
        return subscribers.size();
    }

    /// The store's events.
    public EventStream events() {
        return events;
    }

    /// The oldest event that is kept, or the next one when there is none.
    long oldestSequence() {
        EventBatch batch = events.since(0, 1);
        return batch.events().isEmpty() ? batch.nextSequence() : batch.nextSequence() - 1;
    }

    /// The namespace of a number that an event had.
    public Namespace namespace(int id) {
        List<Namespace> now = namespaces;
        if (id >= now.size()) {
            // Numbers are given in the order of registration, which is the order of the statistics.
            now = cache.stats().namespaces().stream()
                    .map(NamespaceStats::namespace)
                    .toList();
            namespaces = now;
        }
        return now.get(id);
    }

    /// Why no snapshot can be made now, or null when one can: then [#releaseSnapshot] is called once it is not held
    /// any longer.
    public @Nullable String tryAcquireSnapshot() {
        long now = entries.getAsLong();
        if (now > maxEntries) {
            return "a snapshot would take " + now + " entries; with this heap it may take " + maxEntries;
        }
        return snapshots.tryAcquire()
                ? null
                : MAX_SNAPSHOTS + " snapshots are being sent, the most at one time; try again later";
    }

    /// A snapshot is not held any longer.
    public void releaseSnapshot() {
        snapshots.release();
    }

    String epoch() {
        return epoch;
    }

    /// Wakes all followers.
    ///
    /// @param end whether they are to end instead, as the server shuts down
    public void tick(boolean end) {
        if (subscribers.isEmpty()) {
            return;
        }
        long next = events.nextSequence();
        for (Subscriber subscriber : subscribers) {
            if (end) {
                subscriber.end();
            } else {
                subscriber.wake(next);
            }
        }
    }
}
