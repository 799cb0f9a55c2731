package io.kvcache.core.tree;

import static io.kvcache.core.policy.RecordView.NONE;
import static io.kvcache.core.tree.RecordLayout.INT32;
import static io.kvcache.core.tree.RecordLayout.INT64;
import static io.kvcache.core.tree.RecordLayout.LONG;

import io.kvcache.core.tree.RecordPool.NewRecordFields;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.VarHandle;
import java.util.function.IntConsumer;
import java.util.function.IntPredicate;

/// The index from keys to records, and the family links between records.
///
/// **Look-up without a lock.** Records of a bucket form a chain; a new one enters at the front. A reader
/// walks it and for each record reads the control word, then key and link, then the control word again.
/// Four things can go wrong with a record, and each is noticed: it is freed while it is read (the
/// generation differs: start over); it was freed before, so that its fields may be rewritten at any
/// moment without a change of generation (the first control word says FREE: start over); it has since
/// entered another bucket (its key belongs elsewhere: start over); the chain is longer than any honest
/// one (start over). A record that was freed and came back to the same bucket stands at the front now,
/// and everything older is still behind it, so nothing is skipped.
///
/// A key that is replaced is findable throughout, but a walk may pass by both: its new record enters in
/// front of where the walk began, or is passed before it is sealed, and then the old one is gone. So a
/// reader that found nothing looks once more at the first record and at those of its key that were not
/// sealed, of which an object has one a writer; if any has changed, or is being overwritten, it starts over.
/// After [#MAX_RESTARTS] attempts it answers [RecordHandle#UNSURE] and asks under the lock.
///
/// **Why this holds on ARM as on x86.** A writer fills a record, its link included, while it is FREE, and
/// publishes it by a release store of the control word and then of the bucket's head; a reader's acquire
/// loads of both see all that was written before, so a thread that reads a control word other than FREE reads
/// the fields of that generation or of a later one. When a record is freed, the new generation is stored
/// before any field is overwritten (a store-store fence in [RecordPool#allocate()] and [RecordPool#free]);
/// the reader loads the fields before it loads the generation again (a load-load fence here). So a reader
/// that sees any field of a later generation also sees that generation.
///
/// **Threads.** [#find] by anyone; all else under the store's lock.
public final class BlockTree {

    /// Chains average at most four sevenths of a record; eight times the length that a million random keys
    /// reach.
    private static final int MAX_CHAIN_LENGTH = 64;

    private static final int MAX_RESTARTS = 8;

    /// In place of a record: more than one of the key was passed that was not sealed.
    private static final int SEVERAL = -2;

    private final RecordPool pool;

    public BlockTree(RecordPool pool) {
        this.pool = pool;
    }

    /// Finds the sealed record of a key.
    ///
    /// @return a [RecordHandle], [RecordHandle#MISS] or [RecordHandle#UNSURE]
    public long find(long hi, long lo) {
        return find(hi, lo, ControlWord.READABLE);
    }

    /// Finds the record of a key that is sealed, on disk, or on its way from there.
    ///
    /// @return a [RecordHandle], [RecordHandle#MISS] or [RecordHandle#UNSURE]
    public long findKnown(long hi, long lo) {
        return find(hi, lo, ControlWord.KNOWN);
    }

    private long find(long hi, long lo, int states) {
        int bucket = pool.bucketOf(lo);
        for (int attempt = 0; attempt < MAX_RESTARTS; attempt++) {
            long found = walk(bucket, hi, lo, states);
            if (found != RecordHandle.UNSURE) {
                return found;
            }
            Thread.onSpinWait();
        }
        return RecordHandle.UNSURE;
    }

    /// Reads a record as one line, with one acquire and one fence: the compiler checks bounds and liveness
    /// once, and the processor may begin with the next look-up while this one waits for memory. What is rare
    /// stays in methods of its own: above 325 bytes of bytecode this one is not inlined, and each look-up is
    /// 3 % slower.
    private long walk(int bucket, long hi, long lo, int states) {
        int first = pool.head(bucket);
        long firstControl = 0;
        int unsealed = NONE;
        long unsealedControl = 0;
        int record = first;
        for (int steps = 0; record != NONE; steps++) {
            MemorySegment line = pool.line(record);
            long before = (long) LONG.getAcquire(line, RecordLayout.CONTROL);
            long recordHi = line.get(INT64, RecordLayout.KEY_HI);
            long recordLo = line.get(INT64, RecordLayout.KEY_LO);
            int next = line.get(INT32, RecordLayout.NEXT);
            VarHandle.loadLoadFence();
            long after = (long) LONG.getOpaque(line, RecordLayout.CONTROL);
            boolean torn = ControlWord.state(before) == ControlWord.FREE || hasMoved(before, after);
            if (torn || steps > MAX_CHAIN_LENGTH) {
                return RecordHandle.UNSURE;
            }
            if (recordLo == lo && recordHi == hi) {
                if ((states >>> ControlWord.state(after) & 1) != 0) {
                    return RecordHandle.of(ControlWord.generation(after), record);
                }
                unsealedControl = startUnsealedSum(unsealed, unsealedControl, record, after);
                unsealed = unsealed == NONE ? record : SEVERAL;
            } else if (pool.bucketOf(recordLo) != bucket) {
                return RecordHandle.UNSURE;
            }
            firstControl = record == first ? after : firstControl;
            record = next;
        }
        boolean sure = isStillUnsealed(unsealed, unsealedControl, first, hi, lo)
                && isHeadUnchanged(bucket, first, firstControl);
        return sure ? RecordHandle.MISS : RecordHandle.UNSURE;
    }

