package io.kvcache.core.store;

import static io.kvcache.core.policy.RecordView.NONE;

import io.kvcache.core.CacheStats;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.memory.Pages;
import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.memory.SlabPool.SlabOwners;
import io.kvcache.core.memory.SlotClass;
import io.kvcache.core.policy.EvictionPolicy;
import io.kvcache.core.policy.NoveltyClass;
import io.kvcache.core.policy.RecordView;
import io.kvcache.core.store.DiskUsage.DiskUsageTable;
import io.kvcache.core.store.HostStore.LoadOutcome;
import io.kvcache.core.store.HostStore.ObjectSpec;
import io.kvcache.core.store.HostStore.PutReservation;
import io.kvcache.core.store.MemoryShares.SlotClassPolicies;
import io.kvcache.core.store.NamespaceRegistry.NamespaceEntry;
import io.kvcache.core.store.NamespaceRegistry.Owner;
import io.kvcache.core.tree.BlockTree;
import io.kvcache.core.tree.ControlWord;
import io.kvcache.core.tree.ObjectLinks;
import io.kvcache.core.tree.RecordFlags;
import io.kvcache.core.tree.RecordPool;
import io.kvcache.core.tree.RecordPool.NewRecordFields;
import java.util.Arrays;
import java.util.BitSet;
import org.jspecify.annotations.Nullable;

/// Gives records slots to be filled, by the writer of a put or by a read from disk, and makes room for them.
///
/// The writer or load that fills a slot counts as one pin. A reader that waits for a block has a pin of its own
/// from the start, so that the block stays when the load ends.
///
/// Room is made in this order: a free slot; a free or empty slab; a victim of the same class; a slab of another
/// class, emptied. So a class that has nothing gets a slab at once, however full the store is, unless everything
/// is pinned. A slab is emptied with all that is below its blocks; one whose blocks have thousands below them is
/// left alone until nothing else is to be had.
///
/// A class that evicts much younger blocks than others hold gets a slab (or the run of slabs that its slot
/// takes) from the others: that is looked at after four slabs' worth evicted, and much sooner by a class of few slabs.
///
/// **Threads.** Owned by the store's lock.
final class SlotAllocator {

    /// Slabs' worth that a large class evicts between looks at the others: often enough to follow a change of load,
    /// seldom enough to cost nothing. A small class looks sooner, so that it grows while it is filled.
    private static final int MAX_BALANCE_SLABS = 4;

    /// Slabs of a class that looks that seldom.
    private static final int FULL_CLASS_SLABS = 16;

    /// Slabs of a class that are tried before giving up on it; they are taken in turn.
    private static final int MAX_SLAB_ATTEMPTS = 32;

    /// Records below the owners of one slab that are looked at before it counts as too valuable to empty.
    private static final int MAX_SUBTREE_RECORDS = 1 << 14;

    /// While everything is pinned, puts that wait ask again every millisecond: after a look at every record, this
    /// many are answered without one.
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
    private final NamespaceRegistry namespaceRegistry;
    private final ObjectLinks objectLinks;
    private final DiskUsageTable disks;
    private final NoveltyClassifier noveltyClassifier;
    /// By [PutOutcome].
    private final long[] outcomes = new long[PutOutcome.values().length];
    private long refused;
    private long abandoned;
    /// For objects, largest first.
    private final SlotClass[] objectClasses;
    private int cursor;

    /// Bytes evicted since the last look at the others, by class.
    private long[] evictedBytes = new long[8];

    private int clearPause;
    private int clearsToSkip;
    private long slabMoves;

    SlotAllocator(HostStore store) {
        pool = store.pool;
        tree = store.tree;
        slabs = store.slabs;
        policies = store.policies;
        shares = store.shares;
        writeBackQueue = store.writeBackQueue;
        recordStates = store.recordStates;
        namespaceRegistry = store.namespaceRegistry;
        objectLinks = store.objectLinks;
        disks = store.disks;
        noveltyClassifier = new NoveltyClassifier(pool, policies, shares);
        objectClasses = new SlotClass[] {
            slabs.classOf(SlotClass.OBJECT_LARGE_BYTES),
            slabs.classOf(SlotClass.OBJECT_MEDIUM_BYTES),
            slabs.classOf(SlotClass.OBJECT_SMALL_BYTES)
        };
    }

