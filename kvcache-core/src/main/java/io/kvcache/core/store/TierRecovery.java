package io.kvcache.core.store;

import static io.kvcache.core.policy.RecordView.NONE;

import io.kvcache.core.event.EventKind;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.store.DiskUsage.DiskUsageTable;
import io.kvcache.core.store.NamespaceRegistry.NamespaceEntry;
import io.kvcache.core.store.NamespaceRegistry.Owner;
import io.kvcache.core.tier.ReclaimCandidates;
import io.kvcache.core.tier.TierBlock;
import io.kvcache.core.tier.Tombstone;
import io.kvcache.core.tree.BlockTree;
import io.kvcache.core.tree.ControlWord;
import io.kvcache.core.tree.DiskAddress;
import io.kvcache.core.tree.RecordFlags;
import io.kvcache.core.tree.RecordHandle;
import io.kvcache.core.tree.RecordPool;
import io.kvcache.core.tree.RecordPool.NewRecordFields;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/// Puts the earlier contents of a disk back into the tree, newest first, in any order of parents and children.
///
/// A block whose parent was not found yet hangs below a PLACEHOLDER, a record that stands for the parent and knows
/// only its key. When the parent is found it takes the place of its placeholder. Blocks become findable when all
/// above them are there. Blocks below a placeholder at the end are dropped.
///
/// **Threads.** Owned by the store's lock.
final class TierRecovery {

    private final RecordPool pool;
    private final BlockTree tree;
    private final DiskUsageTable disks;
    private final RecordStates recordStates;
    private final WriteBackQueue writeBackQueue;
    private final NamespaceRegistry namespaceRegistry;
    private final RecoveredTombstones recoveredTombstones = new RecoveredTombstones();
    private final RecoveryExclusions recoveryExclusions;
    private final Map<Long, DeferredCopy> deferred = new HashMap<>();
    /// Handles of blocks whose copy was written while disks had not reported all their contents.
    private final Set<Long> writtenMeanwhile = new HashSet<>();

    private long restored;
    private long superseded;
    private long noRecord;
    private long orphans;

    TierRecovery(HostStore store) {
        pool = store.pool;
        tree = store.tree;
        disks = store.disks;
        writeBackQueue = store.writeBackQueue;
        namespaceRegistry = store.namespaceRegistry;
        recordStates = store.recordStates;
        recoveryExclusions = recordStates.exclusions();
    }

    /// A copy of a block that came into the store meanwhile. It cannot count before the block above it does.
    private record DeferredCopy(TierBlock block, int record, int generation) {}

    /// A disk is out: its reports do not count any longer.
    void onDiskLost(int disk) {
        recoveryExclusions.markReturning(disk);
        deferred.keySet().removeIf(address -> DiskAddress.diskOf(address) == disk);
        recoveredTombstones.clearDisk(disk);
    }

    /// A disk begins to report its contents, at the opening or because it is back.
    void beginDisk(int disk) {
        recoveryExclusions.begin();
        writeBackQueue.tombstones().pending(disk).forEach(each -> recoveredTombstones.add(disk, each));
    }

    /// Copies of a key that a disk reports from now on do not count.
    void onTombstone(int disk, long keyHi, long keyLo) {
        recoveredTombstones.add(disk, keyHi, keyLo);
    }

    /// A copy was written that counts.
    void onWritten(int record) {
        if (recoveryExclusions.isRecovering() && !RecordFlags.isObject(pool.flags(record))) {
            writtenMeanwhile.add(handle(record));
        }
    }

    private long handle(int record) {
        return RecordHandle.of(ControlWord.generation(pool.control(record)), record);
    }

    /// Has an older copy of a block count in place of one that was written meanwhile: that one is not flushed yet, and
    /// blocks below may be on disk since long, which are not found without the block above them.
    ///
    /// @return false if the block's copy is as old
    private boolean replaceNewer(int record, long address, int checksum) {
        if (recoveryExclusions.isReturning(DiskAddress.diskOf(address))
                || recordStates.stateOf(record) != ControlWord.SEALED
                || !writtenMeanwhile.remove(handle(record))) {
            return false;
        }
        disks.clearAddress(record);
        disks.setAddress(record, address, checksum);
        return true;
    }

    /// A copy was found.
    ///
    /// @return whether it counts
    boolean onRecovered(TierBlock block, long address) {
        boolean counts = !recoveredTombstones.covers(block, DiskAddress.diskOf(address)) && accept(block, address);
        restored += counts ? 1 : 0;
        superseded += counts ? 0 : 1;
        return counts;
    }

