package io.kvcache.core.store;

import static io.kvcache.core.policy.RecordView.NONE;

import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.core.tier.TierBurial;
import io.kvcache.core.tree.BlockTree;
import io.kvcache.core.tree.Control;
import io.kvcache.core.tree.DiskNumber;
import io.kvcache.core.tree.RecordPool;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/// Which records are to be written to disk, in which order.
///
/// A block is written after all blocks above it, so whatever makes it worth a write makes them worth one
/// too. A record waits at most once. When too many bytes wait, none is added: it may be again when it is
/// used again.
///
/// **Threads.** Owned by the store's lock.
final class Offload {

    private static final int MOST_CHILDREN = 64;

    private final RecordPool pool;
    private final LongRing waiting = new LongRing();
    private final Burials burials;
    private final OffloadCounters counters = new OffloadCounters();
    private final Prospects prospects;
    private @Nullable AdmissionKind admission;
    private boolean writable = true;
    private long mostWaitingBytes;
    private long mostBytesEach;
    private final Map<Integer, Long> underWay = new HashMap<>();

    /// Keys of which a copy is being written that counts no longer, and whether that is to be buried at once: it was
    /// dropped, not replaced.
    private final Map<BlockKey, Boolean> writtenInVain = new HashMap<>();

    /// Places in the queue that a record has taken over from the one that it replaces.
    private final Map<Long, Long> turns = new HashMap<>();

    private long waitingBytes;
    private long enqueued;
    private long owed;
    private long unwritten;

    private final WriteAhead ahead;
    private final BlockTree tree;

    Offload(RecordPool pool, BlockTree tree, Prospects prospects) {
        this.tree = tree;
        this.pool = pool;
        this.prospects = prospects;
        ahead = new WriteAhead(pool);
        burials = new Burials(pool);
    }

    /// Begins to choose.
    ///
    /// @param waitingLimit bytes that may wait
    /// @param eachLimit a larger block is never written, nor what is below it
    /// @param usesWorth what one use of a block saves in units of what its write costs
    void begin(AdmissionKind kind, long waitingLimit, long eachLimit, double usesWorth) {
        admission = kind;
        prospects.begin(kind, usesWorth);
        mostWaitingBytes = waitingLimit;
        mostBytesEach = eachLimit;
    }

    /// Whether anything can be written at all; while not, nothing waits for it.
    void writable(boolean can) {
        writable = can;
        while (!can && !waiting.isEmpty()) {
            long handle = turn(waiting.peek());
            int record = (int) handle;
            skip();
            if (Control.generation(pool.control(record)) == (int) (handle >>> Integer.SIZE)) {
                leaving(record);
                unwritten++;
            }
        }
    }

    /// Which records are worth a write.
    Prospects prospects() {
        return prospects;
    }

    Burials burials() {
        return burials;
    }

    OffloadCounters counters() {
        return counters;
    }

    /// Records that are being written.
    int underWay() {
        return underWay.size();
    }

    long waitingBytes() {
        return waitingBytes;
    }

    /// A record was sealed that was not known before.
    void stored(int record) {
        if (admission == null) {
            return;
        }
        boolean worth = prospects.put(record);
        if (pool.bytes(record) > mostBytesEach) {
            counters.tooLarge++;
        } else if (worth) {
            admit(record);
        } else {
            counters.notYet++;
        }
    }

    /// An object was sealed in place of another one, which [#succeeds] was told of. Storing a key again
    /// counts as a use of it.
    void storedAgain(int record) {
        if (admission == null) {
            return;
        }
        boolean worth = prospects.putAgain(record);
        pool.flag(record, Identity.USED_ON_DISK, true);
        if (settled(record)) {
            return;
        }
        if (pool.bytes(record) > mostBytesEach) {
            counters.tooLarge++;
        } else if (worth) {
            admit(record);
        } else {
            counters.notYet++;
        }
    }

    /// An object is about to take the place of another one. What a disk has of that one is what a restart
    /// finds until the new one is written. So the new one is written no later than the older would have been:
    /// of what was put before a flush and replaced meanwhile, no version from before that may come back.
    void succeeds(int record, int older) {
        if (admission == null) {
            return;
        }
        prospects.succeeds(record, older);
        if (pool.diskPlace(older) != NONE) {
            burials.outlives(record, DiskNumber.of(pool.diskPlace(older)));
        }
        burials.inherit(record, older);
        if (pool.bytes(record) > mostBytesEach) {
            burials.buryOutlived(record, NONE);
        } else if (Identity.has(pool.identity(older), Identity.QUEUED)) {
            pool.flag(older, Identity.QUEUED, false);
            pool.flag(record, Identity.QUEUED, true);
            long more = pool.bytes(record) - pool.bytes(older);
            waitingBytes += more;
            prospects.written(more);
            turns.put(handle(older), handle(record));
        }
    }

    /// A record was found that a disk had before; whether it was used since it was written there nobody knows any
    /// more.
    void found(int record) {
        prospects.found(record);
        pool.flag(record, Identity.USED_ON_DISK, true);
    }

