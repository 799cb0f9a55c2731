package io.kvcache.core.store;

import static io.kvcache.core.policy.RecordView.NONE;

import io.kvcache.core.memory.Pages;
import io.kvcache.core.policy.DiskLru;
import io.kvcache.core.policy.PolicyState;
import io.kvcache.core.policy.RecordView;
import io.kvcache.core.tree.BlockTree;
import io.kvcache.core.tree.ControlWord;
import io.kvcache.core.tree.DiskAddress;
import io.kvcache.core.tree.RecordPool;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// What lies on each disk: how much of it is alive, how much may be, and what goes first.
///
/// A record that is on disk and nowhere else is in its disk's order; one that is resident as well goes by the
/// host tier's policy, and is never the next to go here.
///
/// **Threads.** Owned by the store's lock.
final class DiskUsageTable {

    /// Orders of all disks together, beyond one for each disk: their numbers are eight bits, and the host tier's
    /// policies need most of them.
    private static final int MAX_ORDERS = 16;

    private final RecordPool pool;
    private final BlockTree tree;
    private final PolicyState state;
    private final RecordView view;
    private final MemoryShares shares;
    private final List<DiskUsage> usages = new ArrayList<>();
    private int orders;

    DiskUsageTable(RecordPool pool, BlockTree tree, PolicyState state, MemoryShares shares) {
        this.shares = shares;
        this.pool = pool;
        this.tree = tree;
        this.state = state;
        view = new AllTiersView(pool);
    }

    /// Adds a disk.
    ///
    /// @param limitBytes alive at most, in whole pages
    /// @param ranked see [DiskUsage#isRanked]
    /// @return its number
    int addDisk(long limitBytes, boolean ranked) {
        if (usages.size() == DiskAddress.MAX_DISKS) {
            throw new IllegalArgumentException("a store takes at most " + DiskAddress.MAX_DISKS + " disks");
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

    /// Gives a record its place; it had none.
    void setAddress(int record, long address, int checksum) {
        assert pool.diskAddress(record) == NONE : "record " + record + " has a place";
        tree.setDiskAddress(record, address, checksum);
        usageOf(record).add(shares.group(record), pages(record));
    }

    /// The record's copy was written elsewhere on the same disk.
    void updateAddress(int record, long address) {
        assert DiskAddress.diskOf(address) == DiskAddress.diskOf(pool.diskAddress(record)) : "moved to another disk";
        pool.diskAddress(record, address);
    }

    /// Takes a record's place away; it is in no order.
    void clearAddress(int record) {
        usageOf(record).remove(shares.group(record), pages(record));
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

    /// Whether blocks below this one may lie on disk: it does, or it is no block at all.
    boolean allowsChildren(int record) {
        return record == NONE
                || (pool.diskAddress(record) != NONE && ControlWord.isKnown(ControlWord.state(pool.control(record))));
    }

    private DiskUsage usageOf(int record) {
        return usages.get(DiskAddress.diskOf(pool.diskAddress(record)));
    }

    /// What a record takes on disk.
    long pages(int record) {
        return Pages.roundUp(pool.bytes(record));
    }

    /// Records as the orders see them: whoever has a child of any kind is no leaf.
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
