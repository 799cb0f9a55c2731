package io.kvcache.core.policy;

import java.util.Arrays;
import java.util.function.IntConsumer;
import java.util.function.IntPredicate;
import java.util.function.IntToLongFunction;

/// The records of one queue and a heap of those that are leaves, lowest score first.
///
/// This is the mechanism under the policies that rank records by a number. A record's word holds its score, the
/// queue that owns it, whether it is a guess that was not used yet, and whether the heap has an
/// entry for it:
///
/// ```
/// score (54 bits) | guess (1 bit) | owner (8 bits) | queued (1 bit)
/// ```
///
/// Everything is lazy, so that a touch is one store. A score may rise while the heap's entry stays behind; a
/// record may grow a child, be forgotten, or move to another queue while its entry stays. Whatever comes to the top
/// is checked: not ours → dropped; has children → dropped, [#onBecameLeaf] will bring it back; score has risen → entry
/// written anew; else it is the victim. Two entries for one record do no harm. When the array is full the entries
/// without use are swept out, and only if that frees less than an eighth does it grow.
///
/// Cost: each touch, admission and exposure pays for at most one later correction, O(log leaves). A long pause
/// without evictions lets corrections pile up; once one call has made as many as a sixteenth of the heap, the whole
/// heap is rebuilt in one linear pass, which is cheaper.
///
/// **Threads.** One writer, the holder of the store's lock.
public final class LeafHeap {

    private static final int OWNER_SHIFT = 1;
    private static final int SCORE_SHIFT = 10;
    private static final long QUEUED = 1;
    private static final long OWNER_MASK = 0xFFL << OWNER_SHIFT;
    private static final long PREFETCHED = 1 << 9;
    /// The score's bits. Its largest value is 2^54 - 1: a clock that ticks five million times a second gets there
    /// after 114 years.
    private static final long SCORE_MASK = -1L << SCORE_SHIFT;

    /// Claims that one call of [#evict] lets be refused before it gives up.
    private static final int MAX_REFUSALS = 1024;
    /// Corrections below which a rebuild is not worth its set-up.
    private static final int MIN_CORRECTIONS = 256;

    private final RecordView records;
    private final long[] words;
    private final long ownerBits;
    private final LongHeap heap;
    private int[] refusals = new int[8];
    private int size;

    /// Takes one of the queues that the state can number.
    ///
    /// @param state shared with the store's other instances, for as many records
    public LeafHeap(RecordView records, PolicyState state) {
        if (records.capacity() != state.capacity()) {
            throw new IllegalArgumentException(
                    "policy state is for " + state.capacity() + " records, the view has " + records.capacity());
        }
        this.records = records;
        words = state.words();
        ownerBits = (long) state.newOwner() << OWNER_SHIFT;
        heap = new LongHeap(records.capacity(), this::score);
    }

    /// Records of this queue, leaves or not.
    public int size() {
        return size;
    }

    /// Bytes of the heap, beside the shared state.
    public long heapBytes() {
        return heap.bytes();
    }

    /// Returns whether a record is in this queue.
    public boolean contains(int record) {
        return (words[record] & OWNER_MASK) == ownerBits;
    }

    /// The record's score; 0 when it was demoted or no queue has it.
    public long score(int record) {
        return words[record] >>> SCORE_SHIFT;
    }

    /// A record has become resident.
    ///
    /// @param score 1 to 2^54 - 1; the lowest goes first
    public void admit(int record, long score) {
        assert (words[record] & OWNER_MASK) == 0 : "record " + record + " is admitted twice";
        words[record] = score << SCORE_SHIFT | ownerBits;
        size++;
        if (records.residentChildren(record) == 0) {
            enqueue(record);
        }
    }

    /// The same of one that is a guess until [#confirmPrefetched].
    public void addPrefetched(int record, long score) {
        admit(record, score);
        words[record] |= PREFETCHED;
    }

    /// Makes an ordinary record of a guess, and answers whether it was one.
    public boolean confirmPrefetched(int record) {
        boolean guess = (words[record] & PREFETCHED) != 0;
        words[record] &= ~PREFETCHED;
        return guess;
    }

    /// Raises the score of a record of any queue over the same state; does nothing when it is resident in none.
    public void raiseScore(int record, long score) {
        long word = words[record];
        if ((word & OWNER_MASK) != 0 && score > word >>> SCORE_SHIFT) {
            words[record] = (word & ~SCORE_MASK) | (score << SCORE_SHIFT);
        }
    }

