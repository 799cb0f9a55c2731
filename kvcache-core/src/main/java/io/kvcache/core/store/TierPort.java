package io.kvcache.core.store;

import static io.kvcache.core.policy.RecordView.NONE;

import io.kvcache.core.cost.PrefillCost;
import io.kvcache.core.event.EventKind;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.stats.DiskTierStats;
import io.kvcache.core.stats.DiskTierStats.LiveUsage;
import io.kvcache.core.store.DiskUsage.DiskUsageTable;
import io.kvcache.core.store.MemoryShares.SlotClassPolicies;
import io.kvcache.core.store.WriteBackQueue.WriteBackCounters;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.core.tier.ReclaimCandidates;
import io.kvcache.core.tier.TierBlock;
import io.kvcache.core.tier.TierRead;
import io.kvcache.core.tier.Tombstone;
import io.kvcache.core.tree.BlockTree;
import io.kvcache.core.tree.ControlWord;
import io.kvcache.core.tree.DiskAddress;
import io.kvcache.core.tree.RecordFlags;
import io.kvcache.core.tree.RecordPool;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.IntConsumer;
import java.util.function.Predicate;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// The store as its disks see it: blocks to be written, and blocks written, found, read, reclaimed or lost.
///
/// Addresses are numbers that a disk hands out, see [DiskAddress]: below 2^59, and never the same twice while
/// anything lies there.
///
/// **Threads.** Any; takes the store's lock, for metadata only.
public final class TierPort {

    /// Records looked at in one turn of the lock.
    private static final int SCAN_BATCH = 4096;

    private final RecordPool pool;
    private final BlockTree tree;
    private final SlotClassPolicies policies;
    private final NamespaceRegistry namespaceRegistry;
    private final DiskUsageTable disks;
    private final WriteBackQueue writeBackQueue;
    private final RecordStates recordStates;
    private final SlotAllocator slotAllocator;
    private final TierRecovery tierRecovery;
    private final WriteCompletions writeCompletions;
    private final FrontCopies frontCopies;
    private final TierBlocks views;
    private final ReclaimSelector reclaimSelector;
    private final ReentrantLock lock;

    TierPort(HostStore store) {
        pool = store.pool;
        tree = store.tree;
        policies = store.policies;
        namespaceRegistry = store.namespaceRegistry;
        disks = store.disks;
        writeBackQueue = store.writeBackQueue;
        recordStates = store.recordStates;
        slotAllocator = store.slotAllocator;
        lock = store.lock;
        tierRecovery = new TierRecovery(store);
        writeCompletions = new WriteCompletions(store, tierRecovery);
        frontCopies = new FrontCopies(store);
        reclaimSelector = new ReclaimSelector(recordStates, lock);
        views = new TierBlocks(pool, store.lookup);
    }

    /// Returns whether there is a disk to write to. Disks are opened before anything is put.
    public boolean hasDisks() {
        return disks.disks() > 0;
    }

    /// Adds a disk with eviction by last use, see [#addDisk(long, boolean)].
    public int addDisk(long limitBytes) {
        return addDisk(limitBytes, false);
    }

    /// Adds a disk or a device, before any is used; devices after the disks.
    ///
    /// A device without disks is a tier as a disk is. One with disks is in front of them: it keeps copies of blocks
    /// that are being written to a disk or were read from there, and they are read from it while it has them.
    ///
    /// @param limitBytes alive on it at most, each block in whole pages
    /// @param ranked whether it is a device: the host tier's policy also ranks its blocks, which otherwise are
    ///     evicted by last use
    /// @return its number
    public int addDisk(long limitBytes, boolean ranked) {
        return underLock(() -> {
            int disk = disks.addDisk(limitBytes, ranked);
            if (!disks.isFront(disk)) {
                writeBackQueue.writeAdmission().onDiskAdded(limitBytes);
            }
            tierRecovery.beginDisk(disk);
            return disk;
        });
    }

    /// Returns whether a number is that of a device, with disks behind it or without. Any thread.
    public boolean isDevice(int disk) {
        return disks.isDevice(disk);
    }

