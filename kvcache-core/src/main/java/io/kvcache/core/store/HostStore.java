package io.kvcache.core.store;

import static io.kvcache.core.policy.RecordView.NONE;

import io.kvcache.core.CacheStats;
import io.kvcache.core.ObjectCatalog;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.SealOutcome;
import io.kvcache.core.event.EventKind;
import io.kvcache.core.event.EventStream;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.memory.Pages;
import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.policy.EvictionPolicyFactory;
import io.kvcache.core.policy.LruFallback;
import io.kvcache.core.spi.HostMemory;
import io.kvcache.core.spi.HostMemorySource;
import io.kvcache.core.stats.ObjectResidency;
import io.kvcache.core.stats.PrefixLevel;
import io.kvcache.core.store.DiskUsage.DiskUsageTable;
import io.kvcache.core.store.MemoryShares.SlotClassPolicies;
import io.kvcache.core.store.NamespaceRegistry.EntryGroup;
import io.kvcache.core.store.NamespaceRegistry.NamespaceEntry;
import io.kvcache.core.store.StoreEvents.EventLog;
import io.kvcache.core.tree.BlockTree;
import io.kvcache.core.tree.ControlWord;
import io.kvcache.core.tree.ObjectLinks;
import io.kvcache.core.tree.RecordFlags;
import io.kvcache.core.tree.RecordHandle;
import io.kvcache.core.tree.RecordLayout;
import io.kvcache.core.tree.RecordPool;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.BitSet;
import java.util.List;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;
import java.util.function.IntPredicate;
import org.jspecify.annotations.Nullable;

/// One tree of records over one span of host memory: the whole of a store's metadata.
///
/// Structure changes — reserve, seal, abandon, evict, drop — happen under one lock, held for metadata only.
/// Look-ups, pins and touches take no lock. A block that is resident has its parent resident, so what is
/// known of a chain is a prefix of it: a match is a binary search, and a pin on the deepest block holds all
/// above it.
///
/// **Ownership.** The store reserves its memory and gives it back on [#close()], which is for when no caller
/// holds a pin.
///
/// **Threads.** Safe for any number.
public final class HostStore implements AutoCloseable {

    private static final int MAX_WEIGHT = 1000;

    /// Attempts to take the lock before its queue is joined: with the processor's pauses between them, two or
    /// three turns of others.
    private static final int MAX_SPINS = 50;

    /// Loads begun in one turn of the lock; each may evict a block.
    private static final int LOADS_PER_BATCH = 64;

    private final HostMemory slotMemory;
    private final MemorySegment slots;
    private final HostMemory recordMemory;
    final RecordPool pool;
    final BlockTree tree;
    final SlabPool slabs;
    final ObjectLinks objectLinks;
    final SlotClassPolicies policies;
    final NamespaceRegistry namespaceRegistry;
    final MemoryShares shares;
    final DiskUsageTable disks;
    final WriteBackQueue writeBackQueue;
    final RecordStates recordStates;
    final StoreEvents storeEvents;
    final SlotAllocator slotAllocator;
    final RecordLookup lookup;
    private final TierPort tierPort;
    private final NamespaceScan namespaceScan;
    private final PrefixScan prefixScan;
    private final HintApplier hintApplier;
    final ReentrantLock lock;

    /// Reserves the memory of a store.
    ///
    /// @throws IllegalStateException when the memory cannot be had
    public HostStore(HostStoreConfig config, HostMemorySource memory) {
        this(config, memory, new ReentrantLock());
    }