    /// A record lost its last resident child.
    public void onBecameLeaf(int record) {
        long word = words[record];
        boolean demoted = word >>> SCORE_SHIFT == 0;
        if ((word & OWNER_MASK) == ownerBits && (demoted || (word & QUEUED) == 0)) {
            enqueue(record);
        }
    }

    /// A record of this queue has left.
    public void forget(int record) {
        assert contains(record) : "record " + record + " is not here";
        words[record] = 0;
        size--;
    }

    /// Sets the score to 0, below every other.
    public void demote(int record) {
        assert contains(record) : "record " + record + " is not here";
        words[record] &= ~SCORE_MASK;
        if (records.residentChildren(record) == 0) {
            enqueue(record);
        }
    }

    /// The leaf with the lowest score that can be claimed, or [EvictionPolicy#NONE]. It is still held: the caller
    /// reads what it needs and then calls [#forget].
    ///
    /// @param refused called with each record that could not be claimed; may raise its score
    public int evict(IntPredicate claim, IntConsumer refused) {
        int refusalCount = 0;
        int victim = EvictionPolicy.NONE;
        while (victim == EvictionPolicy.NONE && refusalCount < MAX_REFUSALS && settleTop()) {
            int record = takeTop();
            if (claim.test(record)) {
                victim = record;
            } else {
                refusals = refusalCount < refusals.length ? refusals : Arrays.copyOf(refusals, 2 * refusalCount);
                refusals[refusalCount++] = record;
            }
        }
        for (int i = 0; i < refusalCount; i++) {
            refused.accept(refusals[i]);
            onBecameLeaf(refusals[i]);
        }
        return victim;
    }

    /// The leaf with the lowest score, or [EvictionPolicy#NONE].
    public int lowestRecord() {
        return settleTop() ? heap.top() : EvictionPolicy.NONE;
    }

    /// Score of the lowest leaf, or `Long.MAX_VALUE` when there is none.
    public long lowestScore() {
        return settleTop() ? score(heap.top()) : Long.MAX_VALUE;
    }

    private int takeTop() {
        int record = heap.top();
        heap.pop();
        words[record] &= ~QUEUED;
        return record;
    }

    /// Brings a true leaf of this queue, with its true score, to the top. False when there is none.
    private boolean settleTop() {
        int left = Math.max(MIN_CORRECTIONS, heap.size() / 16);
        while (heap.size() > 0) {
            int record = heap.top();
            if (left-- == 0 || heap.isSaturated()) {
                sweep();
            } else if (!contains(record)) {
                heap.pop();
            } else if (records.residentChildren(record) != 0) {
                takeTop();
            } else if (heap.isTopStale()) {
                heap.refreshTop();
            } else {
                return true;
            }
        }
        return false;
    }

    private void enqueue(int record) {
        words[record] |= QUEUED;
        if (heap.isFull()) {
            sweep();
            if (heap.isCrowded()) {
                heap.grow(records.capacity() + records.capacity() / 8);
            }
        }
        heap.push(record);
    }

    /// Keeps one entry for each leaf of this queue. The queued bit marks those that were not seen yet in the pass.
    private void sweep() {
        heap.rebuild(this::keepOnce);
        heap.forEach(record -> words[record] |= QUEUED);
    }

    private boolean keepOnce(int record) {
        long word = words[record];
        if ((word & OWNER_MASK) != ownerBits || (word & QUEUED) == 0) {
            return false;
        }
        words[record] = word & ~QUEUED;
        return records.residentChildren(record) == 0;
    }

    /// A four-ary min-heap of records whose entries are one `long` each: a key in the high bits, the record in the
    /// low ones.
    ///
    /// One word an entry halves the memory of the usual pair of arrays, the four children of a node share a cache
    /// line or two, and equal scores are ordered by record number, which makes every run repeatable. The key is the
    /// score's distance from a base, because a score has more bits than are left beside the record. Scores too far
    /// from the base all get the largest key; when nothing smaller is left, [#rebuild] moves the base. Score 0 has
    /// key 0 and is below all others.
    ///
    /// Keys are *lower bounds*: a score may rise after its record was pushed, and [#refreshTop()] corrects the
    /// entry when it comes to the top.
    static final class LongHeap {

        private static final int ARITY = 4;
        private static final int MIN_LENGTH = 16;

