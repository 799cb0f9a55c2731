package io.kvcache.core.store;

import static io.kvcache.core.policy.RecordView.NONE;

import io.kvcache.core.SealOutcome;
import io.kvcache.core.event.EventKind;
import io.kvcache.core.event.TierKind;
import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.policy.EvictionPolicy;
import io.kvcache.core.store.DiskUsage.DiskUsageTable;
import io.kvcache.core.store.MemoryShares.SlotClassPolicies;
import io.kvcache.core.store.NamespaceRegistry.EntryGroup;
import io.kvcache.core.store.NamespaceRegistry.NamespaceEntry;
import io.kvcache.core.store.TierRecovery.RecoveryExclusions;
import io.kvcache.core.tier.ReclaimCandidates;
import io.kvcache.core.tree.BlockTree;
import io.kvcache.core.tree.ControlWord;
import io.kvcache.core.tree.DiskAddress;
import io.kvcache.core.tree.ObjectLinks;
import io.kvcache.core.tree.RecordFlags;
import io.kvcache.core.tree.RecordPool;
import io.kvcache.core.tree.RecordPool.NewRecordFields;
import java.util.ArrayDeque;
import java.util.List;

/// The states of a record from its reservation until it is freed, and the notification of every structure
/// concerned: index, policy, events, slots, parent.
///
/// A record that is dropped while a caller holds a pin on it, or on a block below it, becomes DELETED: out
/// of the index, so that no look-up finds it again, but in its place until the last pin and the last child
/// are gone. A writer counts as one pin, as does a load.
///
/// A record with a copy on disk stays when its slot goes: it is ON_DISK then. All blocks above it are on disk too:
/// a copy counts only when the block above has one, and a record that loses its copy takes the copies of all below
/// it along.
///
/// **Threads.** Owned by the store's lock.
final class RecordStates {

    private final RecordPool pool;
    private final BlockTree tree;
    private final SlabPool slabs;
    private final NamespaceRegistry namespaceRegistry;
    private final SlotClassPolicies policies;
    private final DiskUsageTable disks;
    private final WriteBackQueue writeBackQueue;
    private final StoreEvents storeEvents;
    private final RecoveryExclusions recoveryExclusions = new RecoveryExclusions();
    private final MemoryShares shares;
    private final ObjectLinks objectLinks;
    private final PrefetchTracker prefetchTracker;
    private final ExpiredBlocks expiredBlocks;

    RecordStates(HostStore store) {
        pool = store.pool;
        tree = store.tree;
        slabs = store.slabs;
        namespaceRegistry = store.namespaceRegistry;
        policies = store.policies;
        shares = store.shares;
        objectLinks = store.objectLinks;
        disks = store.disks;
        writeBackQueue = store.writeBackQueue;
        storeEvents = store.storeEvents;
        prefetchTracker = new PrefetchTracker(pool, shares);
        expiredBlocks = new ExpiredBlocks(pool, tree);
    }

    /// Returns the records that were brought into host memory ahead of their readers.
    PrefetchTracker prefetched() {
        return prefetchTracker;
    }

    /// Returns the records hinted to be dead.
    ExpiredBlocks expired() {
        return expiredBlocks;
    }

    /// Returns the removals and puts by callers that disks do not know of when they report their contents.
    RecoveryExclusions exclusions() {
        return recoveryExclusions;
    }

    /// A record is used.
    ///
    /// @return whether it was prefetched for this use
    boolean confirmPrefetch(int record) {
        return RecordFlags.has(pool.flags(record), RecordFlags.PREFETCHED) && prefetchTracker.onUsed(record);
    }

    /// Claims an unpinned sealed record for eviction.
    boolean claim(int record) {
        return pool.claim(record, ControlWord.SEALED);
    }

    /// Claims an unpinned record that is on disk alone for eviction.
    boolean claimOnDisk(int record) {
        return pool.claim(record, ControlWord.ON_DISK);
    }

    /// An object has the same bytes as the one on disk that it is about to replace: it takes over the copy.
    void adoptDiskCopy(int record, int older) {
        long place = pool.diskAddress(older);
        int checksum = pool.checksum(older);
        disks.clearAddress(older);
        disks.setAddress(record, place, checksum);
    }

