package io.kvcache.core.store;

import static io.kvcache.core.policy.RecordView.NONE;

import io.kvcache.core.PutOutcome;
import io.kvcache.core.SealOutcome;
import io.kvcache.core.event.EventKind;
import io.kvcache.core.event.EventLog;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.memory.HostMemory;
import io.kvcache.core.memory.HostMemorySource;
import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.memory.SlotClass;
import io.kvcache.core.tree.BlockTree;
import io.kvcache.core.tree.Control;
import io.kvcache.core.tree.Handle;
import io.kvcache.core.tree.NewRecord;
import io.kvcache.core.tree.RecordLayout;
import io.kvcache.core.tree.RecordPool;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.concurrent.locks.ReentrantLock;

/// One tree of records over one span of host memory: the whole of a store's metadata.
///
/// Structure changes — reserve, seal, abandon, evict, drop — happen under one lock, held for metadata only.
/// Look-ups, pins and touches take no lock. A block that is resident has its parent resident, so what is
/// known of a chain is a prefix of it: a match is a binary search, and a pin on the deepest block holds all
/// above it.
///
/// **Ownership.** The store reserves its memory and gives it back on [#close()], which is for when nobody
/// holds a pin.
///
/// **Threads.** Safe for any number.
public final class HostStore implements AutoCloseable {

    private final HostMemory slotMemory;
    private final HostMemory recordMemory;
    private final RecordPool pool;
    private final BlockTree tree;
    private final SlabPool slabs;
    private final Namespaces namespaces = new Namespaces();
    private final Lifecycle lifecycle;
    private final Room room;
    private final ObjectSlots objects;
    private final Touches touches;
    private final Lookup lookup;
    private final Inspection inspection;
    private final PutCounters puts = new PutCounters();
    private final ReentrantLock lock = new ReentrantLock();

    /// Reserves the memory of a store.
    ///
    /// @throws IllegalStateException when the memory cannot be had
    public HostStore(HostStoreConfig config, HostMemorySource memory) {
        EventLog events = new EventLog(config.eventCapacity()); // checks its capacity before memory is taken
        long slotBytes = config.slotBytes() / SlabPool.SLAB_BYTES * SlabPool.SLAB_BYTES;
        slotMemory = memory.reserve("slots", slotBytes);
        recordMemory = reserveRecords(memory, config.records());
        pool = new RecordPool(recordMemory.segment(), config.records());
        tree = new BlockTree(pool);
        slabs = new SlabPool(slotMemory.segment());
        ClassPolicies policies = new ClassPolicies(config.policy(), pool);
        StoreParts parts = new StoreParts(pool, tree, slabs, policies, namespaces, events);
        lifecycle = new Lifecycle(parts);
        room = new Room(parts, lifecycle);
        objects = new ObjectSlots(slabs, room, lifecycle);
        touches = new Touches(pool, lifecycle, lock);
        lookup = new Lookup(tree, lifecycle, touches, lock);
        inspection = new Inspection(parts, new Inspection.Counters(lifecycle, room, puts, touches), lock);
    }

    private HostMemory reserveRecords(HostMemorySource memory, int records) {
        try {
            return memory.reserve("records", RecordLayout.spanBytes(records));
        } catch (RuntimeException refused) {
            slotMemory.close();
            throw refused;
        }
    }

    /// Registers a namespace, once or again.
    ///
    /// @throws IllegalArgumentException as [io.kvcache.core.KvCache#register] says
    public NamespaceEntry register(Namespace namespace) {
        lock.lock();
        try {
            NamespaceEntry known = namespaces.find(namespace);
            return known == null ? Registration.add(namespaces, slabs, namespace) : known;
        } finally {
            lock.unlock();
        }
    }

    /// The entry of a registered namespace.
    ///
    /// @throws IllegalArgumentException when it is not registered
    public NamespaceEntry require(Namespace namespace) {
        return namespaces.require(namespace);
    }

    /// The read side.
    public Lookup lookup() {
        return lookup;
    }

    /// The store as an operator sees it.
    public Inspection inspection() {
        return inspection;
    }

    /// Reserves room for block `index` of a chain.
    public Reserved reserve(NamespaceEntry entry, BlockChain chain, int index) {
        lock.lock();
        try {
            touches.drain();
            return puts.counted(reserveBlock(entry, chain, index));
        } finally {
            lock.unlock();
        }
    }

    private Reserved reserveBlock(NamespaceEntry entry, BlockChain chain, int index) {
        SlotClass slotClass = entry.slotClass();
        int present = tree.findAny(chain.keyHi(index), chain.keyLo(index));
        if (present != NONE) {
            return presentOrBusy(present);
        }
        int parent = index == 0 ? NONE : tree.findAny(chain.keyHi(index - 1), chain.keyLo(index - 1));
        if (index > 0 && parent == NONE) {
            return Reserved.NO_PARENT;
        }
        NewRecord what = new NewRecord(
                chain.keyHi(index),
                chain.keyLo(index),
                parent,
                index,
                Identity.block(entry.id(), 0),
                entry.blockBytes(),
                chain.engineHash64(index),
                NONE);
        int record = insert(what);
        return record == NONE ? Reserved.NO_ROOM : settle(record, room.slot(slotClass, record));
    }

