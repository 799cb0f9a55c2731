package io.kvcache.core.store;

import static io.kvcache.core.policy.RecordView.NONE;

import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.core.tier.Tombstone;
import io.kvcache.core.tree.BlockTree;
import io.kvcache.core.tree.ControlWord;
import io.kvcache.core.tree.DiskAddress;
import io.kvcache.core.tree.RecordFlags;
import io.kvcache.core.tree.RecordPool;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/// Queue of the records to be written to disk, in their order.
///
/// A block is written after all blocks above it, so a reason to write it is a reason to write them too. A record
/// waits at most once. When too many bytes wait, new records are refused; they may be queued at a later use.
///
/// **Threads.** Owned by the store's lock.
final class WriteBackQueue {

    private static final int MAX_CHILDREN = 64;

    private final RecordPool pool;
    private final LongQueue waiting = new LongQueue();
    private final PendingTombstones pendingTombstones;
    private final WriteBackCounters counters = new WriteBackCounters();
    private final WriteAdmission writeAdmission;
    private @Nullable AdmissionKind admission;
    private boolean writable = true;
    private long maxWaitingBytes;
    private long maxRecordBytes;
    private final Map<Integer, Long> inFlight = new HashMap<>();

    /// Keys with a write in flight of a copy that does not count any longer. True if it needs a tombstone at once:
    /// it was dropped, not replaced.
    private final Map<BlockKey, Boolean> staleWrites = new HashMap<>();

    /// Places in the queue that a record has taken over from the one that it replaces.
    private final Map<Long, Long> replacements = new HashMap<>();

    private long waitingBytes;
    private long enqueued;
    private long flushTarget;
    private long unwritten;

    private final AncestorRewrites ancestorRewrites;
    private final BlockTree tree;

    WriteBackQueue(RecordPool pool, BlockTree tree, WriteAdmission writeAdmission) {
        this.tree = tree;
        this.pool = pool;
        this.writeAdmission = writeAdmission;
        ancestorRewrites = new AncestorRewrites(pool);
        pendingTombstones = new PendingTombstones(pool);
    }

    /// Starts admission.
    ///
    /// @param waitingLimit bytes that may wait
    /// @param eachLimit a larger block is never written, nor any block below it
    /// @param usesWorth saving by one use of a block in units of the cost of its write
    void start(AdmissionKind kind, long waitingLimit, long eachLimit, double usesWorth) {
        admission = kind;
        writeAdmission.start(kind, usesWorth);
        maxWaitingBytes = waitingLimit;
        maxRecordBytes = eachLimit;
    }

    /// Sets whether anything can be written at all; while not, no record waits.
    void setWritable(boolean can) {
        writable = can;
        while (!can && !waiting.isEmpty()) {
            long handle = resolveReplacement(waiting.peek());
            int record = (int) handle;
            removeFirst();
            if (ControlWord.generation(pool.control(record)) == (int) (handle >>> Integer.SIZE)) {
                onLeaving(record);
                unwritten++;
            }
        }
    }

    /// Returns the policy of admission.
    WriteAdmission writeAdmission() {
        return writeAdmission;
    }

    PendingTombstones tombstones() {
        return pendingTombstones;
    }

    WriteBackCounters counters() {
        return counters;
    }

    /// Returns how many records are being written.
    int inFlightCount() {
        return inFlight.size();
    }

    long waitingBytes() {
        return waitingBytes;
    }

    /// A record is about to be put.
    ///
    /// @param blocks of its prompt from this one on, or 0 when unknown
    void onPutStarted(int record, int blocks) {
        if (admission != null) {
            writeAdmission.onPutStarted(record, blocks);
        }
    }

    /// A record was sealed that was not known before.
    void onStored(int record) {
        if (admission == null) {
            return;
        }
        boolean worth = writeAdmission.onPut(record);
        if (pool.bytes(record) > maxRecordBytes) {
            counters.tooLarge++;
        } else if (worth) {
            admit(record);
        } else {
            counters.belowThreshold++;
        }
    }