    /// A writer or a load has filled a record's slot. Makes it findable there, or waits until its parent is.
    ///
    /// @param older the known record of the same key that this one replaces, or -1; readers find one or the
    ///     other at any moment
    SealOutcome seal(int record, int older) {
        int parent = pool.parent(record);
        int above = parent == NONE ? ControlWord.SEALED : stateOf(parent);
        if (above == ControlWord.SEALED) {
            publishWithChildren(record, older);
            return SealOutcome.SEALED;
        }
        boolean filling = above == ControlWord.RESERVED
                || above == ControlWord.FILLED
                || above == ControlWord.LOADING
                || above == ControlWord.LOADED;
        if (filling) {
            pool.transition(
                    record, stateOf(record) == ControlWord.LOADING ? ControlWord.LOADED : ControlWord.FILLED, -1);
            return SealOutcome.PENDING;
        }
        return abandonFill(record) ? SealOutcome.SEALED : SealOutcome.DROPPED;
    }

    /// A record has become known before its slot is filled: a disk has a copy.
    void onKnown(int record) {
        storeEvents.onKnown(record);
    }

    /// Gives an object other bytes of the same slot class where it lies: index, order of use and slot stay as they
    /// are. Its events are those of an older record that is replaced.
    ///
    /// @param object value and key
    /// @return false, and nothing is changed, when a reader has it
    boolean overwrite(int record, byte[] object) {
        if (!pool.claimForOverwrite(record)) {
            return false;
        }
        storeEvents.onRemoved(record, EventKind.REPLACED, TierKind.HOST);
        storeEvents.onForgotten(record);
        slabs.write(pool.hostPage(record), object);
        pool.finishOverwrite(record, object.length, RecordPool.NO_CHECKSUM);
        storeEvents.onKnown(record);
        storeEvents.onStored(record, TierKind.HOST);
        return true;
    }

    private void publishWithChildren(int record, int older) {
        ArrayDeque<Integer> ready = null;
        publish(record, older, -1);
        for (int at = record; at != NONE; ) {
            if (pool.residentChildren(at) > 0) {
                ready = ready == null ? new ArrayDeque<>() : ready;
                publishFilledChildren(at, ready);
            }
            at = ready == null || ready.isEmpty() ? NONE : ready.poll();
        }
    }

    private void publishFilledChildren(int record, ArrayDeque<Integer> ready) {
        tree.forEachChild(record, child -> {
            if (stateOf(child) == ControlWord.FILLED || stateOf(child) == ControlWord.LOADED) {
                publish(child, NONE, 0);
                ready.add(child);
            }
        });
    }

    /// Publishes the events of a seal. That of the older record comes first: events name keys, and the last one
    /// for this key must be STORED.
    private void publish(int record, int older, int pinsAdded) {
        boolean known = ControlWord.isKnown(stateOf(record));
        endSteps(record);
        pool.transition(record, ControlWord.SEALED, pinsAdded);
        if (older != NONE) {
            writeBackQueue.onReplacing(record, older);
            markDeleted(older, EventKind.REPLACED);
        }
        if (!known) {
            storeEvents.onKnown(record);
        }
        expiredBlocks.onUsed(record);
        if (RecordFlags.isPrefetch(pool.flags(record)) && prefetchTracker.onLoaded(record)) {
            policyOf(record).onPrefetched(record);
        } else {
            policyOf(record).admit(record);
        }
        storeEvents.onStored(record, TierKind.HOST);
        if (pool.diskAddress(record) != NONE && older != NONE) {
            onCopyChanged(record);
        }
        if (older != NONE) {
            writeBackQueue.onReplaced(record);
        } else if (!known) {
            writeBackQueue.onStored(record);
        } else if (!RecordFlags.has(
                pool.flags(record), RecordFlags.PREFETCHED)) { // a guess is used when it is read, if it ever is
            writeBackQueue.onUsed(record);
        }
    }