    /// Returns the first state that a walk keeps of the unsealed records of its key: the control word of one, or
    /// the sum of several.
    private static long startUnsealedSum(int unsealed, long unsealedControl, int record, long control) {
        if (unsealed == NONE) {
            return control;
        }
        long sum = unsealed == SEVERAL ? unsealedControl : addToUnsealedSum(0, unsealed, unsealedControl);
        return addToUnsealedSum(sum, record, control);
    }

    /// Adds a record that was passed, and its control word, to a sum that depends on their order.
    private static long addToUnsealedSum(long sum, int record, long control) {
        return (sum + control) * 0x9E3779B97F4A7C15L + record;
    }

    /// Walks a bucket once more and compares the records of a key, and their control words, with those that
    /// were passed. A control word has a generation, so an equal one says that the record was not sealed
    /// since. A walk that is led astray finds others.
    private boolean isUnsealedSumUnchanged(int first, long hi, long lo, long passed) {
        long sum = 0;
        int record = first;
        for (int steps = 0; record != NONE && steps <= MAX_CHAIN_LENGTH; steps++) {
            long control = pool.control(record);
            if (pool.keyLo(record) == lo && pool.keyHi(record) == hi) {
                if (ControlWord.isPassing(ControlWord.state(control))) {
                    return false;
                }
                sum = addToUnsealedSum(sum, record, control);
            }
            record = pool.next(record);
        }
        return sum == passed;
    }

    /// Returns whether the same record stands at the front of a bucket as when a walk began.
    private boolean isHeadUnchanged(int bucket, int first, long firstControl) {
        return pool.head(bucket) == first && (first == NONE || !hasMoved(firstControl, pool.control(first)));
    }

    /// Returns whether the records of the key that were unsealed when the walk passed them still are.
    ///
    /// @param record the one that was passed, [#SEVERAL], or none
    /// @param passed its control word, or the sum of several
    private boolean isStillUnsealed(int record, long passed, int first, long hi, long lo) {
        if (record == SEVERAL) {
            return isUnsealedSumUnchanged(first, hi, lo, passed);
        }
        return record == NONE || (!ControlWord.isPassing(ControlWord.state(passed)) && pool.control(record) == passed);
    }

    private static boolean hasMoved(long before, long after) {
        return ControlWord.generation(before) != ControlWord.generation(after);
    }

    /// Finds the record of a key in any state that is in the index; under the lock.
    public int findAny(long hi, long lo) {
        int record = pool.head(pool.bucketOf(lo));
        while (record != NONE && (pool.keyLo(record) != lo || pool.keyHi(record) != hi)) {
            record = pool.next(record);
        }
        return record;
    }

    /// Finds another record of the same key that is known, in front of this one or behind it; under the
    /// lock.
    public int findDuplicate(int record) {
        long hi = pool.keyHi(record);
        long lo = pool.keyLo(record);
        for (int at = pool.head(pool.bucketOf(lo)); at != NONE; at = pool.next(at)) {
            boolean sameKey = pool.keyLo(at) == lo && pool.keyHi(at) == hi;
            if (at != record && sameKey && ControlWord.isKnown(ControlWord.state(pool.control(at)))) {
                return at;
            }
        }
        return NONE;
    }

    /// Takes a record for a key and links it below its parent, state RESERVED with one pin, in the index
    /// but not to be found by readers. It counts as resident: a slot is about to be its.
    ///
    /// @return the record, or -1 when all are taken
    public int insert(NewRecordFields what) {
        int record = insert(what, ControlWord.RESERVED, 1);
        if (record != NONE) {
            addResident(record);
        }
        return record;
    }

    /// Takes a record for a key and links it below its parent, without its being resident.
    ///
    /// @return the record, or -1 when all are taken
    public int insert(NewRecordFields what, int state, int pins) {
        int record = pool.allocate();
        if (record == NONE) {
            return NONE;
        }
        pool.key(record, what.keyHi(), what.keyLo());
        pool.parent(record, what.parent());
        pool.initialize(record, what);
        pool.hostPage(record, what.hostPage());
        pool.checksum(record, 0);
        pool.diskAddress(record, NONE);
        pool.firstChild(record, NONE);
        pool.residentChildren(record, 0);
        pool.diskChildren(record, 0);
        int bucket = pool.bucketOf(what.keyLo());
        pool.next(record, pool.head(bucket));
        pool.control(record, ControlWord.pack(ControlWord.generation(pool.control(record)), state, pins));
        adopt(what.parent(), record);
        pool.head(bucket, record);
        return record;
    }