    /// Accepts a copy that is not covered by a tombstone on its disk.
    private boolean accept(TierBlock block, long address) {
        int present = tree.findAny(block.keyHi(), block.keyLo());
        int disk = DiskAddress.diskOf(address);
        if (recoveryExclusions.excludes(block, disk)) {
            rejectStale(block, present, disk);
            return false;
        }
        if (present == NONE) {
            return insert(block, address);
        }
        return recordStates.stateOf(present) == ControlWord.PLACEHOLDER
                ? materialize(present, block, address)
                : adopt(present, block, address);
    }

    /// Rejects a copy that is older than a put or drop by a caller. After a put that no disk has yet, the next
    /// restart finds this copy.
    private void rejectStale(TierBlock block, int present, int disk) {
        boolean outlived = present != NONE
                && block.isObject()
                && recordStates.stateOf(present) == ControlWord.SEALED
                && pool.diskAddress(present) == NONE
                && recoveryExclusions.isReplacedOnly(block, disk);
        if (outlived) {
            writeBackQueue.tombstones().addDeferred(present, disk);
        } else {
            writeBackQueue.tombstones().addForOlderCopy(Tombstone.of(block), present, disk);
        }
    }

    /// Turns a placeholder, made for a child of this block, into its record.
    private boolean materialize(int placeholder, TierBlock block, long address) {
        pool.initialize(placeholder, newRecord(block, NONE));
        pool.transition(placeholder, ControlWord.ORPHAN, 0);
        if (block.hasParent()) {
            int parent = parentOf(block);
            if (parent == NONE) {
                noRecord++;
                recordStates.markDeleted(placeholder, EventKind.EVICTED);
                return false;
            }
            tree.attach(placeholder, parent);
        }
        disks.setAddress(placeholder, address, block.checksum());
        connectIfComplete(placeholder);
        return true;
    }

    /// The block came into the store meanwhile, or a newer copy was found. An object's older copy has other bytes.
    /// It may lie on another disk than the newer one, so it gets a tombstone there.
    private boolean adopt(int present, TierBlock block, long address) {
        if (block.isObject()) {
            if (pool.diskAddress(present) == NONE) { // a put under way, which may be abandoned
                recoveryExclusions.addDropped(block.keyHi(), block.keyLo());
            }
            writeBackQueue.tombstones().addForOlderCopy(Tombstone.of(block), present, DiskAddress.diskOf(address));
            return false;
        }
        if (pool.diskAddress(present) != NONE) {
            return replaceNewer(present, address, block.checksum());
        }
        boolean now = recordStates.stateOf(present) == ControlWord.SEALED
                && recordStates.addCopy(present, address, block.checksum());
        if (!now) {
            deferred.put(address, new DeferredCopy(block, present, ControlWord.generation(pool.control(present))));
        }
        return true;
    }

    /// Counts the copies of blocks that came into the store meanwhile, if those above them count. That includes
    /// blocks being filled by their callers, which then fill the slot of a block that is on disk.
    private void adoptDeferred() {
        retryMissing();
        List<Map.Entry<Long, DeferredCopy>> parentsFirst = new ArrayList<>(deferred.entrySet());
        parentsFirst.sort(
                Comparator.<Map.Entry<Long, DeferredCopy>>comparingInt(each -> pool.depth(each.getValue().record))
                        .thenComparing(Map.Entry.comparingByKey()));
        parentsFirst.forEach(each -> adoptDeferred(each.getValue(), each.getKey()));
        deferred.clear();
    }

    /// Accepts deferred copies whose record in the store has gone again: they are as good as when they were reported.
    private void retryMissing() {
        List<Map.Entry<Long, DeferredCopy>> gone = new ArrayList<>();
        deferred.entrySet().stream()
                .filter(each -> isGone(each.getValue()))
                .map(Map.Entry::copyOf)
                .sorted(Map.Entry.comparingByKey())
                .forEach(gone::add);
        gone.forEach(each -> deferred.remove(each.getKey()));
        gone.forEach(each -> accept(each.getValue().block, each.getKey()));
    }

    private boolean isGone(DeferredCopy each) {
        long control = pool.control(each.record);
        return ControlWord.generation(control) != each.generation || ControlWord.state(control) == ControlWord.DELETED;
    }

