package io.kvcache.core.policy;

import java.util.Arrays;

/// How many blocks of each kind are remembered, resident or not, by the row of [LeafBuckets] that
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
final class Remembered {

    private static final int CLASSES = ReuseModel.CLASSES;
    /// Of a row that is new, or has been told about.
    private static final int NONE = -1;

    private final ReuseModel model;
    private int labels = 1;
    private int[] counts = new int[0];
    private long[] owed = new long[0];
    /// A bit for each class of a label in a row that has any.
    private int[] present = new int[0];
    /// The bin of each row's age.
    private int[] bins = new int[0];

    Remembered(ReuseModel model) {
        this.model = model;
    }

    /// Makes room for more rows.
    void rows(int rows) {
        int before = bins.length;
        counts = Arrays.copyOf(counts, rows * labels * CLASSES);
        owed = Arrays.copyOf(owed, rows * labels * CLASSES);
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
            System.arraycopy(owed, row * labels * CLASSES, wideOwed, row * wide * CLASSES, labels * CLASSES);
            System.arraycopy(present, row * labels, widePresent, row * wide, labels);
        }
        counts = wideCounts;
        owed = wideOwed;
        present = widePresent;
        labels = wide;
    }

    /// Blocks of a kind come or go.
    ///
    /// @param kind their class, plus [ReuseModel#CLASSES] times their label
    /// @param now as [#age] and [#tell] had it last
    void change(int row, int kind, int change, long now) {
        int at = row * labels * CLASSES + kind;
        int count = counts[at] + change;
        assert count >= 0 : "kind " + kind + " has lost count in row " + row;
        counts[at] = count;
        owed[at] += change * now;
        if (count == 0 || count == change) {
            int ofLabel = row * labels + kind / CLASSES;
            int bit = 1 << kind % CLASSES;
            present[ofLabel] = count == 0 ? present[ofLabel] & ~bit : present[ofLabel] | bit;
            if (count == 0) {
                settle(row, kind, at);
            }
        }
    }

    int count(int row, int kind) {
        return counts[row * labels * CLASSES + kind];
    }

    /// Whether it is known of a row that it has blocks of a kind.
    boolean has(int row, int kind) {
        return (present[row * labels + kind / CLASSES] & 1 << kind % CLASSES) != 0;
    }

    /// A row's age is in this bin from a reading on.
    ///
    /// @param from at or after what was passed here last
    void age(int row, int bin, long from) {
        if (bins[row] != bin) {
            tell(row, from);
            bins[row] = bin;
        }
    }

    /// Tells the time that a row's blocks have had up to a reading.
    void tell(int row, long until) {
        if (bins[row] == NONE) {
            return;
        }
        for (int label = 0; label < labels; label++) {
            for (int left = present[row * labels + label]; left != 0; left &= left - 1) {
                int kind = label * CLASSES + Integer.numberOfTrailingZeros(left);
                int at = row * labels * CLASSES + kind;
                long reached = counts[at] * until;
                tell(kind, bins[row], reached - owed[at]);
                owed[at] = reached;
            }
        }
    }

    /// What one row has goes to another one.
    ///
    /// @param now as [#tell] has it
    void merge(int from, int into, long now) {
        if (bins[from] != bins[into]) {
            tell(from, now);
            tell(into, now);
        }
        for (int label = 0; label < labels; label++) {
            merge(from * labels + label, into * labels + label);
        }
        bins[from] = NONE;
    }

    long bytes() {
        long ints = (long) counts.length + present.length + bins.length;
        return ints * Integer.BYTES + (long) owed.length * Long.BYTES;
    }

    private void merge(int from, int into) {
        for (int left = present[from]; left != 0; left &= left - 1) {
            int classId = Integer.numberOfTrailingZeros(left);
            counts[into * CLASSES + classId] += counts[from * CLASSES + classId];
            owed[into * CLASSES + classId] += owed[from * CLASSES + classId];
            counts[from * CLASSES + classId] = 0;
            owed[from * CLASSES + classId] = 0;
        }
        present[into] |= present[from];
        present[from] = 0;
    }

    /// The last block of a kind has left a row.
    private void settle(int row, int kind, int at) {
        tell(kind, bins[row], -owed[at]);
        owed[at] = 0;
    }

    private void tell(int kind, int bin, long blockTime) {
        if (blockTime != 0 && bin != NONE) {
            model.unused(kind, bin, (double) blockTime);
        }
    }
}
