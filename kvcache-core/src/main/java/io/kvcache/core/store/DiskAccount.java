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
/// Groups of [Shares] have an order each here, and their bytes are counted apart. Room comes from whoever has most
/// here for his weight, so nobody pushes another out of his share of the disk. Orders have numbers of few bits: groups
/// for which there is none left share the order of those without a weight, and add their weights to its.
///
/// **Threads.** Owned by the store's lock.
final class DiskAccount {

    private final Shares shares;
    private final Supplier<@Nullable DiskLru> orders;
    private final long limitBytes;
    private final boolean ranked;
    private final Part common;
    private final List<Part> heaviestFirst = new ArrayList<>();
    private @Nullable Part[] parts = {};
    private long blocks;
    private long bytes;

    /// What goes by one order.
    private static final class Part {

        private static final Comparator<Part> BY_LOAD =
                Comparator.<Part>comparingDouble(part -> part.load).reversed();

        private final int group;
        private final DiskLru order;
        private final SecondChance secondChance = new SecondChance();
        private long bytes;
        private double load;

        Part(int group, DiskLru order) {
            this.group = group;
            this.order = order;
        }
    }

    /// @param order of the groups without one of their own
    /// @param orders makes one for a group, or answers null when there are enough
    /// @param limitBytes alive at most, in whole pages
    DiskAccount(Shares shares, DiskLru order, Supplier<@Nullable DiskLru> orders, long limitBytes, boolean ranked) {
        this.ranked = ranked;
        this.shares = shares;
        this.orders = orders;
        this.limitBytes = limitBytes;
        common = new Part(Shares.COMMON, order);
        heaviestFirst.add(common);
    }

    private @Nullable Part known(int group) {
        if (group == Shares.COMMON) {
            return common;
        }
        return group < parts.length ? parts[group] : null;
    }

    private Part part(int group) {
        Part known = known(group);
        if (known != null) {
            return known;
        }
        if (group >= parts.length) {
            parts = Arrays.copyOf(parts, group + 1);
        }
        DiskLru own = orders.get();
        Part made = own == null ? common : new Part(group, own);
        if (own != null) {
            heaviestFirst.add(made);
        }
        parts[group] = made;
        return made;
    }

    /// The order of a group.
    DiskLru order(int group) {
        return part(group).order;
    }

    void enter(int group, long pages) {
        blocks++;
        bytes += pages;
        part(group).bytes += pages;
    }

    void leave(int group, long pages) {
        blocks--;
        bytes -= pages;
        part(group).bytes -= pages;
    }

    /// Chooses what goes next of whoever has most for his weight, claims it and forgets it.
    ///
    /// @return the record, or -1 when nobody has anything that can be claimed
    int evict(IntPredicate claim) {
        return evictFrom(part -> part.order.evict(claim));
    }

    /// The same, but for what is spared on a disk that is ranked. Where that is all that somebody has,
    /// one of it goes all the same, and nothing of others.
    ///
    /// @param rank of a record
    int evictSparing(IntPredicate claim, IntToDoubleFunction rank) {
        if (!ranked) {
            return evict(claim);
        }
        return evictFrom(part -> {
            IntPredicate spared = record -> part.secondChance.spares(rank.applyAsDouble(record));
            int victim = part.order.evict(record -> !spared.test(record) && claim.test(record));
            return victim == NONE ? part.order.evict(claim) : victim;
        });
    }

    private int evictFrom(ToIntFunction<Part> order) {
        if (heaviestFirst.size() > 1) {
            heaviestFirst.forEach(part -> part.load = (double) part.bytes / weight(part));
            heaviestFirst.sort(Part.BY_LOAD);
        }
        for (Part part : heaviestFirst) {
            int victim = order.applyAsInt(part);
            if (victim != NONE) {
                return victim;
            }
        }
        return NONE;
    }

    /// Whether a group has no more here than its share, while others have something too.
    boolean isWithin(int group) {
        Part own = known(group);
        if (own == null || own.bytes == bytes) {
            return false;
        }
        long all = 0;
        for (Part part : heaviestFirst) {
            all += part.bytes > 0 ? weight(part) : 0;
        }
        return (double) own.bytes * all <= (double) limitBytes * weight(own);
    }

    private long weight(Part part) {
        long weight = shares.weight(part.group);
        for (int group = 0; part == common && group < parts.length; group++) {
            weight += parts[group] == common ? shares.weight(group) : 0;
        }
        return weight;
    }

    /// Whether the host tier's policy has a say in what stays, beside the last use.
    boolean ranked() {
        return ranked;
    }

    boolean isOver() {
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
        Part known = known(group);
        return known == null ? 0 : known.bytes;
    }

    /// The group by whose number the order of a group is known.
    int orderedWith(int group) {
        Part known = known(group);
        return known == null ? group : known.group;
    }

    /// Records that are on this disk alone.
    long alone() {
        return heaviestFirst.stream().mapToLong(part -> part.order.size()).sum();
    }
}
