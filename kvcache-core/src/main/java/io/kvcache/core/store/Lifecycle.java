package io.kvcache.core.store;

import static io.kvcache.core.policy.RecordView.NONE;

import io.kvcache.core.SealOutcome;
import io.kvcache.core.event.EventKind;
import io.kvcache.core.event.TierKind;
import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.policy.EvictionPolicy;
import io.kvcache.core.tree.BlockTree;
import io.kvcache.core.tree.Control;
import io.kvcache.core.tree.DiskNumber;
import io.kvcache.core.tree.RecordPool;
import java.util.ArrayDeque;

/// What a record goes through between being reserved and being freed, and everything that has to be told of
/// it: index, policy, events, slots, parent.
///
/// A record that is dropped while somebody holds a pin on it, or on a block below it, becomes DOOMED: out
/// of the index, so that nobody finds it again, but in its place until the last pin and the last child
/// are gone. A writer counts as one pin, as does a load.
///
/// A record with a place on disk stays when its slot goes: it is ON_DISK then.
///
/// **Threads.** Owned by the store's lock.
final class Lifecycle {

    private final RecordPool pool;
    private final BlockTree tree;
    private final SlabPool slabs;
    private final ClassPolicies policies;
    private final DiskLedger disks;
    private final Offload offload;
    private final Reports reports;
    private final Pins pins;
    private final Overtaken overtaken;
    private final StandIns standIns;
    private final Shares shares;
    private final ObjectChains chains;
    private final Prefetched prefetched;
    private final Over over;

    Lifecycle(StoreParts parts) {
        pool = parts.pool();
        tree = parts.tree();
        slabs = parts.slabs();
        policies = parts.policies();
        disks = parts.disks();
        offload = parts.offload();
        reports = parts.reports();
        pins = parts.pins();
        overtaken = parts.overtaken();
        standIns = new StandIns(pool, tree);
        shares = parts.shares();
        chains = parts.chains();
        prefetched = parts.prefetched();
        over = parts.over();
    }

    /// Claims an unpinned sealed record for eviction.
    boolean claim(int record) {
        return pins.claim(record, Control.SEALED);
    }

    /// An object has the same bytes as one that is on disk, which it is about to replace: the copy is its own from now
    /// on.
    void takeCopy(int record, int older) {
        long place = pool.diskPlace(older);
        int checksum = pool.checksum(older);
        disks.unplace(older);
        disks.place(record, place, checksum);
    }

    /// A writer or a load has filled a record's slot: makes it findable there, or leaves that to its
    /// parent's.
    ///
    /// @param older the known record of the same key that this one replaces, or -1; readers find one or the
    ///     other at any moment
    SealOutcome seal(int record, int older) {
        int parent = pool.parent(record);
        int above = parent == NONE ? Control.SEALED : state(parent);
        if (above == Control.SEALED) {
            publishWithChildren(record, older);
            return SealOutcome.SEALED;
        }
        boolean filling = above == Control.RESERVED
                || above == Control.FILLED
                || above == Control.LOADING
                || above == Control.LOADED;
        if (filling) {
            pool.become(record, state(record) == Control.LOADING ? Control.LOADED : Control.FILLED, -1);
            return SealOutcome.PENDING;
        }
        return giveUp(record) ? SealOutcome.SEALED : SealOutcome.DROPPED;
    }

    /// A record has become known before its slot is filled: a disk has a copy.
    void entered(int record) {
        reports.entered(record);
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
        tree.eachChild(record, child -> {
            if (state(child) == Control.FILLED || state(child) == Control.LOADED) {
                publish(child, NONE, 0);
                ready.add(child);
            }
        });
    }

    /// Events say first that the older one has gone: they speak of keys, and of this one the last word is
    /// STORED.
    private void publish(int record, int older, int pinsAdded) {
        boolean known = Control.known(state(record));
        pool.become(record, Control.SEALED, pinsAdded);
        if (older != NONE) {
            offload.succeeds(record, older);
            doom(older, EventKind.REPLACED);
        }
        if (!known) {
            reports.entered(record);
        }
        over.used(record);
        if (prefetched.cameUnused(record)) {
            policyOf(record).onPrefetched(record);
        } else {
            policyOf(record).admit(record);
        }
        reports.stored(record, TierKind.HOST);
        if (pool.diskPlace(record) != NONE && older != NONE) {
            copied(record);
        }
        if (older != NONE) {
            offload.storedAgain(record);
        } else if (!known) {
            offload.stored(record);
        } else if (!prefetched.has(record)) { // a guess is used when it is read, if it ever is
            offload.used(record);
        }
    }

