package io.kvcache.core.policy;

import io.kvcache.core.policy.ReuseTracker.AgeHistogram;
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
/// [ReuseTracker.AgeHistogram] has the same rows for all blocks, leaves or not, resident or not.
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
    /// First list of the newest span.
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

    /// The next leaf of the same list, or [#NONE].
    int newerThan(int record) {
        return newer[record];
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

    /// Index of the non-empty lists of leaves, with the one that ranks lowest.
    ///
    /// Lists lie in rows, one for each span of age, and in a row in lanes of [ImportanceWord#LISTS]. A rank is
    /// computed only for lists with leaves: when a list gets its first, and when a row's lowest is looked for.
    /// Each row remembers its lowest until that becomes empty or all ranks are new. So an eviction looks through
    /// one row and the lowest of the others, however many lanes there are.
    ///
    /// **Threads.** One writer, the holder of the store's lock.
    static final class MinScoreIndex {

        /// No list.
        static final int NONE = -1;

        private static final int LISTS = ImportanceWord.LISTS;

        /// A row's lowest is to be looked for.
        private static final int UNKNOWN = -2;

        /// Ranks the leaves of a list against those of other lists.
        interface ListScorer {

            /// Finds the rank, the same until [MinScoreIndex#invalidateScores] is called.
            ///
            /// @param list counted over all lanes
            float score(int span, int list);
        }

        private final ListScorer listScorer;
        private int labelClasses;
        /// A bit for each list of a lane in a row that has leaves.
        private long[] filledBits;
        /// For each row: the list, counted from the row's first, [#NONE] or [#UNKNOWN].
        private int[] lowestOfRow;
        private float[] rankOfRow;
        private int row = NONE;
        private int list = NONE;
        private float rank;

        MinScoreIndex(ListScorer listScorer, int labelClasses, int rows) {
            assert LISTS <= Long.SIZE : LISTS + " lists in a lane";
            this.listScorer = listScorer;
            this.labelClasses = labelClasses;
            filledBits = new long[rows * labelClasses];
            lowestOfRow = new int[rows];
            Arrays.fill(lowestOfRow, NONE);
            rankOfRow = new float[rows];
        }

        /// A list of the row of a span has got its first leaf.
        void markFilled(int ofRow, int span, int ofList) {
            filledBits[ofRow * labelClasses + ofList / LISTS] |= 1L << ofList % LISTS;
            float fresh = listScorer.score(span, ofList);
            if (lowestOfRow[ofRow] != UNKNOWN && isLower(ofRow, fresh, ofList)) {
                lowestOfRow[ofRow] = ofList;
                rankOfRow[ofRow] = fresh;
            }
            if (row != NONE && fresh < rank) {
                set(ofRow, ofList, fresh);
            }
        }

        /// A list has lost its last leaf.
        void markEmpty(int ofRow, int ofList) {
            filledBits[ofRow * labelClasses + ofList / LISTS] &= ~(1L << ofList % LISTS);
            if (lowestOfRow[ofRow] == ofList) {
                lowestOfRow[ofRow] = UNKNOWN;
            }
        }

        /// All ranks are new.
        void invalidateScores() {
            invalidateLowest();
            for (int each = 0; each < lowestOfRow.length; each++) {
                lowestOfRow[each] = lowestOfRow[each] == NONE ? NONE : UNKNOWN;
            }
        }

        /// The lowest is to be looked for.
        void invalidateLowest() {
            row = NONE;
        }

        /// The lists of a lane in a row that have leaves, a bit for each.
        long filledLists(int ofRow, int labelClass) {
            return filledBits[ofRow * labelClasses + labelClass];
        }

        /// The leaves of one row have gone to another one's lists.
        void merge(int from, int into) {
            for (int labelClass = 0; labelClass < labelClasses; labelClass++) {
                filledBits[into * labelClasses + labelClass] |= filledBits[from * labelClasses + labelClass];
                filledBits[from * labelClasses + labelClass] = 0;
            }
            lowestOfRow[from] = NONE;
            lowestOfRow[into] = UNKNOWN;
            invalidateLowest();
        }

        /// Looks for the list that ranks lowest; among equals, that of the oldest span and the first in it. The
        /// result stays the lowest until it is empty or another one is below it.
        ///
        /// @param rows the row of each span
        /// @param spans how many there are
        /// @return whether there is one, for [#row] and [#list]
        boolean findLowest(int[] rows, int spans) {
            if (row != NONE && (filledBits[row * labelClasses + list / LISTS] & 1L << list % LISTS) != 0) {
                return true;
            }
            invalidateLowest();
            for (int span = 0; span < spans; span++) {
                int each = rows[span];
                if (lowestOfRow[each] == UNKNOWN) {
                    search(each, span);
                }
                if (lowestOfRow[each] != NONE && (row == NONE || rankOfRow[each] < rank)) {
                    set(each, lowestOfRow[each], rankOfRow[each]);
                }
            }
            return row != NONE;
        }

        int row() {
            return row;
        }

        int list() {
            return list;
        }

        /// Makes room for more rows, or for more lanes in each, behind those that are there.
        void resize(int wide, int rows) {
            long[] spread = new long[rows * wide];
            for (int each = 0; each < lowestOfRow.length; each++) {
                System.arraycopy(filledBits, each * labelClasses, spread, each * wide, labelClasses);
            }
            int before = lowestOfRow.length;
            lowestOfRow = Arrays.copyOf(lowestOfRow, rows);
            Arrays.fill(lowestOfRow, before, rows, NONE);
            rankOfRow = Arrays.copyOf(rankOfRow, rows);
            filledBits = spread;
            labelClasses = wide;
        }

        long bytes() {
            return (long) filledBits.length * Long.BYTES + (long) lowestOfRow.length * (Integer.BYTES + Float.BYTES);
        }

        private void search(int ofRow, int span) {
            lowestOfRow[ofRow] = NONE;
            for (int labelClass = 0; labelClass < labelClasses; labelClass++) {
                for (long left = filledBits[ofRow * labelClasses + labelClass]; left != 0; left &= left - 1) {
                    int each = labelClass * LISTS + Long.numberOfTrailingZeros(left);
                    float fresh = listScorer.score(span, each);
                    if (isLower(ofRow, fresh, each)) {
                        lowestOfRow[ofRow] = each;
                        rankOfRow[ofRow] = fresh;
                    }
                }
            }
        }

        private boolean isLower(int ofRow, float fresh, int ofList) {
            int known = lowestOfRow[ofRow];
            return known == NONE || fresh < rankOfRow[ofRow] || (fresh == rankOfRow[ofRow] && ofList < known);
        }

        private void set(int ofRow, int ofList, float fresh) {
            row = ofRow;
            list = ofList;
            rank = fresh;
        }
    }

    /// Cuts the past into spans that are as long as they are far away.
    ///
    /// The newest span is open. Two neighbours become one when together they are no longer than an eighth
    /// of the time since they ended. So there are few spans, about eight a doubling of age, and what lies
    /// in one is of about one age.
    static final class AgeBuckets {

        /// A merged span's length is at most the time since its end divided by this.
        private static final int DISTANCE = 8;

        private long[] starts = new long[64];
        private int count = 1;

        /// @param start of the first span
        AgeBuckets(long start) {
            starts[0] = start;
        }

        int count() {
            return count;
        }

        /// The span of a reading; what is older than all of them belongs to the first.
        int bucketOf(long reading) {
            int last = count - 1;
            if (reading >= starts[last]) {
                return last;
            }
            int low = 0;
            int high = last - 1;
            while (low < high) {
                int middle = (low + high + 1) >>> 1;
                if (starts[middle] <= reading) {
                    low = middle;
                } else {
                    high = middle - 1;
                }
            }
            return low;
        }

        /// Time since the middle of a span.
        long age(int bucket, long now) {
            long end = bucket == count - 1 ? now : starts[bucket + 1];
            return now - (starts[bucket] + end) / 2;
        }

        /// Ends the newest span.
        void startBucket(long now) {
            if (count == starts.length) {
                starts = Arrays.copyOf(starts, 2 * count);
            }
            starts[count++] = now;
        }

        /// The first span, from one on, that is to be merged with the one after it, or -1.
        int findMergeable(int from, long now) {
            for (int bucket = from; bucket + 2 < count; bucket++) {
                long end = starts[bucket + 2];
                if ((end - starts[bucket]) * DISTANCE <= now - end) {
                    return bucket;
                }
            }
            return -1;
        }

        /// Makes one of a span and the one after it.
        void merge(int bucket) {
            System.arraycopy(starts, bucket + 2, starts, bucket + 1, count - bucket - 2);
            count--;
        }

        long bytes() {
            return (long) starts.length * Long.BYTES;
        }
    }
}
