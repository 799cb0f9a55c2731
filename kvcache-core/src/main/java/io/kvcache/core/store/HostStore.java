package io.kvcache.core.store;

import static io.kvcache.core.policy.RecordView.NONE;

import io.kvcache.core.ObjectCatalog;
import io.kvcache.core.SealOutcome;
import io.kvcache.core.SegmentVisitor;
import io.kvcache.core.event.EventKind;
import io.kvcache.core.event.EventLog;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.memory.HostMemory;
import io.kvcache.core.memory.HostMemorySource;
import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.tree.BlockTree;
import io.kvcache.core.tree.Control;
import io.kvcache.core.tree.Handle;
import io.kvcache.core.tree.RecordLayout;
import io.kvcache.core.tree.RecordPool;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

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

    private static final int MOST_WEIGHT = 1000;

    /// Loads begun in one turn of the lock; each may evict a block.
    private static final int LOADS_A_TURN = 64;

    private final HostMemory slotMemory;
    private final HostMemory recordMemory;
    private final StoreParts parts;
    private final RecordPool pool;
    private final BlockTree tree;
    private final SlabPool slabs;
    private final Lifecycle lifecycle;
    private final Room room;
    private final Reservations reservations;
    private final Onboard onboard;
    private final Disks disks;
    private final Drops drops;
    private final Touches touches;
    private final ObjectOrder order;
    private final Lookup lookup;
    private final Inspection inspection;
    private final Listing listing;
    private final Forecast forecast;
    private final ObjectForecast objectForecast;
    private final Prefetch prefetch;
    private final Shares shares;
    private final DiskLedger ledger;
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
        slabs = new SlabPool(slotMemory.segment());
        parts = StoreParts.of(pool, slabs, config.policy(), events);
        tree = parts.tree();
        shares = parts.shares();
        ledger = parts.disks();
        lifecycle = new Lifecycle(parts);
        DiskLife diskLife = new DiskLife(parts, lifecycle);
        room = new Room(parts, lifecycle, diskLife);
        ObjectSlots objects = new ObjectSlots(parts, room, lifecycle);
        onboard = new Onboard(parts, lifecycle, room, objects);
        reservations = new Reservations(parts, lifecycle, new Reservations.Sources(room, objects, onboard));
        order = new ObjectOrder(parts, lifecycle);
        touches = new Touches(parts, lifecycle, order, lock);
        lookup = new Lookup(parts, lifecycle, touches, lock);
        disks = new Disks(parts, lifecycle, diskLife, room, lock);
        drops = new Drops(parts, lifecycle, disks, touches, lock);
        inspection = new Inspection(parts, new Inspection.Counters(room, puts, touches), lock);
        listing = new Listing(pool, lock);
        forecast = new Forecast(parts, lifecycle, touches, lock);
        objectForecast = new ObjectForecast(parts, lifecycle, onboard, touches, forecast, lock);
        prefetch = new Prefetch(parts, onboard, touches, lock);
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
            NamespaceEntry known = parts.namespaces().find(namespace);
            return known == null ? Registration.add(parts, namespace) : known;
        } finally {
            lock.unlock();
        }
    }

    /// Gives a namespace a share of host memory and of each disk, by weight; before it holds any host memory.
    ///
    /// @param weight 1 to 1,000
    public void weigh(NamespaceEntry entry, int weight) {
        if (weight < 1 || weight > MOST_WEIGHT) {
            throw new IllegalArgumentException("weight is " + weight + "; it takes 1 to " + MOST_WEIGHT);
        }
        lock.lock();
        try {
            ledger.regroup(entry.id(), () -> shares.weigh(entry.id(), weight));
        } finally {
            lock.unlock();
        }
    }

    /// Has a namespace hold host memory out of another one's share; not when it holds any already.
    ///
    /// @return whether it does
    public boolean share(NamespaceEntry entry, NamespaceEntry with) {
        lock.lock();
        try {
            boolean[] joined = {false};
            ledger.regroup(entry.id(), () -> joined[0] = shares.join(entry.id(), with.id()));
            return joined[0];
        } finally {
            lock.unlock();
        }
    }

    /// The entry of a registered namespace.
    ///
    /// @throws IllegalArgumentException when it is not registered
    public NamespaceEntry require(Namespace namespace) {
        return parts.namespaces().require(namespace);
    }

    /// The read side.
    public Lookup lookup() {
        return lookup;
    }

    /// The store as an operator sees it.
    public Inspection inspection() {
        return inspection;
    }

    /// The store as its disks see it.
    public Disks disks() {
        return disks;
    }

    /// Reserves room for block `index` of a chain.
    public Reserved reserve(NamespaceEntry entry, BlockChain chain, int index) {
        return reserve(entry, chain, index, false);
    }

    /// Reserves room for block `index` of a chain.
    ///
    /// @param sparing whether to leave what waits to be written to disk where it is, and rather answer NO_ROOM
    public Reserved reserve(NamespaceEntry entry, BlockChain chain, int index, boolean sparing) {
        lock.lock();
        try {
            touches.drain();
            return puts.counted(reservations.block(entry, chain, index, sparing));
        } finally {
            lock.unlock();
        }
    }

    /// Reserves room for one block below another.
    ///
    /// @param sparing as above
    public Reserved reserve(NamespaceEntry entry, EngineBlock block, boolean sparing) {
        lock.lock();
        try {
            touches.drain();
            return puts.counted(reservations.block(entry, block, sparing));
        } finally {
            lock.unlock();
        }
    }

    /// The keys of a block and of all before it, from the first on; empty when the block is not known.
    public List<BlockKey> lineage(BlockKey key) {
        return new Lineage(pool, tree, lock).of(key);
    }

    /// Has the blocks `[from, to)` of a chain brought into host memory, and stops at the first that cannot
    /// be. The block before `from` must be pinned.
    ///
    /// @param pins that the caller takes on each block that comes: 1, or 0 when nobody waits
    public Loads beginLoads(BlockChain chain, int from, int to, int pins) {
        Loads loads = new Loads(require(chain.namespace()).id(), from, to);
        boolean comes = true;
        while (comes && loads.end() < to) {
            lock.lock();
            try {
                for (int left = LOADS_A_TURN; comes && left > 0 && loads.end() < to; left--) {
                    comes = loads.begin(chain, pool, tree, onboard, pins);
                }
            } finally {
                lock.unlock();
            }
        }
        return loads.ended();
    }

    /// Has an object brought into host memory.
    ///
    /// @param pins that the caller takes on it if it comes
    public LoadStart beginLoad(int record, int generation, int pins) {
        lock.lock();
        try {
            boolean same = Control.generation(pool.control(record)) == generation;
            return same ? onboard.begin(record, pins) : LoadStart.NOT_HERE;
        } finally {
            lock.unlock();
        }
    }

    /// Reserves room for an object whose stored form — value, then key — has `bytes`. One that is larger
    /// than the whole store is refused before anything is evicted for it.
    public Reserved reserveObject(NamespaceEntry entry, BlockKey key, int bytes) {
        return reserveObject(entry, new NewObject(key, null, bytes), false);
    }

    /// Reserves room for an object; `sparing` as above.
    public Reserved reserveObject(NamespaceEntry entry, NewObject object, boolean sparing) {
        Turn.await(lock);
        try {
            touches.drain();
            return puts.counted(reservations.object(entry, object, sparing));
        } finally {
            lock.unlock();
        }
    }

    /// Says which object the readers of one that is in host memory take before it: that one is not
    /// evicted earlier.
    ///
    /// @param after null when it is the first
    /// @return whether both are here and it is so now
    public boolean followObject(BlockKey key, @Nullable BlockKey after) {
        lock.lock();
        try {
            touches.drain();
            int before = after == null ? NONE : tree.findAny(after.hi(), after.lo());
            boolean known = after == null || before != NONE;
            return known && order.follow(tree.findAny(key.hi(), key.lo()), before);
        } finally {
            lock.unlock();
        }
    }

    /// Pins the object that a filled one is about to replace, if a disk has it and its bytes are the same:
    /// [#seal(int, int, long)] keeps that copy then. Its bytes are compared without the lock, as equal checksums
    /// prove nothing.
    ///
    /// @return its [Handle], which the caller lets go after sealing, or [Handle#MISS]
    public long holdEqual(int record, int checksum) {
        long handle = lookup.holdKey(pool.keyHi(record), pool.keyLo(record));
        if (!Handle.found(handle)) {
            return Handle.MISS;
        }
        int older = Handle.record(handle);
        boolean equal = pool.diskPlace(older) != NONE
                && pool.bytes(older) == pool.bytes(record)
                && pool.checksum(older) == checksum
                && Pieces.equal(slabs, pool.hostPage(older), pool.hostPage(record), pool.bytes(record));
        if (equal) {
            return handle;
        }
        lookup.unpin(older);
        return Handle.MISS;
    }

    /// The writer of a reserved record has filled it.
    public SealOutcome seal(int record, int checksum) {
        return seal(record, checksum, Handle.MISS);
    }

    /// The writer of a reserved record has filled it.
    ///
    /// @param equal what [#holdEqual] answered
    public SealOutcome seal(int record, int checksum, long equal) {
        Turn.await(lock);
        try {
            if (lifecycle.state(record) == Control.DOOMED) {
                lifecycle.letGo(record);
                return SealOutcome.DROPPED;
            }
            pool.checksum(record, checksum);
            if (!Identity.isObject(pool.identity(record))) {
                return lifecycle.seal(record, NONE);
            }
            disks.overtakenByPut(pool.keyHi(record), pool.keyLo(record));
            int older = tree.findOther(record);
            boolean same = Handle.found(equal) && older == Handle.record(equal);
            if (same && pool.diskPlace(older) != NONE) {
                lifecycle.takeCopy(record, older);
            }
            return lifecycle.seal(record, older);
        } finally {
            lock.unlock();
        }
    }

    /// The writer of a reserved record gives up; what others have put below it goes too. A copy on disk
    /// stays.
    public void abandon(int record) {
        lock.lock();
        try {
            puts.countAbandoned();
            lifecycle.giveUp(record);
        } finally {
            lock.unlock();
        }
    }

    /// Counts a put that was refused for lack of room. The caller reports it, as only the caller knows which attempt
    /// was the last.
    public void countRefused() {
        lock.lock();
        try {
            puts.countRefused();
        } finally {
            lock.unlock();
        }
    }

    /// Drops a record and all below it.
    ///
    /// @return sealed records among them
    public int drop(long hi, long lo) {
        return drops.drop(hi, lo, EventKind.DROPPED);
    }

    /// As [#drop(long, long)], because the owner's quota is full.
    public int dropForQuota(long hi, long lo) {
        return drops.drop(hi, lo, EventKind.QUOTA);
    }

    /// Drops a block and all below it; also one that a disk may have and the store does not know.
    ///
    /// @return sealed records among them
    public int drop(NamespaceEntry entry, BlockKey key) {
        return drops.drop(entry.id(), key, EventKind.DROPPED);
    }

    /// As [#drop(NamespaceEntry, BlockKey)], because the owner's quota is full.
    public int dropForQuota(NamespaceEntry entry, BlockKey key) {
        return drops.drop(entry.id(), key, EventKind.QUOTA);
    }

    /// Drops a block of a chain and all below it; of the chain also what a disk may have and the store does not know.
    ///
    /// @return sealed records among them
    public int drop(BlockChain chain, int from) {
        return drops.drop(chain, from);
    }

    /// Drops everything of a namespace, a bounded number of records a turn of the lock.
    public long dropAll(NamespaceEntry entry) {
        return drops.dropAll(entry);
    }

    /// The objects of a namespace that are here or on disk; a bounded number of records a turn of the lock.
    public List<ObjectCatalog.Entry> objects(NamespaceEntry entry) {
        return listing.objects(entry);
    }

    /// The blocks of a namespace that are here or on disk; a bounded number of records a turn of the lock.
    public List<StoredBlock> blocks(NamespaceEntry entry) {
        return listing.blocks(entry);
    }

    /// What somebody knows of the future.
    public Forecast forecast() {
        return forecast;
    }

    /// What is known of objects' future.
    public ObjectForecast objectForecast() {
        return objectForecast;
    }

    /// What is brought from disk before anybody asks for it.
    public Prefetch prefetch() {
        return prefetch;
    }

    /// The records, for whoever holds a pin or may live with a stale answer.
    public RecordPool records() {
        return pool;
    }

    /// Host memory for blocks and objects.
    public long capacityBytes() {
        return slabs.capacityBytes();
    }

    /// All memory for blocks and objects: what a device may be told that spans will lie in.
    public MemorySegment memory() {
        return slotMemory.segment();
    }

    /// The memory of a slot that the caller has pinned or reserved, cut to `bytes`.
    public MemorySegment span(int page, long bytes) {
        return slabs.segment(page, bytes);
    }

    /// The slots of an object that the caller has pinned or reserved.
    public List<MemorySegment> pieces(int record) {
        return Pieces.of(slabs, pool.hostPage(record), pool.bytes(record));
    }

    /// Shows where a range of an object lies that the caller has pinned or reserved.
    ///
    /// @param offset in its stored form: value, then key
    public void visit(int record, long offset, long bytes, SegmentVisitor each) {
        Objects.checkFromIndexSize(offset, bytes, pool.bytes(record));
        Pieces.visit(slabs, pool.hostPage(record), offset, bytes, each);
    }

    /// Gives the memory back.
    @Override
    public void close() {
        slotMemory.close();
        recordMemory.close();
    }
}
