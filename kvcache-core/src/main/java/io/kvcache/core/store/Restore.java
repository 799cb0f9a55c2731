package io.kvcache.core.store;

import static io.kvcache.core.policy.RecordView.NONE;

import io.kvcache.core.event.EventKind;
import io.kvcache.core.tier.TierBlock;
import io.kvcache.core.tier.TierBurial;
import io.kvcache.core.tier.TierOffer;
import io.kvcache.core.tree.BlockTree;
import io.kvcache.core.tree.Control;
import io.kvcache.core.tree.DiskNumber;
import io.kvcache.core.tree.NewRecord;
import io.kvcache.core.tree.RecordPool;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/// Puts what a disk held before the opening back into the tree, newest first, whatever the order of
/// families.
///
/// A block whose parent was not found yet hangs below a PHANTOM, a record that stands for the parent and
/// knows its key alone; when the parent is found it takes the phantom's place. Blocks become findable when
/// all above them are there. What hangs below a phantom at the end is dropped.
///
/// **Threads.** Owned by the store's lock.
final class Restore {

    private final RecordPool pool;
    private final BlockTree tree;
    private final DiskLedger disks;
    private final Lifecycle lifecycle;
    private final DiskLife diskLife;
    private final Offload offload;
    private final Buried buried = new Buried();
    private final Overtaken overtaken;
    private final Map<Long, Late> late = new HashMap<>();
    private long restored;
    private long superseded;
    private long noRecord;
    private long orphans;

    Restore(StoreParts parts, Lifecycle lifecycle, DiskLife diskLife) {
        pool = parts.pool();
        tree = parts.tree();
        disks = parts.disks();
        offload = parts.offload();
        overtaken = parts.overtaken();
        this.lifecycle = lifecycle;
        this.diskLife = diskLife;
    }

    /// A copy of a block that has come into the store meanwhile, and cannot count before the one above it
    /// does.
    private record Late(TierBlock block, int record, int generation) {}

    /// A disk is out: what it told does not count any longer.
    void out(int disk) {
        overtaken.out(disk);
        late.keySet().removeIf(place -> DiskNumber.of(place) == disk);
        buried.out(disk);
    }

    /// A disk begins to tell what it holds, at the opening or because it is back.
    void telling(int disk) {
        overtaken.begin();
        offload.burials().all(disk).forEach(each -> buried.add(disk, each));
    }

    /// What callers have done that disks do not know when they tell what they held.
    Overtaken overtaken() {
        return overtaken;
    }

    /// Copies of a key that a disk tells of from now on do not count.
    void buried(int disk, long keyHi, long keyLo) {
        buried.add(disk, keyHi, keyLo);
    }

    /// A copy was found.
    ///
    /// @return whether it counts
    boolean found(TierBlock block, long place) {
        boolean counts = !buried.includes(block, DiskNumber.of(place)) && take(block, place);
        restored += counts ? 1 : 0;
        superseded += counts ? 0 : 1;
        return counts;
    }

    /// Takes a copy that no burial on its disk means.
    private boolean take(TierBlock block, long place) {
        int present = tree.findAny(block.keyHi(), block.keyLo());
        int disk = DiskNumber.of(place);
        if (overtaken.includes(block, disk)) {
            older(block, present, disk);
            return false;
        }
        if (present == NONE) {
            return enter(block, place);
        }
        return lifecycle.state(present) == Control.PHANTOM
                ? embody(present, block, place)
                : adopt(present, block, place);
    }

    /// A copy is older than what callers did. Where that was a put which no disk has yet, the copy is what the next
    /// restart finds.
    private void older(TierBlock block, int present, int disk) {
        boolean outlived = present != NONE
                && block.object()
                && lifecycle.state(present) == Control.SEALED
                && pool.diskPlace(present) == NONE
                && overtaken.putOnly(block, disk);
        if (outlived) {
            offload.burials().outlives(present, disk);
        } else {
            offload.burials().buryOlder(TierBurial.of(block), present, disk);
        }
    }

    /// A child has told of this block before: now it is known what it is.
    private boolean embody(int phantom, TierBlock block, long place) {
        pool.describe(phantom, newRecord(block, NONE));
        pool.become(phantom, Control.DETACHED, 0);
        if (block.hasParent()) {
            int parent = parentOf(block);
            if (parent == NONE) {
                noRecord++;
                lifecycle.doom(phantom, EventKind.EVICTED);
                return false;
            }
            tree.attach(phantom, parent);
        }
        disks.place(phantom, place, block.checksum());
        connectIfWhole(phantom);
        return true;
    }

    /// The block came into the store meanwhile, or a newer copy was found. An object's older copy has other
    /// bytes; it may lie on another disk than the newer one, so it is buried there.
    private boolean adopt(int present, TierBlock block, long place) {
        if (block.object()) {
            if (pool.diskPlace(present) == NONE) { // a put under way, which may be abandoned
                overtaken.dropped(block.keyHi(), block.keyLo());
            }
            offload.burials().buryOlder(TierBurial.of(block), present, DiskNumber.of(place));
            return false;
        }
        if (pool.diskPlace(present) != NONE) {
            return false;
        }
        boolean now = lifecycle.state(present) == Control.SEALED && diskLife.place(present, place, block.checksum());
        if (!now) {
            late.put(place, new Late(block, present, Control.generation(pool.control(present))));
        }
        return true;
    }