    /// An object was sealed in place of another one, for which [#onReplacing] was called. Storing a key again
    /// counts as a use of it.
    void onReplaced(int record) {
        if (admission == null) {
            return;
        }
        boolean worth = writeAdmission.onReplaced(record);
        pool.setFlags(record, RecordFlags.USED_ON_DISK, true);
        if (settled(record)) {
            return;
        }
        if (pool.bytes(record) > maxRecordBytes) {
            counters.tooLarge++;
        } else if (worth) {
            admit(record);
        } else {
            counters.belowThreshold++;
        }
    }

    /// An object is about to replace another one. A restart finds the disk's copy of the older until the new one
    /// is written. So the new one is written no later than the older would have been: after a flush, no version
    /// from before it may come back.
    void onReplacing(int record, int older) {
        if (admission == null) {
            return;
        }
        writeAdmission.onReplacing(record, older);
        if (pool.diskAddress(older) != NONE) {
            pendingTombstones.addDeferred(record, DiskAddress.diskOf(pool.diskAddress(older)));
        }
        pendingTombstones.inheritDeferred(record, older);
        if (pool.bytes(record) > maxRecordBytes) {
            pendingTombstones.releaseDeferred(record, NONE);
        } else if (RecordFlags.has(pool.flags(older), RecordFlags.QUEUED)) {
            pool.setFlags(older, RecordFlags.QUEUED, false);
            pool.setFlags(record, RecordFlags.QUEUED, true);
            long more = pool.bytes(record) - pool.bytes(older);
            waitingBytes += more;
            writeAdmission.addWrittenBytes(more);
            replacements.put(handle(older), handle(record));
        }
    }

    /// A record was recovered from a disk. Its uses since it was written there are unknown.
    void onRecovered(int record) {
        writeAdmission.onRecovered(record);
        pool.setFlags(record, RecordFlags.USED_ON_DISK, true);
    }

    /// Returns whether callers must report a use for every ancestor, not just the block itself:
    /// [AdmissionKind#VALUE] counts the uses of each block.
    boolean countsAncestorUses() {
        return admission == AdmissionKind.VALUE;
    }

    /// A resident record was used, or one that was on disk alone has become resident.
    void onUsed(int record) {
        if (admission == null) {
            return;
        }
        boolean worth = writeAdmission.onUsed(record);
        pool.setFlags(record, RecordFlags.USED_ON_DISK, true);
        if (worth && pool.diskAddress(record) == NONE) {
            admit(record);
        }
    }

    /// Returns whether a copy on disk is worth another write, because its span is about to be reclaimed. Under
    /// [AdmissionKind#VALUE] it is when it was used since it was last written, which must happen anew until the
    /// next time. A copy in [ExpiredBlocks] never is.
    boolean isWorthKeeping(int record) {
        boolean worth = (!countsAncestorUses() || RecordFlags.has(pool.flags(record), RecordFlags.USED_ON_DISK))
                && !RecordFlags.has(pool.flags(record), RecordFlags.EXPIRED);
        pool.setFlags(record, RecordFlags.USED_ON_DISK, false);
        return worth;
    }

    /// A queued record is not worth a write any more. It stays in the queue while anything below it waits or is
    /// written, or if that cannot be seen at a glance. It also stays while anything waits for a flush, as the
    /// record may be part of that.
    void cancelWrite(int record) {
        int under = RecordFlags.QUEUED | RecordFlags.WRITING;
        if (RecordFlags.has(pool.flags(record), RecordFlags.QUEUED)
                && startedCount() >= flushTarget
                && tree.allChildrenMatch(record, MAX_CHILDREN, child -> !RecordFlags.has(pool.flags(child), under))) {
            pool.setFlags(record, RecordFlags.QUEUED, false);
            waitingBytes -= pool.bytes(record);
            writeAdmission.addWrittenBytes(-pool.bytes(record));
            counters.belowThreshold++;
        }
    }

    /// A caller has changed the weight of a record: a queued record that is not worth its write any more is not
    /// written.
    void onWeightChanged(int record) {
        if (countsAncestorUses() && !writeAdmission.isWorthWriting(record)) {
            cancelWrite(record);
        }
    }

    /// A record is about to leave host memory, or the store.
    void onLeaving(int record) {
        if (RecordFlags.has(pool.flags(record), RecordFlags.QUEUED)) {
            pool.setFlags(record, RecordFlags.QUEUED, false);
            waitingBytes -= pool.bytes(record);
            writeAdmission.addWrittenBytes(-pool.bytes(record));
            counters.evictedWhileQueued++;
        }
    }

