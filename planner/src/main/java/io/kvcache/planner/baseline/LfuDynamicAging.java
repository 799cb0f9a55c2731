package io.kvcache.planner.baseline;

import io.kvcache.core.policy.EvictionPolicy;
import io.kvcache.core.policy.EvictionPolicyFactory;
import io.kvcache.core.policy.PolicyState;
import io.kvcache.core.policy.RecordView;

/// Least frequently used with dynamic ageing (LFU-DA), leaves only: [DynamicAgingPolicy] where every use has the
/// same weight.
///
/// Priority = L + uses, set when a block is used, where L is the highest priority of any victim so far. Uses
/// are counted for every block of a request's path and survive an eviction in a bounded memory of evicted
/// keys.
///
/// Source: Arlitt, Cherkasova, Dilley, Friedrich, Jin: "Evaluating content management techniques for Web proxy
/// caches", 2000. Deviation: only leaves are evicted, the deepest first among equals, and counts outlive an eviction.
public final class LfuDynamicAging implements EvictionPolicyFactory {

    @Override
    public String commandName() {
        return "lfu-da";
    }

    @Override
    public String title() {
        return "LFU with dynamic ageing";
    }

    @Override
    public String source() {
        return "Arlitt et al., 2000";
    }

    @Override
    public int queueCount() {
        return 1;
    }

    @Override
    public EvictionPolicy create(RecordView records, PolicyState state) {
        return new DynamicAgingPolicy(records, state, _ -> 1);
    }
}