    /// Whether it is to be told of the use of each block above one that is used, and not of that one alone: what
    /// [AdmissionKind#VALUE] knows of a block is how often it was used.
    boolean countsPaths() {
        return admission == AdmissionKind.VALUE;
    }

    /// A resident record was used, or one that was on disk alone has become resident.
    void used(int record) {
        if (admission == null) {
            return;
        }
        boolean worth = prospects.used(record);
        pool.flag(record, Identity.USED_ON_DISK, true);
        if (worth && pool.diskPlace(record) == NONE) {
            admit(record);
        }
    }

    /// Whether a copy on disk is worth another write, as its span is about to be reclaimed: under
    /// [AdmissionKind#VALUE] when it was used since it was last written, which has to happen anew until
    /// the next time; never when it is [Over].
    boolean worthKeeping(int record) {
        boolean worth = (!countsPaths() || Identity.has(pool.identity(record), Identity.USED_ON_DISK))
                && !Identity.has(pool.identity(record), Identity.OVER);
        pool.flag(record, Identity.USED_ON_DISK, false);
        return worth;
    }

    /// A record that waits to be written is not worth it any more; it stays in the queue as long as
    /// anything below it waits or is written, or that cannot be seen at a glance; and as long as anything waits
    /// that a flush has asked for, as the record may be part of that.
    void notWanted(int record) {
        int under = Identity.QUEUED | Identity.WRITING;
        if (Identity.has(pool.identity(record), Identity.QUEUED)
                && begun() >= owed
                && tree.allChildren(record, MOST_CHILDREN, child -> !Identity.has(pool.identity(child), under))) {
            pool.flag(record, Identity.QUEUED, false);
            waitingBytes -= pool.bytes(record);
            prospects.written(-pool.bytes(record));
            counters.notYet++;
        }
    }

    /// Somebody has said how much of a record matters: what waits to be written and is not worth
    /// that any more does not.
    void weighed(int record) {
        if (countsPaths() && !prospects.isWorth(record)) {
            notWanted(record);
        }
    }

    /// A record is about to leave host memory, or the store.
    void leaving(int record) {
        if (Identity.has(pool.identity(record), Identity.QUEUED)) {
            pool.flag(record, Identity.QUEUED, false);
            waitingBytes -= pool.bytes(record);
            prospects.written(-pool.bytes(record));
            counters.sacrificed++;
        }
    }

    /// A record is about to end. While a copy of it is still being written, no other with its key
    /// is: a burial that follows the first would be taken to mean both.
    ///
    /// @param dropped whether it was known, and nothing newer takes its place
    void ending(int record, boolean dropped) {
        leaving(record);
        if (dropped) {
            burials.buryOutlived(record, NONE);
        }
        if (Identity.has(pool.identity(record), Identity.WRITING)) {
            writtenInVain.merge(key(record), dropped, Boolean::logicalOr);
        } else if (dropped && !writtenInVain.isEmpty()) {
            writtenInVain.computeIfPresent(key(record), (_, _) -> true);
        }
    }

    /// A copy was written of a record that counts no longer.
    ///
    /// @param replaced whether nothing but newer objects ended it, see [#ended]
    /// @param successor the newest of them, or none
    void wroteInVain(int record, int disk, boolean replaced, int successor) {
        if (successor != NONE) {
            burials.buryOutlived(successor, disk);
        }
        if (replaced && successor != NONE) {
            burials.outlives(successor, disk);
        } else {
            burials.bury(record, disk);
        }
    }

    private BlockKey key(int record) {
        return new BlockKey(pool.keyHi(record), pool.keyLo(record));
    }

    /// A record was evicted that no disk has. An older copy of its key must not come back: others have read the newer.
    void evicted(int record) {
        burials.buryOutlived(record, NONE);
        if (admission != null) {
            leaving(record);
            counters.evictedUnwritten++;
            prospects.left(record);
        }
    }

    /// A disk has forgotten a record that was nowhere else. By value, when it is put again that counts as a use as
    /// well; else it would be written at each return, whatever that saves.
    void evictedFromDisk(int record) {
        if (countsPaths()) {
            prospects.left(record);
        }
    }

    /// A burial was not written: what it was to bury is on disk as before.
    ///
    /// @param present record of that key, or none
    void notBuried(TierBurial burial, int present, int disk) {
        unwritten++;
        if (burial.whole()) {
            burials.first(burial, disk);
        } else {
            burials.buryOlder(burial, present, disk);
        }
    }

    private void admit(int record) {
        if (!writable || waitingBytes + pool.bytes(record) > mostWaitingBytes) {
            counters.queueFull++;
        } else {
            want(record);
        }
    }

