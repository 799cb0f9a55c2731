package io.kvcache.core.store;

import static io.kvcache.core.policy.RecordView.NONE;

import io.kvcache.core.cost.PrefillCost;
import io.kvcache.core.event.EventKind;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.core.tier.TierBlock;
import io.kvcache.core.tier.TierBurial;
import io.kvcache.core.tier.TierOffer;
import io.kvcache.core.tree.Control;
import io.kvcache.core.tree.DiskNumber;
import io.kvcache.core.tree.RecordPool;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// The store as its disks see it: what is to be written, what was written, found, read, reclaimed, lost.
///
/// Places are numbers that a disk hands out, see [DiskNumber]: below 2^59, and never the same twice while
/// anything lies there.
///
/// **Threads.** Any; takes the store's lock, for metadata only.
public final class Disks {

    /// Records looked at in one turn of the lock.
    private static final int TURN = 4096;

    private final StoreParts parts;
    private final RecordPool pool;
    private final Offload offload;
    private final Lifecycle lifecycle;
    private final DiskLife diskLife;
    private final Room room;
    private final Restore restore;
    private final Writes writes;
    private final RecordViews views;
    private final Offers offers;
    private final Unsaved unsaved;
    private final Standing standing;
    private final ReentrantLock lock;

    Disks(StoreParts parts, Lifecycle lifecycle, DiskLife diskLife, Room room, ReentrantLock lock) {
        this.room = room;
        this.parts = parts;
        pool = parts.pool();
        offload = parts.offload();
        this.lifecycle = lifecycle;
        this.diskLife = diskLife;
        this.restore = new Restore(parts, lifecycle, diskLife);
        this.writes = new Writes(parts, lifecycle, diskLife);
        unsaved = new Unsaved(parts, lifecycle, lock);
        standing = new Standing(parts, lifecycle);
        this.offers = new Offers(diskLife, lock);
        views = new RecordViews(pool, parts.slabs());
        this.lock = lock;
    }

    /// Whether there is a disk to write to. Disks are opened before anything is put.
    public boolean any() {
        return parts.disks().disks() > 0;
    }

    /// Adds a disk on which what stays goes by last use, see [#open(long, boolean)].
    public int open(long limitBytes) {
        return open(limitBytes, false);
    }

    /// Adds a disk, before any is used.
    ///
    /// @param limitBytes alive on it at most, each block in whole pages
    /// @param ranked whether the host tier's policy has a say in what stays there, which goes by last use otherwise
    /// @return its number
    public int open(long limitBytes, boolean ranked) {
        return locked(() -> {
            int disk = parts.disks().open(limitBytes, ranked);
            offload.prospects().opened(limitBytes);
            restore.telling(disk);
            return disk;
        });
    }

    /// Begins to choose what is written.
    ///
    /// @param waitingLimit bytes that may wait to be written
    /// @param eachLimit a larger block is not written, nor what is below it
    /// @param gain what one use of a block saves in units of what its write costs; for [AdmissionKind#VALUE]
    public void admit(AdmissionKind kind, long waitingLimit, long eachLimit, double gain) {
        locked(() -> offload.begin(kind, waitingLimit, eachLimit, gain));
    }

    /// Says whether any disk can be written to. While none can, nothing waits for that.
    public void writable(boolean can) {
        locked(() -> offload.writable(can));
    }

    /// A resident record that is pinned to be written.
    ///
    /// @param pages its slots, in whole pages
    public record Write(int record, TierBlock block, List<MemorySegment> pages) {}

    /// Takes the next record that is to be written and pins it; or null when none waits. [#written] ends
    /// it.
    ///
    /// None is to be written to a disk that has a burial to be told of first: it might be of an older copy
    /// of the same key, and would then be taken to mean the new one.
    public @Nullable Write nextWrite(int disk) {
        lock.lock();
        try {
            int record = offload.burials().isEmpty(disk) ? offload.next() : NONE;
            return record == NONE ? null : new Write(record, views.block(record), views.pages(record));
        } finally {
            lock.unlock();
        }
    }

    /// A write has ended. While the block above is still on its way to another disk, so is this one.
    ///
    /// @param disk where
    /// @param place or -1 when nothing was written
    public void written(int record, int disk, long place) {
        locked(() -> writes.ended(record, disk, place));
    }

    /// What does not count any longer on a disk, to be told to it before anything else is written; null
    /// when there is nothing.
    public @Nullable TierBurial nextBurial(int disk) {
        return locked(() -> offload.burials().next(disk));
    }