    /// A record is about to end. While a copy of it is still being written, no other copy of its key is: a
    /// tombstone behind the first would apply to both.
    ///
    /// @param dropped whether it was known, and no newer record takes its place
    void onDeleting(int record, boolean dropped) {
        onLeaving(record);
        if (dropped) {
            pendingTombstones.releaseDeferred(record, NONE);
        }
        if (RecordFlags.has(pool.flags(record), RecordFlags.WRITING)) {
            staleWrites.merge(key(record), dropped, Boolean::logicalOr);
        } else if (dropped && !staleWrites.isEmpty()) {
            staleWrites.computeIfPresent(key(record), (_, _) -> true);
        }
    }

    /// A copy was written of a record that does not count any longer.
    ///
    /// @param replaced whether only newer objects ended it, see [#onWriteCompleted]
    /// @param successor the newest of them, or none
    void onStaleWrite(int record, int disk, boolean replaced, int successor) {
        if (successor != NONE) {
            pendingTombstones.releaseDeferred(successor, disk);
        }
        if (replaced && successor != NONE) {
            pendingTombstones.addDeferred(successor, disk);
        } else {
            pendingTombstones.add(record, disk);
        }
    }

    private BlockKey key(int record) {
        return new BlockKey(pool.keyHi(record), pool.keyLo(record));
    }

    /// A record was evicted that is on no disk. An older copy of its key must not come back: callers have read the
    /// newer.
    void onEvicted(int record) {
        pendingTombstones.releaseDeferred(record, NONE);
        if (admission != null) {
            onLeaving(record);
            counters.evictedUnwritten++;
            writeAdmission.onForgotten(record);
        }
    }

    /// A disk has evicted a record that was nowhere else. Under [AdmissionKind#VALUE] another put of it counts as
    /// a use as well; else it would be written at each return, whatever that saves.
    void onEvictedFromDisk(int record) {
        if (countsAncestorUses()) {
            writeAdmission.onForgotten(record);
        }
    }

    /// A tombstone was not written: the older copy is on disk as before.
    ///
    /// @param present record of that key, or none
    void onTombstoneFailed(Tombstone tombstone, int present, int disk) {
        unwritten++;
        if (tombstone.isNamespace()) {
            pendingTombstones.addFirst(tombstone, disk);
        } else {
            pendingTombstones.addForOlderCopy(tombstone, present, disk);
        }
    }

    private void admit(int record) {
        if (!writable || waitingBytes + pool.bytes(record) > maxWaitingBytes) {
            counters.queueFull++;
        } else {
            enqueueMissing(record);
        }
    }

    /// Queues a resident record for writing, after all blocks above it that are not on disk.
    ///
    /// @return whether it waits now, or is being written or on disk; it cannot be when no disk can be
    ///     written to, or it or a block above it is too large for one
    boolean enqueueMissing(int record) {
        if (!writable) {
            unwritten++;
            return false;
        }
        int depth = 0;
        for (int at = record; at != NONE && !settled(at); at = pool.parent(at)) {
            if (ControlWord.state(pool.control(at)) != ControlWord.SEALED || pool.bytes(at) > maxRecordBytes) {
                unwritten++;
                return false;
            }
            depth++;
        }
        if (depth == 1) {
            enqueue(record);
        } else if (depth > 1) {
            enqueuePath(record, depth);
        }
        return true;
    }

    private void enqueuePath(int record, int length) {
        int[] path = new int[length];
        int at = record;
        for (int i = length - 1; i >= 0; i--) {
            path[i] = at;
            at = pool.parent(at);
        }
        for (int each : path) {
            enqueue(each);
        }
    }

    /// Returns whether a record is on disk, on its way there, or queued.
    private boolean settled(int record) {
        return pool.diskAddress(record) != NONE
                || RecordFlags.has(pool.flags(record), RecordFlags.QUEUED | RecordFlags.WRITING);
    }

    private void enqueue(int record) {
        pool.setFlags(record, RecordFlags.QUEUED, true);
        waiting.add(handle(record));
        waitingBytes += pool.bytes(record);
        writeAdmission.addWrittenBytes(pool.bytes(record));
        counters.admitted++;
        enqueued++;
    }

