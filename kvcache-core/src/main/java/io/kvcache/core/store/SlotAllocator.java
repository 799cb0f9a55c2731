package io.kvcache.core.store;

import io.kvcache.core.memory.SlabOwners;
import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.memory.SlotClass;
import io.kvcache.core.policy.EvictionPolicy;
import io.kvcache.core.policy.RecordView;
import io.kvcache.core.tree.BlockTree;
import io.kvcache.core.tree.ControlWord;
import io.kvcache.core.tree.RecordPool;
import java.util.BitSet;

/// Makes room: a slot of a class, or a record.
///
/// In this order: a free slot; a free or empty slab; a victim of the same class; a slab of another class,
/// emptied. So a class that has nothing gets a slab at once, however full the store is, unless everything is
/// pinned. A slab is emptied with all that is below its blocks; one whose blocks have thousands below them
/// is left alone until nothing else is to be had.
///
/// A class that evicts much younger blocks than others hold gets a slab (or the run of slabs that its slot
/// takes) from the others: that is looked at once in [#BALANCE_BYTES] evicted.
///
/// **Threads.** Owned by the store's lock.
final class SlotAllocator {

    /// Four slabs' worth: often enough to follow a change of load, seldom enough to cost nothing.
    private static final long BALANCE_BYTES = 4 * SlabPool.SLAB_BYTES;

    /// Slabs of a class that are tried before giving up on it; they are taken in turn.
    private static final int MAX_SLAB_ATTEMPTS = 32;

    /// Records below the owners of one slab that are looked at before it counts as too valuable to empty.
    private static final int MAX_SUBTREE_RECORDS = 1 << 14;

    /// While everything is pinned, puts that wait ask again every millisecond: only one in so many looks at
    /// every record.
    private static final int MAX_CLEARS_SKIPPED = 63;

    /// Evictions ahead of need in one turn of the lock.
    private static final int EVICT_AHEAD_BATCH = 64;

    /// Times that pins of other threads may come between looking and emptying before a put is refused.
    private static final int MAX_CLEAR_ATTEMPTS = 4;

    private final RecordPool pool;
    private final BlockTree tree;
    private final SlabPool slabs;
    private final SlotClassPolicies policies;
    private final WriteBackQueue writeBackQueue;
    private final MemoryShares shares;
    private final RecordStates recordStates;
    private final DiskResidency diskResidency;
    private boolean sparing;
    private int requestGroup = MemoryShares.NO_GROUP;
    private boolean isBeyondShare = true;
    private int cursor;
    private long bytesUntilBalance = BALANCE_BYTES;
    private int clearPause;
    private int clearsToSkip;
    private long slabMoves;

    SlotAllocator(StoreComponents parts, RecordStates recordStates, DiskResidency diskResidency) {
        pool = parts.pool();
        tree = parts.tree();
        slabs = parts.slabs();
        policies = parts.slotClassPolicies();
        writeBackQueue = parts.writeBackQueue();
        shares = parts.memoryShares();
        this.recordStates = recordStates;
        this.diskResidency = diskResidency;
    }

    /// A slot for a record, or [SlabPool#NONE] when nothing more can be evicted. What waits to be written to
    /// disk goes only when nothing else can.
    int allocate(SlotClass slotClass, int record) {
        int page = SlabPool.NONE;
        if (writeBackQueue.isWaiting()) {
            page = allocateSparing(slotClass, record);
        }
        return page == SlabPool.NONE ? allocateAny(slotClass, record) : page;
    }

    /// A slot for a record without evicting anything that waits to be written, or [SlabPool#NONE].
    int allocateSparing(SlotClass slotClass, int record) {
        sparing = true;
        try {
            return allocateAny(slotClass, record);
        } finally {
            sparing = false;
        }
    }

    private int allocateAny(SlotClass slotClass, int record) {
        if (requestGroup != MemoryShares.NO_GROUP) {
            return makeRoom(slotClass, record);
        }
        beginRequest(shares.group(record), shares.charge(record));
        try {
            return makeRoom(slotClass, record);
        } finally {
            endRequest();
        }
    }

    /// All until [#endRequest] is for one request: whether it is beyond its group's share is decided now, whatever it
    /// makes its group give.
    ///
    /// @param bytes that it wants
    void beginRequest(int group, long bytes) {
        requestGroup = group;
        isBeyondShare = shares.isBeyondShare(group, bytes);
    }

    void endRequest() {
        requestGroup = MemoryShares.NO_GROUP;
        isBeyondShare = true;
    }

