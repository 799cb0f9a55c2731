package io.kvcache.planner.baseline;

import io.kvcache.core.policy.EvictionPolicy;
import io.kvcache.core.policy.EvictionPolicyFactory;
import io.kvcache.core.policy.LeafHeap;
import io.kvcache.core.policy.PolicyState;
import io.kvcache.core.policy.RecordView;
import java.util.function.IntPredicate;
import java.util.function.IntToLongFunction;

/// Frequency with dynamic ageing: priority = age + uses × weight, set when a record is used.
///
/// The age is the highest priority of any victim so far, so a record that was popular long ago is overtaken without
/// any counter being halved. Among equal priorities the deepest goes first, then the lowest record number. Use
/// counts outlive an eviction in the ghost table, by fingerprint.
final class DynamicAgingPolicy implements EvictionPolicy {

    /// Low bits of a score, which put the deeper of two equals first.
    private static final int DEPTH_BITS = 12;

    private static final int MAX_DEPTH = (1 << DEPTH_BITS) - 1;

    /// Refusals in one call that leave a record's count as it is. A pinned block that was just admitted often has
    /// the lowest priority of all; counting each look at it as a use would make it popular for being busy. Beyond
    /// these few it does count, so that a crowd of pinned records moves out of the way.
    private static final int FREE_REFUSALS = 8;

    private final RecordView records;
    private final PolicyState state;
    private final IntToLongFunction weight;
    private final LeafHeap queue;
    private final int[] uses;
    private final long[] lastUse;
    private final GhostCounts ghosts;
    private long age;
    private int refusals;

    /// @param weight what one use of a record is worth, at least 1; the same whenever asked
    DynamicAgingPolicy(RecordView records, PolicyState state, IntToLongFunction weight) {
        this.records = records;
        this.state = state;
        this.weight = weight;
        ghosts = BaselineNotes.of(state).ghosts();
        queue = new LeafHeap(records, state);
        uses = BaselineNotes.of(state).uses();
        lastUse = BaselineNotes.of(state).stamps();
    }

    @Override
    public void admit(int record) {
        uses[record] = ghosts.removeKey(records.fingerprint(record)) + 1;
        lastUse[record] = state.tick();
        queue.admit(record, priority(record));
    }

    /// {@inheritDoc}
    ///
    /// It stands where its first use will put it, which is not counted yet: no other has no uses.
    /// Its notes stay as they are until then.
    @Override
    public void onPrefetched(int record) {
        uses[record] = 0;
        lastUse[record] = state.tick();
        queue.admit(record, priority(record, ghosts.count(records.fingerprint(record)) + 1));
    }

    @Override
    public void touch(int record) {
        boolean guess = uses[record] == 0;
        uses[record] = (guess ? ghosts.removeKey(records.fingerprint(record)) : uses[record]) + 1;
        lastUse[record] = state.tick();
        queue.raiseScore(record, priority(record));
    }

    @Override
    public boolean touchesAncestors() {
        return true;
    }

    @Override
    public void onBecameLeaf(int record) {
        queue.onBecameLeaf(record);
    }

    @Override
    public void forget(int record) {
        if (uses[record] > 0) {
            ghosts.put(records.fingerprint(record), uses[record]);
        }
        queue.forget(record);
    }

    @Override
    public void demote(int record) {
        queue.demote(record);
    }

    @Override
    public int evict(IntPredicate claim) {
        refusals = 0;
        int victim = queue.evict(claim, this::onClaimRefused);
        if (victim != NONE) {
            age = Math.max(age, queue.score(victim) >>> DEPTH_BITS);
            forget(victim);
        }
        return victim;
    }

    @Override
    public int size() {
        return queue.size();
    }

    @Override
    public long victimLastUse() {
        int coldest = queue.lowestRecord();
        return coldest == NONE ? Long.MAX_VALUE : lastUse[coldest];
    }

    /// Raises the score of a record that could not be claimed, after a few free refusals. A pinned record counts as
    /// used. A prefetched one that was not used yet does not: its reader reports the use.
    private void onClaimRefused(int record) {
        if (++refusals <= FREE_REFUSALS) {
            return;
        }
        if (uses[record] == 0) {
            queue.raiseScore(record, queue.score(record) + (weight.applyAsLong(record) << DEPTH_BITS));
        } else {
            touch(record);
        }
    }

    private long priority(int record) {
        return priority(record, uses[record]);
    }

    private long priority(int record, int uses) {
        long priority = age + uses * weight.applyAsLong(record);
        return priority << DEPTH_BITS | MAX_DEPTH - Math.min(records.depth(record), MAX_DEPTH);
    }

    /// Least frequently used with dynamic ageing (LFU-DA), leaves only: [DynamicAgingPolicy] where every use
    /// has the same weight.
    ///
    /// Priority = L + uses, set when a block is used, where L is the highest priority of any victim so far.
    /// Uses are counted for every block of a request's path and survive an eviction in a bounded memory of
    /// evicted keys.
    ///
    /// Source: Arlitt, Cherkasova, Dilley, Friedrich, Jin: "Evaluating content management techniques for Web
    /// proxy caches", 2000. Deviation: only leaves are evicted, the deepest first among equals, and counts
    /// outlive an eviction.
    public static final class LfuDynamicAging implements EvictionPolicyFactory {

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
}
