package io.kvcache.server.quota;

/// Things of one kind that a tenant has and that count for its quota: values, or blocks.
///
/// **Threads.** Any.
public interface EvictableStock {

    /// Of a stock that has nothing that could go.
    long NOTHING_EVICTABLE = Long.MAX_VALUE;

    /// When what goes first was last used, by [Quota#nextUse]; 0 of what was not used since the start;
    /// [#NOTHING_EVICTABLE] when nothing can go.
    long oldestUse();

    /// Forgets what goes first, for the room that it takes.
    ///
    /// @return whether there was something
    boolean evictOldest();
}
