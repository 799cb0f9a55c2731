package io.kvcache.core.store;

import static io.kvcache.core.policy.RecordView.NONE;

import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.policy.NoveltyClass;
import io.kvcache.core.store.DiskUsage.DiskUsageTable;
import io.kvcache.core.store.NamespaceRegistry.NamespaceEntry;
import io.kvcache.core.store.NamespaceRegistry.Owner;
import io.kvcache.core.store.WriteBackQueue.PendingTombstones;
import io.kvcache.core.tree.BlockTree;
import io.kvcache.core.tree.ControlWord;
import io.kvcache.core.tree.DiskAddress;
import io.kvcache.core.tree.ObjectLinks;
import io.kvcache.core.tree.RecordFlags;
import io.kvcache.core.tree.RecordPool;

/// Checks a store against itself, record by record; under its lock.
final class StoreValidator {

    private final RecordPool pool;
    private final BlockTree tree;
    private final SlabPool slabs;
    private final NamespaceRegistry namespaceRegistry;
    private final boolean isRecovering;
    private final long[] live;
    private final long[] liveBytes;
    private final DiskUsageTable disks;
    private final long[] diskBlocks;
    private final long[][] diskBytes;
    private final MemoryShares shares;
    private final long[] shareBytes;
    private int taken;
    private int onDevice;
    private long sealed;
    private long onDiskAlone;
    private long slots;

    private StoreValidator(HostStore store) {
        pool = store.pool;
        tree = store.tree;
        slabs = store.slabs;
        disks = store.disks;
        shares = store.shares;
        namespaceRegistry = store.namespaceRegistry;
        isRecovering = store.recordStates.exclusions().isRecovering();
        shareBytes = new long[shares.groups()];
        diskBlocks = new long[disks.disks()];
        diskBytes = new long[disks.disks()][shares.groups()];
        int namespaces = store.namespaceRegistry.all().size();
        live = new long[namespaces];
        liveBytes = new long[namespaces];
    }

    static void run(HostStore store) {
        StoreValidator check = new StoreValidator(store);
        store.slabs.validate();
        for (int record = 0; record < store.pool.highWaterMark(); record++) {
            if (ControlWord.state(store.pool.control(record)) != ControlWord.FREE) {
                check.record(record);
            }
        }
        check.checkTotals(store);
        check.checkLinks(store.objectLinks);
        check.checkTombstones(store.writeBackQueue.tombstones());
        store.recordStates.prefetched().validate();
        store.recordStates.expired().validate();
    }

    private void record(int record) {
        int state = ControlWord.state(pool.control(record));
        taken++;
        require(state != ControlWord.EVICTING, record, "is left EVICTING");
        boolean indexed = isInIndex(record);
        require(indexed == (state != ControlWord.DELETED), record, "is in the index: " + indexed + ", state " + state);
        checkTree(record, state);
        checkFlags(record, state);
        checkOwner(record, state);
        slots(record);
        sealed += state == ControlWord.SEALED ? 1 : 0;
        onDiskAlone += state == ControlWord.ON_DISK ? 1 : 0;
        checkDisk(record, state);
        if (ControlWord.isKnown(state)) {
            int namespace = RecordFlags.namespaceId(pool.flags(record));
            live[namespace]++;
            liveBytes[namespace] += pool.bytes(record);
        }
        int pins = ControlWord.pins(pool.control(record));
        require(state != ControlWord.RESERVED || pins == 1, record, "is RESERVED with " + pins + " pins");
        require(state != ControlWord.DELETED || pins > 0 || pool.hasChildren(record), record, "should be freed");
    }

    /// An entry of a window or state is not known without the block that it belongs to.
    private void checkOwner(int record, int state) {
        int flags = pool.flags(record);
        Owner owner = namespaceRegistry.byId(RecordFlags.namespaceId(flags)).owner();
        if (owner == null || isRecovering || RecordFlags.isObject(flags) || !ControlWord.isKnown(state)) {
            return;
        }
        int block = owner.find(tree, pool.keyHi(record), pool.keyLo(record));
        require(block != NONE, record, "is an entry without its block, state " + state);
        require(owner.group().isBehind(pool.depth(block)), record, "is an entry behind block " + pool.depth(block));
    }

