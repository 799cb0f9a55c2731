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
import io.kvcache.core.tree.ControlWord;
import io.kvcache.core.tree.RecordHandle;
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

    private static final int MAX_WEIGHT = 1000;

    /// Loads begun in one turn of the lock; each may evict a block.
    private static final int LOADS_PER_BATCH = 64;

    private final HostMemory slotMemory;
    private final HostMemory recordMemory;
    private final StoreComponents parts;
    private final RecordPool pool;
    private final BlockTree tree;
    private final SlabPool slabs;
    private final RecordStates recordStates;
    private final SlotAllocator slotAllocator;
    private final PutReserver putReserver;
    private final LoadPath loadPath;
    private final TierPort tierPort;
    private final Deletion deletion;
    private final AccessDrain accessDrain;
    private final ObjectSequence objectSequence;
    private final RecordLookup lookup;
    private final StoreStats storeStats;
    private final NamespaceListing listing;
    private final HintApplier hintApplier;
    private final ObjectHintApplier objectHintApplier;
    private final PrefetchAdmission prefetchAdmission;
    private final MemoryShares shares;
    private final DiskUsageTable diskUsageTable;
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
        parts = StoreComponents.of(pool, slabs, config.policy(), events);
        tree = parts.tree();
        shares = parts.memoryShares();
        diskUsageTable = parts.diskUsageTable();
        recordStates = new RecordStates(parts);
        DiskResidency diskResidency = new DiskResidency(parts, recordStates);
        slotAllocator = new SlotAllocator(parts, recordStates, diskResidency);
        ObjectSlotAllocator objects = new ObjectSlotAllocator(parts, slotAllocator, recordStates);
        loadPath = new LoadPath(parts, recordStates, slotAllocator, objects);
        putReserver =
                new PutReserver(parts, recordStates, new PutReserver.SlotSources(slotAllocator, objects, loadPath));
        objectSequence = new ObjectSequence(parts, recordStates);
        accessDrain = new AccessDrain(parts, recordStates, objectSequence, lock);
        lookup = new RecordLookup(parts, recordStates, accessDrain, lock);
        tierPort = new TierPort(parts, recordStates, diskResidency, slotAllocator, lock);
        deletion = new Deletion(parts, recordStates, tierPort, accessDrain, lock);
        storeStats = new StoreStats(parts, new StoreStats.Counters(slotAllocator, puts, accessDrain), lock);
        listing = new NamespaceListing(pool, lock);
        hintApplier = new HintApplier(parts, recordStates, accessDrain, lock);
        objectHintApplier = new ObjectHintApplier(parts, recordStates, loadPath, accessDrain, hintApplier, lock);
        prefetchAdmission = new PrefetchAdmission(parts, loadPath, accessDrain, lock);
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
            NamespaceEntry known = parts.namespaceRegistry().find(namespace);
            return known == null ? NamespaceRegistration.add(parts, namespace) : known;
        } finally {
            lock.unlock();
        }
    }

    /// Gives a namespace a share of host memory and of each disk, by weight; before it holds any host memory.
    ///
    /// @param weight 1 to 1,000
    public void setWeight(NamespaceEntry entry, int weight) {
        if (weight < 1 || weight > MAX_WEIGHT) {
            throw new IllegalArgumentException("weight is " + weight + "; it takes 1 to " + MAX_WEIGHT);
        }
        lock.lock();
        try {
            diskUsageTable.regroup(entry.id(), () -> shares.setWeight(entry.id(), weight));
        } finally {
            lock.unlock();
        }
    }

    /// Has a namespace hold host memory out of another one's share; not when it holds any already.
    ///
    /// @return whether it does
    public boolean joinShare(NamespaceEntry entry, NamespaceEntry with) {
        lock.lock();
        try {
            boolean[] joined = {false};
            diskUsageTable.regroup(entry.id(), () -> joined[0] = shares.join(entry.id(), with.id()));
            return joined[0];
        } finally {
            lock.unlock();
        }
    }

    /// The entry of a registered namespace.
    ///
    /// @throws IllegalArgumentException when it is not registered
    public NamespaceEntry require(Namespace namespace) {
        return parts.namespaceRegistry().require(namespace);
    }

    /// The read side.
    public RecordLookup lookup() {
        return lookup;
    }

    /// The store as an operator sees it.
    public StoreStats storeStats() {
        return storeStats;
    }

    /// The store as its disks see it.
    public TierPort tierPort() {
        return tierPort;
    }

    /// Reserves room for block `index` of a chain.
    public PutReservation reserve(NamespaceEntry entry, BlockChain chain, int index) {
        return reserve(entry, chain, index, false);
    }

    /// Reserves room for block `index` of a chain.
    ///
    /// @param sparing whether to leave what waits to be written to disk where it is, and rather answer NO_ROOM
    public PutReservation reserve(NamespaceEntry entry, BlockChain chain, int index, boolean sparing) {
        lock.lock();
        try {
            accessDrain.drain();
            return puts.count(putReserver.reserveBlock(entry, chain, index, sparing));
        } finally {
            lock.unlock();
        }
    }

    /// Reserves room for one block below another.
    ///
    /// @param sparing as above
    public PutReservation reserve(NamespaceEntry entry, EngineBlock block, boolean sparing) {
        lock.lock();
        try {
            accessDrain.drain();
            return puts.count(putReserver.reserveBlock(entry, block, sparing));
        } finally {
            lock.unlock();
        }
    }

    /// The keys of a block and of all before it, from the first on; empty when the block is not known.
    public List<BlockKey> ancestors(BlockKey key) {
        return new AncestorScan(pool, tree, lock).ancestorsOf(key);
    }

    /// Has the blocks `[from, to)` of a chain brought into host memory, and stops at the first that cannot
    /// be. The block before `from` must be pinned.
    ///
    /// @param pins that the caller takes on each block that comes: 1, or 0 when nobody waits
    public LoadBatch beginLoads(BlockChain chain, int from, int to, int pins) {
        LoadBatch loadBatch = new LoadBatch(require(chain.namespace()).id(), from, to);
        boolean comes = true;
        while (comes && loadBatch.end() < to) {
            lock.lock();
            try {
                for (int left = LOADS_PER_BATCH; comes && left > 0 && loadBatch.end() < to; left--) {
                    comes = loadBatch.startNext(chain, pool, tree, loadPath, pins);
                }
            } finally {
                lock.unlock();
            }
        }
        return loadBatch.trimmed();
    }

    /// Has an object brought into host memory.
    ///
    /// @param pins that the caller takes on it if it comes
    public LoadOutcome beginLoad(int record, int generation, int pins) {
        lock.lock();
        try {
            boolean same = ControlWord.generation(pool.control(record)) == generation;
            return same ? loadPath.start(record, pins) : LoadOutcome.NOT_FOUND;
        } finally {
            lock.unlock();
        }
    }

    /// Reserves room for an object whose stored form — value, then key — has `bytes`. One that is larger
    /// than the whole store is refused before anything is evicted for it.
    public PutReservation reserveObject(NamespaceEntry entry, BlockKey key, int bytes) {
        return reserveObject(entry, new ObjectSpec(key, null, bytes), false);
    }

    /// Reserves room for an object; `sparing` as above.
    public PutReservation reserveObject(NamespaceEntry entry, ObjectSpec object, boolean sparing) {
        SpinLock.lock(lock);
        try {
            accessDrain.drain();
            return puts.count(putReserver.reserveObject(entry, object, sparing));
        } finally {
            lock.unlock();
        }
    }

    /// Says which object the readers of one that is in host memory take before it: that one is not
    /// evicted earlier.
    ///
    /// @param after null when it is the first
    /// @return whether both are here and it is so now
    public boolean linkObject(BlockKey key, @Nullable BlockKey after) {
        lock.lock();
        try {
            accessDrain.drain();
            int before = after == null ? NONE : tree.findAny(after.hi(), after.lo());
            boolean known = after == null || before != NONE;
            return known && objectSequence.linkAfter(tree.findAny(key.hi(), key.lo()), before);
        } finally {
            lock.unlock();
        }
    }

    /// Pins the object that a filled one is about to replace, if a disk has it and its bytes are the same:
    /// [#seal(int, int, long)] keeps that copy then. Its bytes are compared without the lock, as equal checksums
    /// prove nothing.
    ///
    /// @return its [RecordHandle], which the caller lets go after sealing, or [RecordHandle#MISS]
    public long pinEqual(int record, int checksum) {
        long handle = lookup.peekKey(pool.keyHi(record), pool.keyLo(record));
        if (!RecordHandle.isFound(handle)) {
            return RecordHandle.MISS;
        }
        int older = RecordHandle.record(handle);
        boolean equal = pool.diskAddress(older) != NONE
                && pool.bytes(older) == pool.bytes(record)
                && pool.checksum(older) == checksum
                && ObjectSegments.contentEquals(slabs, pool.hostPage(older), pool.hostPage(record), pool.bytes(record));
        if (equal) {
            return handle;
        }
        lookup.unpin(older);
        return RecordHandle.MISS;
    }

    /// The writer of a reserved record has filled it.
    public SealOutcome seal(int record, int checksum) {
        return seal(record, checksum, RecordHandle.MISS);
    }

    /// The writer of a reserved record has filled it.
    ///
    /// @param equal what [#pinEqual] answered
    public SealOutcome seal(int record, int checksum, long equal) {
        SpinLock.lock(lock);
        try {
            if (recordStates.stateOf(record) == ControlWord.DELETED) {
                recordStates.release(record);
                return SealOutcome.DROPPED;
            }
            pool.checksum(record, checksum);
            if (!RecordFlags.isObject(pool.flags(record))) {
                return recordStates.seal(record, NONE);
            }
            tierPort.excludeReplaced(pool.keyHi(record), pool.keyLo(record));
            int older = tree.findDuplicate(record);
            boolean same = RecordHandle.isFound(equal) && older == RecordHandle.record(equal);
            if (same && pool.diskAddress(older) != NONE) {
                recordStates.adoptDiskCopy(record, older);
            }
            return recordStates.seal(record, older);
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
            recordStates.abandonFill(record);
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
        return deletion.drop(hi, lo, EventKind.DROPPED);
    }

    /// As [#drop(long, long)], because the owner's quota is full.
    public int dropForQuota(long hi, long lo) {
        return deletion.drop(hi, lo, EventKind.QUOTA);
    }

    /// Drops a block and all below it; also one that a disk may have and the store does not know.
    ///
    /// @return sealed records among them
    public int drop(NamespaceEntry entry, BlockKey key) {
        return deletion.drop(entry.id(), key, EventKind.DROPPED);
    }

    /// As [#drop(NamespaceEntry, BlockKey)], because the owner's quota is full.
    public int dropForQuota(NamespaceEntry entry, BlockKey key) {
        return deletion.drop(entry.id(), key, EventKind.QUOTA);
    }

    /// Drops a block of a chain and all below it; of the chain also what a disk may have and the store does not know.
    ///
    /// @return sealed records among them
    public int drop(BlockChain chain, int from) {
        return deletion.drop(chain, from);
    }

    /// Drops everything of a namespace, a bounded number of records a turn of the lock.
    public long dropAll(NamespaceEntry entry) {
        return deletion.dropAll(entry);
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
    public HintApplier hints() {
        return hintApplier;
    }

    /// What is known of objects' future.
    public ObjectHintApplier objectHints() {
        return objectHintApplier;
    }

    /// What is brought from disk before anybody asks for it.
    public PrefetchAdmission prefetchAdmission() {
        return prefetchAdmission;
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
    public MemorySegment slotSegment(int page, long bytes) {
        return slabs.segment(page, bytes);
    }

    /// The slots of an object that the caller has pinned or reserved.
    public List<MemorySegment> segments(int record) {
        return ObjectSegments.of(slabs, pool.hostPage(record), pool.bytes(record));
    }

    /// Shows where a range of an object lies that the caller has pinned or reserved.
    ///
    /// @param offset in its stored form: value, then key
    public void visit(int record, long offset, long bytes, SegmentVisitor each) {
        Objects.checkFromIndexSize(offset, bytes, pool.bytes(record));
        ObjectSegments.visit(slabs, pool.hostPage(record), offset, bytes, each);
    }

    /// Gives the memory back.
    @Override
    public void close() {
        slotMemory.close();
        recordMemory.close();
    }
}
