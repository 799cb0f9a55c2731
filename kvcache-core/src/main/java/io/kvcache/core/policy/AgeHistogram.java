package io.kvcache.core.policy;

import java.util.Arrays;

/// How many blocks of each kind are remembered, resident or not, by the row of [AgeBucketLists] that
/// has the span of their last use; and the time that they spend unused, which [ReuseModel] is to
/// hear of.
///
/// **Mechanism.** Time passes for all of them, but nothing is added up turn by turn: a span's age
/// stays in one bin of [AgeBins] for many turns, and only when it leaves that is the time told that
/// its blocks have had there. It is their number times the clock, less what is *owed*: the sum of
/// the clock's readings at which they came, less those at which others went. So a block that comes
/// or goes costs two additions, and a turn next to nothing, however many kinds there are.
///
/// Sums of readings wrap around; the differences that are told are far below 2^63.
///
/// **Threads.** One writer, the holder of the store's lock.
final class AgeHistogram {

    private static final int CLASSES = ReuseModel.CLASSES;
    /// Of a row that is new, or has been told about.
    private static final int NONE = -1;

    private final ReuseModel model;
    private int labels = 1;
    private int[] counts = new int[0];
    private long[] owedExposure = new long[0];
    /// A bit for each class of a label in a row that has any.
    private int[] present = new int[0];
    /// The bin of each row's age.
    private int[] bins = new int[0];

    AgeHistogram(ReuseModel model) {
        this.model = model;
    }

    /// Makes room for more rows.
    void ensureRows(int rows) {
        int before = bins.length;
        counts = Arrays.copyOf(counts, rows * labels * CLASSES);
        owedExposure = Arrays.copyOf(owedExposure, rows * labels * CLASSES);
        present = Arrays.copyOf(present, rows * labels);
        bins = Arrays.copyOf(bins, rows);
        Arrays.fill(bins, before, rows, NONE);
    }

    /// Makes room for one label more in each row.
    void addLabel() {
        int wide = labels + 1;
        int[] wideCounts = new int[bins.length * wide * CLASSES];
        long[] wideOwed = new long[bins.length * wide * CLASSES];
        int[] widePresent = new int[bins.length * wide];
        for (int row = 0; row < bins.length; row++) {
            System.arraycopy(counts, row * labels * CLASSES, wideCounts, row * wide * CLASSES, labels * CLASSES);
            System.arraycopy(owedExposure, row * labels * CLASSES, wideOwed, row * wide * CLASSES, labels * CLASSES);
            System.arraycopy(present, row * labels, widePresent, row * wide, labels);
        }
        counts = wideCounts;
        owedExposure = wideOwed;
        present = widePresent;
        labels = wide;
    }

    /// Blocks of a kind come or go.
    ///
    /// @param kind their class, plus [ReuseModel#CLASSES] times their label
    /// @param now as [#setAge] and [#creditExposure] had it last
    void addCount(int row, int kind, int change, long now) {
        int at = row * labels * CLASSES + kind;
        int count = counts[at] + change;
        assert count >= 0 : "kind " + kind + " has lost count in row " + row;
        counts[at] = count;
        owedExposure[at] += change * now;
        if (count == 0 || count == change) {
            int ofLabel = row * labels + kind / CLASSES;
            int bit = 1 << kind % CLASSES;
            present[ofLabel] = count == 0 ? present[ofLabel] & ~bit : present[ofLabel] | bit;
            if (count == 0) {
                clearKind(row, kind, at);
            }
        }
    }

    int count(int row, int kind) {
        return counts[row * labels * CLASSES + kind];
    }

    /// Whether it is known of a row that it has blocks of a kind.
    boolean hasKind(int row, int kind) {
        return (present[row * labels + kind / CLASSES] & 1 << kind % CLASSES) != 0;
    }

    /// A row's age is in this bin from a reading on.
    ///
    /// @param from at or after what was passed here last
    void setAge(int row, int bin, long from) {
        if (bins[row] != bin) {
            creditExposure(row, from);
            bins[row] = bin;
        }
    }

    /// Tells the time that a row's blocks have had up to a reading.
    void creditExposure(int row, long until) {
        if (bins[row] == NONE) {
            return;
        }
        for (int label = 0; label < labels; label++) {
            for (int left = present[row * labels + label]; left != 0; left &= left - 1) {
                int kind = label * CLASSES + Integer.numberOfTrailingZeros(left);
                int at = row * labels * CLASSES + kind;
                long reached = counts[at] * until;
                creditExposure(kind, bins[row], reached - owedExposure[at]);
                owedExposure[at] = reached;
            }
        }
    }

    /// What one row has goes to another one.
    ///
    /// @param now as [#creditExposure] has it
    void merge(int from, int into, long now) {
        if (bins[from] != bins[into]) {
            creditExposure(from, now);
            creditExposure(into, now);
        }
        for (int label = 0; label < labels; label++) {
            merge(from * labels + label, into * labels + label);
        }
        bins[from] = NONE;
    }

    long bytes() {
        long ints = (long) counts.length + present.length + bins.length;
        return ints * Integer.BYTES + (long) owedExposure.length * Long.BYTES;
    }

    private void merge(int from, int into) {
        for (int left = present[from]; left != 0; left &= left - 1) {
            int classId = Integer.numberOfTrailingZeros(left);
            counts[into * CLASSES + classId] += counts[from * CLASSES + classId];
            owedExposure[into * CLASSES + classId] += owedExposure[from * CLASSES + classId];
            counts[from * CLASSES + classId] = 0;
            owedExposure[from * CLASSES + classId] = 0;
        }
        present[into] |= present[from];
        present[from] = 0;
    }

    /// The last block of a kind has left a row.
    private void clearKind(int row, int kind, int at) {
        creditExposure(kind, bins[row], -owedExposure[at]);
        owedExposure[at] = 0;
    }

    private void creditExposure(int kind, int bin, long blockTime) {
        if (blockTime != 0 && bin != NONE) {
            model.addExposure(kind, bin, (double) blockTime);
        }
    }
}