    /// Takes a record out of the index; its family links stay.
    public void removeFromIndex(int record) {
        int bucket = pool.bucketOf(pool.keyLo(record));
        int before = NONE;
        int at = pool.head(bucket);
        while (at != record) {
            assert at != NONE : "record " + record + " is not in its bucket";
            before = at;
            at = pool.next(at);
        }
        if (before == NONE) {
            pool.head(bucket, pool.next(record));
        } else {
            pool.next(before, pool.next(record));
        }
    }

    /// Cuts a childless, unindexed record from its parent and frees it.
    ///
    /// @return the parent, or -1
    public int remove(int record) {
        assert pool.firstChild(record) == NONE : "record " + record + " has children";
        int parent = unlink(record);
        pool.free(record);
        return parent;
    }

    private int unlink(int record) {
        int parent = pool.parent(record);
        int left = pool.previousSibling(record);
        int right = pool.nextSibling(record);
        if (left != NONE) {
            pool.nextSibling(left, right);
        } else if (parent != NONE) {
            pool.firstChild(parent, right);
        }
        if (right != NONE) {
            pool.previousSibling(right, left);
        }
        return parent;
    }

    /// Links a record that is on disk alone below another parent.
    public void reparent(int record, int parent) {
        int before = unlink(record);
        pool.diskChildren(before, pool.diskChildren(before) - 1);
        pool.parent(record, parent);
        pool.diskChildren(parent, pool.diskChildren(parent) + 1);
        adopt(parent, record);
    }

    /// Links a record that has no parent yet below one.
    public void attach(int record, int parent) {
        assert pool.parent(record) == NONE : "record " + record + " has a parent";
        pool.parent(record, parent);
        adopt(parent, record);
    }

    /// Counts a record among its parent's resident children.
    public void addResident(int record) {
        int parent = pool.parent(record);
        if (parent != NONE) {
            pool.residentChildren(parent, pool.residentChildren(parent) + 1);
        }
    }

    /// Counts a record among its parent's resident children no longer.
    ///
    /// @return the parent, or -1
    public int removeResident(int record) {
        int parent = pool.parent(record);
        if (parent != NONE) {
            pool.residentChildren(parent, pool.residentChildren(parent) - 1);
        }
        return parent;
    }

    /// Gives a record its place on disk, and counts it among its parent's children there.
    public void setDiskAddress(int record, long address, int checksum) {
        int parent = pool.parent(record);
        if (pool.diskAddress(record) == NONE && parent != NONE) {
            pool.diskChildren(parent, pool.diskChildren(parent) + 1);
        }
        pool.diskAddress(record, address);
        pool.diskChecksum(record, checksum);
    }

    /// Takes a record's place on disk away.
    ///
    /// @return the parent, or -1
    public int clearDiskAddress(int record) {
        int parent = pool.parent(record);
        if (pool.diskAddress(record) != NONE && parent != NONE) {
            pool.diskChildren(parent, pool.diskChildren(parent) - 1);
        }
        pool.diskAddress(record, NONE);
        return parent;
    }

    /// Visits a record and all below it, children before parents. The visitor may remove the record it is
    /// shown.
    public void forEachDescendant(int root, IntConsumer visitor) {
        allDescendantsMatch(root, record -> {
            visitor.accept(record);
            return true;
        });
    }

    /// Visits a record and all below it, children before parents, until the visitor answers false. The
    /// visitor may remove the record it is shown.
    ///
    /// @return whether the visitor answered true throughout
    public boolean allDescendantsMatch(int root, IntPredicate visitor) {
        int record = deepestDescendant(root);
        while (true) {
            int sibling = record == root ? NONE : pool.nextSibling(record);
            int parent = pool.parent(record);
            if (!visitor.test(record)) {
                return false;
            }
            if (record == root) {
                return true;
            }
            record = sibling == NONE ? parent : deepestDescendant(sibling);
        }
    }

    /// Calls `visitor` with each child.
    public void forEachChild(int record, IntConsumer visitor) {
        int child = pool.firstChild(record);
        while (child != NONE) {
            int next = pool.nextSibling(child);
            visitor.accept(child);
            child = next;
        }
    }

    /// Returns whether a record has at most `most` children and all satisfy the predicate; under the lock.
    public boolean allChildrenMatch(int record, int most, IntPredicate such) {
        int left = most;
        for (int child = pool.firstChild(record); child != NONE; child = pool.nextSibling(child)) {
            if (left-- == 0 || !such.test(child)) {
                return false;
            }
        }
        return true;
    }

    private int deepestDescendant(int record) {
        int at = record;
        int child = pool.firstChild(at);
        while (child != NONE) {
            at = child;
            child = pool.firstChild(at);
        }
        return at;
    }

    private void adopt(int parent, int record) {
        int right = NONE;
        if (parent != NONE) {
            right = pool.firstChild(parent);
            pool.firstChild(parent, record);
            if (right != NONE) {
                pool.previousSibling(right, record);
            }
        }
        pool.previousSibling(record, NONE);
        pool.nextSibling(record, right);
    }
}
