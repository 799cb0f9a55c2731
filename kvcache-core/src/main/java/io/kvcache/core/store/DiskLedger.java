package io.kvcache.core.store;

import static io.kvcache.core.policy.RecordView.NONE;

import io.kvcache.core.policy.DiskLru;
import io.kvcache.core.policy.PolicyState;
import io.kvcache.core.policy.RecordView;
import io.kvcache.core.tree.BlockTree;
import io.kvcache.core.tree.Control;
import io.kvcache.core.tree.DiskNumber;
import io.kvcache.core.tree.RecordPool;
import java.util.ArrayList;
import java.util.List;

/// What lies on each disk: how much of it is alive, how much may be, and what goes first.
///
/// A record that is on disk and nowhere else is in its disk's order; one that is resident as well goes by the
/// host tier's policy, and is never the next to go here.
///
/// **Threads.** Owned by the store's lock.
final class DiskLedger {

    private final RecordPool pool;
    private final BlockTree tree;
    private final PolicyState state;
    private final RecordView view;
    private final List<Account> accounts = new ArrayList<>();

    private static final class Account {
        private final DiskLru order;
        private final long limitBytes;
        private long blocks;
        private long bytes;

        Account(DiskLru order, long limitBytes) {
            this.order = order;
            this.limitBytes = limitBytes;
        }
    }

    DiskLedger(RecordPool pool, BlockTree tree, PolicyState state) {
        this.pool = pool;
        this.tree = tree;
        this.state = state;
        view = new AnyChild(pool);
    }

    /// Adds a disk.
    ///
    /// @param limitBytes alive at most, in whole pages
    /// @return its number
    int open(long limitBytes) {
        if (accounts.size() == DiskNumber.MOST) {
            throw new IllegalArgumentException("a store takes at most " + DiskNumber.MOST + " disks");
        }
        accounts.add(new Account(new DiskLru(view, state), limitBytes));
        return accounts.size() - 1;
    }

    int disks() {
        return accounts.size();
    }

    /// Gives a record its place; it had none.
    void place(int record, long place, int checksum) {
        assert pool.diskPlace(record) == NONE : "record " + record + " has a place";
        tree.place(record, place, checksum);
        Account account = accounts.get(DiskNumber.of(place));
        account.blocks++;
        account.bytes += pages(record);
    }

    /// The record's copy was written elsewhere on the same disk.
    void move(int record, long place) {
        assert DiskNumber.of(place) == DiskNumber.of(pool.diskPlace(record)) : "moved to another disk";
        pool.diskPlace(record, place);
    }

    /// Takes a record's place away; it is in no order.
    void unplace(int record) {
        Account account = account(record);
        account.blocks--;
        account.bytes -= pages(record);
        tree.unplace(record);
    }

    /// The order of the disk that a record is on.
    DiskLru order(int record) {
        return account(record).order;
    }

    DiskLru orderOf(int disk) {
        return accounts.get(disk).order;
    }

    /// Whether more is alive on a disk than may be.
    boolean over(int disk) {
        return accounts.get(disk).bytes > accounts.get(disk).limitBytes;
    }

    long blocks(int disk) {
        return accounts.get(disk).blocks;
    }

    long bytes(int disk) {
        return accounts.get(disk).bytes;
    }

    long limitBytes(int disk) {
        return accounts.get(disk).limitBytes;
    }

    /// Whether blocks below this one may lie on disk: it does, or it is no block at all.
    boolean carries(int record) {
        return record == NONE || (pool.diskPlace(record) != NONE && Control.known(Control.state(pool.control(record))));
    }

    private Account account(int record) {
        return accounts.get(DiskNumber.of(pool.diskPlace(record)));
    }

    private long pages(int record) {
        return (pool.bytes(record) + 4095) & -4096;
    }

    /// Records as the orders see them: whoever has a child of any kind is no leaf.
    private record AnyChild(RecordPool pool) implements RecordView {
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
