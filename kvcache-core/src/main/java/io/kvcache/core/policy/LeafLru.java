package io.kvcache.core.policy;

import java.util.function.IntPredicate;

/// Least recently used, leaves only: the store's default.
///
/// A use of a block is a use of all blocks before it, so a path's last use is that of its latest used descendant.
/// This class stores the use at the deepest block alone and lets a parent inherit `max(own, child's)` when the
/// child leaves. A block becomes a candidate only once all its descendants have left, so by then it has inherited
/// from all of them, and the victims are exactly those of touching the whole path from its tail to its head.
///
/// Costs 8 bytes a record and at most 9 a record in its heap; a touch is one store.
///
/// Source: the order of vLLM's free queue (Kwon et al., SOSP 2023: tails before heads) and of SGLang's radix tree
/// (Zheng et al., NeurIPS 2024: leaves by last use). Deviation: the walk over the path is left out, as above.
public final class LeafLru implements EvictionPolicy {

    private final RecordView records;
    private final PolicyState state;
    private final LeafHeap queue;

    /// @param state shared with the store's other instances
    public LeafLru(RecordView records, PolicyState state) {
        this.records = records;
        this.state = state;
        queue = new LeafHeap(records, state);
    }

    @Override
    public void admit(int record) {
        queue.admit(record, state.tick());
    }

    @Override
    public void touch(int record) {
        queue.raiseScore(record, state.tick());
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
        passUseToParent(record);
        queue.forget(record);
    }

    /// {@inheritDoc}
    ///
    /// The record's uses until now still count for its parent, unless that was demoted as well. So a whole path
    /// can be demoted in any order.
    @Override
    public void demote(int record) {
        int parent = records.parent(record);
        if (parent != RecordView.NONE && queue.score(parent) != 0) {
            passUseToParent(record);
        }
        queue.demote(record);
    }

    @Override
    public int evict(IntPredicate claim) {
        int victim = queue.evict(claim, this::touch);
        if (victim != NONE) {
            forget(victim);
        }
        return victim;
    }

    @Override
    public long lastUse(int record) {
        return queue.score(record);
    }

    @Override
    public int size() {
        return queue.size();
    }

    @Override
    public long victimLastUse() {
        return queue.lowestScore();
    }

    /// Bytes of this instance's heap, beside the shared state.
    @Override
    public long heapBytes() {
        return queue.heapBytes();
    }

    private void passUseToParent(int record) {
        int parent = records.parent(record);
        if (parent != RecordView.NONE) {
            queue.raiseScore(parent, queue.score(record));
        }
    }
}