    /// The slot of a record could not be filled, by a writer or by a load. A copy on disk stays as it was; without
    /// a copy the record is dropped. Records that waited for it fall back with it.
    ///
    /// A slot that readers have a part of is not to be taken by another record before they are done: such a
    /// record is dropped, and keeps its slot to the last pin.
    ///
    /// @return whether it is still on disk
    boolean abandonFill(int record) {
        if (stateOf(record) != ControlWord.LOADING || pool.diskAddress(record) == NONE) {
            abandon(record);
            release(record);
            return false;
        }
        if (isReadInPart(record, 1)) {
            markDeleted(record, EventKind.EVICTED);
            release(record);
            return false;
        }
        moveToDisk(record, -1);
        tree.forEachDescendant(record, below -> {
            if (stateOf(below) == ControlWord.LOADED && isReadInPart(below, 0)) {
                markSubtreeDeleted(below, EventKind.EVICTED);
            } else if (stateOf(below) == ControlWord.LOADED && pool.diskAddress(below) != NONE) {
                moveToDisk(below, 0);
            } else if (stateOf(below) == ControlWord.LOADED || stateOf(below) == ControlWord.FILLED) {
                abandonDescendants(below);
            } else {
                reapOne(below);
            }
        });
        return true;
    }

    /// Returns whether a record that is not sealed may have readers.
    ///
    /// @param loads pins of its load
    private boolean isReadInPart(int record, int loads) {
        return RecordFlags.has(pool.flags(record), RecordFlags.READ_IN_STEPS)
                && ControlWord.pins(pool.control(record)) > loads;
    }

    /// Drops a record without a writer, and the records put below it; those that a disk has reported below it
    /// stay.
    private void abandon(int root) {
        int above = pool.parent(root);
        abandonDescendants(root);
        reap(above);
    }

    private void abandonDescendants(int root) {
        tree.forEachDescendant(root, record -> {
            if (stateOf(record) != ControlWord.ORPHAN) {
                insertPlaceholder(record);
                markOneDeleted(record, EventKind.DROPPED);
            }
        });
    }

    private void endSteps(int record) {
        if (RecordFlags.has(pool.flags(record), RecordFlags.READ_IN_STEPS)) {
            pool.setFlags(record, RecordFlags.READ_IN_STEPS, false);
        }
    }

    /// A record's slot goes; its copy on disk stays.
    private void moveToDisk(int record, int pinsAdded) {
        int page = pool.hostPage(record);
        prefetchTracker.onSlotReleased(record);
        shares.onFreed(record);
        pool.hostPage(record, NONE);
        pool.setFlags(record, RecordFlags.FRESH, false); // its next use, read or computed, begins anew
        endSteps(record);
        pool.transitionNewGeneration(record, ControlWord.ON_DISK, pinsAdded);
        int parent = tree.removeResident(record);
        int before = objectLinks.onSlotReleased(record);
        releaseSlots(page);
        disks.order(record).admit(record);
        if (expiredBlocks.contains(record)) {
            disks.order(record).demote(record);
        }
        notifyIfLeaf(parent);
        notifyIfLeaf(before);
    }

    /// Ends the residence of a record that [#claim] has claimed and the policy has let go.
    void onEvicted(int record) {
        storeEvents.onRemoved(record, EventKind.EVICTED, TierKind.HOST);
        if (pool.diskAddress(record) != NONE) {
            moveToDisk(record, 0);
            return;
        }
        writeBackQueue.onEvicted(record);
        leaveFront(record, EventKind.EVICTED);
        storeEvents.onForgotten(record);
        dropEntries(record, EventKind.EVICTED);
        insertPlaceholder(record);
        tree.removeFromIndex(record);
        if (pool.hasChildren(record)) {
            pool.transition(record, ControlWord.DELETED, 0);
        } else {
            free(record);
        }
    }

    /// Ends a record that is on disk alone, claimed and evicted by its order.
    void onEvictedFromDisk(int record) {
        leaveDisk(record, EventKind.EVICTED);
        leaveFront(record, EventKind.EVICTED);
        storeEvents.onForgotten(record);
        dropEntries(record, EventKind.EVICTED);
        tombstoneObject(record);
        writeBackQueue.onEvictedFromDisk(record);
        disks.clearAddress(record);
        tree.removeFromIndex(record);
        free(record);
    }

