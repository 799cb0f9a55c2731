package io.kvcache.core.policy;

import java.util.Arrays;

/// Leaves in lists by class and span of last use, and the list that ranks lowest.
///
/// All leaves of a list are worth about the same, so ranking lists is enough and each leaf costs
/// nothing while it waits: [LowestList] knows which ranks lowest. A list's leaves lie from the
/// oldest to the newest; links are in the arrays that all policies share.
///
/// The lists of a span are a row. A row stays where it is when spans are merged, and is used again
/// when its own span has gone into another.
///
/// [Remembered] has the same rows for all blocks, leaves or not, resident or not.
final class LeafBuckets {

    /// No leaf, no list.
    static final int NONE = RecordView.NONE;

    /// The list of what is worth nothing any more.
    static final int SPENT = 0;

    private static final int BASE = 1;
    private static final int LISTS = BlockWord.LISTS;
    private static final int FEWEST_ROWS = 16;

    private final AgeSpans spans;
    private final LowestList lowest;
    private final Remembered remembered;
    private final int[] newer;
    private final int[] older;
    private int lanes = 1;
    private int[] oldest = new int[BASE + FEWEST_ROWS * LISTS];
    private int[] newest = new int[BASE + FEWEST_ROWS * LISTS];
    /// The row of each span, and behind those the rows that are free.
    private int[] rowOf = new int[FEWEST_ROWS];
    private int[] spanOf = new int[FEWEST_ROWS];
    /// Where the newest span's lists begin.
    private int newestRow = BASE;

    LeafBuckets(PolicyState state, LowestList.Ranking ranking, Remembered remembered) {
        spans = new AgeSpans(state.now());
        lowest = new LowestList(ranking, lanes, FEWEST_ROWS);
        this.remembered = remembered;
        remembered.rows(FEWEST_ROWS);
        newer = state.newer();
        older = state.older();
        Arrays.fill(oldest, NONE);
        Arrays.fill(newest, NONE);
        Arrays.setAll(rowOf, row -> row);
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
        return at(classId, spans.of(lastUse));
    }

    /// The list of a class in a span.
    int at(int classId, int span) {
        return BASE + rowOf[span] * lanes * LISTS + classId;
    }

    /// The row of a span.
    int row(int span) {
        return rowOf[span];
    }

    /// The row of the span of a last use.
    int rowOfUse(long lastUse) {
        return rowOf[spans.of(lastUse)];
    }

    /// All ranks are new.
    void ranked() {
        lowest.ranked();
    }

    /// Puts a leaf at the newest end when the list is of the newest span, else at the oldest: what
    /// comes late there is a parent whose child has just gone, and is to go with it.
    void add(int bucket, int record) {
        boolean atNewest = bucket >= newestRow && bucket < newestRow + lanes * LISTS;
        boolean first = oldest[bucket] == NONE;
        int olderOne = atNewest ? newest[bucket] : NONE;
        int newerOne = atNewest ? NONE : oldest[bucket];
        join(bucket, olderOne, record);
        join(bucket, record, newerOne);
        if (bucket == SPENT) {
            lowest.forget();
        } else if (first) {
            lowest.fill(rowOf(bucket), spanOf[rowOf(bucket)], listOf(bucket));
        }
    }

    void remove(int bucket, int record) {
        join(bucket, older[record], newer[record]);
        if (oldest[bucket] == NONE && bucket != SPENT) {
            lowest.empty(rowOf(bucket), listOf(bucket));
        }
    }

    int oldest(int bucket) {
        return oldest[bucket];
    }

    /// The list with the lowest rank that has leaves, the oldest among equals, or [#NONE].
    int lowest() {
        if (oldest[SPENT] != NONE) {
            return SPENT;
        }
        return lowest.find(rowOf, spans.count()) ? BASE + lowest.row() * lanes * LISTS + lowest.list() : NONE;
    }

    /// Makes lists for one more lane in each span, behind those that are there. All ranks are new
    /// then.
    void addLane() {
        int size = BASE + rowOf.length * (lanes + 1) * LISTS;
        oldest = spread(oldest, size);
        newest = spread(newest, size);
        lanes++;
        lowest.widen(lanes, rowOf.length);
        lowest.ranked();
        newestRow = at(0, spans.count() - 1);
    }

    private int[] spread(int[] narrow, int size) {
        int[] spread = new int[size];
        Arrays.fill(spread, NONE);
        spread[SPENT] = narrow[SPENT];
        int width = lanes * LISTS;
        for (int row = 0; row < rowOf.length; row++) {
            System.arraycopy(narrow, BASE + row * width, spread, BASE + row * (width + LISTS), width);
        }
        return spread;
    }

    /// Begins a new span and merges old ones. All ranks are new then.
    void cut(long now) {
        spans.cut(now);
        if (spans.count() > rowOf.length) {
            grow();
        }
        spanOf[rowOf[spans.count() - 1]] = spans.count() - 1;
        for (int span = spans.mergeable(0, now); span >= 0; span = spans.mergeable(span, now)) {
            merge(span, now);
        }
        newestRow = at(0, spans.count() - 1);
        lowest.ranked();
    }

    long bytes() {
        long ints = 2L * oldest.length + rowOf.length + spanOf.length;
        return ints * Integer.BYTES + lowest.bytes() + spans.bytes();
    }

    private int rowOf(int bucket) {
        return (bucket - BASE) / (lanes * LISTS);
    }

    private int listOf(int bucket) {
        return (bucket - BASE) % (lanes * LISTS);
    }

    private void merge(int span, long now) {
        int into = rowOf[span];
        int from = rowOf[span + 1];
        for (int lane = 0; lane < lanes; lane++) {
            merge(lane, from, into);
        }
        lowest.merge(from, into);
        remembered.merge(from, into, now);
        int count = spans.count();
        System.arraycopy(rowOf, span + 2, rowOf, span + 1, count - span - 2);
        rowOf[count - 1] = from;
        spans.merge(span);
        for (int each = span + 1; each < spans.count(); each++) {
            spanOf[rowOf[each]] = each;
        }
    }

    private void merge(int lane, int from, int into) {
        int second = BASE + (from * lanes + lane) * LISTS;
        int first = BASE + (into * lanes + lane) * LISTS;
        for (long left = lowest.filled(from, lane); left != 0; left &= left - 1) {
            int list = Long.numberOfTrailingZeros(left);
            append(second + list, first + list);
        }
    }

    private void append(int second, int first) {
        if (oldest[first] == NONE) {
            oldest[first] = oldest[second];
        } else {
            newer[newest[first]] = oldest[second];
            older[oldest[second]] = newest[first];
        }
        newest[first] = newest[second];
        oldest[second] = NONE;
        newest[second] = NONE;
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

    private void grow() {
        int before = rowOf.length;
        int rows = 2 * before;
        int size = BASE + rows * lanes * LISTS;
        int sizeBefore = oldest.length;
        oldest = Arrays.copyOf(oldest, size);
        newest = Arrays.copyOf(newest, size);
        Arrays.fill(oldest, sizeBefore, size, NONE);
        Arrays.fill(newest, sizeBefore, size, NONE);
        rowOf = Arrays.copyOf(rowOf, rows);
        spanOf = Arrays.copyOf(spanOf, rows);
        for (int row = before; row < rows; row++) {
            rowOf[row] = row;
        }
        lowest.widen(lanes, rows);
        remembered.rows(rows);
    }
}
