package io.kvcache.core.policy;

import java.util.Arrays;

/// Which lists of leaves have any, and the one of them that ranks lowest.
///
/// Lists lie in rows, one for each span of age, and in a row in lanes of [ImportanceWord#LISTS]. A rank
/// is asked for only where there are leaves: when a list gets its first, and when a row's lowest is
/// looked for. Each row remembers its lowest until that becomes empty or all ranks are new, so what
/// an eviction looks through is one row and the lowest of the others, however many lanes there are.
///
/// **Threads.** One writer, the holder of the store's lock.
final class MinScoreIndex {

    /// No list.
    static final int NONE = -1;

    private static final int LISTS = ImportanceWord.LISTS;

    /// A row's lowest is to be looked for.
    private static final int UNKNOWN = -2;

    /// What the leaves of a list are worth beside those of others.
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

    /// Looks for the list that ranks lowest: of the oldest span and the first in it among equals.
    /// That one stays until it is empty or another one is below it.
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