    /// Room for block `index` of a chain.
    PutReservation reserveBlock(NamespaceEntry entry, BlockChain chain, int index, boolean sparing) {
        if (!entry.namespace().isOfGroup()) {
            return reserveInChain(entry, chain, index, sparing, NONE);
        }
        int owner = ownerOf(entry, chain, index);
        if (owner == NONE) {
            return PutReservation.NO_PARENT;
        }
        PutReservation room = reserveInChain(entry, chain, index, sparing, owner);
        if (room.outcome() == PutOutcome.RESERVED
                && ownerOf(entry, chain, index) == NONE) { // it made way for the entry
            recordStates.abandonFill(room.record());
            return PutReservation.NO_PARENT;
        }
        return room;
    }

    /// @param owner of an entry of a window or state, which has its novelty
    private PutReservation reserveInChain(
            NamespaceEntry entry, BlockChain chain, int index, boolean sparing, int owner) {
        int present = tree.findAny(chain.keyHi(index), chain.keyLo(index));
        if (present != NONE) {
            return presentOrBusy(entry, present);
        }
        int parent = index == 0 ? NONE : tree.findAny(chain.keyHi(index - 1), chain.keyLo(index - 1));
        if (index > 0 && (parent == NONE || pool.depth(parent) != index - 1 || !allowsChildren(entry, parent))) {
            return PutReservation.NO_PARENT;
        }
        int novelty = noveltyClassifier.classify(entry, chain, index, owner == NONE ? parent : owner);
        EvictionPolicy policy = policyOfNextVictim(entry, entry.slotClass());
        if (policy != null && !policy.admits(chain.keyLo(index), novelty) && disks.disks() == 0) {
            for (int declined = chain.length() - 1; declined >= index; declined--) {
                policy.onDeclined(chain.keyLo(declined), novelty, declined == chain.length() - 1);
            }
            return PutReservation.DECLINED;
        }
        return reserveRoom(
                entry,
                new NewRecordFields(
                        chain.keyHi(index),
                        chain.keyLo(index),
                        parent,
                        index,
                        RecordFlags.ofBlock(entry.id(), novelty),
                        entry.blockBytes(),
                        chain.engineHash64(index),
                        NONE),
                chain.length() - index,
                sparing);
    }

    /// Returns whether the policy does not want an object that readers take after another one. Others are always
    /// wanted: a client that sets a value expects to find it.
    private boolean isDeclined(NamespaceEntry entry, BlockKey after, BlockKey key, int bytes) {
        EvictionPolicy policy = policyOfNextVictim(entry, objectClass(bytes));
        if (policy == null) {
            return false;
        }
        int before = tree.findAny(after.hi(), after.lo());
        int novelty = NoveltyClass.ofSingleBlock(before == NONE ? 0 : objectLinks.depth(before) + 1);
        if (policy.admits(key.lo(), novelty) || disks.disks() > 0) {
            return false;
        }
        policy.onDeclined(key.lo(), novelty, true);
        return true;
    }

    /// The policy of the namespace if a new block of it needs a victim and that is the policy's own, else null. A
    /// block that it does not admit is declined unless there is a disk, which the block would then not reach.
    private @Nullable EvictionPolicy policyOfNextVictim(NamespaceEntry entry, SlotClass slotClass) {
        boolean full = slabs.freeSlabs() == 0 && slabs.heldSlots(slotClass) == slabs.slots(slotClass);
        if (!full && pool.live() < pool.capacity()) {
            return null;
        }
        for (int group : shares.heaviestFirst()) {
            EvictionPolicy policy = policies.find(slotClass.id(), group);
            if (policy != null && policy.size() > 0) {
                return group == shares.groupOf(entry.id()) ? policy : null;
            }
        }
        return null;
    }

    /// @param blocks of the prompt from this one on, or 0 when unknown
    private PutReservation reserveRoom(NamespaceEntry entry, NewRecordFields what, int blocks, boolean sparing) {
        SlotClass slotClass = entry.slotClass();
        int record = insert(what);
        if (record == NONE) {
            return PutReservation.NO_ROOM;
        }
        writeBackQueue.onPutStarted(record, blocks);
        return settle(record, allocate(slotClass, record, sparing));
    }