    /// Adds a tombstone for an evicted object. Its bytes stay on disk for a while, and the next opening reports
    /// them. For a block that is a gain; an object may have been put again meanwhile, so its copy must not count.
    void tombstoneObject(int record) {
        if (RecordFlags.isObject(pool.flags(record))) {
            writeBackQueue.tombstones().add(record, DiskAddress.diskOf(pool.diskAddress(record)));
        }
    }

    /// Drops a record and all below it, in every tier, and earlier copies of its blocks that disks may have.
    ///
    /// @param cause [EventKind#DROPPED] or [EventKind#QUOTA]
    /// @return known records among them
    int drop(int root, EventKind cause) {
        tree.forEachDescendant(root, record -> {
            if (stateOf(record) != ControlWord.DELETED && !RecordFlags.isObject(pool.flags(record))) {
                writeBackQueue.tombstones().addOnOtherDisks(record, disks.disks());
            }
        });
        return markDeleted(root, cause);
    }

    /// Ends a record and all below it, in every tier.
    ///
    /// @return known records among them
    int markDeleted(int root, EventKind cause) {
        int above = pool.parent(root);
        int dropped = markSubtreeDeleted(root, cause);
        reap(above);
        return dropped;
    }

    /// As [#markDeleted], within a walk from below: the walk comes to the parent by itself, so that is left where
    /// it is.
    int markSubtreeDeleted(int root, EventKind cause) {
        boolean dropped = cause == EventKind.DROPPED || cause == EventKind.QUOTA;
        int[] ended = {0};
        tree.forEachDescendant(root, record -> {
            boolean lastCopy = RecordFlags.isObject(pool.flags(record)) && pool.diskAddress(record) != NONE;
            if (dropped || (lastCopy && cause == EventKind.EVICTED)) {
                recoveryExclusions.addDropped(pool.keyHi(record), pool.keyLo(record));
            }
            ended[0] += markOneDeleted(record, cause) ? 1 : 0;
        });
        return ended[0];
    }

    /// Ends one record of a walk from below, and frees no other. A deleted parent, to which records reported by a
    /// disk may have been attached, is still to be visited.
    private boolean markOneDeleted(int record, EventKind cause) {
        int before = stateOf(record);
        if (before == ControlWord.DELETED) {
            reapOne(record);
            return false;
        }
        if (before == ControlWord.SEALED) {
            policyOf(record).forget(record);
            storeEvents.onRemoved(record, cause, TierKind.HOST);
        } else if (before == ControlWord.ON_DISK) {
            disks.order(record).forget(record);
            if (cause == EventKind.EVICTED) {
                writeBackQueue.onEvictedFromDisk(record);
            }
        }
        boolean known = ControlWord.isKnown(before);
        if (known) {
            leaveFront(record, cause);
            storeEvents.onForgotten(record);
        }
        pool.transition(record, ControlWord.DELETED, 0);
        if (pool.diskAddress(record) != NONE) {
            if (known) {
                leaveDisk(record, cause);
            }
            boolean buried = cause != EventKind.EVICTED || RecordFlags.isObject(pool.flags(record));
            if (buried && cause != EventKind.REPLACED) {
                writeBackQueue.tombstones().add(record, DiskAddress.diskOf(pool.diskAddress(record)));
            }
            disks.clearAddress(record);
        }
        writeBackQueue.onDeleting(record, known && cause != EventKind.REPLACED);
        tree.removeFromIndex(record);
        dropEntries(record, cause);
        reapOne(record);
        return known;
    }

    /// A block goes, and the entries of windows and states that belong to it with it.
    private void dropEntries(int record, EventKind cause) {
        int flags = pool.flags(record);
        List<EntryGroup> groups =
                namespaceRegistry.byId(RecordFlags.namespaceId(flags)).groups();
        if (groups.isEmpty() || RecordFlags.isObject(flags)) {
            return;
        }
        int depth = pool.depth(record);
        for (EntryGroup group : groups) {
            if (group.isBehind(depth)) {
                long hi = group.keyHi(pool.keyHi(record));
                long lo = group.keyLo(pool.keyLo(record));
                boolean isEnded = cause != EventKind.EVICTED;
                if (isEnded) {
                    recoveryExclusions.addDropped(hi, lo);
                }
                int entry = tree.findAny(hi, lo);
                if (entry != NONE && isEnded) {
                    drop(entry, cause);
                } else if (entry != NONE) {
                    markDeleted(entry, cause);
                }
            }
        }
    }

