package io.kvcache.bench.baseline;

import io.kvcache.core.policy.EvictionPolicy;
import io.kvcache.core.policy.EvictionPolicyFactory;
import io.kvcache.core.policy.PolicyState;
import io.kvcache.core.policy.RecordView;
import java.util.function.IntPredicate;

/// Least frequently used with dynamic ageing (LFU-DA), leaves only.
///
/// Priority = L + uses, set when a block is used, where L is the highest priority of any victim so far. Uses
/// are counted for every block of a request's path and survive an eviction in a bounded memory of evicted
/// keys.
///
/// Source: Arlitt, Cherkasova, Dilley, Friedrich, Jin: "Evaluating content management techniques for Web proxy
/// caches",
/// 2000. Deviation: only leaves are evicted, the deepest first among equals, and counts outlive an eviction.
public final class LfuDynamicAging implements EvictionPolicy {

    private final DynamicAgingPolicy frequency;

    /// @param state shared with the store's other instances; its ghost capacity bounds the counts that outlive an
    ///     eviction
    public LfuDynamicAging(RecordView records, PolicyState state) {
        frequency = new DynamicAgingPolicy(records, state, record -> 1);
    }

    @Override
    public void admit(int record) {
        frequency.admit(record);
    }

    @Override
    public void onPrefetched(int record) {
        frequency.onPrefetched(record);
    }

    @Override
    public void touch(int record) {
        frequency.touch(record);
    }

    @Override
    public boolean touchesAncestors() {
        return true;
    }

    @Override
    public void onBecameLeaf(int record) {
        frequency.onBecameLeaf(record);
    }

    @Override
    public void forget(int record) {
        frequency.forget(record);
    }

    @Override
    public void demote(int record) {
        frequency.demote(record);
    }

    @Override
    public int evict(IntPredicate claim) {
        return frequency.evict(claim);
    }

    @Override
    public int size() {
        return frequency.size();
    }

    @Override
    public long victimLastUse() {
        return frequency.victimLastUse();
    }

    /// Makes instances of this policy.
    public static final class Factory implements EvictionPolicyFactory {

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
            return new LfuDynamicAging(records, state);
        }
    }
}
