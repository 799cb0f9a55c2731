package io.kvcache.core.store;

import static io.kvcache.core.policy.RecordView.NONE;

import io.kvcache.core.event.EventKind;
import io.kvcache.core.event.TierKind;
import io.kvcache.core.policy.PolicyState;
import io.kvcache.core.tier.TierOffer;
import io.kvcache.core.tree.BlockTree;
import io.kvcache.core.tree.Control;
import io.kvcache.core.tree.DiskNumber;
import io.kvcache.core.tree.RecordPool;
import java.util.ArrayDeque;
import java.util.List;

/// How records come to disk and leave it.
///
/// A record on disk has all blocks above it on disk: one is placed only when the block above is, and whoever
/// loses its place takes the places of all below it along.
///
/// **Threads.** Owned by the store's lock.
final class DiskLife {

    private final RecordPool pool;
    private final BlockTree tree;
    private final DiskLedger disks;
    private final Reports reports;
    private final Pins pins;
    private final Lifecycle lifecycle;
    private final Shares shares;
    private final Offload offload;
    private final Standing standing;
    private final PolicyState policies;

    DiskLife(StoreParts parts, Lifecycle lifecycle) {
        pool = parts.pool();
        tree = parts.tree();
        disks = parts.disks();
        reports = parts.reports();
        pins = parts.pins();
        shares = parts.shares();
        offload = parts.offload();
        policies = parts.policies().state();
        this.lifecycle = lifecycle;
        standing = new Standing(parts, lifecycle);
    }

    /// A record's copy was written or found.
    ///
    /// @return false when it may not count, because the block above is not on disk
    boolean place(int record, long place, int checksum) {
        if (!disks.carries(pool.parent(record))) {
            return false;
        }
        disks.place(record, place, checksum);
        pool.flag(record, Identity.USED_ON_DISK, false);
        lifecycle.copied(record);
        reports.stored(record, TierKind.DISK);
        connectBelow(record);
        return true;
    }

    /// Makes what was found below a record findable, now that the record is on disk.
    void connectBelow(int record) {
        if (!pool.hasChildren(record)) {
            return;
        }
        ArrayDeque<Integer> ready = new ArrayDeque<>();
        ready.add(record);
        while (!ready.isEmpty()) {
            tree.eachChild(ready.poll(), child -> {
                if (lifecycle.state(child) == Control.DETACHED) {
                    connect(child);
                    ready.add(child);
                }
            });
        }
    }

    /// Makes a record findable that was found on disk with all above it.
    void connect(int record) {
        pool.become(record, Control.ON_DISK, 0);
        policies.clearLabel(record);
        offload.found(record);
        disks.order(record).addRecovered(record);
        reports.entered(record);
        reports.stored(record, TierKind.DISK);
    }

    /// Forgets the copies on disk of a record and of all below it.
    void forget(int root) {
        int above = pool.parent(root);
        tree.eachBelow(root, record -> {
            if (pool.diskPlace(record) != NONE) {
                forgetOne(record);
            } else {
                lifecycle.freeIfDead(record);
            }
        });
        lifecycle.bury(above);
    }

    private void forgetOne(int record) {
        int state = lifecycle.state(record);
        if (state == Control.ON_DISK || state == Control.DETACHED) {
            lifecycle.doomBelow(record, EventKind.EVICTED);
        } else {
            reports.removed(record, EventKind.EVICTED, TierKind.DISK);
            lifecycle.buryObject(record);
            disks.unplace(record);
            lifecycle.copied(record);
        }
    }

    /// Forgets what a disk has of a run of record numbers.
    void forgetDisk(int disk, int from, int to) {
        for (int record = from; record < to; record++) {
            boolean there = lifecycle.state(record) != Control.FREE
                    && pool.diskPlace(record) != NONE
                    && DiskNumber.of(pool.diskPlace(record)) == disk;
            if (there) {
                forget(record);
            }
        }
    }

    /// Evicts what was used least recently of whoever has most for his weight, while more is alive
    /// on a disk than may be. On a disk that is ranked those are spared that the host tier's policy
    /// wants more than others.
    void trim(int disk) {
        DiskAccount account = disks.of(disk);
        while (account.isOver()) {
            int victim = account.evictSparing(record -> pins.claim(record, Control.ON_DISK), standing::rank);
            if (victim == NONE) {
                return;
            }
            lifecycle.evictedFromDisk(victim);
        }
    }

    /// Evicts one record that is on disk alone, whichever disk that is, to free the record itself.
    boolean freeRecord(int keep) {
        for (int disk = 0; disk < disks.disks(); disk++) {
            int victim = disks.of(disk).evict(record -> record != keep && pins.claim(record, Control.ON_DISK));
            if (victim != NONE) {
                lifecycle.evictedFromDisk(victim);
                return true;
            }
        }
        return false;
    }

    /// The record whose copy lies at a place, or -1.
    int at(long keyHi, long keyLo, long place) {
        for (int at = pool.bucketHead(keyLo); at != NONE; at = pool.bucketNext(at)) {
            if (pool.keyLo(at) == keyLo && pool.keyHi(at) == keyHi && pool.diskPlace(at) == place) {
                return at;
            }
        }
        return NONE;
    }

    /// What is alive of a part of a span that is about to be reclaimed.
    void live(int disk, TierOffer offer, int from, int to, List<Live> live) {
        boolean ranked = disks.of(disk).ranked();
        for (int i = from; i < to; i++) {
            int record = at(offer.keyHi(i), offer.keyLo(i), DiskNumber.place(disk, offer.place(i)));
            if (record != NONE) {
                boolean within = disks.of(disk).isWithin(shares.group(record));
                double rank = ranked ? standing.rank(record) : 0;
                live.add(new Live(i, record, within, isWanted(record), rank, worth(record)));
            }
        }
    }

    /// Forgets a copy that was not kept, if it still counts, with all below it.
    void refused(int disk, TierOffer offer, Live refused) {
        if (pool.diskPlace(refused.record) == DiskNumber.place(disk, offer.place(refused.index))) {
            forget(refused.record);
        }
    }

    /// A copy that counts.
    ///
    /// @param index in the offer
    /// @param within whether it is of somebody who has no more on this disk than his share: that is kept first
    /// @param wanted whether it is worth another write
    /// @param rank what the host tier's policy gives it on a disk that is ranked, 0 on others
    /// @param worth the same among those of one rank: first what has blocks below it, heads before
    ///     tails, then what was used last
    record Live(int index, int record, boolean within, boolean wanted, double rank, long worth) {}

    /// What is being read is in use.
    private boolean isWanted(int record) {
        int state = lifecycle.state(record);
        boolean loading = state == Control.LOADING || state == Control.LOADED;
        return offload.worthKeeping(record) || loading;
    }

    private long worth(int record) {
        if (pool.hasChildren(record)) {
            return Long.MAX_VALUE - pool.depth(record);
        }
        boolean alone = lifecycle.state(record) == Control.ON_DISK;
        return alone ? disks.order(record).lastUse(record) : Long.MAX_VALUE / 2;
    }
}
