package io.kvcache.core.store;

import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.policy.EvictionPolicy;
import io.kvcache.core.policy.LruFallback;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.core.policy.PolicyState;
import io.kvcache.core.policy.RecordView;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// One eviction policy for each slot class and group of [MemoryShares] that has held blocks of it: a victim helps
/// only the class whose slot it held, and whose it is is decided before.
///
/// Policies number their queues with eight bits. When tenants and sizes are too many for that, the groups
/// that come late go by their class's common policy: what is protected stays so, but among those who may be
/// taken from it is the policy that chooses, and not who holds most.
///
/// **Threads.** Owned by the store's lock.
final class SlotClassPolicies {

    /// Queues that groups leave to the orders of disks.
    private static final int RESERVED_FOR_DISKS = 16;

    /// And to the common policies of sizes that come later.
    private static final int RESERVED_FOR_SIZES = 16;

    private final PolicyKind kind;
    private final RecordView records;
    private final SlabPool slabs;
    private final PolicyState state;
    /// By class and group; null where nothing was held yet.
    private final List<List<@Nullable EvictionPolicy>> byClass = new ArrayList<>();
    /// The same by class, each once, the common one first.
    private final List<List<EvictionPolicy>> instances = new ArrayList<>();

    SlotClassPolicies(PolicyKind kind, RecordView records, SlabPool slabs) {
        this.kind = kind;
        this.records = records;
        this.slabs = slabs;
        state = new PolicyState(records.capacity());
    }

    /// The policy of a class and a group, made at the first call.
    EvictionPolicy getOrCreate(int classId, int group) {
        EvictionPolicy known = find(classId, group);
        return known == null ? create(classId, group) : known;
    }

    /// The same, or null where nothing was held yet.
    @Nullable
    EvictionPolicy find(int classId, int group) {
        if (classId >= byClass.size() || group >= byClass.get(classId).size()) {
            return null;
        }
        return byClass.get(classId).get(group);
    }

    private EvictionPolicy create(int classId, int group) {
        while (byClass.size() <= classId) {
            byClass.add(new ArrayList<>());
            instances.add(new ArrayList<>());
        }
        EvictionPolicy made;
        if (group == MemoryShares.DEFAULT_GROUP || leavesReserve()) {
            made = kind.create(records, state);
            instances
                    .get(classId)
                    .add(
                            group == MemoryShares.DEFAULT_GROUP
                                    ? 0
                                    : instances.get(classId).size(),
                            made);
        } else {
            made = getOrCreate(classId, MemoryShares.DEFAULT_GROUP);
        }
        List<@Nullable EvictionPolicy> groups = byClass.get(classId);
        while (groups.size() <= group) {
            groups.add(null);
        }
        groups.set(group, made);
        return made;
    }

    /// Whether a group may have a policy of its own: the common ones of all classes can still be made then.
    private boolean leavesReserve() {
        return remainingQueues() >= (1 + Math.max(RESERVED_FOR_SIZES, missingCommonPolicies())) * kind.queueCount();
    }

    /// Whether blocks of one size more find a policy.
    boolean canAddClass() {
        return remainingQueues() >= (1 + missingCommonPolicies()) * kind.queueCount();
    }

    private int remainingQueues() {
        return state.remainingQueues() - RESERVED_FOR_DISKS;
    }

    private int missingCommonPolicies() {
        int without = 0;
        for (int id = 0; id < slabs.classCount(); id++) {
            without += find(id, MemoryShares.DEFAULT_GROUP) == null ? 1 : 0;
        }
        return without;
    }

    /// Records of a class.
    int size(int classId) {
        int size = 0;
        for (EvictionPolicy policy : instances.get(classId)) {
            size += policy.size();
        }
        return size;
    }

    /// When the likeliest next victim of a class was last used, whosever it is.
    long victimLastUse(int classId) {
        long oldest = Long.MAX_VALUE;
        if (classId < instances.size()) {
            for (EvictionPolicy policy : instances.get(classId)) {
                oldest = Math.min(oldest, policy.size() == 0 ? Long.MAX_VALUE : policy.victimLastUse());
            }
        }
        return oldest;
    }

    int classes() {
        return byClass.size();
    }

    /// Whether the policies are to hear of each block that a request will use which is known to come.
    boolean usesAnnouncements() {
        return kind.usesAnnouncements();
    }

    /// Whether the policies make use of what callers say of blocks.
    boolean usesLabels() {
        return kind.usesLabels();
    }

    /// What all instances find beside plain LRU.
    LruFallback.Report fallbackReport() {
        LruFallback.Report all = LruFallback.Report.EMPTY;
        for (List<EvictionPolicy> groups : instances) {
            for (EvictionPolicy policy : groups) {
                all = all.plus(policy.fallbackReport());
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
        for (List<EvictionPolicy> groups : instances) {
            for (EvictionPolicy policy : groups) {
                bytes += policy.heapBytes();
            }
        }
        return Math.ceilDiv(bytes, records.capacity());
    }

    /// The class whose next victim was used longest ago, or -1 when no class holds anything.
    int coldestClass() {
        int coldest = -1;
        long oldest = Long.MAX_VALUE;
        for (int id = 0; id < byClass.size(); id++) {
            long use = victimLastUse(id);
            if (use < oldest) {
                oldest = use;
                coldest = id;
            }
        }
        return coldest;
    }
}