    /// Returns whether blocks of a namespace may be put below a record: all of a path are of one namespace, and
    /// none goes below a recovered block whose ancestors are still missing.
    private boolean allowsChildren(NamespaceEntry entry, int record) {
        int state = recordStates.stateOf(record);
        return state != ControlWord.PLACEHOLDER
                && state != ControlWord.ORPHAN
                && RecordFlags.isBlockOf(pool.flags(record), entry.id());
    }

    /// Returns the block that an entry of a window or state belongs to, which is here or being written; else -1.
    private int ownerOf(NamespaceEntry entry, BlockChain chain, int index) {
        Owner owner = entry.owner();
        if (owner == null) {
            return NONE;
        }
        int block = owner.find(tree, chain.keyHi(index), chain.keyLo(index));
        boolean fits = block != NONE
                && allowsChildren(owner.blocks(), block)
                && owner.group().isBehind(pool.depth(block));
        return fits ? block : NONE;
    }

    /// A block that is on disk alone is filled by the caller, which has its bytes at hand, if the block above
    /// is in host memory or on its way there. Where another namespace has something under the key, nothing can
    /// be put, however often it is tried.
    private PutReservation presentOrBusy(NamespaceEntry entry, int record) {
        if (!RecordFlags.isBlockOf(pool.flags(record), entry.id())) {
            return PutReservation.FOREIGN;
        }
        return switch (recordStates.stateOf(record)) {
            case ControlWord.SEALED -> {
                recordStates.policyOf(record).touch(record);
                yield PutReservation.PRESENT;
            }
            case ControlWord.ON_DISK -> {
                int parent = pool.parent(record);
                boolean follows = parent == NONE || recordStates.stateOf(parent) != ControlWord.ON_DISK;
                boolean fills = follows && startRead(record, 0, false);
                yield fills ? new PutReservation(PutOutcome.RESERVED, record) : PutReservation.PRESENT;
            }
            case ControlWord.LOADING, ControlWord.LOADED -> PutReservation.PRESENT;
            default -> PutReservation.BUSY;
        };
    }

    /// Room for an object; others may be writing the same key. It is linked behind the one before it at once, so
    /// that this one does not go for its sake.
    PutReservation reserveObject(NamespaceEntry entry, ObjectSpec what, boolean sparing) {
        BlockKey key = what.key();
        int bytes = what.bytes();
        int present = tree.findAny(key.hi(), key.lo());
        boolean block = present != NONE && !RecordFlags.isObject(pool.flags(present));
        if (block && !ControlWord.isKnown(recordStates.stateOf(present))) {
            return PutReservation.BUSY;
        }
        if (bytes > slabs.capacityBytes()) {
            return PutReservation.NO_ROOM;
        }
        if (present == NONE && what.after() != null && isDeclined(entry, what.after(), key, bytes)) {
            return PutReservation.DECLINED;
        }
        int record = insert(new NewRecordFields(
                key.hi(), key.lo(), NONE, 0, RecordFlags.ofObject(entry.id()), bytes, what.engineHash(), NONE));
        if (record == NONE) {
            return PutReservation.NO_ROOM;
        }
        BlockKey after = what.after();
        if (after != null) {
            objectLinks.link(record, tree.findAny(after.hi(), after.lo()));
        }
        PutReservation settled = settle(record, allocateObject(bytes, record, sparing));
        boolean reserved = settled.outcome() == PutOutcome.RESERVED;
        return reserved && present != NONE && tree.findDuplicate(record) != NONE
                ? new PutReservation(PutOutcome.RESERVED, record, true)
                : settled;
    }

    /// Returns whether an object of this size, in one slot, can take the place of a record's object: one
    /// of the same namespace and slot class that is neither tied to another nor marked as dead.
    boolean fitsPlaceOf(int record, NamespaceEntry entry, int bytes) {
        return record != NONE
                && recordStates.stateOf(record) == ControlWord.SEALED
                && RecordFlags.isObjectOf(pool.flags(record), entry.id())
                && slabs.classId(pool.hostPage(record)) == objectClass(bytes).id()
                && slabs.next(pool.hostPage(record)) == SlabPool.NONE
                && objectLinks.predecessor(record) == NONE
                && objectLinks.successorCount(record) == 0
                && !recordStates.expired().contains(record);
    }

