package io.kvcache.core.store;

import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.memory.SlotClass;
import io.kvcache.core.store.DiskUsage.DiskUsageTable;
import io.kvcache.core.store.HostStore.LoadOutcome;
import io.kvcache.core.store.SlotAllocator.ObjectSlotAllocator;
import io.kvcache.core.tree.BlockTree;
import io.kvcache.core.tree.ControlWord;
import io.kvcache.core.tree.RecordPool;

/// Gives records that are on disk a slot to be read into, and what becomes of them then.
///
/// A load counts as one pin, as a writer does. Whoever waits for the block has a pin of its own from the
/// start, so that the block stays when the load ends.
///
/// **Threads.** Owned by the store's lock.
final class LoadPath {

    private final RecordPool pool;
    private final BlockTree tree;
    private final DiskUsageTable disks;
    private final NamespaceRegistry namespaceRegistry;
    private final MemoryShares shares;
    private final RecordStates recordStates;
    private final SlotAllocator slotAllocator;
    private final ObjectSlotAllocator objects;
    private final PrefetchTracker prefetchTracker;
    private final WriteBackQueue writeBackQueue;

    LoadPath(
            StoreComponents parts,
            RecordStates recordStates,
            SlotAllocator slotAllocator,
            ObjectSlotAllocator objects) {
        pool = parts.pool();
        tree = parts.tree();
        disks = parts.diskUsageTable();
        namespaceRegistry = parts.namespaceRegistry();
        shares = parts.memoryShares();
        prefetchTracker = parts.prefetchTracker();
        writeBackQueue = parts.writeBackQueue();
        this.recordStates = recordStates;
        this.slotAllocator = slotAllocator;
        this.objects = objects;
    }

    /// Begins to load a record, joins the load that is on its way, or finds it resident.
    ///
    /// @param pins of the caller's, beside that of the load; they are taken if it comes
    LoadOutcome start(int record, int pins) {
        int state = recordStates.stateOf(record);
        if (pins > 0) { // whoever only says that it will be read has not read it
            prefetchTracker.markRequested(record);
            if (prefetchTracker.onUsed(record) && state == ControlWord.SEALED) {
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
        boolean begun = startRead(record, pins);
        if (begun && pins == 0) {
            prefetchTracker.markUnrequested(record);
        }
        return begun;
    }

    /// Gives a record that is on disk alone a slot, for a reader of the disk or for a writer who has the
    /// bytes.
    ///
    /// @param pins of the caller's, beside that of whoever fills the slot
    boolean startRead(int record, int pins) {
        return startRead(record, pins, false);
    }

    /// The same for nobody who waits, without the room of anything that waits to be written.
    boolean startPrefetch(int record) {
        return startRead(record, 0, true);
    }

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
        if (RecordFlags.isObject(pool.flags(record))) {
            return objects.allocate(pool.bytes(record), record, sparing);
        }
        SlotClass slotClass = classOf(record);
        return sparing ? slotAllocator.allocateSparing(slotClass, record) : slotAllocator.allocate(slotClass, record);
    }

    /// The class of a record's first slot.
    SlotClass classOf(int record) {
        int identity = pool.flags(record);
        return RecordFlags.isObject(identity)
                ? objects.classOf(pool.bytes(record))
                : namespaceRegistry.byId(RecordFlags.namespaceId(identity)).slotClass();
    }
}
