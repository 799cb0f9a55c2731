package io.kvcache.bench.policy;

import io.kvcache.core.policy.EvictionPolicy;
import io.kvcache.core.policy.RecordView;

/// Records in chains of equal length, and nothing else: the store that a policy's benchmark needs.
final class ChainRecords implements RecordView {

    private final int chainLength;
    private final int[] residentChildren;

    ChainRecords(int records, int chainLength) {
        this.chainLength = chainLength;
        residentChildren = new int[records];
    }

    /// Makes a record resident that is not; the one before it in its chain must be.
    void admit(EvictionPolicy policy, int record) {
        if (parent(record) != NONE) {
            residentChildren[parent(record)] = 1;
        }
        policy.admit(record);
    }

    /// Says of a record of which class of requests it is, one of the first `labels` by its chain;
    /// nothing when that is 0.
    void labelRecord(EvictionPolicy policy, int record, int labels) {
        if (labels > 0) {
            policy.label(record, record / chainLength % labels);
        }
    }

    /// Takes note that the policy evicted this record.
    void onEvicted(EvictionPolicy policy, int record) {
        int parent = parent(record);
        if (parent != NONE) {
            residentChildren[parent] = 0;
            policy.onBecameLeaf(parent);
        }
    }

    /// A request for a whole chain.
    void useChain(EvictionPolicy policy, int head) {
        int last = head + chainLength - 1;
        for (int record = last; record >= (policy.touchesAncestors() ? head : last); record--) {
            policy.touch(record);
        }
    }

    @Override
    public int capacity() {
        return residentChildren.length;
    }

    @Override
    public int parent(int record) {
        return record % chainLength == 0 ? NONE : record - 1;
    }

    @Override
    public int depth(int record) {
        return record % chainLength;
    }

    @Override
    public int residentChildren(int record) {
        return residentChildren[record];
    }

    @Override
    public long bytes(int record) {
        return 1;
    }

    @Override
    public long fingerprint(int record) {
        return record;
    }
}