    /// Returns whether a number is that of a device in front of disks. Any thread.
    public boolean isFront(int disk) {
        return disks.isFront(disk);
    }

    /// Starts admission to the disks.
    ///
    /// @param waitingLimit bytes that may wait to be written
    /// @param eachLimit a larger block is not written, nor any block below it
    /// @param gain saving by one use of a block in units of the cost of its write; for [AdmissionKind#VALUE]
    public void configureAdmission(AdmissionKind kind, long waitingLimit, long eachLimit, double gain) {
        underLock(() -> writeBackQueue.start(kind, waitingLimit, eachLimit, gain));
    }

    /// Sets whether any disk can be written to. While none can, no record waits for a write.
    public void setWritable(boolean can) {
        underLock(() -> writeBackQueue.setWritable(can));
    }

    /// A resident record that is pinned to be written.
    ///
    /// @param pages its slots, in whole pages
    public record PendingWrite(int record, TierBlock block, List<MemorySegment> pages) {}

    /// Takes the next queued record and pins it; returns null when none waits. [#onWritten] ends it.
    ///
    /// Returns null while a tombstone has to be written first: it might be of an older copy of the same key,
    /// and would then apply to the new one.
    public @Nullable PendingWrite nextWrite(int disk) {
        lock.lock();
        try {
            int record = writeBackQueue.tombstones().isEmpty(disk) ? poll(disk) : NONE;
            return record == NONE ? null : new PendingWrite(record, views.hostBlock(record), views.pages(record));
        } finally {
            lock.unlock();
        }
    }

    private int poll(int disk) {
        if (disks.isFront(disk)) {
            return frontCopies.poll(disk);
        }
        int record = writeBackQueue.pollNext();
        frontCopies.offer(record);
        return record;
    }

    /// A write has ended. While the block above is still on its way to another disk, so is this one.
    ///
    /// @param disk where
    /// @param address or -1 when nothing was written
    public void onWritten(int record, int disk, long address) {
        underLock(() -> {
            if (disks.isFront(disk)) {
                frontCopies.onWritten(record, disk, address);
            } else {
                writeCompletions.onCompleted(record, disk, address);
            }
        });
    }

    /// Returns the next tombstone to write to a disk before anything else is written to it; null when there
    /// is none.
    public @Nullable Tombstone nextTombstone(int disk) {
        return underLock(() -> writeBackQueue.tombstones().poll(disk));
    }

    /// A tombstone was not sent to a disk, and cannot be now; it goes first when the disk is back.
    public void requeueTombstone(int disk, Tombstone tombstone) {
        underLock(() -> writeBackQueue.tombstones().addFirst(tombstone, disk));
    }

    /// A disk cannot take tombstones now. They are kept until it is back, up to a limit; beyond that whole
    /// namespaces are dropped there.
    public void holdTombstones(int disk) {
        underLock(() -> writeBackQueue.tombstones().compact(disk));
    }

    /// A disk could not write a tombstone. It is sent again, unless a newer copy counts there by now. After the
    /// tombstone of a namespace nothing may be written before it has ended.
    public void onTombstoneFailed(int disk, Tombstone tombstone) {
        underLock(() ->
                writeBackQueue.onTombstoneFailed(tombstone, tree.findAny(tombstone.keyHi(), tombstone.keyLo()), disk));
    }

    /// Returns the number of records queued for writing so far: all of them are settled once [#settledWrites] has
    /// reached this number.
    public long flushMark() {
        return underLock(() -> writeBackQueue.flushMark());
    }

    /// Returns how many of the records that were ever queued are settled, in their order.
    public long settledWrites() {
        return underLock(() -> writeBackQueue.settled());
    }

    /// Returns how often a queued record was not written and stayed in host memory: because the disk failed, or
    /// because the block above it left the disk. While this does not change, all that [#flushMark] counted is on
    /// disk once [#settledWrites] has reached it, unless it was evicted or dropped.
    public long unwrittenCount() {
        return underLock(() -> writeBackQueue.unwritten());
    }

