package io.kvcache.server.event;

import io.kvcache.core.event.EventBatch;
import io.kvcache.core.event.EventStream;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BooleanSupplier;

/// Wakes those who follow the store's events when there are new ones.
///
/// The store keeps the history; each follower has only its place in it, so one that does not read costs
/// nothing, and falls out of the history in the end.
///
/// **Threads.** Any; [#tick] one at a time.
public final class EventFeed {

    /// Followers at one time.
    static final int MOST = 256;

    private final EventStream events;
    private final EventNames names;
    private final Snapshots snapshots;
    private final BooleanSupplier draining;
    private final String epoch;
    private final Set<Follower> followers = ConcurrentHashMap.newKeySet();

    /// @param draining whether the server goes down
    /// @param epoch tells the sequence numbers of this run of the server from those of others
    public EventFeed(
            EventStream events, EventNames names, Snapshots snapshots, BooleanSupplier draining, String epoch) {
        this.events = events;
        this.names = names;
        this.snapshots = snapshots;
        this.draining = draining;
        this.epoch = epoch;
    }

    /// Somebody who follows.
    interface Follower {

        /// There are events up to `next`, exclusively, of which some may be new. Called by one thread
        /// at a time.
        void wake(long next);

        /// Nothing more will come.
        void end();
    }

    /// Adds a follower; answers false when there are too many.
    boolean add(Follower follower) {
        return followers.size() < MOST && followers.add(follower);
    }

    void remove(Follower follower) {
        followers.remove(follower);
    }

    /// How many follow.
    public int followerCount() {
        return followers.size();
    }

    EventStream events() {
        return events;
    }

    /// The oldest event that is kept, or the next one when there is none.
    long oldest() {
        EventBatch batch = events.since(0, 1);
        return batch.events().isEmpty() ? batch.nextSequence() : batch.nextSequence() - 1;
    }

    EventNames names() {
        return names;
    }

    Snapshots snapshots() {
        return snapshots;
    }

    String epoch() {
        return epoch;
    }

    /// Wakes all of them, or ends them when the server goes down.
    public void tick() {
        if (followers.isEmpty()) {
            return;
        }
        boolean end = draining.getAsBoolean();
        long next = events.nextSequence();
        for (Follower follower : followers) {
            if (end) {
                follower.end();
            } else {
                follower.wake(next);
            }
        }
    }
}