    /// Only a block that was put and has been in host memory since is fresh.
    private void checkFlags(int record, int state) {
        int identity = pool.flags(record);
        boolean onDevice = RecordFlags.has(identity, RecordFlags.ON_DEVICE);
        long front = disks.frontAddress(record);
        boolean alone = pool.diskAddress(record) != NONE && !disks.isOnDisk(pool.diskAddress(record));
        require(front == NONE || ControlWord.isKnown(state), record, "has a copy in front, state " + state);
        require(onDevice == (front != NONE || alone), record, "is on a device: " + onDevice);
        this.onDevice += onDevice ? 1 : 0;
        if (front != NONE) {
            int disk = DiskAddress.diskOf(front);
            diskBlocks[disk]++;
            diskBytes[disk][disks.usage(disk).orderGroup(MemoryShares.DEFAULT_GROUP)] += disks.frontPages(record);
        }
        boolean fresh = RecordFlags.has(identity, RecordFlags.FRESH);
        boolean mayBe = !RecordFlags.isObject(identity) && state != ControlWord.ON_DISK && state != ControlWord.ORPHAN;
        require(!fresh || mayBe, record, "is fresh, state " + state);
        boolean inSteps = RecordFlags.has(identity, RecordFlags.READ_IN_STEPS);
        boolean onItsWay = state == ControlWord.LOADING || state == ControlWord.LOADED || state == ControlWord.DELETED;
        require(!inSteps || onItsWay, record, "is read in steps, state " + state);
        require(
                RecordFlags.noveltyClass(identity) < NoveltyClass.COUNT,
                record,
                "is of cohort " + RecordFlags.noveltyClass(identity));
    }

    /// A block on disk has the block above it on disk.
    private void checkDisk(int record, int state) {
        long place = pool.diskAddress(record);
        int parent = pool.parent(record);
        boolean needed = state == ControlWord.ON_DISK || state == ControlWord.ORPHAN;
        boolean refused =
                state == ControlWord.DELETED || state == ControlWord.PLACEHOLDER || state == ControlWord.RESERVED;
        require(!needed || place != NONE, record, "has no place, state " + state);
        require(!refused || place == NONE, record, "has a place, state " + state);
        if (place != NONE) {
            int disk = DiskAddress.diskOf(place);
            diskBlocks[disk]++;
            diskBytes[disk][disks.usage(disk).orderGroup(shares.group(record))] += disks.pages(record);
            require(
                    state == ControlWord.ORPHAN || disks.allowsChildren(parent),
                    record,
                    "is on disk without its parent");
        }
    }

    private static boolean hasSlot(int state) {
        return switch (state) {
            case ControlWord.RESERVED,
                    ControlWord.FILLED,
                    ControlWord.SEALED,
                    ControlWord.LOADING,
                    ControlWord.LOADED -> true;
            default -> false;
        };
    }

    private boolean isInIndex(int record) {
        for (int at = pool.bucketHead(pool.keyLo(record)); at != NONE; at = pool.bucketNext(at)) {
            if (at == record) {
                return true;
            }
        }
        return false;
    }

    private void checkTree(int record, int state) {
        int[] children = new int[2];
        tree.forEachChild(record, child -> {
            boolean slot = pool.hostPage(child) != SlabPool.NONE;
            require(!hasSlot(ControlWord.state(pool.control(child))) || slot, child, "has no slot");
            children[0] += slot ? 1 : 0;
            children[1] += pool.diskAddress(child) != NONE ? 1 : 0;
            require(pool.parent(child) == record, child, "has another parent than " + record);
            require(pool.depth(child) == pool.depth(record) + 1, child, "has depth " + pool.depth(child));
        });
        require(
                children[0] == pool.residentChildren(record),
                record,
                "counts " + pool.residentChildren(record) + " children and has " + children[0]);
        require(
                children[1] == pool.diskChildren(record),
                record,
                "counts " + pool.diskChildren(record) + " children on disk and has " + children[1]);
        int parent = pool.parent(record);
        if (parent != NONE) {
            int parentState = ControlWord.state(pool.control(parent));
            require(parentState != ControlWord.FREE, record, "has a free parent");
            require(
                    state != ControlWord.SEALED || parentState == ControlWord.SEALED,
                    record,
                    "is sealed, its parent is not");
        }
    }

