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

    /// Keys of which a copy is being written that counts no longer, and whether that is to be buried at once: it
    /// was dropped, not replaced.
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

    /// Begins to choose.
    ///
    /// @param waitingLimit bytes that may wait
    /// @param eachLimit a larger block is never written, nor what is below it
    /// @param usesWorth what one use of a block saves in units of what its write costs
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

    /// Records that are being written.
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

    /// An object was sealed in place of another one, which [#onReplacing] was told of. Storing a key again
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

    /// An object is about to take the place of another one. What a disk has of that one is what a restart
    /// finds until the new one is written. So the new one is written no later than the older would have been:
    /// of what was put before a flush and replaced meanwhile, no version from before that may come back.
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

    /// A record was found that a disk had before; whether it was used since it was written there is not known any
    /// more.
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

    /// A record that waits to be written is not worth it any more; it stays in the queue as long as
    /// anything below it waits or is written, or that cannot be seen at a glance; and as long as anything waits
    /// that a flush has asked for, as the record may be part of that.
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

    /// A caller has said how much of a record matters: what waits to be written and is not worth
    /// that any more does not.
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

    /// A record is about to end. While a copy of it is still being written, no other with its key
    /// is: a burial that follows the first would be taken to mean both.
    ///
    /// @param dropped whether it was known, and nothing newer takes its place
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

    /// A copy was written of a record that counts no longer.
    ///
    /// @param replaced whether nothing but newer objects ended it, see [#onWriteCompleted]
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

    /// A record was evicted that no disk has. An older copy of its key must not come back: others have read the
    /// newer.
    void onEvicted(int record) {
        pendingTombstones.releaseDeferred(record, NONE);
        if (admission != null) {
            onLeaving(record);
            counters.evictedUnwritten++;
            writeAdmission.onForgotten(record);
        }
    }

    /// A disk has forgotten a record that was nowhere else. By value, when it is put again that counts as a use as
    /// well; else it would be written at each return, whatever that saves.
    void onEvictedFromDisk(int record) {
        if (countsAncestorUses()) {
            writeAdmission.onForgotten(record);
        }
    }

    /// A burial was not written: what it was to bury is on disk as before.
    ///
    /// @param present record of that key, or none
    void onTombstoneFailed(Tombstone burial, int present, int disk) {
        unwritten++;
        if (burial.isNamespace()) {
            pendingTombstones.addFirst(burial, disk);
        } else {
            pendingTombstones.addForOlderCopy(burial, present, disk);
        }
    }

    private void admit(int record) {
        if (!writable || waitingBytes + pool.bytes(record) > maxWaitingBytes) {
            counters.queueFull++;
        } else {
            enqueueMissing(record);
        }
    }

    /// Has a resident record written, after all blocks above it that are not.
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

    /// Whose turn a place in the queue is by now.
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

    /// Takes the next record to be written and pins it; or answers [io.kvcache.core.policy.RecordView#NONE] when
    /// none waits.
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

    /// Has a block written anew before the one that is first in the queue, which waits for it.
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

    /// A record's turn to be written is over. If it is resident and on no disk, it is not durable, though
    /// it was to be.
    void unwritten(int record) {
        if (ControlWord.state(pool.control(record)) == ControlWord.SEALED && pool.diskAddress(record) == NONE) {
            unwritten++;
        }
    }

    /// The same; one that was replaced meanwhile, and was not written, is not durable either.
    void unwritten(int record, boolean replaced) {
        if (replaced) {
            unwritten++;
        } else {
            unwritten(record);
        }
    }

    /// How often a record that was to be written was not, and is resident still.
    long unwritten() {
        return unwritten;
    }

    /// A write that [#pollNext] began has ended.
    ///
    /// @param on the disk that it was written to, or -1
    /// @return whether newer objects took the record's place meanwhile, and nothing else ended it
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

    /// Records that were queued by now: all of them are done with once [#settled()] has reached this
    /// number. What has taken the place of a value on disk is among them. A flush counts on each of them,
    /// so what is said of their worth from now on changes nothing.
    long flushMark() {
        for (int record : List.copyOf(pendingTombstones.deferredRecords())) {
            enqueueMissing(record);
        }
        flushTarget = enqueued;
        return enqueued;
    }

    /// So many of the records that were ever queued have had their turn to be written.
    private long startedCount() {
        return enqueued - waiting.size();
    }

    /// So many of the records that were ever queued are done with, in their order.
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

        /// The uppermost of the blocks above one that waits whose copies have left the disk, while they stayed
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

        /// A block is written anew for one that waits.
        void begin(long waiting, int above) {
            waitingHandle = waiting;
            depth = pool.depth(above);
        }

        /// The one that waited has had its turn.
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

        /// The oldest; of a ring that is not empty.
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

        /// Remembered for a disk that cannot be told: some MiB of heap.
        static final int MAX_KEPT = 1 << 16;

        private final RecordPool pool;
        private final List<ArrayDeque<Tombstone>> waiting = new ArrayList<>();
        private final Map<Integer, BitSet> olderCopies = new HashMap<>();

        /// By resident record: the disks that hold the last durable value of its key, one bit each. They are
        /// told of the burial once the record itself is written, or has gone without.
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

        /// Adds a tombstone for all disks. A dropped block may lie on any disk, even where the store has no copy
        /// on record: it was evicted from there, and its bytes are not overwritten yet.
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

        /// A record has taken the place of one whose copy lies on a disk. Until the record is written, that
        /// copy is what a restart finds.
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

        /// A record was written, or nothing will write it any more: older copies do not count from now on. On
        /// the disk that has the record they are behind it in its log, and need no burial.
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

        /// Returns the tombstones that wait for a disk.
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