    private void adoptDeferred(DeferredCopy each, long address) {
        int state = recordStates.stateOf(each.record);
        boolean filling = state == ControlWord.RESERVED || state == ControlWord.FILLED;
        boolean fits = (filling || state == ControlWord.SEALED)
                && pool.diskAddress(each.record) == NONE
                && disks.allowsChildren(pool.parent(each.record));
        if (fits && filling) {
            pool.transition(each.record, state == ControlWord.RESERVED ? ControlWord.LOADING : ControlWord.LOADED, 0);
            recordStates.onKnown(each.record);
        }
        if (fits) {
            recordStates.addCopy(each.record, address, each.block.checksum());
        } else if (pool.diskAddress(each.record) != NONE) {
            boolean _ = replaceNewer(each.record, address, each.block.checksum());
        }
    }

    /// A span is about to be reclaimed while other disks are still recovering: keeps copies that may count later,
    /// as far as there is room.
    void onReclaim(int disk, ReclaimCandidates offer) {
        for (int i = 0; i < offer.size() && !deferred.isEmpty(); i++) {
            long address = DiskAddress.of(disk, offer.address(i));
            if (deferred.containsKey(address) && !offer.keep(i)) {
                deferred.remove(address);
            }
        }
    }

    /// A copy lies elsewhere now.
    ///
    /// @param to or -1 when it is lost
    void onMoved(long from, long to) {
        DeferredCopy moved = deferred.remove(from);
        if (moved != null && to != NONE) {
            deferred.put(to, moved);
        }
    }

    private boolean insert(TierBlock block, long address) {
        int parent = block.hasParent() ? parentOf(block) : NONE;
        int record = block.hasParent() && parent == NONE
                ? NONE
                : tree.insert(newRecord(block, parent), ControlWord.ORPHAN, 0);
        if (record == NONE) {
            noRecord++;
            if (block.isObject()) {
                recoveryExclusions.addDropped(block.keyHi(), block.keyLo());
                writeBackQueue.tombstones().addForOlderCopy(Tombstone.of(block), NONE, DiskAddress.diskOf(address));
            }
            return false;
        }
        disks.setAddress(record, address, block.checksum());
        connectIfComplete(record);
        return true;
    }

    private void connectIfComplete(int record) {
        if (disks.allowsChildren(pool.parent(record))) {
            recordStates.connect(record);
            recordStates.connectDescendants(record);
        }
    }

    /// Returns the record of a block's parent, a placeholder when it is not known; or -1 when all records are
    /// taken.
    private int parentOf(TierBlock block) {
        int parent = tree.findAny(block.parentHi(), block.parentLo());
        if (parent != NONE) {
            return parent;
        }
        NewRecordFields unknown = new NewRecordFields(
                block.parentHi(),
                block.parentLo(),
                NONE,
                block.depth() - 1,
                RecordFlags.ofBlock(block.namespaceId()),
                0,
                0,
                NONE);
        return tree.insert(unknown, ControlWord.PLACEHOLDER, 0);
    }

    private static NewRecordFields newRecord(TierBlock block, int parent) {
        int identity =
                block.isObject() ? RecordFlags.ofObject(block.namespaceId()) : RecordFlags.ofBlock(block.namespaceId());
        return new NewRecordFields(
                block.keyHi(), block.keyLo(), parent, block.depth(), identity, block.bytes(), block.engineHash(), NONE);
    }

    /// All contents were found: drops records without a whole chain above them, in a run of record numbers.
    ///
    /// @return whether there are more records to scan
    boolean dropOrphans(int from, int turn) {
        if (from == 0) {
            adoptDeferred();
        }
        int to = Math.min(pool.highWaterMark(), from + turn);
        for (int record = from; record < to; record++) {
            int state = recordStates.stateOf(record);
            boolean isOrphan = state == ControlWord.ORPHAN && !hasOrphanAncestor(record);
            if (state == ControlWord.PLACEHOLDER || isOrphan || isWithoutOwner(record)) {
                orphans++;
                recordStates.markDeleted(record, EventKind.EVICTED);
            }
        }
        if (to == pool.highWaterMark()) {
            recoveredTombstones.clear();
            recoveryExclusions.end();
            writtenMeanwhile.clear();
        }
        return to < pool.highWaterMark();
    }

    /// Returns whether a record on disk is an entry of a window or state whose block is not here.
    private boolean isWithoutOwner(int record) {
        int flags = pool.flags(record);
        if (recordStates.stateOf(record) != ControlWord.ON_DISK || RecordFlags.isObject(flags)) {
            return false;
        }
        NamespaceEntry entry = namespaceRegistry.byId(RecordFlags.namespaceId(flags));
        Owner owner = entry.owner();
        if (owner == null) {
            return entry.namespace().isOfGroup(); // no block of that namespace is here
        }
        return owner.find(tree, pool.keyHi(record), pool.keyLo(record)) == NONE;
    }