    private Reserved presentOrBusy(int record) {
        if (lifecycle.state(record) != Control.SEALED) {
            return Reserved.BUSY;
        }
        lifecycle.policyOf(record).touch(record);
        return Reserved.PRESENT;
    }

    /// Reserves room for an object whose stored form — value, then key — has `bytes`. One that is larger
    /// than the whole store is refused before anything is evicted for it.
    public Reserved reserveObject(NamespaceEntry entry, BlockKey key, int bytes) {
        lock.lock();
        try {
            touches.drain();
            int present = tree.findAny(key.hi(), key.lo());
            if (present != NONE && lifecycle.state(present) != Control.SEALED) {
                return puts.counted(Reserved.BUSY);
            }
            if (bytes > slabs.capacityBytes()) {
                return puts.counted(Reserved.NO_ROOM);
            }
            int record =
                    insert(new NewRecord(key.hi(), key.lo(), NONE, 0, Identity.object(entry.id()), bytes, 0, NONE));
            return puts.counted(record == NONE ? Reserved.NO_ROOM : settle(record, objects.take(bytes, record)));
        } finally {
            lock.unlock();
        }
    }

    private int insert(NewRecord what) {
        int record = tree.insert(what);
        while (record == NONE && room.freeRecord(what.parent())) {
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
        return new Reserved(PutOutcome.RESERVED, record);
    }

    /// The writer of a reserved record has filled it.
    public SealOutcome seal(int record, int checksum) {
        lock.lock();
        try {
            if (lifecycle.state(record) == Control.DOOMED) {
                letGo(record);
                return SealOutcome.DROPPED;
            }
            pool.checksum(record, checksum);
            long older = tree.find(pool.keyHi(record), pool.keyLo(record));
            boolean sealed = lifecycle.seal(record, Handle.found(older) ? Handle.record(older) : NONE);
            return sealed ? SealOutcome.SEALED : SealOutcome.PENDING;
        } finally {
            lock.unlock();
        }
    }

    /// The writer of a reserved record gives up; what others have put below it goes too.
    public void abandon(int record) {
        lock.lock();
        try {
            puts.countAbandoned();
            lifecycle.doom(record, EventKind.DROPPED);
            letGo(record);
        } finally {
            lock.unlock();
        }
    }

    private void letGo(int record) {
        if (lifecycle.unpin(record)) {
            lifecycle.bury(record);
        }
    }

    /// Drops a record and all below it.
    ///
    /// @return sealed records among them
    public int drop(long hi, long lo) {
        lock.lock();
        try {
            touches.drain();
            int dropped = 0;
            for (int record = tree.findAny(hi, lo); record != NONE; record = tree.findAny(hi, lo)) {
                dropped += lifecycle.doom(record, EventKind.DROPPED);
            }
            return dropped;
        } finally {
            lock.unlock();
        }
    }

    /// Drops everything of a namespace, a bounded number of records a turn of the lock.
    public long dropAll(NamespaceEntry entry) {
        long dropped = 0;
        for (int from = 0; from < pool.capacity(); from += Sweep.TURN) {
            lock.lock();
            try {
                if (from >= pool.highWater()) {
                    return dropped;
                }
                touches.drain();
                dropped += Sweep.drop(pool, lifecycle, entry.id(), from);
            } finally {
                lock.unlock();
            }
        }
        return dropped;
    }

    /// Makes blocks of the chain from `from` on the next victims.
    public void demote(BlockChain chain, int from) {
        lock.lock();
        try {
            touches.drain();
            for (int index = chain.length() - 1; index >= from; index--) {
                long handle = tree.find(chain.keyHi(index), chain.keyLo(index));
                if (Handle.found(handle)) {
                    lifecycle.policyOf(Handle.record(handle)).demote(Handle.record(handle));
                }
            }
        } finally {
            lock.unlock();
        }
    }

    /// The records, for whoever holds a pin or may live with a stale answer.
    public RecordPool records() {
        return pool;
    }

    /// Host memory for blocks and objects.
    public long capacityBytes() {
        return slabs.capacityBytes();
    }

    /// The memory of a slot that the caller has pinned or reserved, cut to `bytes`.
    public MemorySegment span(int page, long bytes) {
        return slabs.segment(page, bytes);
    }

    /// Walks the slots of an object that the caller has pinned or reserved.
    public List<MemorySegment> pieces(int record) {
        lock.lock();
        try {
            return Pieces.of(slabs, pool.hostPage(record), pool.bytes(record));
        } finally {
            lock.unlock();
        }
    }

    /// Gives the memory back.
    @Override
    public void close() {
        slotMemory.close();
        recordMemory.close();
    }
}
