package io.kvcache.planner.baseline;

import io.kvcache.core.policy.EvictionPolicy;
import io.kvcache.core.policy.EvictionPolicyFactory;
import io.kvcache.core.policy.LeafHeap;
import io.kvcache.core.policy.PolicyState;
import io.kvcache.core.policy.RecordView;
import java.util.function.IntPredicate;

/// Segmented LRU, leaves only: blocks seen once are on probation and go first, blocks used again are protected.
///
/// At most a fifth of the resident blocks are protected. Above that, the protected leaf that was used longest ago
/// returns to probation, at the place that its last use gives it. With the usual four fifths, or when it returned as
/// the newest, sessions that had ended filled the cache and the two public Mooncake traces had fewer hits than with
/// plain LRU.
///
/// Source: Karedla, Love, Wherry: "Caching strategies to improve disk system performance", IEEE Computer 1994.
/// Deviation: leaf only, so what leaves the protected segment is its oldest leaf, and nothing when it has no leaf.
final class Slru implements EvictionPolicy {

    /// The protected segment's share of the resident records is one in this many.
    private static final int PROTECTED_SHARE = 5;

    private final PolicyState state;
    private final LeafHeap probation;
    private final LeafHeap protectedSegment;

    /// @param state shared with the store's other instances
    public Slru(RecordView records, PolicyState state) {
        this.state = state;
        probation = new LeafHeap(records, state);
        protectedSegment = new LeafHeap(records, state);
    }

    @Override
    public void admit(int record) {
        probation.admit(record, state.tick());
    }

    /// {@inheritDoc}
    ///
    /// Its first use finds it on probation and leaves it there, as the newest.
    @Override
    public void onPrefetched(int record) {
        probation.addPrefetched(record, state.tick());
    }

    @Override
    public void touch(int record) {
        if (protectedSegment.contains(record)) {
            protectedSegment.raiseScore(record, state.tick());
        } else if (probation.confirmPrefetched(record)) {
            probation.raiseScore(record, state.tick());
        } else {
            probation.forget(record);
            protectedSegment.admit(record, state.tick());
            limitProtected();
        }
    }

    @Override
    public boolean touchesAncestors() {
        return true;
    }

    @Override
    public void onBecameLeaf(int record) {
        segmentOf(record).onBecameLeaf(record);
    }

    @Override
    public void forget(int record) {
        segmentOf(record).forget(record);
    }

    @Override
    public void demote(int record) {
        if (protectedSegment.contains(record)) {
            protectedSegment.forget(record);
            probation.admit(record, 0);
        } else {
            probation.demote(record);
        }
    }

    @Override
    public int evict(IntPredicate claim) {
        int victim = evictFrom(probation, claim);
        return victim != NONE ? victim : evictFrom(protectedSegment, claim);
    }

    @Override
    public int size() {
        return probation.size() + protectedSegment.size();
    }

    @Override
    public long victimLastUse() {
        long coldest = probation.lowestScore();
        return coldest != Long.MAX_VALUE ? coldest : protectedSegment.lowestScore();
    }

    private LeafHeap segmentOf(int record) {
        return protectedSegment.contains(record) ? protectedSegment : probation;
    }

    private int evictFrom(LeafHeap segment, IntPredicate claim) {
        int victim = segment.evict(claim, refused -> segment.raiseScore(refused, state.tick()));
        if (victim != NONE) {
            segment.forget(victim);
        }
        return victim;
    }

    private void limitProtected() {
        if (protectedSegment.size() > size() / PROTECTED_SHARE) {
            int oldest = protectedSegment.lowestRecord();
            if (oldest != NONE) {
                long lastUse = protectedSegment.score(oldest);
                protectedSegment.forget(oldest);
                probation.admit(oldest, lastUse);
            }
        }
    }

    /// Makes instances of this policy.
    public static final class Factory implements EvictionPolicyFactory {

        @Override
        public String commandName() {
            return "slru";
        }

        @Override
        public String title() {
            return "Segmented LRU";
        }

        @Override
        public String source() {
            return "Karedla et al., IEEE Computer 1994";
        }

        @Override
        public int queueCount() {
            return 2;
        }

        @Override
        public EvictionPolicy create(RecordView records, PolicyState state) {
            return new Slru(records, state);
        }
    }
}