    /// Removes a writer's or a load's pin.
    void release(int record) {
        if (pool.unpin(record)) {
            reap(record);
        }
    }

    /// Frees a deleted record, and deleted parents after it, as far as neither pins nor children hold them.
    void reap(int record) {
        int at = record;
        while (at != NONE && isReapable(at)) {
            at = free(at);
        }
    }

    /// Frees a deleted record that nothing holds, and none above it.
    void reapOne(int record) {
        if (isReapable(record)) {
            free(record);
        }
    }

    private boolean isReapable(int record) {
        long control = pool.control(record);
        return ControlWord.state(control) == ControlWord.DELETED
                && ControlWord.pins(control) == 0
                && !pool.hasChildren(record);
    }

    private int free(int record) {
        if (RecordFlags.isPrefetch(pool.flags(record))) {
            prefetchTracker.onSlotReleased(record);
        }
        expiredBlocks.remove(record);
        int page = pool.hostPage(record);
        int before = objectLinks.onSlotReleased(record);
        if (page != SlabPool.NONE) {
            shares.onFreed(record);
            pool.hostPage(record, NONE);
            tree.removeResident(record);
        }
        int parent = tree.remove(record);
        releaseSlots(page);
        notifyIfLeaf(parent);
        notifyIfLeaf(before);
        return parent;
    }

    /// Cancels the reservation of a record that got no slot.
    void cancelReservation(int record) {
        tree.removeFromIndex(record);
        tree.removeResident(record);
        int before = objectLinks.onSlotReleased(record);
        notifyIfLeaf(tree.remove(record));
        notifyIfLeaf(before);
    }

    /// A disk has written or lost a copy of a record.
    void onCopyChanged(int record) {
        if (stateOf(record) == ControlWord.SEALED) {
            policyOf(record).onCopyChanged(record);
        }
    }

    /// Keeps the records that disks have reported below one that goes before its own copy was reported: a
    /// PLACEHOLDER takes its place, as if it had never been there. A record without a copy leaves the index.
    private void insertPlaceholder(int record) {
        if (pool.diskAddress(record) != NONE || pool.diskChildren(record) == 0) {
            return;
        }
        NewRecordFields unknown = new NewRecordFields(
                pool.keyHi(record),
                pool.keyLo(record),
                NONE,
                pool.depth(record),
                RecordFlags.ofBlock(RecordFlags.namespaceId(pool.flags(record))),
                0,
                0,
                NONE);
        int placeholder = tree.insert(unknown, ControlWord.PLACEHOLDER, 0);
        if (placeholder != NONE) {
            tree.forEachChild(record, child -> {
                if (stateOf(child) == ControlWord.ORPHAN) {
                    tree.reparent(child, placeholder);
                }
            });
        }
    }

    /// A block or object was used, in whatever tier: it is neither dead nor fresh any more.
    void onUsed(int record) {
        expiredBlocks.onUsed(record);
        if (RecordFlags.has(pool.flags(record), RecordFlags.FRESH)) {
            pool.setFlags(record, RecordFlags.FRESH, false);
        }
    }

    /// Makes readers take an object after another from now on, as far as [ObjectLinks] permits.
    ///
    /// @param record or -1
    /// @param earlier or -1 for none
    /// @return whether it is linked
    boolean linkObject(int record, int earlier) {
        if (record == NONE || pool.hostPage(record) == NONE || !RecordFlags.isObject(pool.flags(record))) {
            return false;
        }
        if (objectLinks.predecessor(record) == earlier) {
            return true;
        }
        notifyIfLeaf(objectLinks.unlink(record));
        if (!objectLinks.link(record, earlier)) {
            return earlier == NONE;
        }
        onObjectUsed(record);
        return true;
    }

    /// An object was used: its reader has continued from the one before it.
    void onObjectUsed(int record) {
        int before = objectLinks.predecessor(record);
        if (before != NONE && stateOf(before) == ControlWord.SEALED) {
            policyOf(before).onContinued(before);
        }
    }