    private long handle(int record) {
        return (long) ControlWord.generation(pool.control(record)) << Integer.SIZE | record;
    }

    /// Returns the record whose turn a place in the queue is by now.
    private long resolveReplacement(long handle) {
        long at = handle;
        Long next = replacements.isEmpty() ? null : replacements.get(at);
        while (next != null) {
            at = next;
            next = replacements.get(at);
        }
        return at;
    }

    /// Ends the turn of the first in the queue.
    private void removeFirst() {
        Long next = replacements.isEmpty() ? null : replacements.remove(waiting.peek());
        while (next != null) {
            next = replacements.remove(next);
        }
        waiting.removeFirst();
    }

    /// Takes the next queued record and pins it; returns [io.kvcache.core.policy.RecordView#NONE] when none waits.
    int pollNext() {
        while (!waiting.isEmpty()) {
            long handle = resolveReplacement(waiting.peek());
            int record = (int) handle;
            long control = pool.control(record);
            boolean same = ControlWord.generation(control) == (int) (handle >>> Integer.SIZE)
                    && RecordFlags.has(pool.flags(record), RecordFlags.QUEUED);
            if (same && isStaleWriteInFlight(record)) {
                return NONE;
            }
            int above = same ? ancestorRewrites.findMissingAncestor(record) : NONE;
            if (above != NONE && ancestorRewrites.isFirstTime(handle, above)) {
                return isStaleWriteInFlight(above) ? NONE : startAncestorRewrite(handle, above);
            }
            removeFirst();
            ancestorRewrites.clear();
            if (!same) {
                continue;
            }
            waitingBytes -= pool.bytes(record);
            pool.setFlags(record, RecordFlags.QUEUED, false);
            if (ControlWord.state(control) == ControlWord.SEALED
                    && pool.diskAddress(record) == NONE
                    && isParentWritten(record)) {
                return start(record, startedCount() - 1);
            }
            writeAdmission.addWrittenBytes(-pool.bytes(record));
            unwritten(record);
        }
        return NONE;
    }

    private int start(int record, long number) {
        pool.transition(record, ControlWord.SEALED, 1);
        pool.setFlags(record, RecordFlags.WRITING, true);
        inFlight.put(record, number);
        return record;
    }

    private boolean isStaleWriteInFlight(int record) {
        return !staleWrites.isEmpty() && staleWrites.containsKey(key(record));
    }

    /// Starts another write of a block above the first queued record, which waits for it.
    private int startAncestorRewrite(long waitingHandle, int record) {
        ancestorRewrites.begin(waitingHandle, record);
        if (RecordFlags.has(pool.flags(record), RecordFlags.QUEUED)) {
            pool.setFlags(record, RecordFlags.QUEUED, false);
            waitingBytes -= pool.bytes(record);
        } else {
            writeAdmission.addWrittenBytes(pool.bytes(record));
            counters.admitted++;
        }
        return start(record, startedCount());
    }

    /// A record's turn to be written is over. If it is resident and on no disk, it is not durable, though it
    /// should be.
    void unwritten(int record) {
        if (ControlWord.state(pool.control(record)) == ControlWord.SEALED && pool.diskAddress(record) == NONE) {
            unwritten++;
        }
    }

    /// As [#unwritten(int)]; a record that was replaced meanwhile, and was not written, is not durable either.
    void unwritten(int record, boolean replaced) {
        if (replaced) {
            unwritten++;
        } else {
            unwritten(record);
        }
    }

    /// Returns how often a queued record was not written, and is resident still.
    long unwritten() {
        return unwritten;
    }

    /// A write that [#pollNext] began has ended.
    ///
    /// @param on the disk that it was written to, or -1
    /// @return whether only newer objects took the record's place meanwhile
    boolean onWriteCompleted(int record, int on) {
        pool.setFlags(record, RecordFlags.WRITING, false);
        if (on == NONE) {
            writeAdmission.addWrittenBytes(-pool.bytes(record));
        }
        inFlight.remove(record);
        Boolean dropped = staleWrites.isEmpty() ? null : staleWrites.remove(key(record));
        pendingTombstones.onWritten(record, on);
        return dropped != null && !dropped;
    }

