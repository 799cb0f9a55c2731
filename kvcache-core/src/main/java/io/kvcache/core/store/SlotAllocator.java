package io.kvcache.core.store;

import io.kvcache.core.memory.Pages;
import io.kvcache.core.memory.SlabOwners;
import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.memory.SlotClass;
import io.kvcache.core.policy.EvictionPolicy;
import io.kvcache.core.policy.LruFallback;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.core.policy.PolicyState;
import io.kvcache.core.policy.RecordView;
import io.kvcache.core.tree.BlockTree;
import io.kvcache.core.tree.ControlWord;
import io.kvcache.core.tree.RecordPool;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import org.jspecify.annotations.Nullable;

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

    /// All until [#endRequest] is for one request: whether it is beyond its group's share is decided now, whatever
    /// it makes its group give.
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

    /// Cuts an object into slots of the three object classes, largest first, and lists them by the slots' links.
    ///
    /// As many 1 MiB slots as fit, then 64 KiB slots, then 4 KiB slots; sixteen of one size become one of the
    /// next. So an object wastes less than 4 KiB and has at most 15 slots of each size below its megabytes.
    /// Where a class has no room and can get none, one slot of a larger class takes the rest.
    ///
    /// A class holds whole slabs. In a store of fewer slabs than classes they would take the last slab from each
    /// other with every put, and lose what is in it. So two slabs are for 1 MiB and 4 KiB slots, and one is for 4
    /// KiB slots.
    ///
    /// **Threads.** Owned by the store's lock.
    static final class ObjectSlotAllocator {

        /// Of object slots.
        private static final int SIZES = 3;

        private final SlabPool slabs;
        private final SlotAllocator slotAllocator;
        private final MemoryShares shares;
        private final RecordStates recordStates;
        private final SlotClass[] classes;

        ObjectSlotAllocator(StoreComponents parts, SlotAllocator slotAllocator, RecordStates recordStates) {
            slabs = parts.slabs();
            shares = parts.memoryShares();
            this.slotAllocator = slotAllocator;
            this.recordStates = recordStates;
            SlotClass large = slabs.classOf(SlotClass.OBJECT_LARGE_BYTES);
            SlotClass medium = slabs.classOf(SlotClass.OBJECT_MEDIUM_BYTES);
            SlotClass small = slabs.classOf(SlotClass.OBJECT_SMALL_BYTES);
            classes = switch ((int) Math.min(SIZES, slabs.capacityBytes() / SlabPool.SLAB_BYTES)) {
                case SIZES -> new SlotClass[] {large, medium, small};
                case 2 -> new SlotClass[] {large, small};
                default -> new SlotClass[] {small};
            };
        }

        /// Takes slots for an object of `bytes`.
        ///
        /// @param sparing whether to leave what waits to be written to disk where it is
        /// @return the first page, or [SlabPool#NONE] when there is no room; then nothing is taken
        int allocate(long bytes, int record, boolean sparing) {
            slotAllocator.beginRequest(shares.group(record), shares.charge(record));
            try {
                return allocateAll(bytes, record, sparing);
            } finally {
                slotAllocator.endRequest();
            }
        }

        /// The class of the first slot that an object of `bytes` takes.
        SlotClass classOf(long bytes) {
            long left = Pages.roundUp(bytes);
            int at = 0;
            while (at < classes.length - 1 && left < classes[at].slotBytes()) {
                at++;
            }
            return classes[at];
        }

        private int allocateAll(long bytes, int record, boolean sparing) {
            SlotList list = new SlotList(slabs);
            long left = Pages.roundUp(bytes);
            for (int at = 0; at < classes.length; at++) {
                long slotBytes = classes[at].slotBytes();
                for (; left >= slotBytes; left -= slotBytes) {
                    if (list.add(allocateSlot(classes[at], record, sparing))) {
                        continue;
                    }
                    if (addLarger(list, at, record, sparing)) {
                        return list.first();
                    }
                    recordStates.releaseSlots(list.first());
                    return SlabPool.NONE;
                }
            }
            return list.first();
        }

        /// What is left of an object fits one slot of any larger class: better waste one than refuse.
        private boolean addLarger(SlotList list, int at, int record, boolean sparing) {
            for (int larger = at - 1; larger >= 0; larger--) {
                if (list.add(allocateSlot(classes[larger], record, sparing))) {
                    return true;
                }
            }
            return false;
        }

        private int allocateSlot(SlotClass slotClass, int record, boolean sparing) {
            return sparing
                    ? slotAllocator.allocateSparing(slotClass, record)
                    : slotAllocator.allocate(slotClass, record);
        }

        /// Slots linked one after another.
        private static final class SlotList {
            private final SlabPool slabs;
            private int first = SlabPool.NONE;
            private int last = SlabPool.NONE;

            SlotList(SlabPool slabs) {
                this.slabs = slabs;
            }

            boolean add(int page) {
                if (page == SlabPool.NONE) {
                    return false;
                }
                if (first == SlabPool.NONE) {
                    first = page;
                } else {
                    slabs.next(last, page);
                }
                last = page;
                return true;
            }

            int first() {
                return first;
            }
        }
    }

    /// One eviction policy for each slot class and group of [MemoryShares] that has held blocks of it: a victim
    /// helps only the class whose slot it held, and whose it is is decided before.
    ///
    /// Policies number their queues with eight bits. When tenants and sizes are too many for that, the groups
    /// that come late go by their class's common policy: what is protected stays so, but among those who may be
    /// taken from it is the policy that chooses, and not who holds most.
    ///
    /// **Threads.** Owned by the store's lock.
    static final class SlotClassPolicies {

        /// Queues that groups leave to the orders of disks.
        private static final int RESERVED_FOR_DISKS = 16;

        /// And to the common policies of sizes that come later.
        private static final int RESERVED_FOR_SIZES = 16;

        private final PolicyKind kind;
        private final RecordView records;
        private final SlabPool slabs;
        private final PolicyState state;
        /// By class and group; null where nothing was held yet.
        private final List<List<@Nullable EvictionPolicy>> byClass = new ArrayList<>();
        /// The same by class, each once, the common one first.
        private final List<List<EvictionPolicy>> instances = new ArrayList<>();

        SlotClassPolicies(PolicyKind kind, RecordView records, SlabPool slabs) {
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

        /// Whether a group may have a policy of its own: the common ones of all classes can still be made then.
        private boolean leavesReserve() {
            return remainingQueues() >= (1 + Math.max(RESERVED_FOR_SIZES, missingCommonPolicies())) * kind.queueCount();
        }

        /// Whether blocks of one size more find a policy.
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

        /// Whether the policies are to hear of each block that a request will use which is known to come.
        boolean usesAnnouncements() {
            return kind.usesAnnouncements();
        }

        /// Whether the policies make use of what callers say of blocks.
        boolean usesLabels() {
            return kind.usesLabels();
        }

        /// What all instances find beside plain LRU.
        LruFallback.Report fallbackReport() {
            LruFallback.Report all = LruFallback.Report.EMPTY;
            for (List<EvictionPolicy> groups : instances) {
                for (EvictionPolicy policy : groups) {
                    all = all.plus(policy.fallbackReport());
                }
            }
            return all;
        }

        /// What the instances share.
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