    private int makeRoom(SlotClass slotClass, int record) {
        int page = slabs.acquire(slotClass, record);
        while (page == SlabPool.NONE
                && (evictFrom(slotClass.id()) || steal(slotClass) || (!sparing && clearSlabs(slotClass)))) {
            page = slabs.acquire(slotClass, record);
        }
        return page;
    }

    /// Evicts one record of any class but `keep`, to free the record itself; first what is on disk alone.
    ///
    /// @param group for which
    boolean freeRecord(int keep, int group) {
        beginRequest(group, 0);
        try {
            return diskResidency.freeRecord(keep) || freeResident(keep);
        } finally {
            endRequest();
        }
    }

    private boolean freeResident(int keep) {
        int coldest = policies.coldestClass();
        if (coldest >= 0 && evictFrom(coldest, keep)) {
            return true;
        }
        for (int id = 0; id < policies.classes(); id++) {
            if (evictFrom(id, keep)) {
                return true;
            }
        }
        return false;
    }

    /// Evicts ahead of need: of each class that has fewer free slots than the low mark, as many as the high mark
    /// wants, but nothing that waits to be written. Does nothing while slabs are free.
    ///
    /// @param lowPercent of a class's slots
    /// @param highPercent of a class's slots
    /// @return whether there is more to do: a turn evicts a bounded number
    boolean evictAhead(int lowPercent, int highPercent) {
        int left = slabs.freeSlabs() > 0 ? 0 : EVICT_AHEAD_BATCH;
        sparing = true;
        try {
            for (int id = 0; id < policies.classes() && left > 0; id++) {
                SlotClass each = slabs.slotClass(id);
                long slots = slabs.slots(each);
                long held = slabs.heldSlots(each);
                boolean pressed = (slots - held) * 100 < slots * lowPercent;
                long wanted = pressed ? slots * highPercent / 100 - (slots - held) : 0;
                for (; wanted > 0 && left > 0 && evictFrom(id, EvictionPolicy.NONE); wanted--) {
                    left--;
                }
            }
        } finally {
            sparing = false;
        }
        return left == 0 && slabs.freeSlabs() == 0;
    }

    long slabMoves() {
        return slabMoves;
    }

    private boolean evictFrom(int classId) {
        bytesUntilBalance -= slabs.slotClass(classId).slotBytes();
        if (bytesUntilBalance <= 0) {
            bytesUntilBalance = BALANCE_BYTES;
            balance(slabs.slotClass(classId));
        }
        return evictFrom(classId, EvictionPolicy.NONE);
    }

    private boolean evictFrom(int classId, int keep) {
        for (int group : shares.heaviestFirst()) {
            EvictionPolicy policy = policies.find(classId, group);
            if (policy != null && policy.size() > 0 && !isProtected(group)) {
                int victim = policy.evict(record -> record != keep && canEvict(record) && recordStates.claim(record));
                if (victim != EvictionPolicy.NONE) {
                    recordStates.onEvicted(victim);
                    return true;
                }
            }
        }
        return false;
    }

    private boolean canEvict(int record) {
        return !(sparing && writeBackQueue.isProtected(record)) && !isProtected(shares.group(record));
    }

    private boolean isProtected(int group) {
        return isBeyondShare && shares.isProtected(group, requestGroup);
    }

    /// Gives a slab to the class under pressure when another class holds blocks unused for twice as long as
    /// the youngest victims here.
    private void balance(SlotClass pressed) {
        int coldest = policies.coldestClass();
        if (coldest < 0 || coldest == pressed.id()) {
            return;
        }
        long now = policies.now();
        if (now - policies.victimLastUse(coldest) <= 2 * (now - policies.victimLastUse(pressed.id()))) {
            return;
        }
        SlotClass donor = slabs.slotClass(coldest);
        boolean emptied =
                pressed.slabsPerSlot() > 1 ? stealRun(pressed) : slabs.slabCount(donor) > 1 && stealFrom(donor);
        if (emptied) {
            slabs.grow(pressed);
        }
    }

    private boolean steal(SlotClass needy) {
        if (needy.slabsPerSlot() > 1) {
            return stealRun(needy);
        }
        int coldest = policies.coldestClass();
        if (coldest >= 0 && coldest != needy.id() && stealFrom(slabs.slotClass(coldest))) {
            return true;
        }
        for (int id = 0; id < slabs.classCount(); id++) {
            if (id != needy.id() && stealFrom(slabs.slotClass(id))) {
                return true;
            }
        }
        return false;
    }