    private boolean hasOrphanAncestor(int record) {
        int parent = pool.parent(record);
        int state = parent == NONE ? ControlWord.FREE : recordStates.stateOf(parent);
        return state == ControlWord.ORPHAN || state == ControlWord.PLACEHOLDER;
    }

    long restored() {
        return restored;
    }

    long superseded() {
        return superseded;
    }

    long withoutRecord() {
        return noRecord;
    }

    long orphans() {
        return orphans;
    }

    /// Copies found by recovery that do not count: their disk has reported a tombstone of them before, or must
    /// still be told one. Owned by the store's lock.
    static final class RecoveredTombstones {

        private final Set<Key> keys = new HashSet<>();
        private final Set<DiskNamespace> namespaces = new HashSet<>();

        private record Key(int disk, long hi, long lo) {}

        private record DiskNamespace(int disk, int namespaceId) {}

        /// A disk has reported the tombstone of a key.
        void add(int disk, long keyHi, long keyLo) {
            keys.add(new Key(disk, keyHi, keyLo));
        }

        /// A disk is still to be sent a tombstone.
        void add(int disk, Tombstone tombstone) {
            if (tombstone.isNamespace()) {
                namespaces.add(new DiskNamespace(disk, tombstone.namespaceId()));
            } else {
                add(disk, tombstone.keyHi(), tombstone.keyLo());
            }
        }

        /// Returns whether a tombstone covers a copy that a disk reports now.
        boolean covers(TierBlock block, int disk) {
            return (!keys.isEmpty() && keys.contains(new Key(disk, block.keyHi(), block.keyLo())))
                    || (!namespaces.isEmpty() && namespaces.contains(new DiskNamespace(disk, block.namespaceId())));
        }

        /// A disk is out, and will report its contents anew.
        void clearDisk(int disk) {
            keys.removeIf(each -> each.disk == disk);
            namespaces.removeIf(each -> each.disk == disk);
        }

        /// All disks have reported.
        void clear() {
            keys.clear();
            namespaces.clear();
        }
    }

    /// Removals and puts of objects by callers while disks had not reported all their contents. Copies on those
    /// disks are older, and do not count. An object whose newest copy was reported and could not be kept counts as
    /// dropped: its older copies have other bytes.
    ///
    /// At the opening this is remembered key by key until all disks have reported. A disk that was out may stay
    /// out for long, so after its return none of its objects counts. Its blocks do: a block's key always names the
    /// same bytes.
    ///
    /// **Threads.** Owned by the store's lock.
    static final class RecoveryExclusions {

        /// Keys that were dropped (true) or replaced (false).
        private final Map<BlockKey, Boolean> keys = new HashMap<>();

        private final BitSet namespaces = new BitSet();
        private final BitSet returningDisks = new BitSet();
        private boolean isRecovering;

        /// A disk was added, and will report its contents.
        void begin() {
            isRecovering = true;
        }

        /// All disks have reported.
        void end() {
            isRecovering = false;
            keys.clear();
            namespaces.clear();
        }

        /// Returns whether disks have not reported all their contents.
        boolean isRecovering() {
            return isRecovering;
        }

        /// Returns whether a disk was out, and does not only report what it had at the opening.
        boolean isReturning(int disk) {
            return returningDisks.get(disk);
        }

        /// A key was dropped.
        void addDropped(long keyHi, long keyLo) {
            if (isRecovering) {
                keys.put(new BlockKey(keyHi, keyLo), true);
            }
        }

        /// An object was put under a key.
        void addReplaced(long keyHi, long keyLo) {
            if (isRecovering) {
                keys.putIfAbsent(new BlockKey(keyHi, keyLo), false);
            }
        }

        /// A namespace was dropped.
        void addNamespace(int namespaceId) {
            if (isRecovering) {
                namespaces.set(namespaceId);
            }
        }

        /// A disk is out.
        void markReturning(int disk) {
            returningDisks.set(disk);
        }

        /// Returns whether a copy that a disk reports is older than a put alone. Then it is the last durable value
        /// of its key.
        boolean isReplacedOnly(TierBlock block, int disk) {
            return !returningDisks.get(disk)
                    && !namespaces.get(block.namespaceId())
                    && Boolean.FALSE.equals(keys.get(new BlockKey(block.keyHi(), block.keyLo())));
        }

        /// Returns whether a copy that a disk reports is older than a put or removal by a caller.
        boolean excludes(TierBlock block, int disk) {
            return (block.isObject() && returningDisks.get(disk))
                    || namespaces.get(block.namespaceId())
                    || (!keys.isEmpty() && keys.containsKey(new BlockKey(block.keyHi(), block.keyLo())));
        }
    }
}
