package io.kvcache.core.store;

import io.kvcache.core.policy.EvictionPolicy;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.core.policy.PolicyState;
import io.kvcache.core.policy.RecordView;
import java.util.ArrayList;
import java.util.List;

/// One eviction policy a slot class: a victim helps only the class whose slot it held.
///
/// **Threads.** Owned by the store's lock.
final class ClassPolicies {

    private final PolicyKind kind;
    private final RecordView records;
    private final PolicyState state;
    private final List<EvictionPolicy> byClass = new ArrayList<>();

    ClassPolicies(PolicyKind kind, RecordView records) {
        this.kind = kind;
        this.records = records;
        state = new PolicyState(records.capacity());
    }

    EvictionPolicy of(int classId) {
        while (byClass.size() <= classId) {
            byClass.add(kind.create(records, state));
        }
        return byClass.get(classId);
    }

    int classes() {
        return byClass.size();
    }

    /// What the instances share.
    PolicyState state() {
        return state;
    }

    /// The clock that orders uses in all classes.
    long now() {
        return state.now();
    }

    /// Bytes that the policies keep for one record, rounded up; the memory of evicted keys counts apart.
    long bytesPerRecord() {
        long bytes = state.arrayBytes();
        for (EvictionPolicy policy : byClass) {
            bytes += policy.heapBytes();
        }
        return Math.ceilDiv(bytes, records.capacity());
    }

    /// The class whose next victim was used longest ago, or -1 when no class holds anything.
    int coldest() {
        int coldest = -1;
        long oldest = Long.MAX_VALUE;
        for (int id = 0; id < byClass.size(); id++) {
            EvictionPolicy policy = byClass.get(id);
            long use = policy.size() == 0 ? Long.MAX_VALUE : policy.coldestUse();
            if (use < oldest) {
                oldest = use;
                coldest = id;
            }
        }
        return coldest;
    }
}
