package io.kvcache.core.store;

import static io.kvcache.core.policy.RecordView.NONE;

import io.kvcache.core.tier.Tombstone;
import io.kvcache.core.tree.DiskAddress;
import io.kvcache.core.tree.RecordPool;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/// What each disk is to be told that it has and that does not count any longer, before anything else is
/// written there.
///
/// A disk that is out is told when it is back. What callers drop meanwhile may be more than is worth
/// remembering key by key; then it is remembered by namespace, which loses what the disk has of those,
/// and nothing else.
///
/// **Threads.** Owned by the store's lock.
final class PendingTombstones {

    /// Remembered for a disk that cannot be told: some MiB of heap.
    static final int MAX_KEPT = 1 << 16;

    private final RecordPool pool;
    private final List<ArrayDeque<Tombstone>> waiting = new ArrayList<>();
    private final Map<Integer, BitSet> olderCopies = new HashMap<>();

    /// By resident record: the disks that hold the last durable value of its key, one bit each. They are told of the
    /// burial once the record itself is written, or has gone without.
    private final Map<Integer, Integer> deferred = new LinkedHashMap<>();

    PendingTombstones(RecordPool pool) {
        this.pool = pool;
    }

    private ArrayDeque<Tombstone> queueOf(int disk) {
        while (waiting.size() <= disk) {
            waiting.add(new ArrayDeque<>());
        }
        return waiting.get(disk);
    }

    /// Copies of a record's key on a disk count no longer.
    void add(int record, int disk) {
        int namespaceId = RecordFlags.namespaceId(pool.flags(record));
        queueOf(disk).add(new Tombstone(pool.keyHi(record), pool.keyLo(record), namespaceId, false));
    }

    /// A block is about to be dropped: older copies of it may lie on other disks than the one that has it.
    void addOnOtherDisks(int record, int disks) {
        int has = pool.diskAddress(record) == NONE ? NONE : DiskAddress.diskOf(pool.diskAddress(record));
        for (int disk = 0; disk < disks; disk++) {
            if (disk != has) {
                add(record, disk);
            }
        }
    }

    /// What was dropped may lie on any disk, also where the store knows nothing of it: evicted from
    /// there, its bytes not yet overwritten.
    void addOnAllDisks(Tombstone burial, int disks) {
        for (int disk = 0; disk < disks; disk++) {
            queueOf(disk).add(burial);
        }
    }

    /// A disk has told of a copy that does not count, or could not bury one. While a newer one is being
    /// written it is not known to which disk, and a burial behind it on the same disk would be taken to
    /// mean both; so [#onWritten] sees to it.
    ///
    /// @param present record of that key, or none
    void addForOlderCopy(Tombstone burial, int present, int disk) {
        if (present != NONE && RecordFlags.has(pool.flags(present), RecordFlags.WRITING)) {
            olderCopies.computeIfAbsent(present, _ -> new BitSet()).set(disk);
        } else if (present == NONE
                || pool.diskAddress(present) == NONE
                || DiskAddress.diskOf(pool.diskAddress(present)) != disk) {
            queueOf(disk).add(burial);
        }
    }

    /// A record's copy was written.
    ///
    /// @param on the disk, or -1 when it was not
    void onWritten(int record, int on) {
        BitSet copies = olderCopies.remove(record);
        if (copies != null) {
            copies.stream().filter(disk -> disk != on).forEach(disk -> add(record, disk));
        }
    }

    /// A record has taken the place of one whose copy lies on a disk. Until the record is written, that copy is what a
    /// restart finds.
    void addDeferred(int record, int disk) {
        if (deferred.size() < MAX_KEPT || deferred.containsKey(record)) {
            deferred.merge(record, 1 << disk, (before, more) -> before | more);
        } else {
            add(record, disk);
        }
    }

    /// A record has taken the place of another: what that one outlived, it does now.
    void inheritDeferred(int record, int older) {
        Integer copies = deferred.remove(older);
        if (copies != null) {
            deferred.merge(record, copies, (before, more) -> before | more);
        }
    }

    /// A record was written, or nothing will write it any more: older copies do not count from now on. On the disk
    /// that has the record they are behind it in its log, and need no burial.
    ///
    /// @param on that disk, or -1
    void releaseDeferred(int record, int on) {
        Integer copies = deferred.isEmpty() ? null : deferred.remove(record);
        for (int disk = 0; copies != null && copies >>> disk != 0; disk++) {
            if ((copies >>> disk & 1) != 0 && disk != on) {
                add(record, disk);
            }
        }
    }

    /// Records whose key a disk has an older copy of.
    Set<Integer> deferredRecords() {
        return deferred.keySet();
    }

    /// Puts a burial before all others: a disk did not take it, or did not write it, and nothing newer
    /// that it would mean too.
    void addFirst(Tombstone burial, int disk) {
        queueOf(disk).addFirst(burial);
    }

    /// Takes what a disk is to be told next, or null.
    @Nullable
    Tombstone poll(int disk) {
        return queueOf(disk).poll();
    }

    boolean isEmpty(int disk) {
        return queueOf(disk).isEmpty();
    }

    /// What waits for a disk.
    Iterable<Tombstone> pending(int disk) {
        return Collections.unmodifiableCollection(queueOf(disk));
    }

    /// A disk cannot be told now, and tells anew what it has before it can.
    void compact(int disk) {
        ArrayDeque<Tombstone> kept = queueOf(disk);
        if (kept.size() > MAX_KEPT) {
            Set<Tombstone> namespaces = new LinkedHashSet<>();
            kept.forEach(each -> namespaces.add(Tombstone.of(each.namespaceId())));
            kept.clear();
            kept.addAll(namespaces);
        }
    }
}
