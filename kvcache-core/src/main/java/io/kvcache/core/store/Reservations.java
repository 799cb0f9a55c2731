package io.kvcache.core.store;

import static io.kvcache.core.policy.RecordView.NONE;

import io.kvcache.core.PutOutcome;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.memory.SlotClass;
import io.kvcache.core.tree.BlockTree;
import io.kvcache.core.tree.Control;
import io.kvcache.core.tree.NewRecord;
import io.kvcache.core.tree.RecordPool;

/// Answers requests for room.
///
/// **Threads.** Owned by the store's lock.
final class Reservations {

    private final RecordPool pool;
    private final BlockTree tree;
    private final SlabPool slabs;
    private final Lifecycle lifecycle;
    private final Sources sources;
    private final Shares shares;
    private final ObjectChains chains;
    private final Prospects prospects;
    private final Cohorts cohorts;

    /// Where room comes from.
    record Sources(Room room, ObjectSlots objects, Onboard onboard) {}

    Reservations(StoreParts parts, Lifecycle lifecycle, Sources sources) {
        pool = parts.pool();
        tree = parts.tree();
        slabs = parts.slabs();
        shares = parts.shares();
        chains = parts.chains();
        prospects = parts.offload().prospects();
        cohorts = parts.cohorts();
        this.lifecycle = lifecycle;
        this.sources = sources;
    }

    /// Room for block `index` of a chain.
    Reserved block(NamespaceEntry entry, BlockChain chain, int index, boolean sparing) {
        int present = tree.findAny(chain.keyHi(index), chain.keyLo(index));
        if (present != NONE) {
            return presentOrBusy(entry, present);
        }
        int parent = index == 0 ? NONE : tree.findAny(chain.keyHi(index - 1), chain.keyLo(index - 1));
        if (index > 0 && (parent == NONE || pool.depth(parent) != index - 1 || !takesChildren(entry, parent))) {
            return Reserved.NO_PARENT;
        }
        return room(
                entry,
                new NewRecord(
                        chain.keyHi(index),
                        chain.keyLo(index),
                        parent,
                        index,
                        Identity.block(entry.id(), cohorts.of(entry, chain, index, parent)),
                        entry.blockBytes(),
                        chain.engineHash64(index),
                        NONE),
                chain.length() - index,
                sparing);
    }

    /// Room for one block below another, as deep as that one says.
    Reserved block(NamespaceEntry entry, EngineBlock block, boolean sparing) {
        BlockKey key = block.key();
        int present = tree.findAny(key.hi(), key.lo());
        if (present != NONE) {
            return presentOrBusy(entry, present);
        }
        BlockKey above = block.parent();
        int parent = above == null ? NONE : tree.findAny(above.hi(), above.lo());
        if (above != null && (parent == NONE || !takesChildren(entry, parent))) {
            return Reserved.NO_PARENT;
        }
        return room(
                entry,
                new NewRecord(
                        key.hi(),
                        key.lo(),
                        parent,
                        parent == NONE ? 0 : pool.depth(parent) + 1,
                        Identity.block(entry.id(), -1),
                        entry.blockBytes(),
                        block.engineHash(),
                        NONE),
                0,
                sparing);
    }

    /// @param blocks of the prompt from this one on, or 0 when nobody knows
    private Reserved room(NamespaceEntry entry, NewRecord what, int blocks, boolean sparing) {
        SlotClass slotClass = entry.slotClass();
        int record = insert(what);
        if (record == NONE) {
            return Reserved.NO_ROOM;
        }
        prospects.begins(record, blocks);
        return settle(
                record,
                sparing
                        ? sources.room().sparingSlot(slotClass, record)
                        : sources.room().slot(slotClass, record));
    }

    /// Whether blocks of a namespace may be put below a record: all of a path are of one namespace, and none goes
    /// below one whose own blocks above were not found yet.
    private boolean takesChildren(NamespaceEntry entry, int record) {
        int state = lifecycle.state(record);
        return state != Control.PHANTOM
                && state != Control.DETACHED
                && Identity.isBlockOf(pool.identity(record), entry.id());
    }

    /// A block that is on disk alone is filled by the caller, who has its bytes at hand, if the block above
    /// is in host memory or on its way there. Where another namespace has something under the key, nothing can
    /// be put, however often it is tried.
    private Reserved presentOrBusy(NamespaceEntry entry, int record) {
        if (!Identity.isBlockOf(pool.identity(record), entry.id())) {
            return Reserved.FOREIGN;
        }
        return switch (lifecycle.state(record)) {
            case Control.SEALED -> {
                lifecycle.policyOf(record).touch(record);
                yield Reserved.PRESENT;
            }
            case Control.ON_DISK -> {
                int parent = pool.parent(record);
                boolean follows = parent == NONE || lifecycle.state(parent) != Control.ON_DISK;
                boolean fills = follows && sources.onboard().beginRead(record, 0);
                yield fills ? new Reserved(PutOutcome.RESERVED, record) : Reserved.PRESENT;
            }
            case Control.LOADING, Control.LOADED -> Reserved.PRESENT;
            default -> Reserved.BUSY;
        };
    }

    /// Room for an object; others may be writing the same key. It is linked behind the one before it at once, so
    /// that this one does not go for its sake.
    Reserved object(NamespaceEntry entry, NewObject what, boolean sparing) {
        BlockKey key = what.key();
        int bytes = what.bytes();
        int present = tree.findAny(key.hi(), key.lo());
        boolean block = present != NONE && !Identity.isObject(pool.identity(present));
        if (block && !Control.known(lifecycle.state(present))) {
            return Reserved.BUSY;
        }
        if (bytes > slabs.capacityBytes()) {
            return Reserved.NO_ROOM;
        }
        int record = insert(new NewRecord(key.hi(), key.lo(), NONE, 0, Identity.object(entry.id()), bytes, 0, NONE));
        if (record == NONE) {
            return Reserved.NO_ROOM;
        }
        BlockKey after = what.after();
        if (after != null) {
            chains.link(record, tree.findAny(after.hi(), after.lo()));
        }
        Reserved settled = settle(record, sources.objects().take(bytes, record, sparing));
        boolean reserved = settled.outcome() == PutOutcome.RESERVED;
        return reserved && present != NONE && tree.findOther(record) != NONE
                ? new Reserved(PutOutcome.RESERVED, record, true)
                : settled;
    }

    private int insert(NewRecord what) {
        int record = tree.insert(what);
        int group = shares.groupOf(Identity.namespace(what.identity()));
        while (record == NONE && sources.room().freeRecord(what.parent(), group)) {
            record = tree.insert(what);
        }
        return record;
    }

    private Reserved settle(int record, int page) {
        if (page == SlabPool.NONE) {
            lifecycle.withdraw(record);
            return Reserved.NO_ROOM;
        }
        pool.hostPage(record, page);
        shares.took(record);
        return new Reserved(PutOutcome.RESERVED, record);
    }
}