    /// Has a resident record written, after all blocks above it that are not.
    ///
    /// @return whether it waits now, or is being written or on disk; it cannot be when no disk can be
    ///     written to, or it or a block above it is too large for one
    boolean want(int record) {
        if (!writable) {
            unwritten++;
            return false;
        }
        int depth = 0;
        for (int at = record; at != NONE && !settled(at); at = pool.parent(at)) {
            if (Control.state(pool.control(at)) != Control.SEALED || pool.bytes(at) > mostBytesEach) {
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

    /// Whether a record is on disk, on its way there, or waits for that.
    private boolean settled(int record) {
        return pool.diskPlace(record) != NONE
                || Identity.has(pool.identity(record), Identity.QUEUED | Identity.WRITING);
    }

    private void enqueue(int record) {
        pool.flag(record, Identity.QUEUED, true);
        waiting.add(handle(record));
        waitingBytes += pool.bytes(record);
        prospects.written(pool.bytes(record));
        counters.admitted++;
        enqueued++;
    }

    private long handle(int record) {
        return (long) Control.generation(pool.control(record)) << Integer.SIZE | record;
    }

    /// Whose turn a place in the queue is by now.
    private long turn(long handle) {
        long at = handle;
        Long next = turns.isEmpty() ? null : turns.get(at);
        while (next != null) {
            at = next;
            next = turns.get(at);
        }
        return at;
    }

    /// Ends the turn of the first in the queue.
    private void skip() {
        Long next = turns.isEmpty() ? null : turns.remove(waiting.peek());
        while (next != null) {
            next = turns.remove(next);
        }
        waiting.skip();
    }

    /// Takes the next record to be written and pins it; or answers [io.kvcache.core.policy.RecordView#NONE] when none
    /// waits.
    int next() {
        while (!waiting.isEmpty()) {
            long handle = turn(waiting.peek());
            int record = (int) handle;
            long control = pool.control(record);
            boolean same = Control.generation(control) == (int) (handle >>> Integer.SIZE)
                    && Identity.has(pool.identity(record), Identity.QUEUED);
            if (same && isWrittenInVain(record)) {
                return NONE;
            }
            int above = same ? ahead.missingAbove(record) : NONE;
            if (above != NONE && ahead.isFirstTime(handle, above)) {
                return isWrittenInVain(above) ? NONE : beginAhead(handle, above);
            }
            skip();
            ahead.forget();
            if (!same) {
                continue;
            }
            waitingBytes -= pool.bytes(record);
            pool.flag(record, Identity.QUEUED, false);
            if (Control.state(control) == Control.SEALED && pool.diskPlace(record) == NONE && follows(record)) {
                return begin(record, begun() - 1);
            }
            prospects.written(-pool.bytes(record));
            unwritten(record);
        }
        return NONE;
    }

    private int begin(int record, long number) {
        pool.become(record, Control.SEALED, 1);
        pool.flag(record, Identity.WRITING, true);
        underWay.put(record, number);
        return record;
    }

    private boolean isWrittenInVain(int record) {
        return !writtenInVain.isEmpty() && writtenInVain.containsKey(key(record));
    }

    /// Has a block written anew before the one that is first in the queue, which waits for it.
    private int beginAhead(long waitingHandle, int record) {
        ahead.begins(waitingHandle, record);
        if (Identity.has(pool.identity(record), Identity.QUEUED)) {
            pool.flag(record, Identity.QUEUED, false);
            waitingBytes -= pool.bytes(record);
        } else {
            prospects.written(pool.bytes(record));
            counters.admitted++;
        }
        return begin(record, begun());
    }

    /// A record's turn to be written is over. If it is resident and on no disk, it is not durable, though
    /// it was to be.
    void unwritten(int record) {
        if (Control.state(pool.control(record)) == Control.SEALED && pool.diskPlace(record) == NONE) {
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

    /// A write that [#next] began has ended.
    ///
    /// @param on the disk that it was written to, or -1
    /// @return whether newer objects took the record's place meanwhile, and nothing else ended it
    boolean ended(int record, int on) {
        pool.flag(record, Identity.WRITING, false);
        if (on == NONE) {
            prospects.written(-pool.bytes(record));
        }
        underWay.remove(record);
        Boolean dropped = writtenInVain.isEmpty() ? null : writtenInVain.remove(key(record));
        burials.written(record, on);
        return dropped != null && !dropped;
    }

    /// Records that were queued by now: all of them are done with once [#settled()] has reached this
    /// number. What has taken the place of a value on disk is among them. A flush counts on each of them,
    /// so what is said of their worth from now on changes nothing.
    long mark() {
        for (int record : List.copyOf(burials.outliving())) {
            want(record);
        }
        owed = enqueued;
        return enqueued;
    }

    /// So many of the records that were ever queued have had their turn to be written.
    private long begun() {
        return enqueued - waiting.size();
    }

    /// So many of the records that were ever queued are done with, in their order.
    long settled() {
        long settled = begun();
        for (long number : underWay.values()) {
            settled = Math.min(settled, number);
        }
        return settled;
    }

    /// Whether the block above is on disk or on its way there.
    private boolean follows(int record) {
        int parent = pool.parent(record);
        return parent == NONE || ahead.isWrittenOrBeing(parent);
    }

    /// Whether eviction should spare a record because its write is about to begin.
    boolean spares(int record) {
        return Identity.has(pool.identity(record), Identity.QUEUED);
    }

    /// Whether anything waits to be written.
    boolean isWaiting() {
        return !waiting.isEmpty();
    }
}
