package io.kvcache.core.store;

import io.kvcache.core.memory.SlabPool;
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

    Onboard(StoreParts parts, Lifecycle lifecycle, Room room, ObjectSlots objects) {
        pool = parts.pool();
        tree = parts.tree();
        disks = parts.disks();
        namespaces = parts.namespaces();
        shares = parts.shares();
        this.lifecycle = lifecycle;
        this.room = room;
        this.objects = objects;
    }

    /// Begins to load a record, joins the load that is on its way, or finds it resident.
    ///
    /// @param pins of the caller's, beside that of the load; they are taken if it comes
    LoadStart begin(int record, int pins) {
        int state = lifecycle.state(record);
        return switch (state) {
            case Control.SEALED -> {
                pool.become(record, state, pins);
                yield LoadStart.RESIDENT;
            }
            case Control.LOADING, Control.LOADED -> {
                pool.become(record, state, pins);
                yield LoadStart.JOINED;
            }
            case Control.ON_DISK -> beginRead(record, pins) ? LoadStart.STARTED : LoadStart.NO_ROOM;
            default -> LoadStart.NOT_HERE;
        };
    }

    /// Gives a record that is on disk alone a slot, for a reader of the disk or for a writer who has the
    /// bytes.
    ///
    /// @param pins of the caller's, beside that of whoever fills the slot
    boolean beginRead(int record, int pins) {
        disks.order(record).forget(record);
        pool.become(record, Control.LOADING, 1 + pins);
        tree.arrive(record);
        int page = takeSlots(record);
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

    private int takeSlots(int record) {
        int identity = pool.identity(record);
        return Identity.isObject(identity)
                ? objects.take(pool.bytes(record), record, false)
                : room.slot(namespaces.byId(Identity.namespace(identity)).slotClass(), record);
    }
}
