package io.kvcache.bench.replay;

/// Hears of each request of a replay, those too that do not count.
public interface ReplayListener {

    /// What hears of nothing.
    ReplayListener NONE = new ReplayListener() {};

    /// A request has looked its blocks up.
    ///
    /// @param blocks that it found
    default void onFound(int request, int blocks) {}

    /// A request was served.
    ///
    /// @param put blocks that were put for it
    /// @param held blocks that the cache holds now
    default void onServed(int request, int put, int held) {}

    /// A policy has evicted a block. Only replays of an [io.kvcache.core.policy.EvictionPolicy] tell.
    ///
    /// @param node of the trace's forest
    default void onEvicted(int node) {}
}