        private final IntToLongFunction scores;
        private final int recordBits;
        private final long recordMask;
        private final long maxKey;
        private long[] entries = new long[MIN_LENGTH];
        private int size;
        private long base = 1;

        /// @param capacity number of records
        /// @param scores the present score of a record, 0 to 2^54
        LongHeap(int capacity, IntToLongFunction scores) {
            this.scores = scores;
            recordBits = Math.max(1, Integer.SIZE - Integer.numberOfLeadingZeros(capacity - 1));
            recordMask = (1L << recordBits) - 1;
            maxKey = Long.MAX_VALUE >>> recordBits;
        }

        int size() {
            return size;
        }

        long bytes() {
            return (long) entries.length * Long.BYTES;
        }

        /// The record with the smallest key.
        int top() {
            return (int) (entries[0] & recordMask);
        }

        /// Returns whether the top's score has risen since its entry was written.
        boolean isTopStale() {
            return entry(top()) > entries[0];
        }

        /// Returns whether all entries are so far from the base that their order is lost.
        boolean isSaturated() {
            return size > 1 && entries[0] >>> recordBits == maxKey;
        }

        boolean isFull() {
            return size == entries.length;
        }

        /// Makes a quarter more room, but no more than `enough` as long as that leaves some.
        void grow(int enough) {
            int quarterMore = entries.length + entries.length / 4;
            int length = size < enough ? Math.min(quarterMore, Math.max(enough, entries.length)) : quarterMore;
            entries = Arrays.copyOf(entries, length);
        }

        /// Returns whether more than seven eighths of the room are taken.
        boolean isCrowded() {
            return size > entries.length - entries.length / 8;
        }

        void push(int record) {
            long score = scores.applyAsLong(record);
            if (score != 0 && score < base) {
                entries[size++] = record;
                rebuild(any -> true);
            } else {
                siftUp(size++, entry(record));
            }
        }

        void pop() {
            long last = entries[--size];
            if (size > 0) {
                siftDown(0, last);
            }
        }

        /// Writes the top's entry anew with its present score, which is not lower.
        void refreshTop() {
            siftDown(0, entry(top()));
        }

        /// Drops the records that `kept` refuses and gives the others exact keys. Moves the base, with half of
        /// the range left below the least score, when that score cannot be told apart over the present one.
        void rebuild(IntPredicate kept) {
            int survivors = 0;
            long least = Long.MAX_VALUE;
            for (int i = 0; i < size; i++) {
                int record = (int) (entries[i] & recordMask);
                if (kept.test(record)) {
                    entries[survivors++] = record;
                    long score = scores.applyAsLong(record);
                    least = score == 0 ? least : Math.min(least, score);
                }
            }
            size = survivors;
            if (size > 0 && least != Long.MAX_VALUE && (least < base || least - base >= maxKey - 1)) {
                base = Math.max(1, least - maxKey / 2);
            }
            for (int i = 0; i < size; i++) {
                entries[i] = entry((int) entries[i]);
            }
            for (int i = (size - 2) / ARITY; i >= 0 && size > 1; i--) {
                siftDown(i, entries[i]);
            }
        }

        void forEach(IntConsumer action) {
            for (int i = 0; i < size; i++) {
                action.accept((int) (entries[i] & recordMask));
            }
        }

        private long entry(int record) {
            long score = scores.applyAsLong(record);
            long key = score == 0 ? 0 : Math.clamp(score - base + 1, 1, maxKey);
            return key << recordBits | record;
        }

        private void siftUp(int from, long entry) {
            int at = from;
            while (at > 0) {
                int above = (at - 1) / ARITY;
                if (entries[above] <= entry) {
                    break;
                }
                entries[at] = entries[above];
                at = above;
            }
            entries[at] = entry;
        }

        private void siftDown(int from, long entry) {
            int at = from;
            int first = at * ARITY + 1;
            while (first < size) {
                int least = minChild(first);
                if (entries[least] >= entry) {
                    break;
                }
                entries[at] = entries[least];
                at = least;
                first = at * ARITY + 1;
            }
            entries[at] = entry;
        }

        private int minChild(int first) {
            int end = Math.min(first + ARITY, size);
            int least = first;
            for (int i = first + 1; i < end; i++) {
                if (entries[i] < entries[least]) {
                    least = i;
                }
            }
            return least;
        }
    }
}
