package io.kvcache.core.store;

import static io.kvcache.core.policy.RecordView.NONE;

import io.kvcache.core.codec.StoredLayout;
import io.kvcache.core.memory.Pages;
import io.kvcache.core.policy.DiskLru;
import io.kvcache.core.policy.PolicyState;
import io.kvcache.core.policy.RecordView;
import io.kvcache.core.tree.BlockTree;
import io.kvcache.core.tree.ControlWord;
import io.kvcache.core.tree.DiskAddress;
import io.kvcache.core.tree.RecordFlags;
import io.kvcache.core.tree.RecordPool;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Comparator;
import java.util.List;
import java.util.function.IntPredicate;
import java.util.function.IntToDoubleFunction;
import java.util.function.Supplier;
import java.util.function.ToIntFunction;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// Live bytes on one disk, and the order in which they are evicted from it.
///
/// Groups of [MemoryShares] have an order each here, and their bytes are counted apart. Room comes from the group
/// with most bytes here for its weight, so a group never loses its share of the disk to another. Order numbers
/// have few bits. Groups that get none share the order of those without a weight, and add their weights to its.
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

    /// The blocks and bytes in one order.
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

    /// Chooses what goes next of the group that has most for its weight, claims it and forgets it.
    ///
    /// @return the record, or -1 when no group has anything that can be claimed
    int evict(IntPredicate claim) {
        return evictFrom(groupUsage -> groupUsage.order.evict(claim));
    }

    /// The same, but for what is spared on a disk that is ranked. Where that is all that a group has,
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

    /// Returns whether a group has no more here than its share, while others have something too.
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

    /// Returns whether the host tier's policy ranks blocks, beside the last use.
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

    /// Spares some of the least recently used blocks, because the host tier's policy ranks them higher than other
    /// candidates. A block is spared when its rank is a quarter above the mean of the candidates before, and so
    /// many in a row at most. A spared block counts as used now.
    ///
    /// So blocks of about equal rank leave in order of last use, and so do all blocks under a policy without
    /// ranks.
    ///
    /// **Threads.** Owned by the store's lock.
    static final class RankedSecondChance {

        private static final int MAX_IN_A_ROW = 16;

        /// Candidates that the mean is of, about.
        private static final int MEMORY = 64;

        private static final double MARGIN = 1.25;

        private double mean = Double.NaN;
        private int inARow;

        /// Returns whether the next candidate is spared.
        ///
        /// @param rank of the candidate, 0 and up; infinite for a record in use, which says nothing of others
        boolean isExempt(double rank) {
            double before = mean;
            if (rank < Double.POSITIVE_INFINITY) {
                mean = Double.isNaN(before) ? rank : before + (rank - before) / MEMORY;
            }
            inARow = rank > MARGIN * before && inARow < MAX_IN_A_ROW ? inARow + 1 : 0;
            return inARow > 0;
        }
    }

    /// Contents of each disk: live bytes, their limit, and the order of eviction.
    ///
    /// A record that is on disk and nowhere else is in its disk's order; one that is resident as well goes by the
    /// host tier's policy, and is never the next to go here.
    ///
    /// **Threads.** Owned by the store's lock.
    static final class DiskUsageTable {

        /// Orders of all disks together, beyond one for each disk: their numbers are eight bits, and the host
        /// tier's policies need most of them.
        private static final int MAX_ORDERS = 16;

        private final RecordPool pool;
        private final BlockTree tree;
        private final PolicyState state;
        private final RecordView view;
        private final MemoryShares shares;
        private final List<DiskUsage> usages = new ArrayList<>();
        private int orders;
        /// Number of the first device in front of disks, or -1.
        private int firstFront = NONE;
        /// By record: its copy on a device in front of the disks, or -1; empty where there is none.
        private long[] frontAddresses = {};
        /// Records whose copy in front of the disks was used since it came there, or was last kept.
        private final BitSet usedInFront = new BitSet();
        /// Records that a device has copies of; read by anyone.
        private int onDevice;

        DiskUsageTable(RecordPool pool, BlockTree tree, PolicyState state, MemoryShares shares) {
            this.shares = shares;
            this.pool = pool;
            this.tree = tree;
            this.state = state;
            view = new AllTiersView(pool);
        }

        /// Adds a disk or a device. A device behind disks in this order is in front of them: it keeps copies.
        ///
        /// @param limitBytes alive at most, in whole pages
        /// @param ranked see [DiskUsage#isRanked]
        /// @return its number
        int addDisk(long limitBytes, boolean ranked) {
            if (usages.size() == DiskAddress.MAX_DISKS) {
                throw new IllegalArgumentException(
                        "a store takes at most " + DiskAddress.MAX_DISKS + " disks and devices");
            }
            if (ranked && firstFront == NONE && usages.stream().anyMatch(usage -> !usage.isRanked)) {
                firstFront = usages.size();
                frontAddresses = new long[pool.capacity()];
                Arrays.fill(frontAddresses, NONE);
            }
            orders++;
            usages.add(new DiskUsage(shares, new DiskLru(view, state), this::newOrder, limitBytes, ranked));
            return usages.size() - 1;
        }

        private @Nullable DiskLru newOrder() {
            if (orders >= MAX_ORDERS) {
                return null;
            }
            orders++;
            return new DiskLru(view, state);
        }

        int disks() {
            return usages.size();
        }

        /// Returns whether an address, or -1, is on a disk and not in the memory of a device.
        boolean isOnDisk(long address) {
            return address != NONE && !isDevice(DiskAddress.diskOf(address));
        }

        /// Returns whether a number is that of a device.
        boolean isDevice(int disk) {
            return usage(disk).isRanked;
        }

        /// Returns whether a number is that of a device in front of disks, which keeps copies of what they have.
        boolean isFront(int disk) {
            return firstFront != NONE && disk >= firstFront;
        }

        /// Returns the device that keeps a copy of a record, if it is worth one; -1 where there is none.
        int frontOf(int record) {
            return firstFront == NONE
                    ? NONE
                    : firstFront + (int) ((pool.keyLo(record) >>> 1) % (usages.size() - firstFront));
        }

        /// Returns the address of a record's copy in front of the disks, or -1.
        long frontAddress(int record) {
            return firstFront == NONE ? NONE : frontAddresses[record];
        }

        /// Returns which tier a record is read from that has an address.
        int sourceOf(int record) {
            return DiskAddress.diskOf(frontAddress(record) == NONE ? pool.diskAddress(record) : frontAddress(record));
        }

        /// Gives a record a copy in front of the disks; it had none.
        void setFrontAddress(int record, long address) {
            assert frontAddresses[record] == NONE : "record " + record + " has a copy in front";
            frontAddresses[record] = address;
            usedInFront.clear(record);
            usage(DiskAddress.diskOf(address)).add(MemoryShares.DEFAULT_GROUP, frontPages(record));
            markOnDevice(record, true);
        }

        /// The copy in front was written elsewhere on the same device.
        void updateFrontAddress(int record, long address) {
            frontAddresses[record] = address;
        }

        /// Takes the copy in front away from a record that has one.
        void clearFrontAddress(int record) {
            usage(DiskAddress.diskOf(frontAddresses[record])).remove(MemoryShares.DEFAULT_GROUP, frontPages(record));
            frontAddresses[record] = NONE;
            markOnDevice(record, false);
        }

        /// A record's copy in front, if there is one, is used.
        void onUsedInFront(int record) {
            if (frontAddress(record) != NONE) {
                usedInFront.set(record);
            }
        }

        /// Returns whether a record's copy in front was used since it came there or this was asked last.
        boolean testAndClearUsedInFront(int record) {
            boolean used = usedInFront.get(record);
            usedInFront.clear(record);
            return used;
        }

        /// Returns the bytes that a record takes on a device, in whole pages.
        long frontPages(int record) {
            return Pages.offset(StoredLayout.PLAIN.pages((int) pool.bytes(record)));
        }

        /// Returns how many records devices have copies of. Any thread; it may be a moment behind.
        int onDevice() {
            return onDevice;
        }

        private void markOnDevice(int record, boolean isThere) {
            pool.setFlags(record, RecordFlags.ON_DEVICE, isThere);
            onDevice += isThere ? 1 : -1;
        }

        /// Gives a record its place; it had none.
        void setAddress(int record, long address, int checksum) {
            assert pool.diskAddress(record) == NONE : "record " + record + " has a place";
            tree.setDiskAddress(record, address, checksum);
            usageOf(record).add(shares.group(record), pages(record));
            if (isDevice(DiskAddress.diskOf(address))) {
                markOnDevice(record, true);
            }
        }

        /// The record's copy was written elsewhere on the same disk.
        void updateAddress(int record, long address) {
            assert DiskAddress.diskOf(address) == DiskAddress.diskOf(pool.diskAddress(record))
                    : "moved to another disk";
            assert StoredLayout.ofAddress(DiskAddress.localAddress(address))
                            .equals(StoredLayout.ofAddress(DiskAddress.localAddress(pool.diskAddress(record))))
                    : "lies otherwise than before";
            pool.diskAddress(record, address);
        }

        /// Takes a record's place away; it is in no order.
        void clearAddress(int record) {
            usageOf(record).remove(shares.group(record), pages(record));
            if (!isOnDisk(pool.diskAddress(record))) {
                markOnDevice(record, false);
            }
            tree.clearDiskAddress(record);
        }

        /// The order of the disk that a record is on, and of its group.
        DiskLru order(int record) {
            return usageOf(record).order(shares.group(record));
        }

        /// Has another group own a namespace, and with it what the namespace has on disks.
        ///
        /// @param change of the group
        void regroup(int namespaceId, Runnable change) {
            IntStream.Builder placed = IntStream.builder();
            for (int record = 0; !usages.isEmpty() && record < pool.highWaterMark(); record++) {
                if (isOnDisk(record, namespaceId)) {
                    placed.add(record);
                }
            }
            int[] records = placed.build().toArray();
            long[] lastUses = new long[records.length];
            for (int i = 0; i < records.length; i++) {
                usageOf(records[i]).remove(shares.group(records[i]), pages(records[i]));
                lastUses[i] = order(records[i]).remove(records[i]);
            }
            try {
                change.run();
            } finally {
                for (int i = 0; i < records.length; i++) {
                    usageOf(records[i]).add(shares.group(records[i]), pages(records[i]));
                    order(records[i]).insert(records[i], lastUses[i]);
                }
            }
        }

        private boolean isOnDisk(int record, int namespaceId) {
            return ControlWord.state(pool.control(record)) != ControlWord.FREE
                    && pool.diskAddress(record) != NONE
                    && RecordFlags.namespaceId(pool.flags(record)) == namespaceId;
        }

        /// The account of a disk.
        DiskUsage usage(int disk) {
            return usages.get(disk);
        }

        /// Returns whether blocks below this one may lie on disk: it does itself, or is `NONE`.
        boolean allowsChildren(int record) {
            return record == NONE
                    || (pool.diskAddress(record) != NONE
                            && ControlWord.isKnown(ControlWord.state(pool.control(record))));
        }

        private DiskUsage usageOf(int record) {
            return usages.get(DiskAddress.diskOf(pool.diskAddress(record)));
        }

        /// Returns the bytes that a record takes on its disk, in whole pages.
        long pages(int record) {
            long address = DiskAddress.localAddress(pool.diskAddress(record));
            return Pages.offset(StoredLayout.ofAddress(address).pages((int) pool.bytes(record)));
        }

        /// Records as the orders see them: a record with a child of any kind is not a leaf.
        private record AllTiersView(RecordPool pool) implements RecordView {
            @Override
            public int capacity() {
                return pool.capacity();
            }

            @Override
            public int parent(int record) {
                return pool.parent(record);
            }

            @Override
            public int depth(int record) {
                return pool.depth(record);
            }

            @Override
            public int residentChildren(int record) {
                return pool.hasChildren(record) ? 1 : 0;
            }

            @Override
            public long bytes(int record) {
                return pool.bytes(record);
            }

            @Override
            public long fingerprint(int record) {
                return pool.fingerprint(record);
            }
        }
    }
}
