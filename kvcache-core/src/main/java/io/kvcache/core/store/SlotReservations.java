package io.kvcache.core.store;

import static io.kvcache.core.policy.RecordView.NONE;

import io.kvcache.core.CacheStats;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.memory.SlotClass;
import io.kvcache.core.store.DiskUsage.DiskUsageTable;
import io.kvcache.core.store.HostStore.EngineBlock;
import io.kvcache.core.store.HostStore.LoadOutcome;
import io.kvcache.core.store.HostStore.ObjectSpec;
import io.kvcache.core.store.HostStore.PutReservation;
import io.kvcache.core.store.NamespaceRegistry.NamespaceEntry;
import io.kvcache.core.store.SlotAllocator.SlotClassPolicies;
import io.kvcache.core.store.StoreEvents.EnumCounters;
import io.kvcache.core.store.WriteAdmission.NoveltyClassifier;
import io.kvcache.core.tree.BlockTree;
import io.kvcache.core.tree.ControlWord;
import io.kvcache.core.tree.ObjectLinks;
import io.kvcache.core.tree.RecordFlags;
import io.kvcache.core.tree.RecordPool;
import io.kvcache.core.tree.RecordPool.NewRecordFields;

/// Gives records slots to be filled: by the writer of a put, or by a read from disk.
///
/// The writer or load that fills a slot counts as one pin. A reader that waits for a block has a pin of its own from
/// the start, so that the block stays when the load ends.
///
/// **Threads.** Owned by the store's lock.
final class SlotReservations {

    private final RecordPool pool;
    private final BlockTree tree;
    private final SlabPool slabs;
    private final NamespaceRegistry namespaceRegistry;
    private final MemoryShares shares;
    private final ObjectLinks objectLinks;
    private final DiskUsageTable disks;
    private final WriteBackQueue writeBackQueue;
    private final NoveltyClassifier noveltyClassifier;
    private final RecordStates recordStates;
    private final SlotAllocator slotAllocator;
    private final EnumCounters<PutOutcome> outcomes = new EnumCounters<>(PutOutcome.class);
    private long refused;
    private long abandoned;

    SlotReservations(
            BlockTree tree,
            SlabPool slabs,
            NamespaceRegistry namespaceRegistry,
            SlotClassPolicies policies,
            MemoryShares shares,
            ObjectLinks objectLinks,
            DiskUsageTable disks,
            WriteBackQueue writeBackQueue,
            RecordStates recordStates,
            SlotAllocator slotAllocator) {
        pool = tree.pool();
        this.tree = tree;
        this.slabs = slabs;
        this.namespaceRegistry = namespaceRegistry;
        this.shares = shares;
        this.objectLinks = objectLinks;
        this.disks = disks;
        this.writeBackQueue = writeBackQueue;
        this.recordStates = recordStates;
        this.slotAllocator = slotAllocator;
        noveltyClassifier = new NoveltyClassifier(pool, policies, shares);
    }

    /// Room for block `index` of a chain.
    PutReservation reserveBlock(NamespaceEntry entry, BlockChain chain, int index, boolean sparing) {
        int present = tree.findAny(chain.keyHi(index), chain.keyLo(index));
        if (present != NONE) {
            return presentOrBusy(entry, present);
        }
        int parent = index == 0 ? NONE : tree.findAny(chain.keyHi(index - 1), chain.keyLo(index - 1));
        if (index > 0 && (parent == NONE || pool.depth(parent) != index - 1 || !allowsChildren(entry, parent))) {
            return PutReservation.NO_PARENT;
        }
        return reserveRoom(
                entry,
                new NewRecordFields(
                        chain.keyHi(index),
                        chain.keyLo(index),
                        parent,
                        index,
                        RecordFlags.ofBlock(entry.id(), noveltyClassifier.classify(entry, chain, index, parent)),
                        entry.blockBytes(),
                        chain.engineHash64(index),
                        NONE),
                chain.length() - index,
                sparing);
    }