    /// Notifies the policy of a record that may have become a leaf of its tier.
    void notifyIfLeaf(int record) {
        if (record == NONE) {
            return;
        }
        int state = stateOf(record);
        if (state == ControlWord.SEALED && objectLinks.residentChildren(record) == 0) {
            policyOf(record).onBecameLeaf(record);
        } else if (state == ControlWord.ON_DISK && !pool.hasChildren(record)) {
            disks.order(record).onBecameLeaf(record);
        }
    }

    /// Frees a list of slots.
    void releaseSlots(int first) {
        int page = first;
        while (page != SlabPool.NONE) {
            int next = slabs.next(page);
            slabs.release(page);
            page = next;
        }
    }

    /// The policy that orders a record's slot.
    ///
    /// @param record has a slot: one that is on disk alone, or being loaded without one, belongs to none
    EvictionPolicy policyOf(int record) {
        return policies.getOrCreate(slabs.classId(pool.hostPage(record)), shares.group(record));
    }

    int stateOf(int record) {
        return ControlWord.state(pool.control(record));
    }

    /// A record's copy was written or found.
    ///
    /// @return false when it may not count, because the block above is not on disk
    boolean addCopy(int record, long address, int checksum) {
        if (!disks.allowsChildren(pool.parent(record))) {
            return false;
        }
        disks.setAddress(record, address, checksum);
        pool.setFlags(record, RecordFlags.USED_ON_DISK, false);
        onCopyChanged(record);
        storeEvents.onStored(record, kindOf(record));
        connectDescendants(record);
        return true;
    }

    /// Returns whether the copy below host memory is on a disk, and not in the memory of a device.
    boolean isOnDisk(int record) {
        return disks.isOnDisk(pool.diskAddress(record));
    }

    private TierKind kindOf(int record) {
        return isOnDisk(record) ? TierKind.DISK : TierKind.DEVICE;
    }

    private void leaveDisk(int record, EventKind cause) {
        storeEvents.onRemoved(record, cause, kindOf(record));
    }

    /// A copy in front of the disks does not count any longer, if there is one: it is gone, or the record is about
    /// to be forgotten.
    void leaveFront(int record, EventKind cause) {
        if (disks.frontAddress(record) != NONE) {
            disks.clearFrontAddress(record);
            storeEvents.onRemoved(record, cause, TierKind.DEVICE);
        }
    }

    /// Makes records found below this one findable, now that it is on disk.
    void connectDescendants(int record) {
        if (!pool.hasChildren(record)) {
            return;
        }
        ArrayDeque<Integer> ready = new ArrayDeque<>();
        ready.add(record);
        while (!ready.isEmpty()) {
            tree.forEachChild(ready.poll(), child -> {
                if (stateOf(child) == ControlWord.ORPHAN) {
                    connect(child);
                    ready.add(child);
                }
            });
        }
    }

    /// Makes a record findable that was found on disk with all above it.
    void connect(int record) {
        pool.transition(record, ControlWord.ON_DISK, 0);
        policies.state().clearLabel(record);
        writeBackQueue.onRecovered(record);
        disks.order(record).addRecovered(record);
        storeEvents.onKnown(record);
        storeEvents.onStored(record, TierKind.DISK);
    }

    /// Forgets the copies on disk of a record and of all below it.
    void forgetSubtree(int root) {
        int above = pool.parent(root);
        tree.forEachDescendant(root, record -> {
            if (pool.diskAddress(record) != NONE) {
                forgetOne(record);
            } else {
                reapOne(record);
            }
        });
        reap(above);
    }

    private void forgetOne(int record) {
        int state = stateOf(record);
        if (state == ControlWord.ON_DISK || state == ControlWord.ORPHAN) {
            markSubtreeDeleted(record, EventKind.EVICTED);
        } else {
            leaveDisk(record, EventKind.EVICTED);
            tombstoneObject(record);
            disks.clearAddress(record);
            onCopyChanged(record);
        }
    }

