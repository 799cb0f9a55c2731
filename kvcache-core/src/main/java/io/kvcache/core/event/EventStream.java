package io.kvcache.core.event;

/// Blocks and objects that the store stored and removed: the last events, and a snapshot to start from.
///
/// A follower takes a [#snapshot()], then asks [#since] again and again; when a batch says that events were
/// lost, it starts over with a snapshot.
///
/// **Threads.** Any.
public interface EventStream {

    /// Sequence number that the next event will get.
    long nextSequence();

    /// Events from `sequence` on that are still kept, at most `max` of them.
    ///
    /// @param max 1 to 65,536
    EventBatch since(long sequence, int max);

    /// All that is stored now.
    StoreSnapshot snapshot();

    /// The same for a reader that does not care which objects are put: may leave out that one was stored or
    /// replaced, so that a reader that follows removals does not lose them among very many puts. It has
    /// sequence numbers of its own, and may tell once more of what came while its snapshot was
    /// taken.
    default EventStream withoutObjectPuts() {
        return this;
    }
}