    HostStore(HostStoreConfig config, HostMemorySource memory, ReentrantLock lock) {
        this.lock = lock;
        EventLog events = new EventLog(config.eventCapacity()); // checks its capacity before memory is taken
        slotMemory = memory.reserve("slots", SlabPool.wholeSlabs(config.slotBytes()));
        recordMemory = reserveRecords(memory, config.records());
        pool = new RecordPool(recordMemory.segment(), config.records());
        tree = new BlockTree(pool);
        slots = slotMemory.segment();
        slabs = new SlabPool(slotMemory);
        objectLinks = new ObjectLinks(pool);
        policies = new SlotClassPolicies(config.policy(), objectLinks, slabs);
        namespaceRegistry = new NamespaceRegistry(slabs, policies);
        shares = new MemoryShares(pool, slabs);
        disks = new DiskUsageTable(pool, tree, policies.state(), shares);
        writeBackQueue = new WriteBackQueue(
                pool, tree, new WriteAdmission(pool, objectLinks, namespaceRegistry, policies.state()));
        storeEvents = new StoreEvents(pool, namespaceRegistry, disks, events, lock);
        // Each of these takes what stands above it.
        recordStates = new RecordStates(this);
        slotAllocator = new SlotAllocator(this);
        lookup = new RecordLookup(this);
        tierPort = new TierPort(this);
        namespaceScan = new NamespaceScan(this);
        prefixScan = new PrefixScan(this);
        hintApplier = new HintApplier(this);
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
            return namespaceRegistry.register(namespace);
        } finally {
            lock.unlock();
        }
    }

    /// Gives a namespace, with its windows and states, a share of host memory and of each disk, by weight; before
    /// it holds any host memory.
    ///
    /// @param weight 1 to 1,000
    public void setWeight(NamespaceEntry entry, int weight) {
        if (weight < 1 || weight > MAX_WEIGHT) {
            throw new IllegalArgumentException("weight is " + weight + "; it takes 1 to " + MAX_WEIGHT);
        }
        lock.lock();
        try {
            disks.regroup(entry.id(), () -> shares.setWeight(entry.id(), weight));
            for (EntryGroup group : entry.groups()) {
                int id = group.entry().id();
                disks.regroup(id, () -> shares.join(id, entry.id()));
            }
        } finally {
            lock.unlock();
        }
    }

    /// The entry of a registered namespace.
    ///
    /// @throws IllegalArgumentException when it is not registered
    public NamespaceEntry require(Namespace namespace) {
        return namespaceRegistry.require(namespace);
    }

    /// The read side.
    public RecordLookup lookup() {
        return lookup;
    }

    /// Events of the store, and a snapshot of what it holds.
    public EventStream events() {
        return storeEvents;
    }

    /// Statistics of this moment.
    ///
    /// @param openTables what the caller counts of tables and views
    public CacheStats stats(long openTables) {
        lock.lock();
        try {
            return new CacheStats(
                    new CacheStats.Memory(
                            slabs.capacityBytes(),
                            slabs.heldBytes(),
                            slabs.slabs(),
                            slabs.unusedSlabs(),
                            slotAllocator.slabMoves()),
                    new CacheStats.Records(pool.capacity(), pool.live(), bytesPerRecord()),
                    slotAllocator.putStats(),
                    new CacheStats.Removals(
                            storeEvents.hostRemovals(EventKind.EVICTED),
                            storeEvents.hostRemovals(EventKind.DROPPED),
                            storeEvents.hostRemovals(EventKind.REPLACED),
                            storeEvents.hostRemovals(EventKind.QUOTA)),
                    openTables,
                    lookup.droppedUses(),
                    namespaceRegistry.all().stream().map(NamespaceEntry::stats).toList());
        } finally {
            lock.unlock();
        }
    }

    private long bytesPerRecord() {
        return RecordLayout.HOT_BYTES + RecordLayout.COLD_BYTES + RecordLayout.INDEX_BYTES + policies.bytesPerRecord();
    }

    /// What a policy that learns finds beside plain LRU, over all slot classes.
    public LruFallback.Report fallbackReport() {
        lock.lock();
        try {
            return policies.fallbackReport();
        } finally {
            lock.unlock();
        }
    }

    /// The policies' clock: the reading that the latest use got.
    public long policyClock() {
        lock.lock();
        try {
            return policies.state().now();
        } finally {
            lock.unlock();
        }
    }

    /// Out of which share a namespace holds host memory, and how much that is.
    public MemoryShare share(NamespaceEntry entry) {
        lock.lock();
        try {
            int group = shares.groupOf(entry.id());
            return new MemoryShare(group, shares.guaranteedBytes(group));
        } finally {
            lock.unlock();
        }
    }

    /// A part of host memory.
    ///
    /// @param group whose it is: namespaces of one group have it together
    /// @param bytes that the group may hold however much others want
    public record MemoryShare(int group, long bytes) {}

    /// Checks every link, count and slot against the others; for tests and for a doubtful operator. Takes the
    /// lock throughout.
    ///
    /// @throws AssertionError that names what does not agree
    public void validate() {
        lock.lock();
        try {
            lookup.drainUses();
            StoreValidator.run(this);
        } finally {
            lock.unlock();
        }
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
            lookup.drainUses();
            return slotAllocator.count(slotAllocator.reserveBlock(entry, chain, index, sparing));
        } finally {
            lock.unlock();
        }
    }

    /// Has the blocks `[from, to)` of a chain brought into host memory, and stops at the first that cannot
    /// be. The block before `from` must be pinned.
    ///
    /// @param pins that the caller takes on each block that comes: 1, or 0 when no caller waits
    public LoadBatch beginLoads(BlockChain chain, int from, int to, int pins) {
        return beginLoads(chain, new LoadBatch(require(chain.namespace()).id(), from, to, false), to, pins);
    }

    /// As [#beginLoads(BlockChain, int, int, int)], for a caller that takes one pin on each block, and may read
    /// parts of blocks as they come: until it unpins them, their slots stay whether the rest comes or not.
    public LoadBatch beginLoadsInSteps(BlockChain chain, int from, int to) {
        return beginLoads(chain, new LoadBatch(require(chain.namespace()).id(), from, to, true), to, 1);
    }

    private LoadBatch beginLoads(BlockChain chain, LoadBatch loadBatch, int to, int pins) {
        boolean comes = true;
        while (comes && loadBatch.end() < to) {
            lock.lock();
            try {
                for (int left = LOADS_PER_BATCH; comes && left > 0 && loadBatch.end() < to; left--) {
                    comes = beginNextLoad(chain, loadBatch, pins);
                }
            } finally {
                lock.unlock();
            }
        }
        return loadBatch.trimmed();
    }

    /// Begins with the next block of a batch; under the lock.
    ///
    /// @return whether it comes
    private boolean beginNextLoad(BlockChain chain, LoadBatch loadBatch, int pins) {
        int index = loadBatch.end();
        int record = tree.findAny(chain.keyHi(index), chain.keyLo(index));
        boolean inPlace = record != NONE
                && pool.depth(record) == index
                && RecordFlags.isBlockOf(pool.flags(record), loadBatch.namespace)
                && (loadBatch.count == 0 || pool.parent(record) == loadBatch.record(loadBatch.count - 1));
        LoadOutcome start = inPlace ? slotAllocator.load(record, pins) : LoadOutcome.NOT_FOUND;
        if (loadBatch.inSteps && (start == LoadOutcome.STARTED || start == LoadOutcome.JOINED)) {
            pool.setFlags(record, RecordFlags.READ_IN_STEPS, true);
        }
        if (start.isAvailable()) {
            loadBatch.add(record, start == LoadOutcome.STARTED ? disks.sourceOf(record) : -1);
        }
        return start.isAvailable();
    }

    /// Has an object brought into host memory.
    ///
    /// @param pins that the caller takes on it if it comes
    public LoadOutcome beginLoad(int record, int generation, int pins) {
        lock.lock();
        try {
            boolean same = ControlWord.generation(pool.control(record)) == generation;
            return same ? slotAllocator.load(record, pins) : LoadOutcome.NOT_FOUND;
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
        lockSoon();
        try {
            lookup.drainUses();
            return slotAllocator.count(slotAllocator.reserveObject(entry, object, sparing));
        } finally {
            lock.unlock();
        }
    }

    /// Stores a small object whose bytes are at hand, in one turn of the lock. For a store without disks:
    /// copies that they have, or are about to have, are not looked after.
    ///
    /// An older object of the key is overwritten where it lies if it has a slot of the same class, is tied to no
    /// other and is pinned by no reader. Otherwise the new one gets a record and a slot of its own.
    ///
    /// Overwriting is a use, which the caller notes ([RecordLookup#noteUse]).
    ///
    /// @param object value and key, at most [SlotClass#OBJECT_SMALL_BYTES]
    /// @param engineHash as [EngineValueKey#hashIn]
    /// @return with RESERVED as outcome when it is stored, else why it is not
    public PutReservation storeObject(NamespaceEntry entry, BlockKey key, byte[] object, long engineHash) {
        lockSoon();
        try {
            int older = tree.findAny(key.hi(), key.lo());
            if (slotAllocator.fitsPlaceOf(older, entry, object.length) && recordStates.overwrite(older, object)) {
                return slotAllocator.count(new PutReservation(PutOutcome.RESERVED, older, true));
            }
            lookup.drainUses();
            PutReservation room = slotAllocator.count(
                    slotAllocator.reserveObject(entry, new ObjectSpec(key, null, object.length, engineHash), false));
            if (room.outcome() == PutOutcome.RESERVED) {
                slabs.write(pool.hostPage(room.record()), object);
                pool.checksum(room.record(), RecordPool.NO_CHECKSUM);
                recordStates.seal(room.record(), tree.findDuplicate(room.record()));
            }
            return room;
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
            lookup.drainUses();
            int before = after == null ? NONE : tree.findAny(after.hi(), after.lo());
            boolean known = after == null || before != NONE;
            return known && recordStates.linkObject(tree.findAny(key.hi(), key.lo()), before);
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
                && lookup.contentEquals(older, record);
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
        lockSoon();
        try {
            if (recordStates.stateOf(record) == ControlWord.DELETED) {
                recordStates.release(record);
                return SealOutcome.DROPPED;
            }
            pool.checksum(record, checksum);
            if (!RecordFlags.isObject(pool.flags(record))) {
                return recordStates.seal(record, NONE);
            }
            recordStates.exclusions().addReplaced(pool.keyHi(record), pool.keyLo(record));
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
            slotAllocator.countAbandoned();
            recordStates.abandonFill(record);
        } finally {
            lock.unlock();
        }
    }

    /// Counts a put that was refused for lack of room. The caller reports it, as only the caller knows which
    /// attempt was the last.
    public void countRefused() {
        lock.lock();
        try {
            slotAllocator.countRefused();
        } finally {
            lock.unlock();
        }
    }

    /// Drops a record and all below it.
    ///
    /// @return sealed records among them
    public int drop(long hi, long lo) {
        return namespaceScan.drop(hi, lo, EventKind.DROPPED);
    }

    /// As [#drop(long, long)], because the owner's quota is full.
    public int dropForQuota(long hi, long lo) {
        return namespaceScan.drop(hi, lo, EventKind.QUOTA);
    }

    /// Drops a block and all below it; also one that a disk may have and the store does not know.
    ///
    /// @return sealed records among them
    public int drop(NamespaceEntry entry, BlockKey key) {
        return namespaceScan.drop(entry.id(), key, EventKind.DROPPED);
    }

    /// Drops a block of a chain and all below it; of the chain also what a disk may have and the store does not
    /// know.
    ///
    /// @return sealed records among them
    public int drop(BlockChain chain, int from) {
        return namespaceScan.drop(chain, from);
    }

    /// Drops everything of a namespace, a bounded number of records a turn of the lock.
    public long dropAll(NamespaceEntry entry) {
        return namespaceScan.dropAll(entry);
    }

    /// The objects of a namespace that are here or on disk; a bounded number of records a turn of the lock.
    public List<ObjectCatalog.Entry> objects(NamespaceEntry entry) {
        return namespaceScan.objects(entry);
    }

    /// Visits the objects that are here or on disk; a bounded number of records a turn of the lock.
    ///
    /// @param namespaces by number, whose objects are visited
    public void visitObjects(IntPredicate namespaces, Consumer<ObjectResidency> visitor) {
        namespaceScan.visitObjects(namespaces, visitor);
    }

    /// A level of the tree of shared prefixes; a bounded number of records a turn of the lock.
    ///
    /// @param namespaces by number, whose blocks are shown
    /// @param under first block of the run whose branches are shown; null for those that chains begin with
    /// @param limit nodes that are listed at most
    public PrefixLevel prefixes(IntPredicate namespaces, @Nullable BlockKey under, int limit) {
        return prefixScan.scan(namespaces, under, limit);
    }

    /// What callers know of the future, and what is brought from disk before it is asked for.
    public HintApplier hints() {
        return hintApplier;
    }

    /// The records, for callers that hold a pin or accept a stale answer.
    public RecordPool records() {
        return pool;
    }

    /// Host memory for blocks and objects.
    public long capacityBytes() {
        return slabs.capacityBytes();
    }

    /// All memory for blocks and objects: the memory that a device may register for all spans.
    public MemorySegment memory() {
        return slots;
    }

    /// The memory of a slot that the caller has pinned or reserved, cut to `bytes`.
    public MemorySegment slotSegment(int page, long bytes) {
        return slots.asSlice(Pages.offset(page), bytes);
    }

    /// The slots of an object that the caller has pinned or reserved.
    public List<MemorySegment> segments(int record) {
        return lookup.segments(record, pool.bytes(record));
    }

    /// Gives the memory back.
    @Override
    public void close() {
        slotMemory.close();
        recordMemory.close();
    }

    /// Takes the lock where a turn is short and comes often: that of another thread is over in half a
    /// microsecond, and to sleep through it and be woken takes twenty. So the lock is asked for a few times more
    /// before its queue is joined.
    private void lockSoon() {
        for (int i = 0; i < MAX_SPINS; i++) {
            if (lock.tryLock()) {
                return;
            }
            Thread.onSpinWait();
        }
        lock.lock();
    }

    /// How large a store is and how it evicts.
    ///
    /// @param slotBytes host memory for blocks and objects; 32 MiB and up, used in whole slabs
    /// @param records blocks and objects that can be known at once
    /// @param policy how victims are chosen
    /// @param eventCapacity events kept for replay, a power of two
    public record HostStoreConfig(long slotBytes, int records, EvictionPolicyFactory policy, int eventCapacity) {

        /// One record for 16 KiB of memory: enough for blocks of that size, at 0.8 % of it.
        private static final long BYTES_PER_RECORD = 16 << 10;

        /// The most that a store takes.
        public static final int MAX_RECORDS = RecordPool.MAX_RECORDS;

        private static final int MIN_DEFAULT_RECORDS = 1 << 16;

        public HostStoreConfig {
            if (slotBytes < SlabPool.MIN_BYTES) {
                throw new IllegalArgumentException(
                        "host memory is " + slotBytes + " bytes; a store takes " + SlabPool.MIN_BYTES + " and up");
            }
            if (records < 1 || records > RecordPool.MAX_RECORDS) {
                throw new IllegalArgumentException(
                        "records is " + records + "; a store takes 1 to " + RecordPool.MAX_RECORDS);
            }
        }

        /// A store of this size with as many records as it is likely to need.
        public static HostStoreConfig of(long slotBytes, EvictionPolicyFactory policy) {
            return new HostStoreConfig(slotBytes, defaultRecords(slotBytes), policy, EventLog.DEFAULT_CAPACITY);
        }

        /// Records for a store of this size when the configuration does not say how many.
        public static int defaultRecords(long slotBytes) {
            return Math.clamp(slotBytes / BYTES_PER_RECORD, MIN_DEFAULT_RECORDS, RecordPool.MAX_RECORDS);
        }
    }

    /// The answer to a request for room.
    ///
    /// @param outcome what became of it
    /// @param record the record to fill and then seal or abandon; meaningless unless RESERVED
    /// @param replaces whether an object of that key is here or on disk
    public record PutReservation(PutOutcome outcome, int record, boolean replaces) {

        static final PutReservation PRESENT = new PutReservation(PutOutcome.PRESENT, -1);
        static final PutReservation BUSY = new PutReservation(PutOutcome.BUSY, -1);
        static final PutReservation FOREIGN = new PutReservation(PutOutcome.FOREIGN, -1);
        static final PutReservation NO_PARENT = new PutReservation(PutOutcome.NO_PARENT, -1);
        static final PutReservation NO_ROOM = new PutReservation(PutOutcome.NO_ROOM, -1);
        static final PutReservation DECLINED = new PutReservation(PutOutcome.DECLINED, -1);

        /// One that replaces nothing.
        public PutReservation(PutOutcome outcome, int record) {
            this(outcome, record, false);
        }
    }

    /// An object that room is wanted for.
    ///
    /// @param after the object that its readers take before it; null for the first, and where that is unknown
    /// @param bytes of value and key
    /// @param engineHash as [EngineValueKey#hashIn]
    public record ObjectSpec(BlockKey key, @Nullable BlockKey after, int bytes, long engineHash) {

        /// An object without an engine's hash.
        public ObjectSpec(BlockKey key, @Nullable BlockKey after, int bytes) {
            this(key, after, bytes, 0);
        }
    }

    /// A run of blocks of one chain that are resident or on their way to host memory.
    public static final class LoadBatch {

        private final int namespace;
        private final int from;
        private final boolean inSteps;
        private int[] records;
        private byte[] disks;
        private final BitSet started = new BitSet();
        private int count;

        /// @param namespace number of the chain's
        /// @param inSteps whether parts of blocks are read as they come
        LoadBatch(int namespace, int from, int to, boolean inSteps) {
            this.namespace = namespace;
            this.from = from;
            this.inSteps = inSteps;
            records = new int[to - from];
            disks = new byte[to - from];
        }

        /// First block of the chain in the run.
        public int from() {
            return from;
        }

        /// The first block that does not come.
        public int end() {
            return from + count;
        }

        /// Blocks that come.
        public int count() {
            return count;
        }

        /// Record of block `from + position`.
        public int record(int position) {
            return records[position];
        }

        /// Whether the caller has to have block `from + position` read; otherwise another caller does.
        public boolean isStarted(int position) {
            return started.get(position);
        }

        /// The disk that block `from + position` is to be read from, if it is [#isStarted].
        public int disk(int position) {
            return disks[position];
        }

        /// Adds the next block.
        ///
        /// @param disk that it is to be read from by the caller, or -1 when it comes without
        private void add(int record, int disk) {
            started.set(count, disk >= 0);
            disks[count] = (byte) Math.max(0, disk);
            records[count++] = record;
        }

        /// No more blocks begin: keeps what is of those that come, as a run may be kept for long and its chain
        /// may be long.
        LoadBatch trimmed() {
            records = Arrays.copyOf(records, count);
            disks = Arrays.copyOf(disks, count);
            return this;
        }
    }

    /// What became of a wish to have a block or object in host memory.
    public enum LoadOutcome {
        /// It is there, and pinned as asked.
        RESIDENT,
        /// It has a slot now: the caller has it read, and reports how that went.
        STARTED,
        /// Another caller is filling its slot.
        JOINED,
        /// It is not known.
        NOT_FOUND,
        /// No slot is to be had.
        NO_ROOM;

        /// Whether it is or will be there.
        public boolean isAvailable() {
            return this == RESIDENT || this == STARTED || this == JOINED;
        }
    }
}
