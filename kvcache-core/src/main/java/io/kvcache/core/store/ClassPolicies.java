package io.kvcache.core.store;

import io.kvcache.core.policy.EvictionPolicy;
import io.kvcache.core.policy.Guard;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.core.policy.PolicyState;
import io.kvcache.core.policy.RecordView;
import java.util.ArrayList;
import java.util.List;

/// One eviction policy for each slot class and group of [Shares]: a victim helps only the class whose slot it held, and
/// whose it is is decided before.
///
/// **Threads.** Owned by the store's lock.
final class ClassPolicies {

    private final PolicyKind kind;
    private final RecordView records;
    private final PolicyState state;
    private final List<List<EvictionPolicy>> byClass = new ArrayList<>();

    ClassPolicies(PolicyKind kind, RecordView records) {
        this.kind = kind;
        this.records = records;
        state = new PolicyState(records.capacity());
    }

    EvictionPolicy of(int classId, int group) {
        while (byClass.size() <= classId) {
            byClass.add(new ArrayList<>());
        }
        List<EvictionPolicy> groups = byClass.get(classId);
        while (groups.size() <= group) {
            groups.add(kind.create(records, state));
        }
        return groups.get(group);
    }

    /// Records of a class.
    int size(int classId) {
        int size = 0;
        for (EvictionPolicy policy : byClass.get(classId)) {
            size += policy.size();
        }
        return size;
    }

    /// When the likeliest next victim of a class was last used, whosever it is.
    long coldestUse(int classId) {
        long oldest = Long.MAX_VALUE;
        if (classId < byClass.size()) {
            for (EvictionPolicy policy : byClass.get(classId)) {
                oldest = Math.min(oldest, policy.size() == 0 ? Long.MAX_VALUE : policy.coldestUse());
            }
        }
        return oldest;
    }

    int classes() {
        return byClass.size();
    }

    /// Whether the policies are to hear of each block that a request will use which is known to come.
    boolean lookAhead() {
        return kind.looksAhead();
    }

    /// What all instances find beside plain LRU.
    Guard.Report guard() {
        Guard.Report all = Guard.Report.NOTHING;
        for (List<EvictionPolicy> groups : byClass) {
            for (EvictionPolicy policy : groups) {
                all = all.plus(policy.guard());
            }
        }
        return all;
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
        for (List<EvictionPolicy> groups : byClass) {
            for (EvictionPolicy policy : groups) {
                bytes += policy.heapBytes();
            }
        }
        return Math.ceilDiv(bytes, records.capacity());
    }

    /// The class whose next victim was used longest ago, or -1 when no class holds anything.
    int coldest() {
        int coldest = -1;
        long oldest = Long.MAX_VALUE;
        for (int id = 0; id < byClass.size(); id++) {
            long use = coldestUse(id);
            if (use < oldest) {
                oldest = use;
                coldest = id;
            }
        }
        return coldest;
    }
}
