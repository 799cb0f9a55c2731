package io.kvcache.core.policy;

import java.util.Arrays;

/// Leaves in lists by class and span of last use, and the list that ranks lowest.
///
/// All leaves of a list are worth about the same, so ranking lists is enough and each leaf costs
/// nothing while it waits. The lowest is remembered; it is looked for again, over all lists, only when
/// it has become empty. A list's leaves lie from the oldest to the newest; links are in the arrays that
/// all policies share.
///
/// Beside the lists it counts, for each class and span, the blocks that were last used there and are
/// still remembered, resident or not.
final class LeafBuckets {

    /// No leaf, no list.
    static final int NONE = RecordView.NONE;

    /// The list of what is worth nothing any more.
    static final int SPENT = 0;

    private static final int BASE = 1;

    private final AgeSpans spans;
    private int classes;
    private final int[] newer;
    private final int[] older;
    private int[] oldest;
    private int[] newest;
    private int[] tracked;
    private float[] ranks;
    /// A bit for each list that has leaves.
    private long[] filled;

    private int lowest = NONE;

    LeafBuckets(PolicyState state, int classes) {
        this.classes = classes;
        spans = new AgeSpans(state.now());
        newer = state.newer();
        older = state.older();
        int size = BASE + classes * 16;
        oldest = new int[size];
        newest = new int[size];
        Arrays.fill(oldest, NONE);
        Arrays.fill(newest, NONE);
        tracked = new int[size];
        ranks = new float[size];
        filled = new long[(size + Long.SIZE - 1) / Long.SIZE];
        ranks[SPENT] = Float.NEGATIVE_INFINITY;
    }

    /// Spans of age, the oldest first.
    int spans() {
        return spans.count();
    }

    /// Time since the middle of a span.
    long age(int span, long now) {
        return spans.age(span, now);
    }

    /// The list of a class and a last use.
    int bucket(int classId, long lastUse) {
        return BASE + spans.of(lastUse) * classes + classId;
    }

    /// The list of a class in a span.
    int at(int classId, int span) {
        return BASE + span * classes + classId;
    }

    int tracked(int bucket) {
        return tracked[bucket];
    }

    void track(int bucket, int change) {
        tracked[bucket] += change;
        assert tracked[bucket] >= 0 : "list " + bucket + " has lost count";
    }

    void rank(int bucket, float rank) {
        ranks[bucket] = rank;
    }

    /// All ranks are new.
    void ranked() {
        lowest = NONE;
    }

    /// Puts a leaf at the newest end when the list is of the newest span, else at the oldest: what
    /// comes late there is a parent whose child has just gone, and is to go with it.
    void add(int bucket, int record) {
        boolean atNewest = bucket >= at(0, spans.count() - 1);
        int olderOne = atNewest ? newest[bucket] : NONE;
        int newerOne = atNewest ? NONE : oldest[bucket];
        filled[bucket / Long.SIZE] |= 1L << bucket;
        join(bucket, olderOne, record);
        join(bucket, record, newerOne);
        if (lowest != NONE && ranks[bucket] < ranks[lowest]) {
            lowest = bucket;
        }
    }

    void remove(int bucket, int record) {
        join(bucket, older[record], newer[record]);
        if (oldest[bucket] == NONE) {
            filled[bucket / Long.SIZE] &= ~(1L << bucket);
        }
    }

    int oldest(int bucket) {
        return oldest[bucket];
    }

    /// The list with the lowest rank that has leaves, the oldest among equals, or [#NONE].
    int lowest() {
        if (lowest == NONE || oldest[lowest] == NONE) {
            lowest = NONE;
            for (int word = 0; word < filled.length; word++) {
                for (long left = filled[word]; left != 0; left &= left - 1) {
                    int bucket = word * Long.SIZE + Long.numberOfTrailingZeros(left);
                    if (lowest == NONE || ranks[bucket] < ranks[lowest]) {
                        lowest = bucket;
                    }
                }
            }
        }
        return lowest;
    }

    /// Makes lists for more classes in each span, behind those that are there.
    void widen(int more) {
        int wide = classes + more;
        int size = BASE + wide * Math.max(16, spans.count() + 1);
        oldest = spread(oldest, size, wide, NONE);
        newest = spread(newest, size, wide, NONE);
        tracked = spread(tracked, size, wide, 0);
        ranks = new float[size];
        ranks[SPENT] = Float.NEGATIVE_INFINITY;
        filled = new long[(size + Long.SIZE - 1) / Long.SIZE];
        classes = wide;
        markFilled();
        lowest = NONE;
    }

    private int[] spread(int[] narrow, int size, int wide, int empty) {
        int[] spread = new int[size];
        Arrays.fill(spread, empty);
        spread[SPENT] = narrow[SPENT];
        for (int span = 0; span < spans.count(); span++) {
            System.arraycopy(narrow, at(0, span), spread, BASE + span * wide, classes);
        }
        return spread;
    }

    /// Begins a new span and merges old ones.
    void cut(long now) {
        spans.cut(now);
        int end = at(0, spans.count());
        if (end > oldest.length) {
            grow(2 * end);
        }
        Arrays.fill(oldest, end - classes, end, NONE);
        Arrays.fill(newest, end - classes, end, NONE);
        Arrays.fill(tracked, end - classes, end, 0);
        for (int span = spans.mergeable(0, now); span >= 0; span = spans.mergeable(span, now)) {
            merge(span);
        }
        markFilled();
        lowest = NONE;
    }

    long bytes() {
        return (long) oldest.length * (3 * Integer.BYTES + Float.BYTES) + spans.bytes();
    }

    private void markFilled() {
        Arrays.fill(filled, 0);
        int end = at(0, spans.count());
        for (int bucket = 0; bucket < end; bucket++) {
            if (oldest[bucket] != NONE) {
                filled[bucket / Long.SIZE] |= 1L << bucket;
            }
        }
    }

    private void merge(int span) {
        for (int classId = 0; classId < classes; classId++) {
            int first = at(classId, span);
            int second = at(classId, span + 1);
            tracked[first] += tracked[second];
            if (oldest[first] == NONE) {
                oldest[first] = oldest[second];
                newest[first] = newest[second];
            } else if (oldest[second] != NONE) {
                newer[newest[first]] = oldest[second];
                older[oldest[second]] = newest[first];
                newest[first] = newest[second];
            }
        }
        int from = at(0, span + 2);
        int length = at(0, spans.count()) - from;
        for (int[] each : new int[][] {oldest, newest, tracked}) {
            System.arraycopy(each, from, each, from - classes, length);
        }
        spans.merge(span);
    }

    private void join(int bucket, int olderOne, int newerOne) {
        if (olderOne == NONE) {
            oldest[bucket] = newerOne;
        } else {
            newer[olderOne] = newerOne;
        }
        if (newerOne == NONE) {
            newest[bucket] = olderOne;
        } else {
            older[newerOne] = olderOne;
        }
    }

    private void grow(int size) {
        oldest = Arrays.copyOf(oldest, size);
        newest = Arrays.copyOf(newest, size);
        tracked = Arrays.copyOf(tracked, size);
        ranks = Arrays.copyOf(ranks, size);
        filled = Arrays.copyOf(filled, (size + Long.SIZE - 1) / Long.SIZE);
    }
}
