package io.kvcache.core.store;

import io.kvcache.core.memory.Pages;
import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.memory.SlabPool.SlabOwners;
import io.kvcache.core.memory.SlotClass;
import io.kvcache.core.policy.EvictionPolicy;
import io.kvcache.core.policy.EvictionPolicyFactory;
import io.kvcache.core.policy.LruFallback;
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

    private static final int OBJECT_SIZES = 3;

    private final RecordPool pool;
    private final BlockTree tree;
    private final SlabPool slabs;
    private final SlotClassPolicies policies;
    private final WriteBackQueue writeBackQueue;
    private final MemoryShares shares;
    private final RecordStates recordStates;
    private final DiskResidency diskResidency;
    /// For objects, largest first.
    private final SlotClass[] objectClasses;
    private int cursor;
    private long bytesUntilBalance = BALANCE_BYTES;
    private int clearPause;
    private int clearsToSkip;
    private long slabMoves;

    SlotAllocator(
            BlockTree tree,
            SlabPool slabs,
            SlotClassPolicies policies,
            MemoryShares shares,
            WriteBackQueue writeBackQueue,
            RecordStates recordStates,
            DiskResidency diskResidency) {
        pool = tree.pool();
        this.tree = tree;
        this.slabs = slabs;
        this.policies = policies;
        this.shares = shares;
        this.writeBackQueue = writeBackQueue;
        this.recordStates = recordStates;
        this.diskResidency = diskResidency;
        objectClasses = objectClasses(slabs);
    }

    private static SlotClass[] objectClasses(SlabPool slabs) {
        SlotClass large = slabs.classOf(SlotClass.OBJECT_LARGE_BYTES);
        SlotClass medium = slabs.classOf(SlotClass.OBJECT_MEDIUM_BYTES);
        SlotClass small = slabs.classOf(SlotClass.OBJECT_SMALL_BYTES);
        return switch ((int) Math.min(OBJECT_SIZES, slabs.capacityBytes() / SlabPool.SLAB_BYTES)) {
            case OBJECT_SIZES -> new SlotClass[] {large, medium, small};
            case 2 -> new SlotClass[] {large, small};
            default -> new SlotClass[] {small};
        };
    }

    /// A request for room, and what may go for its sake.
    ///
    /// @param group of [MemoryShares] that asks, or [MemoryShares#NO_GROUP] when room is made ahead of need
    /// @param beyondShare whether the group would hold more than its share: decided once for a request, whatever
    ///     the group then gives
    /// @param sparing whether what waits to be written to disk stays, even if the request is refused for it
    private record Request(int group, boolean beyondShare, boolean sparing) {

        private static final Request AHEAD_OF_NEED = new Request(MemoryShares.NO_GROUP, true, true);

        Request withSparing() {
            return new Request(group, beyondShare, true);
        }
    }

    private Request request(int record, boolean sparing) {
        int group = shares.group(record);
        return new Request(group, shares.isBeyondShare(group, shares.charge(record)), sparing);
    }

    /// Takes a slot for a block. What waits to be written to disk goes only when nothing else can.
    ///
    /// @param sparing whether it stays even then
    /// @return the slot's page, or [SlabPool#NONE] when nothing more can be evicted
    int allocate(SlotClass slotClass, int record, boolean sparing) {
        int page = slabs.acquire(slotClass, record);
        return page == SlabPool.NONE ? makeRoom(slotClass, record, request(record, sparing)) : page;
    }

    private int allocate(SlotClass slotClass, int record, Request request) {
        int page = slabs.acquire(slotClass, record);
        return page == SlabPool.NONE ? makeRoom(slotClass, record, request) : page;
    }

    private int makeRoom(SlotClass slotClass, int record, Request request) {
        if (request.sparing || !writeBackQueue.isWaiting()) {
            return evictUntilFree(slotClass, record, request);
        }
        int page = evictUntilFree(slotClass, record, request.withSparing());
        if (page == SlabPool.NONE) {
            page = slabs.acquire(slotClass, record); // something went, though not enough
        }
        return page == SlabPool.NONE ? evictUntilFree(slotClass, record, request) : page;
    }

    private int evictUntilFree(SlotClass slotClass, int record, Request request) {
        int page = SlabPool.NONE;
        while (page == SlabPool.NONE
                && (evictFrom(slotClass.id(), request)
                        || steal(slotClass, request)
                        || (!request.sparing && clearSlabs(slotClass, request)))) {
            page = slabs.acquire(slotClass, record);
        }
        return page;
    }

    /// Takes slots for an object: as many of 1 MiB as fit, then of 64 KiB, then of 4 KiB, linked one after another.
    /// Sixteen of one size become one of the next, so an object wastes less than 4 KiB and has at most 15 slots
    /// of each size below its megabytes. Where a class has no room and can get none, one slot of a larger class
    /// takes the rest.
    ///
    /// A class holds whole slabs. In a store of fewer slabs than classes they would take the last slab from each
    /// other with every put, and lose what is in it. So two slabs are for 1 MiB and 4 KiB slots, and one is for 4
    /// KiB slots.
    ///
    /// @param sparing as for a block
    /// @return the first page, or [SlabPool#NONE] when there is no room; then nothing is taken
    int allocateObject(long bytes, int record, boolean sparing) {
        Request request = request(record, sparing);
        SlotList list = new SlotList(slabs);
        long left = Pages.roundUp(bytes);
        for (int at = 0; at < objectClasses.length; at++) {
            long slotBytes = objectClasses[at].slotBytes();
            for (; left >= slotBytes; left -= slotBytes) {
                if (list.add(allocate(objectClasses[at], record, request))) {
                    continue;
                }
                if (addLarger(list, at, record, request)) {
                    return list.first;
                }
                recordStates.releaseSlots(list.first);
                return SlabPool.NONE;
            }
        }
        return list.first;
    }

    /// What is left of an object fits one slot of any larger class: better waste one than refuse.
    private boolean addLarger(SlotList list, int at, int record, Request request) {
        for (int larger = at - 1; larger >= 0; larger--) {
            if (list.add(allocate(objectClasses[larger], record, request))) {
                return true;
            }
        }
        return false;
    }

    /// The class of the first slot that an object of `bytes` takes.
    SlotClass objectClass(long bytes) {
        long left = Pages.roundUp(bytes);
        int at = 0;
        while (at < objectClasses.length - 1 && left < objectClasses[at].slotBytes()) {
            at++;
        }
        return objectClasses[at];
    }

    /// Slots of an object, linked one after another.
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
    }

    /// Evicts one record of any class but `keep`, to free the record itself; first what is on disk alone.
    ///
    /// @param group for which
    boolean freeRecord(int keep, int group) {
        return diskResidency.freeRecord(keep)
                || freeResident(keep, new Request(group, shares.isBeyondShare(group, 0), false));
    }

    private boolean freeResident(int keep, Request request) {
        int coldest = policies.coldestClass();
        if (coldest >= 0 && evictFrom(coldest, keep, request)) {
            return true;
        }
        for (int id = 0; id < policies.classes(); id++) {
            if (evictFrom(id, keep, request)) {
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
        for (int id = 0; id < policies.classes() && left > 0; id++) {
            SlotClass each = slabs.slotClass(id);
            long slots = slabs.slots(each);
            long held = slabs.heldSlots(each);
            boolean pressed = (slots - held) * 100 < slots * lowPercent;
            long wanted = pressed ? slots * highPercent / 100 - (slots - held) : 0;
            while (wanted > 0 && left > 0 && evictFrom(id, EvictionPolicy.NONE, Request.AHEAD_OF_NEED)) {
                wanted--;
                left--;
            }
        }
        return left == 0 && slabs.freeSlabs() == 0;
    }

    long slabMoves() {
        return slabMoves;
    }

    private boolean evictFrom(int classId, Request request) {
        bytesUntilBalance -= slabs.slotClass(classId).slotBytes();
        if (bytesUntilBalance <= 0) {
            bytesUntilBalance = BALANCE_BYTES;
            balance(slabs.slotClass(classId), request);
        }
        return evictFrom(classId, EvictionPolicy.NONE, request);
    }

    private boolean evictFrom(int classId, int keep, Request request) {
        for (int group : shares.heaviestFirst()) {
            EvictionPolicy policy = policies.find(classId, group);
            if (policy != null && policy.size() > 0 && !isProtected(group, request)) {
                int victim = policy.evict(
                        record -> record != keep && canEvict(record, request) && recordStates.claim(record));
                if (victim != EvictionPolicy.NONE) {
                    recordStates.onEvicted(victim);
                    return true;
                }
            }
        }
        return false;
    }

    private boolean canEvict(int record, Request request) {
        return !(request.sparing && writeBackQueue.isProtected(record)) && !isProtected(shares.group(record), request);
    }

    private boolean isProtected(int group, Request request) {
        return request.beyondShare && shares.isProtected(group, request.group);
    }

    /// Gives a slab to the class under pressure when another class holds blocks unused for twice as long as
    /// the youngest victims here.
    private void balance(SlotClass pressed, Request request) {
        int coldest = policies.coldestClass();
        if (coldest < 0 || coldest == pressed.id()) {
            return;
        }
        long now = policies.now();
        if (now - policies.victimLastUse(coldest) <= 2 * (now - policies.victimLastUse(pressed.id()))) {
            return;
        }
        SlotClass donor = slabs.slotClass(coldest);
        boolean emptied = pressed.slabsPerSlot() > 1
                ? stealRun(pressed, request)
                : slabs.slabCount(donor) > 1 && stealFrom(donor, request);
        if (emptied) {
            slabs.grow(pressed);
        }
    }

    private boolean steal(SlotClass needy, Request request) {
        if (needy.slabsPerSlot() > 1) {
            return stealRun(needy, request);
        }
        int coldest = policies.coldestClass();
        if (coldest >= 0 && coldest != needy.id() && stealFrom(slabs.slotClass(coldest), request)) {
            return true;
        }
        for (int id = 0; id < slabs.classCount(); id++) {
            if (id != needy.id() && stealFrom(slabs.slotClass(id), request)) {
                return true;
            }
        }
        return false;
    }

    private boolean stealFrom(SlotClass donor, Request request) {
        int tries = Math.min(MAX_SLAB_ATTEMPTS, slabs.slabCount(donor));
        for (int i = 0; i < tries; i++) {
            int count = slabs.slabCount(donor);
            if (count > 0 && empty(slabs.owners(donor, Math.floorMod(cursor++, count)), request)) {
                slabMoves++;
                return true;
            }
        }
        return false;
    }

    private boolean stealRun(SlotClass needy, Request request) {
        int length = needy.slabsPerSlot();
        int start = slabs.cheapestRun(
                length,
                owners -> owners.classId() != needy.id() && canEmpty(owners, request) ? owners.heldBytes() : -1);
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
    private boolean clearSlabs(SlotClass needy, Request request) {
        if (clearsToSkip > 0) {
            clearsToSkip--;
            return false;
        }
        boolean cleared = clearNow(needy, request);
        clearPause = cleared ? 0 : Math.min(MAX_CLEARS_SKIPPED, 2 * clearPause + 1);
        clearsToSkip = clearPause;
        return cleared;
    }

    private boolean clearNow(SlotClass needy, Request request) {
        int length = Math.max(1, needy.slabsPerSlot());
        for (int attempt = 0; attempt < MAX_CLEAR_ATTEMPTS; attempt++) {
            BitSet held = heldRecords(request);
            int start = slabs.cheapestRun(
                    length, owners -> owners.allOwnersMatch(record -> !held.get(record)) ? owners.heldBytes() : -1);
            if (start < 0 || emptyRun(start, length)) {
                return start >= 0;
            }
        }
        return false;
    }

    /// Records that are pinned or not sealed, and all above them.
    private BitSet heldRecords(Request request) {
        BitSet held = new BitSet(pool.highWaterMark());
        for (int record = 0; record < pool.highWaterMark(); record++) {
            boolean holds = hasSlot(record) && !canGo(record, request);
            for (int at = record; holds && at != RecordView.NONE && !held.get(at); at = pool.parent(at)) {
                held.set(at);
            }
        }
        return held;
    }

    private boolean empty(SlabOwners owners, Request request) {
        return canEmpty(owners, request) && owners.allOwnersMatch(this::evictSubtree);
    }

    private boolean canEmpty(SlabOwners owners, Request request) {
        int[] budget = {MAX_SUBTREE_RECORDS};
        return owners.allOwnersMatch(record -> hasParentInSlab(record) || canSubtreeGo(record, budget, request));
    }

    /// Whether the record's parent lies in the same slab, so that a check of that one's descendants looks
    /// at this.
    private boolean hasParentInSlab(int record) {
        int parent = pool.parent(record);
        return recordStates.stateOf(record) == ControlWord.SEALED
                && parent != RecordView.NONE
                && slabs.isSameSlab(pool.hostPage(record), pool.hostPage(parent));
    }

    private boolean canSubtreeGo(int root, int[] budget, Request request) {
        return recordStates.stateOf(root) == ControlWord.SEALED
                && tree.allDescendantsMatch(
                        root, record -> !hasSlot(record) || (canGo(record, request) && budget[0]-- > 0));
    }

    /// Whether a record has a slot, or is about to get one.
    private boolean hasSlot(int record) {
        return switch (recordStates.stateOf(record)) {
            case ControlWord.FREE, ControlWord.ON_DISK, ControlWord.PLACEHOLDER, ControlWord.ORPHAN -> false;
            default -> true;
        };
    }

    private boolean canGo(int record, Request request) {
        long control = pool.control(record);
        return ControlWord.state(control) == ControlWord.SEALED
                && ControlWord.pins(control) == 0
                && canEvict(record, request);
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

    /// One eviction policy for each slot class and group of [MemoryShares] that has held blocks of it: a victim
    /// helps only the class whose slot it held, and whose it is is decided before.
    ///
    /// Policies number their queues with eight bits. When tenants and sizes are too many for that, the groups
    /// that come late go by their class's common policy: what is protected stays so, but among those who may be
    /// taken from it is the policy that chooses, and not the group that holds most.
    ///
    /// **Threads.** Owned by the store's lock.
    static final class SlotClassPolicies {

        /// Queues that groups leave to the orders of disks.
        private static final int RESERVED_FOR_DISKS = 16;

        /// And to the common policies of sizes that come later.
        private static final int RESERVED_FOR_SIZES = 16;

        private final EvictionPolicyFactory kind;
        private final RecordView records;
        private final SlabPool slabs;
        private final PolicyState state;
        /// By class and group; null where nothing was held yet.
        private final List<List<@Nullable EvictionPolicy>> byClass = new ArrayList<>();
        /// The same by class, each once, the common one first.
        private final List<List<EvictionPolicy>> instances = new ArrayList<>();

        SlotClassPolicies(EvictionPolicyFactory kind, RecordView records, SlabPool slabs) {
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