    /// A disk was not told of a burial, and cannot be now; it is to be told first when it can.
    public void notTold(int disk, TierBurial burial) {
        locked(() -> offload.burials().first(burial, disk));
    }

    /// A disk cannot be told of burials now. They are kept until it is back, as far as that may be; else
    /// whole namespaces are buried there.
    public void holdBurials(int disk) {
        locked(() -> offload.burials().hold(disk));
    }

    /// A disk could not write a burial. It is to be told again, unless a newer copy counts there by now.
    /// Behind the burial of a namespace nothing may be written before it has ended.
    public void notBuried(int disk, TierBurial burial) {
        locked(() -> offload.notBuried(burial, parts.tree().findAny(burial.keyHi(), burial.keyLo()), disk));
    }

    /// Records that were queued for writing by now: all of them are done with once [#settled] has reached
    /// this number.
    public long mark() {
        return locked(() -> offload.mark());
    }

    /// So many of the records that were ever queued are done with, in their order.
    public long settled() {
        return locked(() -> offload.settled());
    }

    /// How often a record that was to be written was not, and stayed in host memory: because the disk
    /// failed, or because the block above it left the disk. While this does not change, all that [#mark]
    /// counted is on disk once [#settled] has reached it, unless it was evicted or dropped.
    public long unwritten() {
        return locked(() -> offload.unwritten());
    }

    /// Registers a namespace that a disk has blocks of.
    ///
    /// @throws IllegalArgumentException as [HostStore#register] says
    public int namespaceId(Namespace namespace) {
        return locked(() -> {
            NamespaceEntry known = parts.namespaces().find(namespace);
            return (known == null ? Registration.add(parts, namespace) : known).id();
        });
    }

    /// The namespace of a number.
    public Namespace namespace(int id) {
        return parts.namespaces().byId(id).namespace();
    }

    /// A disk is being opened, and will tell what it holds: not while others' [#restored] goes on.
    public void telling(int disk) {
        locked(() -> restore.telling(disk));
    }

    /// A copy was found at opening; newer ones come first.
    ///
    /// @return whether it counts
    public boolean found(int disk, TierBlock block, long place) {
        return locked(() -> restore.found(block, DiskNumber.place(disk, place)));
    }

    /// Copies of a key that the disk tells of from now on do not count.
    public void buried(int disk, long keyHi, long keyLo) {
        locked(() -> restore.buried(disk, keyHi, keyLo));
    }

    /// All disks that told what they held have done so.
    public void restored() {
        boolean more = true;
        for (int from = 0; more; from += TURN) {
            int first = from;
            more = locked(() -> restore.dropOrphans(first, TURN));
        }
        for (int disk = 0; disk < parts.disks().disks(); disk++) {
            int each = disk;
            locked(() -> diskLife.trim(each));
        }
    }

    /// A span of a disk is about to be reclaimed: keeps all that is alive, as far as that may be, and
    /// forgets the rest with all below it; a bounded number of records a turn of the lock.
    public void offered(int disk, TierOffer offer) {
        offers.choose(disk, offer);
        locked(() -> {
            restore.offered(disk, offer);
            writes.offered(disk, offer);
        });
    }

    /// A copy was written elsewhere on its disk.
    public void moved(int disk, TierBlock block, long from, long to) {
        locked(() -> {
            int record = diskLife.at(block.keyHi(), block.keyLo(), DiskNumber.place(disk, from));
            if (record != NONE) {
                parts.disks().move(record, DiskNumber.place(disk, to));
            }
            restore.moved(DiskNumber.place(disk, from), DiskNumber.place(disk, to));
            writes.moved(disk, from, to);
        });
    }

    /// A copy is lost: forgets it and all below it.
    public void lost(int disk, TierBlock block, long place) {
        locked(() -> {
            int record = diskLife.at(block.keyHi(), block.keyLo(), DiskNumber.place(disk, place));
            if (record != NONE) {
                diskLife.forget(record);
            }
            restore.moved(DiskNumber.place(disk, place), NONE);
            writes.moved(disk, place, NONE);
        });
    }

    /// A key was dropped: what disks tell of it from now on is older. Under the lock.
    void overtaken(long keyHi, long keyLo) {
        restore.overtaken().dropped(keyHi, keyLo);
    }

    /// An object was put: what disks tell of its key from now on is older. Under the lock.
    void overtakenByPut(long keyHi, long keyLo) {
        restore.overtaken().put(keyHi, keyLo);
    }

    /// A namespace is being dropped: what disks tell of it from now on is older. Under the lock.
    void overtaken(int namespaceId) {
        restore.overtaken().add(namespaceId);
    }

