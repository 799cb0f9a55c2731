package io.kvcache.core.store;

import static io.kvcache.core.policy.RecordView.NONE;

import io.kvcache.core.memory.Pages;
import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.policy.EvictionPolicy;
import io.kvcache.core.policy.EvictionPolicyFactory;
import io.kvcache.core.policy.LruFallback;
import io.kvcache.core.policy.PolicyState;
import io.kvcache.core.policy.RecordView;
import io.kvcache.core.tree.RecordFlags;
import io.kvcache.core.tree.RecordPool;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// Share of host memory that each group may hold while others want it too.
///
/// A namespace with a weight is a group of its own; those without one are group 0 together, with a weight of 1. A
/// group's share is its weight's part of all slots. While the other groups do not want it, a group may hold more
/// than its share. When room is made, it comes from the group that holds most for its weight. A group within its
/// share is **protected**: a group whose share is full gets nothing from it, and is refused when it has nothing of
/// its own to give.
///
/// What counts is the slots' bytes of everything that has one, also while it is written or loaded, and after it
/// was dropped as long as a caller holds it; a record counts at least its part of the memory, so that many
/// small ones cannot take all records.
///
/// **Threads.** Owned by the store's lock.
final class MemoryShares {

    /// Group of all that have no weight, and of no namespace.
    static final int DEFAULT_GROUP = 0;

    /// No request: room is made ahead of need.
    static final int NO_GROUP = -1;

    private static final int[] DEFAULT_ORDER = {DEFAULT_GROUP};

    private final RecordPool pool;
    private final long totalBytes;
    private final long minCharge;
    private int[] groupOf = {};
    private long[] heldBytes = {0};
    private int[] weights = {1};
    private long totalWeight = 1;
    private int[] order = DEFAULT_ORDER;

    MemoryShares(RecordPool pool, SlabPool slabs) {
        this.pool = pool;
        totalBytes = slabs.capacityBytes();
        minCharge = totalBytes / pool.capacity();
    }

    /// Gives a namespace a group of its own, or another weight to it.
    ///
    /// @throws IllegalStateException when the namespace holds memory already
    void setWeight(int namespaceId, int weight) {
        int group = groupOf(namespaceId);
        if (group == DEFAULT_GROUP) {
            requireNothingHeld(namespaceId);
            group = weights.length;
            groupOf = Arrays.copyOf(groupOf, Math.max(groupOf.length, namespaceId + 1));
            groupOf[namespaceId] = group;
            heldBytes = Arrays.copyOf(heldBytes, group + 1);
            weights = Arrays.copyOf(weights, group + 1);
            order = Arrays.copyOf(order, group + 1);
            order[group] = group;
        }
        totalWeight += weight - weights[group];
        weights[group] = weight;
    }

    /// Has a namespace share the group of another one.
    ///
    /// @throws IllegalStateException when the namespace holds memory already
    void join(int namespaceId, int other) {
        if (groupOf(namespaceId) != groupOf(other)) {
            requireNothingHeld(namespaceId);
            groupOf = Arrays.copyOf(groupOf, Math.max(groupOf.length, namespaceId + 1));
            groupOf[namespaceId] = groupOf(other);
        }
    }

    private void requireNothingHeld(int namespaceId) {
        for (int record = 0; record < pool.highWaterMark(); record++) {
            if (pool.hostPage(record) != NONE && RecordFlags.namespaceId(pool.flags(record)) == namespaceId) {
                throw new IllegalStateException("a namespace gets its weight before it holds anything");
            }
        }
    }

    int groupOf(int namespaceId) {
        return namespaceId < groupOf.length ? groupOf[namespaceId] : DEFAULT_GROUP;
    }

    int group(int record) {
        return weights.length == 1 ? DEFAULT_GROUP : groupOf(RecordFlags.namespaceId(pool.flags(record)));
    }

    /// A record got its slots.
    void onAllocated(int record) {
        heldBytes[group(record)] += charge(record);
    }

