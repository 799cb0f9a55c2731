package io.kvcache.bench.example;

import io.kvcache.core.policy.EvictionPolicy;
import io.kvcache.core.policy.LeafHeap;
import io.kvcache.core.policy.PolicyState;
import io.kvcache.core.policy.RecordView;
import java.util.function.IntPredicate;

/// LRU-2 (O'Neil et al., SIGMOD 1993): the block whose second last use is longest ago goes first.
public final class Lru2 implements EvictionPolicy {

    private static final long ONCE = 1; // blocks used once go before all others
    private final PolicyState state;
    private final LeafHeap queue;
    private final long[] lastUse;

    public Lru2(RecordView records, PolicyState state) {
        this.state = state;
        queue = new LeafHeap(records, state);
        lastUse = new long[records.capacity()];
    }

    @Override
    public void admit(int record) {
        lastUse[record] = state.tick();
        queue.admit(record, ONCE);
    }

    @Override
    public void touch(int record) {
        queue.raiseScore(record, lastUse[record] + ONCE); // what was the last use is the second last
        lastUse[record] = state.tick();
    }

    @Override
    public boolean touchesAncestors() {
        return true; // a request uses every block of its path
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

    @Override
    public int evict(IntPredicate claim) {
        int victim = queue.evict(claim, this::touch); // a pinned block is in use
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
        int coldest = queue.lowestRecord();
        return coldest == NONE ? Long.MAX_VALUE : lastUse[coldest];
    }
}