    /// Registers a namespace that a disk has blocks of.
    ///
    /// @throws IllegalArgumentException as [HostStore#register] says
    public int namespaceId(Namespace namespace) {
        return underLock(() -> namespaceRegistry.register(namespace).id());
    }

    /// Returns the namespace of a number.
    public Namespace namespace(int id) {
        return namespaceRegistry.byId(id).namespace();
    }

    /// A disk is being opened, and will report its contents. Not allowed while [#endRecovery] of others goes on.
    public void beginRecovery(int disk) {
        underLock(() -> tierRecovery.beginDisk(disk));
    }

    /// A copy was found at opening; newer ones come first.
    ///
    /// @return whether it counts
    public boolean onRecovered(int disk, TierBlock block, long address) {
        return underLock(() -> tierRecovery.onRecovered(block, DiskAddress.of(disk, address)));
    }

    /// Copies of a key that the disk reports from now on do not count.
    public void onTombstone(int disk, long keyHi, long keyLo) {
        underLock(() -> tierRecovery.onTombstone(disk, keyHi, keyLo));
    }

    /// All disks that were recovering have reported their contents.
    public void endRecovery() {
        boolean more = true;
        for (int from = 0; more; from += SCAN_BATCH) {
            int first = from;
            more = underLock(() -> tierRecovery.dropOrphans(first, SCAN_BATCH));
        }
        for (int disk = 0; disk < disks.disks(); disk++) {
            int each = disk;
            underLock(() -> recordStates.trim(each));
        }
    }

    /// A span of a disk is about to be reclaimed: keeps all live copies, as far as there is room, and forgets the
    /// rest with all below it. Processes a bounded number of records for each turn of the lock.
    public void onReclaim(int disk, ReclaimCandidates offer) {
        if (disks.isFront(disk)) {
            underLock(() -> frontCopies.reclaim(disk, offer));
            return;
        }
        reclaimSelector.select(disk, offer);
        underLock(() -> {
            tierRecovery.onReclaim(disk, offer);
            writeCompletions.onReclaim(disk, offer);
        });
    }

    /// A copy was written elsewhere on its disk.
    public void onMoved(int disk, TierBlock block, long from, long to) {
        if (disks.isFront(disk)) {
            underLock(() -> frontCopies.onMoved(block, DiskAddress.of(disk, from), DiskAddress.of(disk, to)));
            return;
        }
        underLock(() -> {
            int record = recordStates.recordAt(block.keyHi(), block.keyLo(), DiskAddress.of(disk, from));
            if (record != NONE) {
                disks.updateAddress(record, DiskAddress.of(disk, to));
            }
            tierRecovery.onMoved(DiskAddress.of(disk, from), DiskAddress.of(disk, to));
            writeCompletions.onMoved(disk, from, to);
        });
    }

    /// A copy is lost: forgets it and all below it.
    public void onLost(int disk, TierBlock block, long address) {
        if (disks.isFront(disk)) {
            underLock(() -> frontCopies.onMoved(block, DiskAddress.of(disk, address), NONE));
            return;
        }
        underLock(() -> {
            int record = recordStates.recordAt(block.keyHi(), block.keyLo(), DiskAddress.of(disk, address));
            if (record != NONE) {
                recordStates.forgetSubtree(record);
            }
            tierRecovery.onMoved(DiskAddress.of(disk, address), NONE);
            writeCompletions.onMoved(disk, address, NONE);
        });
    }

    /// A whole disk is lost: forgets all its copies, a bounded number of records for each turn of the lock.
    public void onLost(int disk) {
        if (!disks.isFront(disk)) {
            underLock(() -> {
                tierRecovery.onDiskLost(disk);
                writeCompletions.onDiskLost(disk);
            });
        }
        for (int from = 0; from < pool.capacity(); from += SCAN_BATCH) {
            lock.lock();
            try {
                int to = Math.min(pool.highWaterMark(), from + SCAN_BATCH);
                if (disks.isFront(disk)) {
                    frontCopies.forget(disk, from, to);
                } else {
                    recordStates.forgetDisk(disk, from, to);
                }
                if (to == pool.highWaterMark()) {
                    return;
                }
            } finally {
                lock.unlock();
            }
        }
    }