    /// Returns the number of records queued so far: all of them are settled once [#settled()] has reached this
    /// number. Records that replace a value on disk are among them. A flush counts on each of them, so later
    /// changes of their worth have no effect.
    long flushMark() {
        for (int record : List.copyOf(pendingTombstones.deferredRecords())) {
            enqueueMissing(record);
        }
        flushTarget = enqueued;
        return enqueued;
    }

    /// Returns how many of the records that were ever queued have had their turn to be written.
    private long startedCount() {
        return enqueued - waiting.size();
    }

    /// Returns how many of the records that were ever queued are settled, in their order.
    long settled() {
        long settled = startedCount();
        for (long number : inFlight.values()) {
            settled = Math.min(settled, number);
        }
        return settled;
    }

    /// Returns whether the block above is on disk or on its way there.
    private boolean isParentWritten(int record) {
        int parent = pool.parent(record);
        return parent == NONE || ancestorRewrites.isWrittenOrInFlight(parent);
    }

    /// Returns whether eviction should spare a record because its write is about to begin.
    boolean isProtected(int record) {
        return RecordFlags.has(pool.flags(record), RecordFlags.QUEUED);
    }

    /// Returns whether any record waits to be written.
    boolean isWaiting() {
        return !waiting.isEmpty();
    }

    /// Ancestors to be written again before a queued block below them, because their copies left the disk since it
    /// was queued. Each is written once for each queued block, from the top down. So a block that a disk refuses
    /// does not go round for ever.
    ///
    /// **Threads.** Owned by the store's lock.
    static final class AncestorRewrites {

        private final RecordPool pool;
        private long waitingHandle = NONE;
        private int depth;

        AncestorRewrites(RecordPool pool) {
            this.pool = pool;
        }

        /// Returns the uppermost block above a queued one whose copy has left the disk, while the block stayed
        /// resident; or [io.kvcache.core.policy.RecordView#NONE].
        int findMissingAncestor(int record) {
            int missing = NONE;
            for (int at = pool.parent(record); at != NONE && !isWrittenOrInFlight(at); at = pool.parent(at)) {
                missing = ControlWord.state(pool.control(at)) == ControlWord.SEALED ? at : NONE;
            }
            return missing;
        }

        /// Returns whether a block above a queued one was not yet written again for it.
        boolean isFirstTime(long waiting, int above) {
            return waiting != waitingHandle || pool.depth(above) > depth;
        }

        /// A block is written again for a queued one.
        void begin(long waiting, int above) {
            waitingHandle = waiting;
            depth = pool.depth(above);
        }

        /// The queued one has had its turn.
        void clear() {
            waitingHandle = NONE;
        }

        boolean isWrittenOrInFlight(int record) {
            return pool.diskAddress(record) != NONE || RecordFlags.has(pool.flags(record), RecordFlags.WRITING);
        }
    }

    /// A queue of numbers without an object each.
    static final class LongQueue {

        private long[] ring = new long[1024];
        private int head;
        private int size;

        boolean isEmpty() {
            return size == 0;
        }

        int size() {
            return size;
        }

        void add(long value) {
            if (size == ring.length) {
                long[] larger = Arrays.copyOfRange(ring, head, head + 2 * size);
                System.arraycopy(ring, 0, larger, size - head, head);
                ring = larger;
                head = 0;
            }
            ring[(head + size++) & (ring.length - 1)] = value;
        }

        /// Returns the oldest number; the queue must not be empty.
        long peek() {
            return ring[head];
        }

        /// Drops the oldest.
        void removeFirst() {
            head = (head + 1) & (ring.length - 1);
            size--;
        }
    }

    /// Tombstones waiting to be written to each disk, ahead of any other write.
    ///
    /// A failed disk gets them when it is back. Callers may drop more meanwhile than is worth remembering key by
    /// key. Then whole namespaces are remembered, which loses the disk's copies of those namespaces, and nothing
    /// else.
    ///
    /// **Threads.** Owned by the store's lock.
    static final class PendingTombstones {

        /// Most tombstones kept for a disk that is out: some MiB of heap.
        static final int MAX_KEPT = 1 << 16;

        private final RecordPool pool;
        private final List<ArrayDeque<Tombstone>> waiting = new ArrayList<>();
        private final Map<Integer, BitSet> olderCopies = new HashMap<>();

