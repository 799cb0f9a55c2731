package io.kvcache.core.policy;

import java.util.Arrays;
import java.util.function.IntConsumer;
import java.util.function.IntPredicate;
import java.util.function.IntToLongFunction;

/// A four-ary min-heap of records whose entries are one `long` each: a key in the high bits, the record in the low
/// ones.
///
/// One word an entry halves the memory of the usual pair of arrays, the four children of a node share a cache line
/// or two, and equal scores are ordered by record number, which makes every run repeatable. The key is the score's
/// distance from a base, because a score has more bits than are left beside the record. Scores too far from the
/// base all get the largest key; when nothing smaller is left, [#rebuild] moves the base. Score 0 has key 0 and is
/// below all others.
///
/// Keys are *lower bounds*: a score may rise after its record was pushed, and [#refreshTop()] corrects the entry when
/// it comes to the top.
final class LongHeap {

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

    /// Whether the top's score has risen since its entry was written.
    boolean isTopStale() {
        return entry(top()) > entries[0];
    }

    /// Whether all entries are so far from the base that their order is lost.
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

    /// Whether more than seven eighths of the room are taken.
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

    /// Drops the records that `kept` refuses and gives the others exact keys. Moves the base, with half of the
    /// range left below the least score, when that score cannot be told apart over the present one.
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