    /// Room for one block below another, as deep as that one says.
    PutReservation reserveBlock(NamespaceEntry entry, EngineBlock block, boolean sparing) {
        BlockKey key = block.key();
        int present = tree.findAny(key.hi(), key.lo());
        if (present != NONE) {
            return presentOrBusy(entry, present);
        }
        BlockKey above = block.parent();
        int parent = above == null ? NONE : tree.findAny(above.hi(), above.lo());
        if (above != null && (parent == NONE || !allowsChildren(entry, parent))) {
            return PutReservation.NO_PARENT;
        }
        return reserveRoom(
                entry,
                new NewRecordFields(
                        key.hi(),
                        key.lo(),
                        parent,
                        parent == NONE ? 0 : pool.depth(parent) + 1,
                        RecordFlags.ofBlock(entry.id(), -1),
                        entry.blockBytes(),
                        block.engineHash(),
                        NONE),
                0,
                sparing);
    }

    /// @param blocks of the prompt from this one on, or 0 when unknown
    private PutReservation reserveRoom(NamespaceEntry entry, NewRecordFields what, int blocks, boolean sparing) {
        SlotClass slotClass = entry.slotClass();
        int record = insert(what);
        if (record == NONE) {
            return PutReservation.NO_ROOM;
        }
        writeBackQueue.writeAdmission().onPutStarted(record, blocks);
        return settle(record, slotAllocator.allocate(slotClass, record, sparing));
    }

    /// Whether blocks of a namespace may be put below a record: all of a path are of one namespace, and none goes
    /// below one whose own blocks above were not found yet.
    private boolean allowsChildren(NamespaceEntry entry, int record) {
        int state = recordStates.stateOf(record);
        return state != ControlWord.PLACEHOLDER
                && state != ControlWord.ORPHAN
                && RecordFlags.isBlockOf(pool.flags(record), entry.id());
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
        int record = insert(
                new NewRecordFields(key.hi(), key.lo(), NONE, 0, RecordFlags.ofObject(entry.id()), bytes, 0, NONE));
        if (record == NONE) {
            return PutReservation.NO_ROOM;
        }
        BlockKey after = what.after();
        if (after != null) {
            objectLinks.link(record, tree.findAny(after.hi(), after.lo()));
        }
        PutReservation settled = settle(record, slotAllocator.allocateObject(bytes, record, sparing));
        boolean reserved = settled.outcome() == PutOutcome.RESERVED;
        return reserved && present != NONE && tree.findDuplicate(record) != NONE
                ? new PutReservation(PutOutcome.RESERVED, record, true)
                : settled;
    }

    private int insert(NewRecordFields what) {
        int record = tree.insert(what);
        int group = shares.groupOf(RecordFlags.namespaceId(what.flags()));
        while (record == NONE && slotAllocator.freeRecord(what.parent(), group)) {
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

    /// Whether the block above a record, if it has one, is in host memory or on its way there.
    boolean isParentAvailable(int record) {
        int parent = pool.parent(record);
        return parent == SlabPool.NONE || pool.hostPage(parent) != SlabPool.NONE;
    }

    private int allocateSlots(int record, boolean sparing) {
        return RecordFlags.isObject(pool.flags(record))
                ? slotAllocator.allocateObject(pool.bytes(record), record, sparing)
                : slotAllocator.allocate(classOf(record), record, sparing);
    }

    /// The class of a record's first slot.
    SlotClass classOf(int record) {
        int identity = pool.flags(record);
        return RecordFlags.isObject(identity)
                ? slotAllocator.objectClass(pool.bytes(record))
                : namespaceRegistry.byId(RecordFlags.namespaceId(identity)).slotClass();
    }

    /// Counts one attempt of a put. One without room may not be the last of its put: see [#countRefused].
    PutReservation count(PutReservation answer) {
        outcomes.add(answer.outcome());
        return answer;
    }

    /// Counts a put whose caller is told that there is no room.
    void countRefused() {
        refused++;
    }

    /// Counts a put whose writer gave up.
    void countAbandoned() {
        abandoned++;
    }

    CacheStats.Puts stats() {
        return new CacheStats.Puts(
                outcomes.total(PutOutcome.RESERVED),
                outcomes.total(PutOutcome.PRESENT),
                outcomes.total(PutOutcome.BUSY),
                outcomes.total(PutOutcome.NO_PARENT),
                refused,
                abandoned,
                outcomes.total(PutOutcome.FOREIGN),
                outcomes.total(PutOutcome.NO_ROOM));
    }
}