    /// Returns the read for a load that was started, or null when no caller waits for it any longer or another
    /// disk has it by now; with address -1 when a device in front of the disks has it no longer. After null the
    /// record is on disk as before, and [#onRead] must not be called.
    ///
    /// @param wanted whether to read it though the load alone has a pin
    /// @param tag comes back with the outcome
    /// @return with the checksum that the bytes must have, and the record's slots in whole pages
    public @Nullable TierRead nextRead(int disk, int record, boolean wanted, long tag) {
        lock.lock();
        try {
            if (!isAwaited(disk, record, wanted)) {
                recordStates.abandonFill(record);
                return null;
            }
            disks.onUsedInFront(record);
            long address = disks.isFront(disk) ? localFrontAddress(disk, record) : localAddress(record);
            return new TierRead(views.diskBlock(record), address, views.pages(record), tag);
        } finally {
            lock.unlock();
        }
    }

    /// Returns at which address of its disk a load goes on that is read in steps; -1 when it is to be given up,
    /// which [#onRead] then gets.
    public long nextStep(int disk, int record, boolean wanted) {
        lock.lock();
        try {
            return isAwaited(disk, record, wanted) ? localAddress(record) : NONE;
        } finally {
            lock.unlock();
        }
    }

    /// Returns whether a load that was started is still to be read from a disk.
    private boolean isAwaited(int disk, int record, boolean wanted) {
        long control = pool.control(record);
        long address = pool.diskAddress(record);
        boolean awaited = wanted || ControlWord.pins(control) > 1 || pool.residentChildren(record) > 0;
        return ControlWord.state(control) == ControlWord.LOADING
                && awaited
                && address != NONE
                && (disks.isFront(disk) || DiskAddress.diskOf(address) == disk);
    }

    private long localFrontAddress(int disk, int record) {
        long address = disks.frontAddress(record);
        return address != NONE && DiskAddress.diskOf(address) == disk ? DiskAddress.localAddress(address) : NONE;
    }

    /// A device in front of the disks could not read a record.
    ///
    /// @param lost whether its copy is to be forgotten
    /// @return the disk to read it from instead; -1 when the load is over
    public int fallBack(int disk, int record, boolean lost) {
        lock.lock();
        try {
            if (!disks.isFront(disk) || recordStates.stateOf(record) != ControlWord.LOADING) {
                return NONE;
            }
            if (lost) {
                recordStates.leaveFront(record, EventKind.EVICTED);
            }
            long address = pool.diskAddress(record);
            return address == NONE ? NONE : DiskAddress.diskOf(address);
        } finally {
            lock.unlock();
        }
    }

    private long localAddress(int record) {
        return DiskAddress.localAddress(pool.diskAddress(record));
    }

    /// A block or object that is on a disk alone.
    public record DiskCopy(int disk, TierBlock block, long address) {}

    /// Returns where a block or object lies that is on a disk alone; null when it is in host memory, on its way there,
    /// or nowhere.
    public @Nullable DiskCopy diskCopy(long keyHi, long keyLo) {
        return underLock(() -> diskCopy(tree.findAny(keyHi, keyLo)));
    }

    /// Returns where a block of a chain lies that is on a disk alone, as [#diskCopy(long, long)] does.
    /// Only of the chain's namespace, and where it lies as deep as in the chain: keys that a caller
    /// lists may be anything.
    public @Nullable DiskCopy diskCopy(BlockChain chain, int index) {
        int namespace = namespaceRegistry.idOf(chain.namespace());
        return underLock(() -> {
            int record = tree.findAny(chain.keyHi(index), chain.keyLo(index));
            boolean own = record != NONE
                    && pool.depth(record) == index
                    && RecordFlags.isBlockOf(pool.flags(record), namespace);
            return own ? diskCopy(record) : null;
        });
    }