    private int insert(NewRecordFields what) {
        int record = tree.insert(what);
        int group = shares.groupOf(RecordFlags.namespaceId(what.flags()));
        while (record == NONE && freeRecord(what.parent(), group)) {
            record = tree.insert(what);
        }
        return record;
    }

    private PutReservation settle(int record, int page) {
        if (page == SlabPool.NONE) {
            recordStates.cancelReservation(record);
            return PutReservation.NO_ROOM;
        }
        pool.hostPage(record, page);
        shares.onAllocated(record);
        return new PutReservation(PutOutcome.RESERVED, record);
    }

    /// Begins to load a record, joins the load that is on its way, or finds it resident.
    ///
    /// @param pins of the caller's, beside that of the load; they are taken if it comes
    LoadOutcome load(int record, int pins) {
        int state = recordStates.stateOf(record);
        if (pins > 0) { // a hint that it will be read is no use
            recordStates.prefetched().markRequested(record);
            if (recordStates.prefetched().onUsed(record) && state == ControlWord.SEALED) {
                writeBackQueue.onUsed(record);
            }
        }
        return switch (state) {
            case ControlWord.SEALED -> {
                pool.transition(record, state, pins);
                yield LoadOutcome.RESIDENT;
            }
            case ControlWord.LOADING, ControlWord.LOADED -> {
                pool.transition(record, state, pins);
                yield LoadOutcome.JOINED;
            }
            case ControlWord.ON_DISK -> startLoad(record, pins) ? LoadOutcome.STARTED : LoadOutcome.NO_ROOM;
            default -> LoadOutcome.NOT_FOUND;
        };
    }

    private boolean startLoad(int record, int pins) {
        boolean begun = startRead(record, pins, false);
        if (begun && pins == 0) {
            recordStates.prefetched().markUnrequested(record);
        }
        return begun;
    }

    /// Gives a record that is on disk alone a slot to be read into though no reader waits for it, without the room
    /// of anything that waits to be written.
    boolean startPrefetch(int record) {
        return startRead(record, 0, true);
    }

    /// Gives a record that is on disk alone a slot, for a reader of the disk or for a writer that has the
    /// bytes.
    ///
    /// @param pins of the caller's, beside that of the reader or writer that fills the slot
    private boolean startRead(int record, int pins, boolean sparing) {
        disks.order(record).forget(record);
        pool.transition(record, ControlWord.LOADING, 1 + pins);
        tree.addResident(record);
        int page = allocateSlots(record, sparing);
        if (page == SlabPool.NONE) {
            tree.removeResident(record);
            pool.transition(record, ControlWord.ON_DISK, -1 - pins);
            disks.order(record).admit(record);
            return false;
        }
        pool.hostPage(record, page);
        shares.onAllocated(record);
        return true;
    }

    /// Returns whether the block above a record, if it has one, is in host memory or on its way there.
    boolean isParentAvailable(int record) {
        int parent = pool.parent(record);
        return parent == SlabPool.NONE || pool.hostPage(parent) != SlabPool.NONE;
    }

    private int allocateSlots(int record, boolean sparing) {
        return RecordFlags.isObject(pool.flags(record))
                ? allocateObject(pool.bytes(record), record, sparing)
                : allocate(classOf(record), record, sparing);
    }

    /// The class of a record's first slot.
    SlotClass classOf(int record) {
        int identity = pool.flags(record);
        return RecordFlags.isObject(identity)
                ? objectClass(pool.bytes(record))
                : namespaceRegistry.byId(RecordFlags.namespaceId(identity)).slotClass();
    }

    /// Counts one attempt of a put. One without room may not be the last of its put: see [#countRefused].
    @SuppressWarnings("EnumOrdinal") // counters of this process alone
    PutReservation count(PutReservation answer) {
        outcomes[answer.outcome().ordinal()]++;
        return answer;
    }

    /// Counts a put that ended without room.
    void countRefused() {
        refused++;
    }

