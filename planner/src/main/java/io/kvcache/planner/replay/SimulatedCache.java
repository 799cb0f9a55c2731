package io.kvcache.planner.replay;

import io.kvcache.planner.replay.HitCounter.HitTotals;

/// A cache to replay a trace against.
public interface SimulatedCache {

    /// Name on command lines and in output.
    String commandName();

    /// Replays a whole trace from an empty cache.
    ///
    /// @param blocks capacity in blocks, at least 1
    /// @param warmup leading requests that are replayed but not counted
    default HitTotals run(PrefixForest forest, int blocks, int warmup) {
        return run(forest, blocks, new HitCounter(forest, warmup));
    }

    /// Replays a whole trace from an empty cache.
    ///
    /// @param blocks capacity in blocks, at least 1
    /// @param counter of the same forest; told of every request
    HitTotals run(PrefixForest forest, int blocks, HitCounter counter);
}