    private @Nullable DiskCopy diskCopy(int record) {
        if (record == NONE || recordStates.stateOf(record) != ControlWord.ON_DISK) {
            return null;
        }
        return new DiskCopy(
                DiskAddress.diskOf(pool.diskAddress(record)), views.diskBlock(record), localAddress(record));
    }

    /// A read has ended. What came from a disk is copied to the device in front, where there is one.
    ///
    /// @param good whether the bytes are there and have their checksum
    /// @param lost whether the copy is to be forgotten
    public void onRead(int record, int checksum, boolean good, boolean lost) {
        underLock(() -> {
            boolean loading = recordStates.stateOf(record) == ControlWord.LOADING;
            if (good && loading) {
                pool.checksum(record, checksum);
                recordStates.seal(record, NONE);
                frontCopies.offer(record);
            } else {
                if (lost && loading) {
                    recordStates.markDeleted(record, EventKind.EVICTED);
                }
                recordStates.abandonFill(record);
            }
        });
    }

    /// Queues for write-back every resident block in the given record range that is not on disk and has at least
    /// `leastUses` uses.
    ///
    /// @param leastUses since it was put; 0 for everything
    /// @return whether there are more records to scan
    public boolean queueUnwritten(int from, int leastUses) {
        lock.lock();
        try {
            boolean more = forEachUnflushed(from, record -> {
                if (RecordFlags.uses(pool.flags(record)) >= leastUses) {
                    writeBackQueue.enqueueMissing(record);
                }
            });
            writeBackQueue.flushMark();
            return more;
        } finally {
            lock.unlock();
        }
    }

    /// Returns the bytes of resident blocks that are on no disk: a crash now would lose them.
    public long unflushedBytes() {
        long[] sum = new long[1];
        for (int from = 0; forEachUnflushed(from, record -> sum[0] += pool.bytes(record)); from += SCAN_BATCH) {}
        return sum[0];
    }

    /// Visits resident blocks that are on no disk, in a run of record numbers.
    ///
    /// @return whether there are more records to scan
    private boolean forEachUnflushed(int from, IntConsumer action) {
        lock.lock();
        try {
            int to = Math.min(pool.highWaterMark(), from + SCAN_BATCH);
            for (int record = from; record < to; record++) {
                if (recordStates.stateOf(record) == ControlWord.SEALED && pool.diskAddress(record) == NONE) {
                    action.accept(record);
                }
            }
            return to < pool.highWaterMark();
        } finally {
            lock.unlock();
        }
    }

    /// A block was used where it lies: see [io.kvcache.core.tier.TierListener#onUsed].
    public void onUsed(TierBlock block) {
        underLock(() -> recordStates.onUsedOnDisk(block.keyHi(), block.keyLo()));
    }

    /// Returns the score of a block: see [io.kvcache.core.tier.TierListener#score].
    public double score(long keyHi, long keyLo) {
        return underLock(() -> recordStates.score(keyHi, keyLo));
    }

    /// Evicts blocks from host memory ahead of need, so that puts and loads find free slots: those that are on
    /// disk or not worth it. Starts below the low mark and stops at the high mark, in percent of a slot class.
    ///
    /// @return whether there is more to do
    public boolean evictAhead(int lowPercent, int highPercent) {
        return underLock(() -> slotAllocator.evictAhead(lowPercent, highPercent));
    }

    /// Sets the cost of reading a block from disk, as a share of the cost of computing it: above 0 to 1.
    public void setReloadCostRatio(double share) {
        policies.state().reloadCostRatio(share);
    }

    /// Sets the cost of computing blocks, for [AdmissionKind#VALUE]: where in a prompt they are dearer, and by how
    /// much.
    public void setPrefillCost(PrefillCost cost) {
        underLock(() -> writeBackQueue.writeAdmission().recomputeCost().setPrefillCost(cost));
    }

