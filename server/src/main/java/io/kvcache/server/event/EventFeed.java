package io.kvcache.server.event;

import io.kvcache.core.event.EventBatch;
import io.kvcache.core.event.EventStream;
import io.kvcache.server.http.HttpStream;
import io.kvcache.server.quota.FairSharePool;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BooleanSupplier;

/// Wakes followers of the store's events when there are new ones.
///
/// The store keeps the history; each follower has only its place in it, so one that does not read costs
/// nothing, and falls out of the history in the end.
///
/// **Threads.** Any; [#tick] one at a time.
public final class EventFeed {

    /// Followers at one time, where there is memory for them.
    private static final int MAX_SUBSCRIBERS = 256;

    /// A follower takes this much for what its socket has not taken yet: what waits, and one more piece.
    private static final long BYTES_PER_SUBSCRIBER = HttpStream.MAX_UNSENT_BYTES + (128 << 10);

    /// Followers may take this fraction of the network's memory.
    private static final long MEMORY_FRACTION = 16;

    private static final int MIN_SUBSCRIBERS = 8;

    private final EventStream events;
    private final NamespaceIdResolver namespaceIdResolver;
    private final SnapshotLimiter snapshotLimiter;
    private final BooleanSupplier draining;
    private final String epoch;
    private final FairSharePool subscriberSlots;
    private final Set<Subscriber> subscribers = ConcurrentHashMap.newKeySet();

    /// @param draining whether the server shuts down
    /// @param epoch tells the sequence numbers of this run of the server from those of others
    /// @param places for followers, by tenant
    public EventFeed(
            EventStream events,
            NamespaceIdResolver names,
            SnapshotLimiter snapshotLimiter,
            BooleanSupplier draining,
            String epoch,
            FairSharePool places) {
        this.subscriberSlots = places;
        this.events = events;
        this.namespaceIdResolver = names;
        this.snapshotLimiter = snapshotLimiter;
        this.draining = draining;
        this.epoch = epoch;
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

    EventStream events() {
        return events;
    }

    /// The oldest event that is kept, or the next one when there is none.
    long oldestSequence() {
        EventBatch batch = events.since(0, 1);
        return batch.events().isEmpty() ? batch.nextSequence() : batch.nextSequence() - 1;
    }

    NamespaceIdResolver namespaceIdResolver() {
        return namespaceIdResolver;
    }

    SnapshotLimiter snapshotLimiter() {
        return snapshotLimiter;
    }

    String epoch() {
        return epoch;
    }

    /// Wakes all followers, or ends them when the server shuts down.
    public void tick() {
        if (subscribers.isEmpty()) {
            return;
        }
        boolean end = draining.getAsBoolean();
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