    private boolean stealFrom(SlotClass donor) {
        int tries = Math.min(MAX_SLAB_ATTEMPTS, slabs.slabCount(donor));
        for (int i = 0; i < tries; i++) {
            int count = slabs.slabCount(donor);
            if (count > 0 && empty(slabs.owners(donor, Math.floorMod(cursor++, count)))) {
                slabMoves++;
                return true;
            }
        }
        return false;
    }

    private boolean stealRun(SlotClass needy) {
        int length = needy.slabsPerSlot();
        int start = slabs.cheapestRun(
                length, owners -> owners.classId() != needy.id() && canEmpty(owners) ? owners.heldBytes() : -1);
        return start >= 0 && emptyRun(start, length);
    }

    private boolean emptyRun(int start, int length) {
        for (int index = start; index < start + length; index++) {
            if (!slabs.ownersAt(index).allOwnersMatch(this::evictSubtree)) {
                return false;
            }
        }
        slabMoves += length;
        return true;
    }

    /// The last resort: looks at every record for what cannot go, and empties the slabs that cost the least,
    /// however much is below them. One pass over all records under the lock; it is reached when slots of long
    /// chains are mixed in all slabs, or when everything is pinned.
    private boolean clearSlabs(SlotClass needy) {
        if (clearsToSkip > 0) {
            clearsToSkip--;
            return false;
        }
        boolean cleared = clearNow(needy);
        clearPause = cleared ? 0 : Math.min(MAX_CLEARS_SKIPPED, 2 * clearPause + 1);
        clearsToSkip = clearPause;
        return cleared;
    }

    private boolean clearNow(SlotClass needy) {
        int length = Math.max(1, needy.slabsPerSlot());
        for (int attempt = 0; attempt < MAX_CLEAR_ATTEMPTS; attempt++) {
            BitSet held = heldRecords();
            int start = slabs.cheapestRun(
                    length, owners -> owners.allOwnersMatch(record -> !held.get(record)) ? owners.heldBytes() : -1);
            if (start < 0 || emptyRun(start, length)) {
                return start >= 0;
            }
        }
        return false;
    }

    /// Records that are pinned or not sealed, and all above them.
    private BitSet heldRecords() {
        BitSet held = new BitSet(pool.highWaterMark());
        for (int record = 0; record < pool.highWaterMark(); record++) {
            boolean holds = hasSlot(record) && !isUnpinned(record);
            for (int at = record; holds && at != RecordView.NONE && !held.get(at); at = pool.parent(at)) {
                held.set(at);
            }
        }
        return held;
    }

    private boolean empty(SlabOwners owners) {
        return canEmpty(owners) && owners.allOwnersMatch(this::evictSubtree);
    }

    private boolean canEmpty(SlabOwners owners) {
        int[] budget = {MAX_SUBTREE_RECORDS};
        return owners.allOwnersMatch(record -> hasParentInSlab(record) || isSubtreeUnpinned(record, budget));
    }

    /// Whether the record's parent lies in the same slab, so that whoever looks at that one's family looks
    /// at this.
    private boolean hasParentInSlab(int record) {
        int parent = pool.parent(record);
        return recordStates.stateOf(record) == ControlWord.SEALED
                && parent != RecordView.NONE
                && slabs.isSameSlab(pool.hostPage(record), pool.hostPage(parent));
    }

    private boolean isSubtreeUnpinned(int root, int[] budget) {
        return recordStates.stateOf(root) == ControlWord.SEALED
                && tree.allDescendantsMatch(
                        root, record -> !hasSlot(record) || (isUnpinned(record) && budget[0]-- > 0));
    }

    /// Whether a record has a slot, or is about to get one.
    private boolean hasSlot(int record) {
        return switch (recordStates.stateOf(record)) {
            case ControlWord.FREE, ControlWord.ON_DISK, ControlWord.PLACEHOLDER, ControlWord.ORPHAN -> false;
            default -> true;
        };
    }

    private boolean isUnpinned(int record) {
        long control = pool.control(record);
        return ControlWord.state(control) == ControlWord.SEALED && ControlWord.pins(control) == 0 && canEvict(record);
    }

    /// Evicts a record and all below it; a pin that came meanwhile stops it there.
    private boolean evictSubtree(int root) {
        int generation = ControlWord.generation(pool.control(root));
        tree.forEachDescendant(root, record -> {
            if (pool.residentChildren(record) == 0 && recordStates.claim(record)) {
                recordStates.policyOf(record).onEvicted(record);
                recordStates.onEvicted(record);
            }
        });
        return ControlWord.generation(pool.control(root)) != generation;
    }
}
