package io.kvcache.core.store;

import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.memory.SlotClass;
import io.kvcache.core.tree.BlockTree;
import io.kvcache.core.tree.Control;
import io.kvcache.core.tree.RecordPool;

/// Gives records that are on disk a slot to be read into, and what becomes of them then.
///
/// A load counts as one pin, as a writer does. Whoever waits for the block has a pin of its own from the
/// start, so that the block stays when the load ends.
///
/// **Threads.** Owned by the store's lock.
final class Onboard {

    private final RecordPool pool;
    private final BlockTree tree;
    private final DiskLedger disks;
    private final Namespaces namespaces;
    private final Shares shares;
    private final Lifecycle lifecycle;
    private final Room room;
    private final ObjectSlots objects;
    private final Prefetched prefetched;
    private final Offload offload;

    Onboard(StoreParts parts, Lifecycle lifecycle, Room room, ObjectSlots objects) {
        pool = parts.pool();
        tree = parts.tree();
        disks = parts.disks();
        namespaces = parts.namespaces();
        shares = parts.shares();
        prefetched = parts.prefetched();
        offload = parts.offload();
        this.lifecycle = lifecycle;
        this.room = room;
        this.objects = objects;
    }

    /// Begins to load a record, joins the load that is on its way, or finds it resident.
    ///
    /// @param pins of the caller's, beside that of the load; they are taken if it comes
    LoadStart begin(int record, int pins) {
        int state = lifecycle.state(record);
        if (pins > 0) { // whoever only says that it will be read has not read it
            prefetched.asked(record);
            if (prefetched.used(record) && state == Control.SEALED) {
                offload.used(record);
            }
        }
        return switch (state) {
            case Control.SEALED -> {
                pool.become(record, state, pins);
                yield LoadStart.RESIDENT;
            }
            case Control.LOADING, Control.LOADED -> {
                pool.become(record, state, pins);
                yield LoadStart.JOINED;
            }
            case Control.ON_DISK -> beginLoad(record, pins) ? LoadStart.STARTED : LoadStart.NO_ROOM;
            default -> LoadStart.NOT_HERE;
        };
    }

    private boolean beginLoad(int record, int pins) {
        boolean begun = beginRead(record, pins);
        if (begun && pins == 0) {
            prefetched.unasked(record);
        }
        return begun;
    }

    /// Gives a record that is on disk alone a slot, for a reader of the disk or for a writer who has the
    /// bytes.
    ///
    /// @param pins of the caller's, beside that of whoever fills the slot
    boolean beginRead(int record, int pins) {
        return beginRead(record, pins, false);
    }

    /// The same for nobody who waits, without the room of anything that waits to be written.
    boolean beginSparing(int record) {
        return beginRead(record, 0, true);
    }

    private boolean beginRead(int record, int pins, boolean sparing) {
        disks.order(record).forget(record);
        pool.become(record, Control.LOADING, 1 + pins);
        tree.arrive(record);
        int page = takeSlots(record, sparing);
        if (page == SlabPool.NONE) {
            tree.depart(record);
            pool.become(record, Control.ON_DISK, -1 - pins);
            disks.order(record).admit(record);
            return false;
        }
        pool.hostPage(record, page);
        shares.took(record);
        return true;
    }

    /// Whether the block above a record, if it has one, is in host memory or on its way there.
    boolean follows(int record) {
        int parent = pool.parent(record);
        return parent == SlabPool.NONE || pool.hostPage(parent) != SlabPool.NONE;
    }

    private int takeSlots(int record, boolean sparing) {
        if (Identity.isObject(pool.identity(record))) {
            return objects.take(pool.bytes(record), record, sparing);
        }
        SlotClass slotClass = classOf(record);
        return sparing ? room.sparingSlot(slotClass, record) : room.slot(slotClass, record);
    }

    /// The class of a record's first slot.
    SlotClass classOf(int record) {
        int identity = pool.identity(record);
        return Identity.isObject(identity)
                ? objects.classOf(pool.bytes(record))
                : namespaces.byId(Identity.namespace(identity)).slotClass();
    }
}
