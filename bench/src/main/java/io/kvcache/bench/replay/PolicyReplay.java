package io.kvcache.bench.replay;

import io.kvcache.bench.baseline.Baselines;
import io.kvcache.core.policy.EvictionPolicyFactory;
import io.kvcache.core.policy.PolicyState;

/// Replays against one of the store's own policies.
///
/// @param lookAhead how many of the next requests are known, as a server knows those that wait; 0 without
///     hints
public record PolicyReplay(EvictionPolicyFactory kind, int lookAhead) implements SimulatedCache {

    /// Without hints.
    public PolicyReplay(EvictionPolicyFactory kind) {
        this(kind, 0);
    }

    @Override
    public String commandName() {
        return kind.commandName() + (lookAhead > 0 ? "+" + lookAhead : "");
    }

    @Override
    public String title() {
        return kind.title() + (lookAhead > 0 ? ", the next " + lookAhead + " requests known" : "");
    }

    @Override
    public HitTotals run(PrefixForest forest, int blocks, HitCounter counter) {
        ForestRecords records = new ForestRecords(forest);
        PolicyState state = new PolicyState(records.capacity(), ghosts(kind, records.capacity(), blocks));
        PolicyRun.PolicyCache cache = new PolicyRun.PolicyCache(records, state, kind.create(records, state), blocks);
        return new PolicyRun(forest, cache, kind.usesAnnouncements(), lookAhead).replay(counter);
    }

    /// Evicted keys to remember. Frequency counts cover the whole trace, as the convention asks;
    /// S3-FIFO's ghosts are as many as the cache has blocks, as its paper says. Importance has a memory
    /// of its own.
    private static int ghosts(EvictionPolicyFactory kind, int nodes, int blocks) {
        return kind.equals(Baselines.S3_FIFO) ? Math.min(nodes, blocks) : nodes;
    }
}
