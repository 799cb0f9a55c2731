package io.kvcache.core.store;

import static io.kvcache.core.policy.RecordView.NONE;

import io.kvcache.core.CacheStats;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.memory.SlotClass;
import io.kvcache.core.store.HostStore.EngineBlock;
import io.kvcache.core.store.HostStore.ObjectSpec;
import io.kvcache.core.store.HostStore.PutReservation;
import io.kvcache.core.store.SlotAllocator.ObjectSlotAllocator;
import io.kvcache.core.store.StoreEvents.EnumCounters;
import io.kvcache.core.store.WriteAdmission.NoveltyClassifier;
import io.kvcache.core.tree.BlockTree;
import io.kvcache.core.tree.ControlWord;
import io.kvcache.core.tree.NewRecordFields;
import io.kvcache.core.tree.RecordPool;

/// Answers requests for room.
///
/// **Threads.** Owned by the store's lock.
final class PutReserver {

    private final RecordPool pool;
    private final BlockTree tree;
    private final SlabPool slabs;
    private final RecordStates recordStates;
    private final SlotSources sources;
    private final MemoryShares shares;
    private final ObjectLinks objectLinks;
    private final WriteAdmission writeAdmission;
    private final NoveltyClassifier noveltyClassifier;

    /// Where room comes from.
    record SlotSources(SlotAllocator slotAllocator, ObjectSlotAllocator objects, LoadPath loadPath) {}

    PutReserver(StoreComponents parts, RecordStates recordStates, SlotSources sources) {
        pool = parts.pool();
        tree = parts.tree();
        slabs = parts.slabs();
        shares = parts.memoryShares();
        objectLinks = parts.objectLinks();
        writeAdmission = parts.writeBackQueue().writeAdmission();
        noveltyClassifier = parts.noveltyClassifier();
        this.recordStates = recordStates;
        this.sources = sources;
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

    /// @param blocks of the prompt from this one on, or 0 when nobody knows
    private PutReservation reserveRoom(NamespaceEntry entry, NewRecordFields what, int blocks, boolean sparing) {
        SlotClass slotClass = entry.slotClass();
        int record = insert(what);
        if (record == NONE) {
            return PutReservation.NO_ROOM;
        }
        writeAdmission.onPutStarted(record, blocks);
        return settle(
                record,
                sparing
                        ? sources.slotAllocator().allocateSparing(slotClass, record)
                        : sources.slotAllocator().allocate(slotClass, record));
    }

    /// Whether blocks of a namespace may be put below a record: all of a path are of one namespace, and none goes
    /// below one whose own blocks above were not found yet.
    private boolean allowsChildren(NamespaceEntry entry, int record) {
        int state = recordStates.stateOf(record);
        return state != ControlWord.PLACEHOLDER
                && state != ControlWord.ORPHAN
                && RecordFlags.isBlockOf(pool.flags(record), entry.id());
    }

    /// A block that is on disk alone is filled by the caller, who has its bytes at hand, if the block above
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
                boolean fills = follows && sources.loadPath().startRead(record, 0);
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
        PutReservation settled = settle(record, sources.objects().allocate(bytes, record, sparing));
        boolean reserved = settled.outcome() == PutOutcome.RESERVED;
        return reserved && present != NONE && tree.findDuplicate(record) != NONE
                ? new PutReservation(PutOutcome.RESERVED, record, true)
                : settled;
    }

    private int insert(NewRecordFields what) {
        int record = tree.insert(what);
        int group = shares.groupOf(RecordFlags.namespaceId(what.flags()));
        while (record == NONE && sources.slotAllocator().freeRecord(what.parent(), group)) {
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

    /// What became of requests for room. Owned by the store's lock.
    static final class PutCounters {

        private final EnumCounters<PutOutcome> outcomes = new EnumCounters<>(PutOutcome.class);
        private long refused;
        private long abandoned;

        /// Counts one attempt. One without room may not be the last of its put: see [#countRefused].
        PutReservation count(PutReservation answer) {
            outcomes.add(answer.outcome());
            return answer;
        }

        /// The caller of a put is told that there is no room.
        void countRefused() {
            refused++;
        }

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
}