    private void slots(int record) {
        long bytes = 0;
        for (int page = pool.hostPage(record); page != SlabPool.NONE; page = slabs.next(page)) {
            require(slabs.owner(page) == record, record, "has page " + page + " of " + slabs.owner(page));
            bytes += slabs.slotBytes(page);
            slots++;
        }
        if (bytes > 0) {
            shareBytes[shares.group(record)] += shares.charge(record);
        }
        require(bytes == 0 || bytes >= pool.bytes(record), record, "has " + bytes + " bytes for " + pool.bytes(record));
    }

    /// Links between objects are of records with slots, and counted.
    private void checkLinks(ObjectLinks chains) {
        int[] behind = new int[pool.highWaterMark()];
        for (int record = 0; record < pool.highWaterMark(); record++) {
            int before = chains.predecessor(record);
            if (before != NONE) {
                behind[before]++;
                require(pool.hostPage(record) != NONE, record, "is behind " + before + " and has no slot");
            }
        }
        for (int record = 0; record < pool.highWaterMark(); record++) {
            require(
                    behind[record] == chains.successorCount(record),
                    record,
                    "counts " + chains.successorCount(record) + " behind it");
        }
    }

    /// Checks that a record that waits for a write and has outlived a tombstone of its key is in host memory
    /// alone.
    private void checkTombstones(PendingTombstones pendingTombstones) {
        for (int record : pendingTombstones.deferredRecords()) {
            boolean alone =
                    ControlWord.state(pool.control(record)) == ControlWord.SEALED && pool.diskAddress(record) == NONE;
            require(alone, record, "outlives an older copy, and is not in host memory alone");
        }
    }

    private void checkTotals(HostStore store) {
        long held = 0;
        for (int id = 0; id < slabs.classCount(); id++) {
            held += slabs.heldSlots(slabs.slotClass(id));
        }
        require(held == slots, NONE, held + " slots are held, " + slots + " by records");
        require(onDevice == disks.onDevice(), NONE, onDevice + " records on devices, counted as " + disks.onDevice());
        require(taken == pool.live(), NONE, pool.live() + " records counted, " + taken + " taken");
        long inPolicies = 0;
        for (int id = 0; id < store.policies.classes(); id++) {
            inPolicies += store.policies.size(id);
        }
        require(inPolicies == sealed, NONE, inPolicies + " records under policies, " + sealed + " sealed");
        for (int group = 0; group < shareBytes.length; group++) {
            long counted = shares.heldBytes(group);
            require(counted == shareBytes[group], NONE, "group " + group + " counts " + counted + " held bytes");
        }
        long ordered = 0;
        for (int disk = 0; disk < diskBlocks.length; disk++) {
            DiskUsage account = disks.usage(disk);
            ordered += account.exclusiveRecords();
            require(diskBlocks[disk] == account.blocks(), NONE, "disk " + disk + " counts " + account.blocks());
            for (int group = 0; group < diskBytes[disk].length; group++) {
                boolean own = account.orderGroup(group) == group;
                boolean agrees = !own || diskBytes[disk][group] == account.bytes(group);
                require(agrees, NONE, "disk " + disk + " counts " + account.bytes(group) + " of group " + group);
            }
        }
        require(ordered == onDiskAlone, NONE, ordered + " records in disk orders, " + onDiskAlone + " on disk alone");
        for (NamespaceEntry entry : store.namespaceRegistry.all()) {
            boolean agrees = entry.live == live[entry.id()] && entry.liveBytes == liveBytes[entry.id()];
            require(agrees, NONE, entry.namespace() + " counts " + entry.live + " and has " + live[entry.id()]);
        }
    }

    private static void require(boolean holds, int record, String what) {
        if (!holds) {
            throw new AssertionError(record == NONE ? what : "record " + record + " " + what);
        }
    }
}