    /// The slot of a record could not be filled, by a writer or by a load: a copy on disk stays as it was,
    /// with no copy the record is dropped. What has waited for it falls back with it.
    ///
    /// @return whether it is on disk still
    boolean giveUp(int record) {
        if (state(record) != Control.LOADING || pool.diskPlace(record) == NONE) {
            abandon(record);
            letGo(record);
            return false;
        }
        toDisk(record, -1);
        tree.eachBelow(record, below -> {
            if (state(below) == Control.LOADED && pool.diskPlace(below) != NONE) {
                toDisk(below, 0);
            } else if (state(below) == Control.LOADED || state(below) == Control.FILLED) {
                abandonBelow(below);
            } else {
                freeIfDead(below);
            }
        });
        return true;
    }

    /// Drops a record that nobody fills, and what was put below it; what a disk has told of below it stays.
    private void abandon(int root) {
        int above = pool.parent(root);
        abandonBelow(root);
        bury(above);
    }

    private void abandonBelow(int root) {
        tree.eachBelow(root, record -> {
            if (state(record) != Control.DETACHED) {
                standIns.before(record);
                doomOne(record, EventKind.DROPPED);
            }
        });
    }

    /// A record's slot goes; its copy on disk stays.
    private void toDisk(int record, int pinsAdded) {
        int page = pool.hostPage(record);
        prefetched.left(record);
        shares.gave(record);
        pool.hostPage(record, NONE);
        pool.flag(record, Identity.FRESH, false); // who needs it again, read or computed, asks anew
        pool.renew(record, Control.ON_DISK, pinsAdded);
        int parent = tree.depart(record);
        int before = chains.depart(record);
        releaseSlots(page);
        disks.order(record).admit(record);
        if (over.has(record)) {
            disks.order(record).demote(record);
        }
        expose(parent);
        expose(before);
    }

    /// Ends the residence of a record that [#claim] has claimed and the policy has let go.
    void evicted(int record) {
        reports.removed(record, EventKind.EVICTED, TierKind.HOST);
        if (pool.diskPlace(record) != NONE) {
            toDisk(record, 0);
            return;
        }
        offload.evicted(record);
        reports.left(record);
        standIns.before(record);
        tree.unindex(record);
        if (pool.hasChildren(record)) {
            pool.become(record, Control.DOOMED, 0);
        } else {
            free(record);
        }
    }

    /// Ends what a disk alone had, claimed and let go by its order.
    void evictedFromDisk(int record) {
        reports.removed(record, EventKind.EVICTED, TierKind.DISK);
        reports.left(record);
        buryObject(record);
        offload.evictedFromDisk(record);
        disks.unplace(record);
        tree.unindex(record);
        free(record);
    }

    /// The bytes of what a disk has forgotten stay there for a while, and are told at the next opening.
    /// For a block that is a gain; an object may have been put anew meanwhile, so its copy must not
    /// count.
    void buryObject(int record) {
        if (Identity.isObject(pool.identity(record))) {
            offload.burials().bury(record, DiskNumber.of(pool.diskPlace(record)));
        }
    }

    /// Drops a record and all below it, in every tier, and what disks may have of the blocks among them from
    /// before.
    ///
    /// @param cause [EventKind#DROPPED] or [EventKind#QUOTA]
    /// @return known records among them
    int drop(int root, EventKind cause) {
        tree.eachBelow(root, record -> {
            if (state(record) != Control.DOOMED && !Identity.isObject(pool.identity(record))) {
                offload.burials().buryElsewhere(record, disks.disks());
            }
        });
        return doom(root, cause);
    }

    /// Ends a record and all below it, in every tier.
    ///
    /// @return known records among them
    int doom(int root, EventKind cause) {
        int above = pool.parent(root);
        int dropped = doomBelow(root, cause);
        bury(above);
        return dropped;
    }