    /// Forgets the copies of a disk, in a run of record numbers.
    void forgetDisk(int disk, int from, int to) {
        for (int record = from; record < to; record++) {
            boolean there = stateOf(record) != ControlWord.FREE
                    && pool.diskAddress(record) != NONE
                    && DiskAddress.diskOf(pool.diskAddress(record)) == disk;
            if (there) {
                forgetSubtree(record);
            }
        }
    }

    /// Evicts the least recently used records of the group with most bytes for its weight, while a disk holds more
    /// than its limit. On a ranked disk it spares those that the host tier's policy ranks higher than others.
    void trim(int disk) {
        DiskUsage account = disks.usage(disk);
        while (account.isOverLimit()) {
            int victim = account.evictUnlessExempt(this::claimOnDisk, this::rank);
            if (victim == NONE) {
                return;
            }
            onEvictedFromDisk(victim);
        }
    }

    /// Evicts one record that is on disk alone, whichever disk that is, to free the record itself.
    boolean freeRecordOnDisk(int keep) {
        for (int disk = 0; disk < disks.disks(); disk++) {
            int victim = disks.usage(disk).evict(record -> record != keep && claimOnDisk(record));
            if (victim != NONE) {
                onEvictedFromDisk(victim);
                return true;
            }
        }
        return false;
    }

    /// Returns the record whose copy lies at an address, or -1.
    int recordAt(long keyHi, long keyLo, long address) {
        for (int at = pool.bucketHead(keyLo); at != NONE; at = pool.bucketNext(at)) {
            if (pool.keyLo(at) == keyLo && pool.keyHi(at) == keyHi && pool.diskAddress(at) == address) {
                return at;
            }
        }
        return NONE;
    }

    /// Collects the live copies in a part of a span that is about to be reclaimed.
    void collectLive(int disk, ReclaimCandidates offer, int from, int to, List<LiveCopy> live) {
        boolean ranked = disks.usage(disk).isRanked();
        for (int i = from; i < to; i++) {
            int record = recordAt(offer.keyHi(i), offer.keyLo(i), DiskAddress.of(disk, offer.address(i)));
            if (record != NONE) {
                boolean within = disks.usage(disk).isWithinShare(shares.group(record));
                double rank = ranked ? rank(record) : 0;
                live.add(new LiveCopy(i, record, within, isInUse(record), rank, keepingScore(record)));
            }
        }
    }

    /// Forgets a copy that was not kept, if it still counts, with all below it.
    void discard(int disk, ReclaimCandidates offer, LiveCopy refused) {
        if (pool.diskAddress(refused.record) == DiskAddress.of(disk, offer.address(refused.index))) {
            forgetSubtree(refused.record);
        }
    }

    /// A copy that counts.
    ///
    /// @param index in the offer
    /// @param isWithinShare whether its group has no more on this disk than its share: such copies are kept first
    /// @param isInUse whether it is worth another write
    /// @param rank rank that the host tier's policy gives it on a ranked disk, 0 on others
    /// @param score order among those of one rank: first records with blocks below them, heads before tails, then
    ///     by last use
    record LiveCopy(int index, int record, boolean isWithinShare, boolean isInUse, double rank, long score) {}

    /// Returns whether a copy is in use: it is worth another write, or is being loaded.
    private boolean isInUse(int record) {
        int state = stateOf(record);
        boolean loading = state == ControlWord.LOADING || state == ControlWord.LOADED;
        return writeBackQueue.isWorthKeeping(record) || loading;
    }

    private long keepingScore(int record) {
        if (pool.hasChildren(record)) {
            return Long.MAX_VALUE - pool.depth(record);
        }
        boolean alone = stateOf(record) == ControlWord.ON_DISK;
        return alone ? disks.order(record).lastUse(record) : Long.MAX_VALUE / 2;
    }

    /// Returns the score of a block by its policy, which is [Double#NaN] for policies without scores; 0 when the
    /// block is not in the store.
    double score(long keyHi, long keyLo) {
        int record = find(keyHi, keyLo);
        return record == NONE ? 0 : policyOfAnyTier(record).score(record);
    }