    /// Returns how many records [#queueUnwritten] scans in a turn.
    public static int scanBatch() {
        return SCAN_BATCH;
    }

    /// Returns the live blocks on disk, and the outcomes of writes.
    public DiskTierStats stats() {
        return underLock(this::collectStats);
    }

    private DiskTierStats collectStats() {
        List<LiveUsage> alive = IntStream.range(0, disks.disks())
                .mapToObj(disk -> new LiveUsage(
                        disks.usage(disk).blocks(),
                        disks.usage(disk).bytes(),
                        disks.usage(disk).limitBytes()))
                .toList();
        WriteBackCounters counters = writeBackQueue.counters();
        return new DiskTierStats(
                alive,
                counters.admitted,
                counters.written,
                counters.notWritten,
                counters.belowThreshold,
                counters.tooLarge,
                counters.queueFull,
                counters.evictedWhileQueued,
                counters.evictedUnwritten,
                writeBackQueue.waitingBytes(),
                writeBackQueue.inFlightCount(),
                tierRecovery.restored(),
                tierRecovery.superseded(),
                tierRecovery.orphans(),
                tierRecovery.withoutRecord());
    }

    private void underLock(Runnable work) {
        lock.lock();
        try {
            work.run();
        } finally {
            lock.unlock();
        }
    }

    private <T extends @Nullable Object> T underLock(Supplier<T> work) {
        lock.lock();
        try {
            return work.get();
        } finally {
            lock.unlock();
        }
    }

    /// Chooses the copies to keep of a span of a disk that is about to be reclaimed: all live ones worth another
    /// write, as far as there is room. The rest are forgotten with all below them. On a ranked disk the host
    /// tier's policy says which come first.
    ///
    /// **Threads.** Any; takes the store's lock for a bounded number of copies at a time.
    record ReclaimSelector(RecordStates recordStates, ReentrantLock lock) {

        /// Copies looked at in one turn of the lock: some tens of microseconds.
        private static final int BATCH = 256;

        void select(int disk, ReclaimCandidates offer) {
            List<RecordStates.LiveCopy> live = new ArrayList<>();
            for (int from = 0; from < offer.size(); from += BATCH) {
                lock.lock();
                try {
                    recordStates.collectLive(disk, offer, from, Math.min(offer.size(), from + BATCH), live);
                } finally {
                    lock.unlock();
                }
            }
            live.sort(Comparator.comparing(RecordStates.LiveCopy::isWithinShare)
                    .thenComparingDouble(RecordStates.LiveCopy::rank)
                    .thenComparingLong(RecordStates.LiveCopy::score)
                    .reversed());
            live.removeIf(each -> each.isInUse() && offer.keep(each.index()));
            for (RecordStates.LiveCopy refused : live) {
                lock.lock();
                try {
                    recordStates.discard(disk, offer, refused);
                } finally {
                    lock.unlock();
                }
            }
        }
    }

    /// Records as tiers see them. Under the store's lock.
    record TierBlocks(RecordPool pool, RecordLookup lookup) {

        private static final long PAGE_BYTES = 4096;

        TierBlock hostBlock(int record) {
            return hostBlock(record, pool.checksum(record));
        }

        /// As its copy on disk is.
        TierBlock diskBlock(int record) {
            return hostBlock(record, pool.diskChecksum(record));
        }

        private TierBlock hostBlock(int record, int checksum) {
            int parent = pool.parent(record);
            int identity = pool.flags(record);
            return new TierBlock(
                    pool.keyHi(record),
                    pool.keyLo(record),
                    parent == NONE ? 0 : pool.keyHi(parent),
                    parent == NONE ? 0 : pool.keyLo(parent),
                    RecordFlags.namespaceId(identity),
                    RecordFlags.isObject(identity),
                    pool.depth(record),
                    Math.toIntExact(pool.bytes(record)),
                    checksum,
                    pool.engineHash(record));
        }

        /// The slots of a record that is resident or being filled, in whole pages.
        List<MemorySegment> pages(int record) {
            long bytes = (pool.bytes(record) + PAGE_BYTES - 1) & -PAGE_BYTES;
            return lookup.segments(record, bytes);
        }
    }