        /// By resident record: the disks that hold the last durable value of its key, one bit each. They get the
        /// tombstone once the record itself is written, or has gone without a write.
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

        /// Copies of a record's key on a disk do not count any longer.
        void add(int record, int disk) {
            int namespaceId = RecordFlags.namespaceId(pool.flags(record));
            queueOf(disk).add(new Tombstone(pool.keyHi(record), pool.keyLo(record), namespaceId, false));
        }

        /// A block is about to be dropped: older copies of it may lie on other disks than its own.
        void addOnOtherDisks(int record, int disks) {
            int has = pool.diskAddress(record) == NONE ? NONE : DiskAddress.diskOf(pool.diskAddress(record));
            for (int disk = 0; disk < disks; disk++) {
                if (disk != has) {
                    add(record, disk);
                }
            }
        }

        /// Adds a tombstone for all disks. A dropped block may lie on any disk, even where the store has no copy
        /// on record: it was evicted from there, and its bytes are not overwritten yet.
        void addOnAllDisks(Tombstone tombstone, int disks) {
            for (int disk = 0; disk < disks; disk++) {
                queueOf(disk).add(tombstone);
            }
        }

        /// A disk has reported a copy that does not count, or could not write its tombstone. While a newer copy is
        /// in flight, its disk is not known, and a tombstone behind it on the same disk would apply to both. So
        /// [#onWritten] adds it then.
        ///
        /// @param present record of that key, or none
        void addForOlderCopy(Tombstone tombstone, int present, int disk) {
            if (present != NONE && RecordFlags.has(pool.flags(present), RecordFlags.WRITING)) {
                olderCopies.computeIfAbsent(present, _ -> new BitSet()).set(disk);
            } else if (present == NONE
                    || pool.diskAddress(present) == NONE
                    || DiskAddress.diskOf(pool.diskAddress(present)) != disk) {
                queueOf(disk).add(tombstone);
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

        /// A record has taken the place of one whose copy lies on a disk. Until the record is written, that
        /// copy is what a restart finds.
        void addDeferred(int record, int disk) {
            if (deferred.size() < MAX_KEPT || deferred.containsKey(record)) {
                deferred.merge(record, 1 << disk, (before, more) -> before | more);
            } else {
                add(record, disk);
            }
        }

        /// A record has replaced another: it also takes over that one's older copies.
        void inheritDeferred(int record, int older) {
            Integer copies = deferred.remove(older);
            if (copies != null) {
                deferred.merge(record, copies, (before, more) -> before | more);
            }
        }

        /// A record was written, or will not be: older copies do not count from now on. On the disk that has the
        /// record they are behind it in its log, and need no tombstone.
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

        /// Returns the records whose key has an older copy on a disk.
        Set<Integer> deferredRecords() {
            return deferred.keySet();
        }

        /// Puts a tombstone before all others: a disk did not take it, or did not write it, and has no newer copy
        /// that it would also delete.
        void addFirst(Tombstone tombstone, int disk) {
            queueOf(disk).addFirst(tombstone);
        }

        /// Takes the next tombstone for a disk, or null.
        @Nullable
        Tombstone poll(int disk) {
            return queueOf(disk).poll();
        }

        boolean isEmpty(int disk) {
            return queueOf(disk).isEmpty();
        }

        /// Returns the tombstones that wait for a disk.
        Iterable<Tombstone> pending(int disk) {
            return Collections.unmodifiableCollection(queueOf(disk));
        }

        /// A disk is out, and reports its contents anew before it takes tombstones again.
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

    /// Counts of the outcomes of admission and of writes. Owned by the store's lock.
    static final class WriteBackCounters {

        /// Taken into the queue.
        long admitted;

        /// Written, and on disk since.
        long written;

        /// Taken, and not written, or in vain.
        long notWritten;

        /// Sealed, and not worth a write yet.
        long belowThreshold;

        /// Sealed, and larger than a disk takes.
        long tooLarge;

        /// Refused because too many bytes waited.
        long queueFull;

        /// Left host memory, and no disk had them.
        long evictedUnwritten;

        /// Left while they waited to be written.
        long evictedWhileQueued;
    }
}