    /// Returns the rank of a record that lies on a disk, to order several: 0 for all under a policy without
    /// scores, and for [ExpiredBlocks]. A record that is being read is in use, and ranks above all others.
    double rank(int record) {
        int state = stateOf(record);
        if (state != ControlWord.SEALED && state != ControlWord.ON_DISK) {
            return Double.POSITIVE_INFINITY;
        }
        if (expiredBlocks.contains(record)) {
            return 0;
        }
        double worth = RecordFlags.isObject(pool.flags(record))
                ? 0
                : policyOfAnyTier(record).score(record);
        double weight = state == ControlWord.ON_DISK ? policies.state().weight(record) : 1; // else the policy's matter
        return Double.isNaN(worth) ? 0 : weight * worth;
    }

    /// A block was used; uses of those above it are reported on their own.
    void onUsedOnDisk(long keyHi, long keyLo) {
        int record = find(keyHi, keyLo);
        if (record == NONE) {
            return;
        }
        onUsed(record);
        disks.onUsedInFront(record);
        if (stateOf(record) == ControlWord.SEALED) {
            policyOf(record).touch(record);
        } else {
            disks.order(record).touch(record);
            policyOfAnyTier(record).onUsedElsewhere(record);
        }
        writeBackQueue.onUsed(record);
    }

    private int find(long keyHi, long keyLo) {
        int record = tree.findAny(keyHi, keyLo);
        int state = record == NONE ? ControlWord.FREE : stateOf(record);
        boolean here = state == ControlWord.SEALED || state == ControlWord.ON_DISK;
        return here && !RecordFlags.isObject(pool.flags(record)) ? record : NONE;
    }

    private EvictionPolicy policyOfAnyTier(int record) {
        if (stateOf(record) == ControlWord.SEALED) {
            return policyOf(record);
        }
        NamespaceEntry namespace = namespaceRegistry.byId(RecordFlags.namespaceId(pool.flags(record)));
        return policies.getOrCreate(namespace.slotClass().id(), shares.group(record));
    }

    /// Blocks hinted to be dead: their session ended or moved on, their TTL expired, or a caller said that they
    /// will not be used again.
    ///
    /// No record in it has a live block below it. A use takes a record and those above it out again; so does a new
    /// block below, and an announced request.
    ///
    /// **Threads.** Owned by the store's lock.
    static final class ExpiredBlocks {

        /// Most children that are checked: a block with more is one that others have continued from.
        private static final int MAX_CHILDREN = 64;

        private final RecordPool pool;
        private final BlockTree tree;
        private long count;

        ExpiredBlocks(RecordPool pool, BlockTree tree) {
            this.pool = pool;
            this.tree = tree;
        }

        boolean contains(int record) {
            return count > 0 && RecordFlags.has(pool.flags(record), RecordFlags.EXPIRED);
        }

        /// Returns whether any record below this one is not marked dead, in whatever tier.
        boolean hasLiveChildren(int record) {
            return pool.hasChildren(record) && !tree.allChildrenMatch(record, MAX_CHILDREN, this::isExpiredOrDeleted);
        }

        private boolean isExpiredOrDeleted(int child) {
            return contains(child) || ControlWord.state(pool.control(child)) == ControlWord.DELETED;
        }

        /// Marks a record as dead.
        void add(int record) {
            if (!contains(record)) {
                pool.setFlags(record, RecordFlags.EXPIRED, true);
                count++;
            }
        }

        /// A record is used, or announced, or a block was put below it: it and those above it are live again.
        void onUsed(int record) {
            boolean first = true;
            for (int at = record; count > 0 && at != NONE && (first || contains(at)); at = pool.parent(at)) {
                remove(at);
                first = false;
            }
        }

        /// A record's number is about to be used for another.
        void remove(int record) {
            if (contains(record)) {
                pool.setFlags(record, RecordFlags.EXPIRED, false);
                count--;
            }
        }

        /// Checks the count.
        void validate() {
            long found = 0;
            for (int record = 0; record < pool.highWaterMark(); record++) {
                boolean marked = ControlWord.state(pool.control(record)) != ControlWord.FREE
                        && RecordFlags.has(pool.flags(record), RecordFlags.EXPIRED);
                found += marked ? 1 : 0;
            }
            if (found != count) {
                throw new AssertionError(found + " records are over, counted as " + count);
            }
        }
    }
}
