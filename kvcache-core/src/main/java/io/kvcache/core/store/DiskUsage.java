package io.kvcache.core.store;

import static io.kvcache.core.policy.RecordView.NONE;

import io.kvcache.core.policy.DiskLru;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.function.IntPredicate;
import java.util.function.IntToDoubleFunction;
import java.util.function.Supplier;
import java.util.function.ToIntFunction;
import org.jspecify.annotations.Nullable;

/// What is alive on one disk, and which of it goes first.
///
/// Groups of [MemoryShares] have an order each here, and their bytes are counted apart. Room comes from whoever has
/// most here for his weight, so nobody pushes another out of his share of the disk. Orders have numbers of few bits:
/// groups for which there is none left share the order of those without a weight, and add their weights to its.
///
/// **Threads.** Owned by the store's lock.
final class DiskUsage {

    private final MemoryShares shares;
    private final Supplier<@Nullable DiskLru> orders;
    private final long limitBytes;
    private final boolean isRanked;
    private final GroupUsage common;
    private final List<GroupUsage> heaviestFirst = new ArrayList<>();
    private @Nullable GroupUsage[] parts = {};
    private long blocks;
    private long bytes;

    /// What goes by one order.
    private static final class GroupUsage {

        private static final Comparator<GroupUsage> BY_LOAD = Comparator.<GroupUsage>comparingDouble(
                        groupUsage -> groupUsage.load)
                .reversed();

        private final int group;
        private final DiskLru order;
        private final RankedSecondChance rankedSecondChance = new RankedSecondChance();
        private long bytes;
        private double load;

        GroupUsage(int group, DiskLru order) {
            this.group = group;
            this.order = order;
        }
    }

    /// @param order of the groups without one of their own
    /// @param orders makes one for a group, or answers null when there are enough
    /// @param limitBytes alive at most, in whole pages
    DiskUsage(MemoryShares shares, DiskLru order, Supplier<@Nullable DiskLru> orders, long limitBytes, boolean ranked) {
        this.isRanked = ranked;
        this.shares = shares;
        this.orders = orders;
        this.limitBytes = limitBytes;
        common = new GroupUsage(MemoryShares.DEFAULT_GROUP, order);
        heaviestFirst.add(common);
    }

    private @Nullable GroupUsage findPart(int group) {
        if (group == MemoryShares.DEFAULT_GROUP) {
            return common;
        }
        return group < parts.length ? parts[group] : null;
    }

    private GroupUsage partFor(int group) {
        GroupUsage known = findPart(group);
        if (known != null) {
            return known;
        }
        if (group >= parts.length) {
            parts = Arrays.copyOf(parts, group + 1);
        }
        DiskLru own = orders.get();
        GroupUsage made = own == null ? common : new GroupUsage(group, own);
        if (own != null) {
            heaviestFirst.add(made);
        }
        parts[group] = made;
        return made;
    }

    /// The order of a group.
    DiskLru order(int group) {
        return partFor(group).order;
    }

    void add(int group, long pages) {
        blocks++;
        bytes += pages;
        partFor(group).bytes += pages;
    }

    void remove(int group, long pages) {
        blocks--;
        bytes -= pages;
        partFor(group).bytes -= pages;
    }

    /// Chooses what goes next of whoever has most for his weight, claims it and forgets it.
    ///
    /// @return the record, or -1 when nobody has anything that can be claimed
    int evict(IntPredicate claim) {
        return evictFrom(groupUsage -> groupUsage.order.evict(claim));
    }

    /// The same, but for what is spared on a disk that is ranked. Where that is all that somebody has,
    /// one of it goes all the same, and nothing of others.
    ///
    /// @param rank of a record
    int evictUnlessExempt(IntPredicate claim, IntToDoubleFunction rank) {
        if (!isRanked) {
            return evict(claim);
        }
        return evictFrom(groupUsage -> {
            IntPredicate spared = record -> groupUsage.rankedSecondChance.isExempt(rank.applyAsDouble(record));
            int victim = groupUsage.order.evict(record -> !spared.test(record) && claim.test(record));
            return victim == NONE ? groupUsage.order.evict(claim) : victim;
        });
    }

    private int evictFrom(ToIntFunction<GroupUsage> order) {
        if (heaviestFirst.size() > 1) {
            heaviestFirst.forEach(groupUsage -> groupUsage.load = (double) groupUsage.bytes / weight(groupUsage));
            heaviestFirst.sort(GroupUsage.BY_LOAD);
        }
        for (GroupUsage groupUsage : heaviestFirst) {
            int victim = order.applyAsInt(groupUsage);
            if (victim != NONE) {
                return victim;
            }
        }
        return NONE;
    }

    /// Whether a group has no more here than its share, while others have something too.
    boolean isWithinShare(int group) {
        GroupUsage own = findPart(group);
        if (own == null || own.bytes == bytes) {
            return false;
        }
        long all = 0;
        for (GroupUsage groupUsage : heaviestFirst) {
            all += groupUsage.bytes > 0 ? weight(groupUsage) : 0;
        }
        return (double) own.bytes * all <= (double) limitBytes * weight(own);
    }

    private long weight(GroupUsage groupUsage) {
        long weight = shares.weight(groupUsage.group);
        for (int group = 0; groupUsage == common && group < parts.length; group++) {
            weight += parts[group] == common ? shares.weight(group) : 0;
        }
        return weight;
    }

    /// Whether the host tier's policy has a say in what stays, beside the last use.
    boolean isRanked() {
        return isRanked;
    }

    boolean isOverLimit() {
        return bytes > limitBytes;
    }

    long blocks() {
        return blocks;
    }

    long bytes() {
        return bytes;
    }

    long limitBytes() {
        return limitBytes;
    }

    /// Bytes of the groups that share an order with this one.
    long bytes(int group) {
        GroupUsage known = findPart(group);
        return known == null ? 0 : known.bytes;
    }

    /// The group by whose number the order of a group is known.
    int orderGroup(int group) {
        GroupUsage known = findPart(group);
        return known == null ? group : known.group;
    }

    /// Records that are on this disk alone.
    long exclusiveRecords() {
        return heaviestFirst.stream()
                .mapToLong(groupUsage -> groupUsage.order.size())
                .sum();
    }
}