    /// Completion of writes to disk, in the order of chains.
    ///
    /// Writes end in any order, and on several disks at once, but a block counts only once the block above it
    /// does. So one that is ahead of it waits, pinned as before.
    ///
    /// **Threads.** Owned by the store's lock.
    static final class WriteCompletions {

        private final RecordPool pool;
        private final BlockTree tree;
        private final WriteBackQueue writeBackQueue;
        private final RecordStates recordStates;
        private final TierRecovery tierRecovery;
        private final Map<Integer, List<Completion>> waitingForParent = new HashMap<>();

        /// A write that has ended.
        private record Completion(int record, int disk, long address) {}

        WriteCompletions(HostStore store, TierRecovery tierRecovery) {
            this.tierRecovery = tierRecovery;
            pool = store.pool;
            tree = store.tree;
            writeBackQueue = store.writeBackQueue;
            recordStates = store.recordStates;
        }

        /// @param address or -1 when nothing was written
        void onCompleted(int record, int disk, long address) {
            Completion write = new Completion(record, disk, address);
            int parent = pool.parent(record);
            if (parent != NONE && RecordFlags.has(pool.flags(parent), RecordFlags.WRITING)) {
                waitingForParent.computeIfAbsent(parent, _ -> new ArrayList<>()).add(write);
                return;
            }
            ArrayDeque<Completion> ready = new ArrayDeque<>();
            for (Completion next = write; next != null; next = ready.poll()) {
                List<Completion> waited = waitingForParent.remove(next.record);
                settle(next);
                if (waited != null) {
                    ready.addAll(waited);
                }
            }
        }

        /// A span is about to be reclaimed: keeps what waits for a block above it, as far as that may be;
        /// what is not kept was not written.
        void onReclaim(int disk, ReclaimCandidates offer) {
            Set<Long> waiting = new HashSet<>();
            waitingForParent
                    .values()
                    .forEach(each -> each.stream()
                            .filter(write -> write.disk == disk)
                            .forEach(write -> waiting.add(write.address)));
            for (int i = 0; i < offer.size() && !waiting.isEmpty(); i++) {
                if (waiting.contains(offer.address(i)) && !offer.keep(i)) {
                    onMoved(disk, offer.address(i), NONE);
                }
            }
        }

        /// Moves the address of a completed write.
        ///
        /// @param to the new address, or -1 when the block is lost
        void onMoved(int disk, long from, long to) {
            change(write -> write.disk == disk && write.address == from, to);
        }

        /// Drops all completed writes to a disk, because its content is lost.
        void onDiskLost(int disk) {
            change(write -> write.disk == disk, NONE);
        }

        private void change(Predicate<Completion> such, long address) {
            waitingForParent
                    .values()
                    .forEach(each -> each.replaceAll(
                            write -> such.test(write) ? new Completion(write.record, write.disk, address) : write));
        }

        private void settle(Completion write) {
            int record = write.record;
            boolean replaced = writeBackQueue.onWriteCompleted(record, write.address == NONE ? NONE : write.disk);
            int state = recordStates.stateOf(record);
            boolean counts = write.address != NONE
                    && state == ControlWord.SEALED
                    && pool.diskAddress(record) == NONE
                    && recordStates.addCopy(record, DiskAddress.of(write.disk, write.address), pool.checksum(record));
            if (counts) {
                tierRecovery.onWritten(record);
                writeBackQueue.counters().written++;
                writeBackQueue.tombstones().releaseDeferred(record, write.disk);
            } else {
                writeBackQueue.counters().notWritten++;
                writeBackQueue.unwritten(record, replaced && write.address == NONE);
            }
            if (write.address != NONE && state == ControlWord.DELETED) {
                writeBackQueue.onStaleWrite(record, write.disk, replaced, tree.findDuplicate(record));
            }
            recordStates.release(record);
            recordStates.trim(write.disk);
        }
    }
}
