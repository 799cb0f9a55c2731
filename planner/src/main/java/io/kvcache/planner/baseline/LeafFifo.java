package io.kvcache.planner.baseline;

import io.kvcache.core.policy.EvictionPolicy;
import io.kvcache.core.policy.EvictionPolicyFactory;
import io.kvcache.core.policy.LeafHeap;
import io.kvcache.core.policy.PolicyState;
import io.kvcache.core.policy.RecordView;
import java.util.function.IntPredicate;

/// First in, first out, leaves only: the leaf that was admitted longest ago goes first.
///
/// The cheapest order there is, and a base line: on chat traffic a use nearly always grows a new child, which
/// protects the path anyway, so it stays within a tenth of a point of [LeafLru].
///
/// Source: the textbook rule, as in SGLang's `FIFOStrategy`. Deviation: a record with resident children is passed
/// over and keeps its place.
final class LeafFifo implements EvictionPolicy {

    private final PolicyState state;
    private final LeafHeap queue;

    /// @param state shared with the store's other instances
    public LeafFifo(RecordView records, PolicyState state) {
        this.state = state;
        queue = new LeafHeap(records, state);
    }

    @Override
    public void admit(int record) {
        queue.admit(record, state.tick());
    }

    @Override
    public void touch(int record) {
        // Uses do not count.
    }

    @Override
    public boolean touchesAncestors() {
        return false;
    }

    @Override
    public void onBecameLeaf(int record) {
        queue.onBecameLeaf(record);
    }

    @Override
    public void forget(int record) {
        queue.forget(record);
    }

    @Override
    public void demote(int record) {
        queue.demote(record);
    }

    /// {@inheritDoc}
    ///
    /// A record that is pinned when its turn comes goes to the end of the queue.
    @Override
    public int evict(IntPredicate claim) {
        int victim = queue.evict(claim, refused -> queue.raiseScore(refused, state.tick()));
        if (victim != NONE) {
            queue.forget(victim);
        }
        return victim;
    }

    @Override
    public int size() {
        return queue.size();
    }

    @Override
    public long victimLastUse() {
        return queue.lowestScore();
    }

    /// Makes instances of this policy.
    public static final class Factory implements EvictionPolicyFactory {

        @Override
        public String commandName() {
            return "fifo";
        }

        @Override
        public String title() {
            return "FIFO";
        }

        @Override
        public String source() {
            return "textbook";
        }

        @Override
        public int queueCount() {
            return 1;
        }

        @Override
        public EvictionPolicy create(RecordView records, PolicyState state) {
            return new LeafFifo(records, state);
        }
    }
}
