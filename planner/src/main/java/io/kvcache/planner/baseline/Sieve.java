package io.kvcache.planner.baseline;

import io.kvcache.core.policy.EvictionPolicy;
import io.kvcache.core.policy.EvictionPolicyFactory;
import io.kvcache.core.policy.PolicyState;
import io.kvcache.core.policy.RecordView;
import java.util.function.IntPredicate;

/// SIEVE, leaves only: one queue, one bit a record, and a hand that sweeps from the oldest to the newest.
///
/// A use sets the bit. The hand clears bits as it passes and evicts the first record whose bit is clear; what
/// survives stays in its place.
///
/// Source: Zhang, Yang, Yue, Vigfusson, Rashmi: "SIEVE is simpler than LRU", NSDI 2024. Deviation: leaf only. A
/// record that the hand finds to have children leaves the queue, and when it is a leaf again it returns just behind
/// the hand, where an older record that was passed over would stand.
final class Sieve implements EvictionPolicy {

    private static final byte VISITED = 1;
    private static final byte LINKED = 2;
    /// The record was prefetched and has not been used yet.
    private static final byte PREFETCHED = 4;

    /// Claims that one call lets be refused before it gives up.
    private static final int MAX_REFUSALS = 1024;

    private final RecordView records;
    private final PolicyState state;
    private final byte[] flags;
    private final long[] admitted;
    private final IntrusiveList queue;
    private int hand = NONE;
    private int size;

    /// @param state shared with the store's other instances
    public Sieve(RecordView records, PolicyState state) {
        this.records = records;
        this.state = state;
        flags = BaselineNotes.of(state).flags();
        admitted = BaselineNotes.of(state).stamps();
        queue = new IntrusiveList(state);
    }

    @Override
    public void admit(int record) {
        admitted[record] = state.tick();
        flags[record] = LINKED;
        queue.addNewest(record);
        size++;
    }

    /// {@inheritDoc}
    ///
    /// With its first use it enters the queue anew.
    @Override
    public void onPrefetched(int record) {
        admit(record);
        flags[record] |= PREFETCHED;
    }

    @Override
    public void touch(int record) {
        if ((flags[record] & PREFETCHED) != 0) {
            forget(record);
            admit(record);
        } else {
            flags[record] |= VISITED;
        }
    }

    @Override
    public boolean touchesAncestors() {
        return true;
    }

    @Override
    public void onBecameLeaf(int record) {
        if ((flags[record] & LINKED) == 0) {
            flags[record] |= LINKED;
            if (hand == NONE) {
                queue.addOldest(record);
            } else {
                queue.insertOlder(hand, record);
            }
        }
    }

    @Override
    public void forget(int record) {
        unlink(record);
        flags[record] = 0;
        size--;
    }

    @Override
    public void demote(int record) {
        unlink(record);
        flags[record] &= PREFETCHED;
        onBecameLeaf(record);
        hand = record;
    }

    @Override
    public int evict(IntPredicate claim) {
        int refusals = 0;
        while (queue.size() > 0 && refusals <= Math.min(queue.size(), MAX_REFUSALS)) {
            int record = handOrOldest();
            if (records.residentChildren(record) != 0) {
                unlink(record);
            } else if ((flags[record] & VISITED) != 0) {
                flags[record] &= ~VISITED;
                hand = queue.newer(record);
            } else if (claim.test(record)) {
                forget(record);
                return record;
            } else {
                refusals++;
                flags[record] |= VISITED;
                hand = queue.newer(record);
            }
        }
        return NONE;
    }

    @Override
    public int size() {
        return size;
    }

    @Override
    public long victimLastUse() {
        while (queue.size() > 0 && records.residentChildren(handOrOldest()) != 0) {
            unlink(handOrOldest());
        }
        return queue.size() == 0 ? Long.MAX_VALUE : admitted[handOrOldest()];
    }

    private int handOrOldest() {
        return hand == NONE ? queue.oldest() : hand;
    }

    private void unlink(int record) {
        if ((flags[record] & LINKED) != 0) {
            if (hand == record) {
                hand = queue.newer(record);
            }
            flags[record] &= ~LINKED;
            queue.remove(record);
        }
    }

    /// Makes instances of this policy.
    public static final class Factory implements EvictionPolicyFactory {

        @Override
        public String commandName() {
            return "sieve";
        }

        @Override
        public String title() {
            return "SIEVE";
        }

        @Override
        public String source() {
            return "Zhang et al., NSDI 2024";
        }

        @Override
        public int queueCount() {
            return 0;
        }

        @Override
        public EvictionPolicy create(RecordView records, PolicyState state) {
            return new Sieve(records, state);
        }
    }
}