    /// A record's slots are free again.
    void onFreed(int record) {
        heldBytes[group(record)] -= charge(record);
    }

    long charge(int record) {
        return Math.max(minCharge, Pages.roundUp(pool.bytes(record)));
    }

    long heldBytes(int group) {
        return heldBytes[group];
    }

    int weight(int group) {
        return weights[group];
    }

    int groups() {
        return weights.length;
    }

    /// Returns whether a group would hold more than its share.
    boolean isBeyondShare(int group, long moreBytes) {
        return weights.length > 1 && heldBytes[group] + moreBytes > shareBytes(group);
    }

    /// Returns whether blocks of a group may not be evicted for another group that is beyond its share.
    boolean isProtected(int group, int asking) {
        return weights.length > 1 && group != asking && heldBytes[group] <= shareBytes(group);
    }

    private long shareBytes(int group) {
        long others =
                heldBytes[DEFAULT_GROUP] == 0 && group != DEFAULT_GROUP ? weights[DEFAULT_GROUP] : 0; // there are none
        return (long) ((double) totalBytes * weights[group] / (totalWeight - others));
    }

    /// Returns the bytes that a group may hold however much all others want.
    long guaranteedBytes(int group) {
        return (long) ((double) totalBytes * weights[group] / totalWeight);
    }

    /// The groups, the one that holds most for its weight first. Valid until the next call.
    int[] heaviestFirst() {
        for (int i = 1; i < order.length; i++) {
            int group = order[i];
            int at = i;
            for (; at > 0 && load(order[at - 1]) < load(group); at--) {
                order[at] = order[at - 1];
            }
            order[at] = group;
        }
        return order;
    }

    private double load(int group) {
        return (double) heldBytes[group] / weights[group];
    }

    /// One eviction policy for each slot class and group that has held blocks of it: a victim
    /// helps only the class whose slot it held, and whose it is is decided before.
    ///
    /// Policies number their queues with eight bits. When tenants and sizes are too many for that, the groups
    /// that come late go by their class's common policy: what is protected stays so, but among those who may be
    /// taken from it is the policy that chooses, and not the group that holds most.
    ///
    /// **Threads.** Owned by the store's lock.
    static final class SlotClassPolicies {

        /// Queues that groups leave to the orders of disks.
        private static final int RESERVED_FOR_DISKS = 16;

        /// And to the common policies of sizes that come later.
        private static final int RESERVED_FOR_SIZES = 16;

        private final EvictionPolicyFactory kind;
        private final RecordView records;
        private final SlabPool slabs;
        private final PolicyState state;
        /// By class and group; null where nothing was held yet.
        private final List<List<@Nullable EvictionPolicy>> byClass = new ArrayList<>();
        /// The same by class, each once, the common one first.
        private final List<List<EvictionPolicy>> instances = new ArrayList<>();

        SlotClassPolicies(EvictionPolicyFactory kind, RecordView records, SlabPool slabs) {
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

        /// Returns whether a group may have a policy of its own: the common ones of all classes can still be made
        /// then.
        private boolean leavesReserve() {
            return remainingQueues() >= (1 + Math.max(RESERVED_FOR_SIZES, missingCommonPolicies())) * kind.queueCount();
        }

        /// Returns whether another slot class would still get a policy.
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

        /// Returns whether the policies need a call for each block that an announced request will use.
        boolean usesAnnouncements() {
            return kind.usesAnnouncements();
        }

        /// Returns whether the policies use the labels and weights of callers.
        boolean usesLabels() {
            return kind.usesLabels();
        }

        /// Returns the comparison of all instances with plain LRU.
        LruFallback.Report fallbackReport() {
            LruFallback.Report all = LruFallback.Report.EMPTY;
            for (List<EvictionPolicy> groups : instances) {
                for (EvictionPolicy policy : groups) {
                    all = all.plus(policy.fallbackReport());
                }
            }
            return all;
        }

        /// Returns the state that the instances share.
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
}