    /// What was dropped is not to come back from any disk. Under the lock.
    void dropped(TierBurial burial) {
        offload.burials().buryOnAll(burial, parts.disks().disks());
    }

    /// A whole disk is lost: forgets all its copies, a bounded number of records a turn of the lock.
    public void lost(int disk) {
        locked(() -> {
            restore.out(disk);
            writes.out(disk);
        });
        for (int from = 0; from < pool.capacity(); from += TURN) {
            lock.lock();
            try {
                int to = Math.min(pool.highWater(), from + TURN);
                diskLife.forgetDisk(disk, from, to);
                if (to == pool.highWater()) {
                    return;
                }
            } finally {
                lock.unlock();
            }
        }
    }

    /// A record on disk that was given a slot, to be read into it.
    ///
    /// @param place as the disk knows it
    /// @param block with the checksum that the bytes must have
    /// @param pages its slots, in whole pages
    public record Read(int record, int disk, long place, TierBlock block, List<MemorySegment> pages) {}

    /// What is to be read for a load that was started, or null when nobody waits for it any longer: then
    /// the record is on disk as before, and [#read] is not to be called.
    ///
    /// @param wanted whether to read it though nobody but the load has a pin
    public @Nullable Read nextRead(int record, boolean wanted) {
        lock.lock();
        try {
            long control = pool.control(record);
            boolean awaited = wanted || Control.pins(control) > 1 || pool.residentChildren(record) > 0;
            if (Control.state(control) != Control.LOADING || !awaited || pool.diskPlace(record) == NONE) {
                lifecycle.giveUp(record);
                return null;
            }
            long place = pool.diskPlace(record);
            int disk = DiskNumber.of(place);
            return new Read(record, disk, DiskNumber.own(place), views.onDisk(record), views.pages(record));
        } finally {
            lock.unlock();
        }
    }

    /// A read has ended.
    ///
    /// @param good whether the bytes are there and have their checksum
    /// @param lost whether the copy is to be forgotten
    public void read(int record, int checksum, boolean good, boolean lost) {
        locked(() -> {
            boolean loading = lifecycle.state(record) == Control.LOADING;
            if (good && loading) {
                pool.checksum(record, checksum);
                lifecycle.seal(record, NONE);
            } else {
                if (lost && loading) {
                    lifecycle.doom(record, EventKind.EVICTED);
                }
                lifecycle.giveUp(record);
            }
        });
    }

    /// Has what is resident and not on disk written that was used so often, whatever else it is worth, in a run
    /// of record numbers.
    ///
    /// @param leastUses since it was put; 0 for everything
    /// @return whether there are more records to look at
    public boolean wantAll(int from, int leastUses) {
        return unsaved.want(from, TURN, leastUses);
    }

    /// Bytes of what is resident and on no disk: were the host to end now, no restart would find them.
    public long unsavedBytes() {
        return unsaved.bytes(TURN);
    }

    /// A block was used where it lies: see [io.kvcache.core.tier.TierListener#used].
    public void used(TierBlock block) {
        locked(() -> standing.used(block.keyHi(), block.keyLo()));
    }

    /// How much a block is wanted: see [io.kvcache.core.tier.TierListener#worth].
    public double worth(long keyHi, long keyLo) {
        return locked(() -> standing.worth(keyHi, keyLo));
    }

    /// Evicts ahead of need from host memory what is on disk or not worth it, so that puts and loads find
    /// free slots: from below the low mark to the high mark, in percent of a slot class.
    ///
    /// @return whether there is more to do
    public boolean relieve(int lowPercent, int highPercent) {
        return locked(() -> room.relieve(lowPercent, highPercent));
    }

    /// What reading a block from disk takes, as a share of what computing it takes: above 0 to 1.
    public void copyWorth(double share) {
        parts.policies().state().reloadCostRatio(share);
    }

    /// What computing blocks takes, for [AdmissionKind#VALUE]: where in a prompt they are dearer, and by how much.
    public void prefill(PrefillCost cost) {
        locked(() -> offload.prospects().cost().of(cost));
    }

    /// Records that [#wantAll] looks at in a turn.
    public static int turn() {
        return TURN;
    }

    /// What is alive on disk, and what became of what might be written.
    public DiskSideStats stats() {
        return locked(() -> DiskSideStats.of(parts, restore));
    }

    private void locked(Runnable work) {
        lock.lock();
        try {
            work.run();
        } finally {
            lock.unlock();
        }
    }

    private <T extends @Nullable Object> T locked(Supplier<T> work) {
        lock.lock();
        try {
            return work.get();
        } finally {
            lock.unlock();
        }
    }
}