    /// Copies of blocks that came into the store meanwhile count now, if those above them do: also of
    /// such as are being filled by their callers, who then fill the slot of a block that is on disk.
    private void adoptLate() {
        findAgain();
        List<Map.Entry<Long, Late>> parentsFirst = new ArrayList<>(late.entrySet());
        parentsFirst.sort(Comparator.<Map.Entry<Long, Late>>comparingInt(each -> pool.depth(each.getValue().record))
                .thenComparing(Map.Entry.comparingByKey()));
        parentsFirst.forEach(each -> adoptLate(each.getValue(), each.getKey()));
        late.clear();
    }

    /// What came into the store meanwhile may have gone again: then the copy is as good as when it was
    /// told.
    private void findAgain() {
        List<Map.Entry<Long, Late>> gone = new ArrayList<>();
        late.entrySet().stream()
                .filter(each -> isGone(each.getValue()))
                .map(Map.Entry::copyOf)
                .sorted(Map.Entry.comparingByKey())
                .forEach(gone::add);
        gone.forEach(each -> late.remove(each.getKey()));
        gone.forEach(each -> take(each.getValue().block, each.getKey()));
    }

    private boolean isGone(Late each) {
        long control = pool.control(each.record);
        return Control.generation(control) != each.generation || Control.state(control) == Control.DOOMED;
    }

    private void adoptLate(Late each, long place) {
        int state = lifecycle.state(each.record);
        boolean filling = state == Control.RESERVED || state == Control.FILLED;
        boolean fits = (filling || state == Control.SEALED)
                && pool.diskPlace(each.record) == NONE
                && disks.carries(pool.parent(each.record));
        if (fits && filling) {
            pool.become(each.record, state == Control.RESERVED ? Control.LOADING : Control.LOADED, 0);
            lifecycle.entered(each.record);
        }
        if (fits) {
            diskLife.place(each.record, place, each.block.checksum());
        }
    }

    /// A span is about to be reclaimed, and other disks have not told all yet: keeps what may count
    /// later, as far as that may be.
    void offered(int disk, TierOffer offer) {
        for (int i = 0; i < offer.size() && !late.isEmpty(); i++) {
            long place = DiskNumber.place(disk, offer.place(i));
            if (late.containsKey(place) && !offer.keep(i)) {
                late.remove(place);
            }
        }
    }

    /// A copy lies elsewhere now.
    ///
    /// @param to or -1 when it is lost
    void moved(long from, long to) {
        Late moved = late.remove(from);
        if (moved != null && to != NONE) {
            late.put(to, moved);
        }
    }

    private boolean enter(TierBlock block, long place) {
        int parent = block.hasParent() ? parentOf(block) : NONE;
        int record =
                block.hasParent() && parent == NONE ? NONE : tree.insert(newRecord(block, parent), Control.DETACHED, 0);
        if (record == NONE) {
            noRecord++;
            if (block.object()) {
                overtaken.dropped(block.keyHi(), block.keyLo());
                offload.burials().buryOlder(TierBurial.of(block), NONE, DiskNumber.of(place));
            }
            return false;
        }
        disks.place(record, place, block.checksum());
        connectIfWhole(record);
        return true;
    }

    private void connectIfWhole(int record) {
        if (disks.carries(pool.parent(record))) {
            diskLife.connect(record);
            diskLife.connectBelow(record);
        }
    }

    /// The record of a block's parent, a phantom when it is not known; or -1 when there is no record to be
    /// had.
    private int parentOf(TierBlock block) {
        int parent = tree.findAny(block.parentHi(), block.parentLo());
        if (parent != NONE) {
            return parent;
        }
        NewRecord unknown = new NewRecord(
                block.parentHi(),
                block.parentLo(),
                NONE,
                block.depth() - 1,
                Identity.block(block.namespaceId()),
                0,
                0,
                NONE);
        return tree.insert(unknown, Control.PHANTOM, 0);
    }

    private static NewRecord newRecord(TierBlock block, int parent) {
        int identity = block.object() ? Identity.object(block.namespaceId()) : Identity.block(block.namespaceId());
        return new NewRecord(
                block.keyHi(), block.keyLo(), parent, block.depth(), identity, block.bytes(), block.engineHash(), NONE);
    }

    /// All was found: drops what has no whole chain above it, in a run of record numbers.
    ///
    /// @return whether there are more records to look at
    boolean dropOrphans(int from, int turn) {
        if (from == 0) {
            adoptLate();
        }
        int to = Math.min(pool.highWater(), from + turn);
        for (int record = from; record < to; record++) {
            int state = lifecycle.state(record);
            if (state == Control.PHANTOM || (state == Control.DETACHED && !detachedAbove(record))) {
                orphans++;
                lifecycle.doom(record, EventKind.EVICTED);
            }
        }
        if (to == pool.highWater()) {
            buried.end();
            overtaken.end();
        }
        return to < pool.highWater();
    }

    private boolean detachedAbove(int record) {
        int parent = pool.parent(record);
        int state = parent == NONE ? Control.FREE : lifecycle.state(parent);
        return state == Control.DETACHED || state == Control.PHANTOM;
    }

    long restored() {
        return restored;
    }

    long superseded() {
        return superseded;
    }

    long withoutRecord() {
        return noRecord;
    }

    long orphans() {
        return orphans;
    }
}