    /// Counts a put whose writer gave up.
    void countAbandoned() {
        abandoned++;
    }

    @SuppressWarnings("EnumOrdinal") // counters of this process alone
    private long total(PutOutcome outcome) {
        return outcomes[outcome.ordinal()];
    }

    CacheStats.Puts putStats() {
        return new CacheStats.Puts(
                total(PutOutcome.RESERVED),
                total(PutOutcome.PRESENT),
                total(PutOutcome.BUSY),
                total(PutOutcome.NO_PARENT),
                refused,
                abandoned,
                total(PutOutcome.FOREIGN),
                total(PutOutcome.NO_ROOM),
                total(PutOutcome.DECLINED));
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

    /// Takes slots for an object: as many of 1 MiB as fit, then of 64 KiB, then of 4 KiB, linked one after
    /// another. Sixteen of one size become one of the next, so an object wastes less than 4 KiB and has at most 15
    /// slots of each size below its megabytes. Where a class has no room and can get none, one slot of a larger
    /// class takes the rest.
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

    /// Takes a slot of any larger class for the rest of an object: waste is better than a refusal.
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
        return recordStates.freeRecordOnDisk(keep)
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
        SlotClass pressed = slabs.slotClass(classId);
        if (classId >= evictedBytes.length) {
            evictedBytes = Arrays.copyOf(evictedBytes, 2 * classId);
        }
        evictedBytes[classId] += pressed.slotBytes();
        if (evictedBytes[classId] >= bytesBetweenBalances(slabs.slabCount(pressed))) {
            evictedBytes[classId] = 0;
            balance(pressed, request);
        }
        return evictFrom(classId, EvictionPolicy.NONE, request);
    }

    /// A class of one slab looks after a 64th of it, one of 16 and more after four.
    private long bytesBetweenBalances(int slabCount) {
        long few = Math.clamp(slabCount, 1, FULL_CLASS_SLABS);
        return MAX_BALANCE_SLABS * slabs.slabBytes() * few * few / (FULL_CLASS_SLABS * FULL_CLASS_SLABS);
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

    /// Returns whether the record's parent lies in the same slab, so that a check of that parent's descendants
    /// covers this record.
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

    /// Returns whether a record has a slot, or is about to get one.
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

    /// Finds the [NoveltyClass] of a block that is put: how much of its prompt, from the first block put on,
    /// is not remembered.
    ///
    /// Blocks of a prompt come one by one, and a prompt that is computed in parts comes with a chain
    /// that grows: what is put behind a block that was not used since it was put, and that was not on
    /// disk alone, is of the same cohort.
    ///
    /// **Threads.** Owned by the store's lock.
    static final class NoveltyClassifier {

        private final RecordPool pool;
        private final SlotClassPolicies policies;
        private final MemoryShares shares;

        NoveltyClassifier(RecordPool pool, SlotClassPolicies policies, MemoryShares shares) {
            this.pool = pool;
            this.policies = policies;
            this.shares = shares;
        }

        /// The cohort of a block of a chain that no tier has.
        ///
        /// @param parent the record before it, or [io.kvcache.core.policy.RecordView#NONE]
        int classify(NamespaceEntry entry, BlockChain chain, int index, int parent) {
            int before = parent == NONE ? 0 : pool.flags(parent);
            if (RecordFlags.has(before, RecordFlags.FRESH) && RecordFlags.noveltyClass(before) >= 0) {
                return RecordFlags.noveltyClass(before);
            }
            EvictionPolicy policy = policies.find(entry.slotClass().id(), shares.groupOf(entry.id()));
            int known = policy == null ? index : firstUnknown(policy, chain, index);
            return NoveltyClass.of((long) (chain.length() - known) * chain.blockTokens());
        }

        /// The first block from one on that a policy does not remember, or the chain's length: it
        /// remembers a chain up to some block, but for few.
        private static int firstUnknown(EvictionPolicy policy, BlockChain chain, int from) {
            int low = from;
            int high = chain.length();
            while (low < high) {
                int middle = (low + high) >>> 1;
                if (policy.hasGhost(chain.keyLo(middle))) {
                    low = middle + 1;
                } else {
                    high = middle;
                }
            }
            return low;
        }
    }
}
