package io.kvcache.core.policy;

import java.util.Arrays;

/// Leaves in lists by class and span of last use, and the list that ranks lowest.
///
/// All leaves of a list are worth about the same, so ranking lists is enough and each leaf costs
/// nothing while it waits: [MinScoreIndex] knows which ranks lowest. A list's leaves lie from the
/// oldest to the newest; links are in the arrays that all policies share.
///
/// The lists of a span are a row. A row stays where it is when spans are merged, and is used again
/// when its own span has gone into another.
///
/// [AgeHistogram] has the same rows for all blocks, leaves or not, resident or not.
final class AgeBucketLists {

    /// No leaf, no list.
    static final int NONE = RecordView.NONE;

    /// The list of what is worth nothing any more.
    static final int DEMOTED_LIST = 0;

    private static final int BASE = 1;
    private static final int LISTS = ImportanceWord.LISTS;
    private static final int MIN_ROWS = 16;

    private final AgeBuckets spans;
    private final MinScoreIndex lowest;
    private final AgeHistogram ageHistogram;
    private final int[] newer;
    private final int[] older;
    private int labelClasses = 1;
    private int[] oldest = new int[BASE + MIN_ROWS * LISTS];
    private int[] newest = new int[BASE + MIN_ROWS * LISTS];
    /// The row of each span, and behind those the rows that are free.
    private int[] rowOf = new int[MIN_ROWS];
    private int[] spanOf = new int[MIN_ROWS];
    /// Where the newest span's lists begin.
    private int newestRow = BASE;

    AgeBucketLists(PolicyState state, MinScoreIndex.ListScorer listScorer, AgeHistogram ageHistogram) {
        spans = new AgeBuckets(state.now());
        lowest = new MinScoreIndex(listScorer, labelClasses, MIN_ROWS);
        this.ageHistogram = ageHistogram;
        ageHistogram.ensureRows(MIN_ROWS);
        newer = state.newer();
        older = state.older();
        Arrays.fill(oldest, NONE);
        Arrays.fill(newest, NONE);
        Arrays.setAll(rowOf, row -> row);
    }

    /// Spans of age, the oldest first.
    int bucketCount() {
        return spans.count();
    }

    /// Time since the middle of a span.
    long age(int span, long now) {
        return spans.age(span, now);
    }

    /// The list of a class and a last use.
    int listFor(int classId, long lastUse) {
        return listAt(classId, spans.bucketOf(lastUse));
    }

    /// The list of a class in a span.
    int listAt(int classId, int span) {
        return BASE + rowOf[span] * labelClasses * LISTS + classId;
    }

    /// The row of a span.
    int rowAt(int span) {
        return rowOf[span];
    }

    /// The row of the span of a last use.
    int rowOfUse(long lastUse) {
        return rowOf[spans.bucketOf(lastUse)];
    }

    /// All ranks are new.
    void invalidateScores() {
        lowest.invalidateScores();
    }

    /// Puts a leaf at the newest end when the list is of the newest span, else at the oldest: what
    /// comes late there is a parent whose child has just gone, and is to go with it.
    void add(int bucket, int record) {
        boolean atNewest = bucket >= newestRow && bucket < newestRow + labelClasses * LISTS;
        boolean first = oldest[bucket] == NONE;
        int olderOne = atNewest ? newest[bucket] : NONE;
        int newerOne = atNewest ? NONE : oldest[bucket];
        join(bucket, olderOne, record);
        join(bucket, record, newerOne);
        if (bucket == DEMOTED_LIST) {
            lowest.invalidateLowest();
        } else if (first) {
            lowest.markFilled(rowOf(bucket), spanOf[rowOf(bucket)], listOf(bucket));
        }
    }

    void remove(int bucket, int record) {
        join(bucket, older[record], newer[record]);
        if (oldest[bucket] == NONE && bucket != DEMOTED_LIST) {
            lowest.markEmpty(rowOf(bucket), listOf(bucket));
        }
    }

    int oldest(int bucket) {
        return oldest[bucket];
    }

    /// The list with the lowest rank that has leaves, the oldest among equals, or [#NONE].
    int lowestList() {
        if (oldest[DEMOTED_LIST] != NONE) {
            return DEMOTED_LIST;
        }
        return lowest.findLowest(rowOf, spans.count())
                ? BASE + lowest.row() * labelClasses * LISTS + lowest.list()
                : NONE;
    }

    /// Makes lists for one more lane in each span, behind those that are there. All ranks are new
    /// then.
    void addLabelClass() {
        int size = BASE + rowOf.length * (labelClasses + 1) * LISTS;
        oldest = widen(oldest, size);
        newest = widen(newest, size);
        labelClasses++;
        lowest.resize(labelClasses, rowOf.length);
        lowest.invalidateScores();
        newestRow = listAt(0, spans.count() - 1);
    }

    private int[] widen(int[] narrow, int size) {
        int[] spread = new int[size];
        Arrays.fill(spread, NONE);
        spread[DEMOTED_LIST] = narrow[DEMOTED_LIST];
        int width = labelClasses * LISTS;
        for (int row = 0; row < rowOf.length; row++) {
            System.arraycopy(narrow, BASE + row * width, spread, BASE + row * (width + LISTS), width);
        }
        return spread;
    }

    /// Begins a new span and merges old ones. All ranks are new then.
    void startBucket(long now) {
        spans.startBucket(now);
        if (spans.count() > rowOf.length) {
            grow();
        }
        spanOf[rowOf[spans.count() - 1]] = spans.count() - 1;
        for (int span = spans.findMergeable(0, now); span >= 0; span = spans.findMergeable(span, now)) {
            merge(span, now);
        }
        newestRow = listAt(0, spans.count() - 1);
        lowest.invalidateScores();
    }

    long bytes() {
        long ints = 2L * oldest.length + rowOf.length + spanOf.length;
        return ints * Integer.BYTES + lowest.bytes() + spans.bytes();
    }

    private int rowOf(int bucket) {
        return (bucket - BASE) / (labelClasses * LISTS);
    }

    private int listOf(int bucket) {
        return (bucket - BASE) % (labelClasses * LISTS);
    }

    private void merge(int span, long now) {
        int into = rowOf[span];
        int from = rowOf[span + 1];
        for (int lane = 0; lane < labelClasses; lane++) {
            merge(lane, from, into);
        }
        lowest.merge(from, into);
        ageHistogram.merge(from, into, now);
        int count = spans.count();
        System.arraycopy(rowOf, span + 2, rowOf, span + 1, count - span - 2);
        rowOf[count - 1] = from;
        spans.merge(span);
        for (int each = span + 1; each < spans.count(); each++) {
            spanOf[rowOf[each]] = each;
        }
    }

    private void merge(int lane, int from, int into) {
        int second = BASE + (from * labelClasses + lane) * LISTS;
        int first = BASE + (into * labelClasses + lane) * LISTS;
        for (long left = lowest.filledLists(from, lane); left != 0; left &= left - 1) {
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
        int size = BASE + rows * labelClasses * LISTS;
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
        lowest.resize(labelClasses, rows);
        ageHistogram.ensureRows(rows);
    }
}