    /// The same within a walk from below, which comes to the parent by itself: that one is left where it is.
    int doomBelow(int root, EventKind cause) {
        boolean dropped = cause == EventKind.DROPPED || cause == EventKind.QUOTA;
        int[] ended = {0};
        tree.eachBelow(root, record -> {
            boolean lastCopy = Identity.isObject(pool.identity(record)) && pool.diskPlace(record) != NONE;
            if (dropped || (lastCopy && cause == EventKind.EVICTED)) {
                overtaken.dropped(pool.keyHi(record), pool.keyLo(record));
            }
            ended[0] += doomOne(record, cause) ? 1 : 0;
        });
        return ended[0];
    }

    /// Ends one record of a walk from below, and frees no other: a doomed parent, which may have had what a disk
    /// told of below it, is still to be visited.
    private boolean doomOne(int record, EventKind cause) {
        int before = state(record);
        if (before == Control.DOOMED) {
            freeIfDead(record);
            return false;
        }
        if (before == Control.SEALED) {
            policyOf(record).forget(record);
            reports.removed(record, cause, TierKind.HOST);
        } else if (before == Control.ON_DISK) {
            disks.order(record).forget(record);
            if (cause == EventKind.EVICTED) {
                offload.evictedFromDisk(record);
            }
        }
        boolean known = Control.known(before);
        if (known) {
            reports.left(record);
        }
        pool.become(record, Control.DOOMED, 0);
        if (pool.diskPlace(record) != NONE) {
            if (known) {
                reports.removed(record, cause, TierKind.DISK);
            }
            boolean buried = cause != EventKind.EVICTED || Identity.isObject(pool.identity(record));
            if (buried && cause != EventKind.REPLACED) {
                offload.burials().bury(record, DiskNumber.of(pool.diskPlace(record)));
            }
            disks.unplace(record);
        }
        offload.ending(record, known && cause != EventKind.REPLACED);
        tree.unindex(record);
        freeIfDead(record);
        return known;
    }

    /// Takes a writer's or a load's pin away.
    void letGo(int record) {
        if (pins.unpin(record)) {
            bury(record);
        }
    }

    /// Frees a doomed record, and doomed parents after it, as far as neither pins nor children hold them.
    void bury(int record) {
        int at = record;
        while (at != NONE && dead(at)) {
            at = free(at);
        }
    }

    /// Frees a doomed record that nothing holds, and none above it.
    void freeIfDead(int record) {
        if (dead(record)) {
            free(record);
        }
    }

    private boolean dead(int record) {
        long control = pool.control(record);
        return Control.state(control) == Control.DOOMED && Control.pins(control) == 0 && !pool.hasChildren(record);
    }

    private int free(int record) {
        prefetched.left(record);
        over.left(record);
        int page = pool.hostPage(record);
        int before = chains.depart(record);
        if (page != SlabPool.NONE) {
            shares.gave(record);
            pool.hostPage(record, NONE);
            tree.depart(record);
        }
        int parent = tree.remove(record);
        releaseSlots(page);
        expose(parent);
        expose(before);
        return parent;
    }

    /// Takes back a record that was reserved and got no slot.
    void withdraw(int record) {
        tree.unindex(record);
        tree.depart(record);
        int before = chains.depart(record);
        expose(tree.remove(record));
        expose(before);
    }

    /// A disk has got a copy of a record, or has lost it.
    void copied(int record) {
        if (state(record) == Control.SEALED) {
            policyOf(record).onCopyChanged(record);
        }
    }

    /// Tells the policy of a record that may have become a leaf of its tier.
    void expose(int record) {
        if (record == NONE) {
            return;
        }
        int state = state(record);
        if (state == Control.SEALED && chains.residentChildren(record) == 0) {
            policyOf(record).onBecameLeaf(record);
        } else if (state == Control.ON_DISK && !pool.hasChildren(record)) {
            disks.order(record).onBecameLeaf(record);
        }
    }

    /// Gives back a list of slots.
    void releaseSlots(int first) {
        int page = first;
        while (page != SlabPool.NONE) {
            int next = slabs.next(page);
            slabs.release(page);
            page = next;
        }
    }

    EvictionPolicy policyOf(int record) {
        return policies.of(slabs.classId(pool.hostPage(record)), shares.group(record));
    }

    int state(int record) {
        return Control.state(pool.control(record));
    }
}
