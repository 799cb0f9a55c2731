package io.kvcache.core.policy;

import io.kvcache.core.policy.ImportanceWord.BlockClasses;
import java.util.Arrays;

/// How soon blocks of a class and an age are used again, learned while they are.
///
/// **What is counted.** For each class and age bin: the uses that came at that age, and the exposure,
/// the time that blocks spent at that age unused. Their quotient is the hazard. Evicted blocks count as
/// long as they are remembered, so that a class that always goes early is still seen to come back. All
/// counts fade.
///
/// **Few observations.** A class takes its shape from its group — blocks of one step of use —
/// and the group from all blocks, and these from a belief; the groups used more than twice have what
/// they have in common between. Each level first learns one factor by which it differs from the level
/// above, then bin by bin, as far as there are uses to speak for it. Uses and exposure of the two bins
/// on either side speak for a bin too, the less the farther: blocks of one request are used at one age,
/// so that few requests make a peak where there is none.
///
/// **Labels.** When callers say of what class requests are, or sessions return ([LabelClasses.TurnGap]), each
/// label has rows of its own below the classes, which count for those as well. A label differs from the others
/// first by one factor for each group, and then class by class and bin by bin. With one label there are no such
/// rows, and nothing differs.
///
/// **Density.** From hazards follows what a block is worth: uses expected per unit of time in memory,
///
/// ```
/// D(a) = max over T of (1 - S(T)) / ∫₀ᵀ S,     S(T) = exp(-∫ hazard from a to a+T)
/// ```
///
/// It is the rate of the best plan "keep it until it is used, at most for T". With the hazard at the
/// present age alone, a block whose user is reading the answer would look worthless just before it is
/// used.
///
/// Source: hit density in the manner of LHD (Beckmann, Chen, Cidon, NSDI 2018), the maximum over T is
/// Gittins' index.
///
/// **Threads.** One writer, the holder of the store's lock.
final class ReuseModel {

    static final int CLASSES = BlockClasses.COUNT;

    private static final int BINS = AgeBins.COUNT;
    private static final int GROUPS = BlockClasses.GROUPS;
    private static final int FIRST_CLASS = 1 + GROUPS;
    /// First row of the groups used more than twice.
    private static final int FREQUENT_ROW = FIRST_CLASS + CLASSES;
    private static final int ROWS = FREQUENT_ROW + 1;

    private static final int FIRST_FREQUENT_GROUP = 2;
    private static final int FIRST_FREQUENT_CLASS = BlockClasses.firstClass(FIRST_FREQUENT_GROUP);

    /// Bounds densities. Ages below half a turn of [ReuseTracker] have uses and next to no exposure, so
    /// what is used all the time looks better at each level.
    static final float MAX_DENSITY = 1e5f;

    /// So far below 1 that no rounding is.
    private static final double ALMOST_ONE = 1 - 1e-15;

    /// Bins on either side that speak for a bin, the less the farther.
    private static final int REACH = 2;

    private final ImportanceConfig rules;
    private final ReuseCounts counts = new ReuseCounts(ROWS);
    /// Counts of each kind, as long as there are labels.
    private final ReuseCounts kindCounts = new ReuseCounts(0);
    /// Those as of the last [#refresh].
    private final ReuseCounts refreshedKindCounts = new ReuseCounts(0);
    private float[] density = new float[CLASSES * BINS];
    private int labels = 1;
    private final double[] belief = new double[BINS];
    private final double[] ofAll = new double[BINS];
    private final double[] ofOften = new double[BINS];
    private final double[] ofGroup = new double[BINS];
    /// Scratch: the counts of one label in one group.
    private final double[] ofLabel = new double[BINS];
    private final double[] hazard = new double[BINS];
    /// Hazard of each class, whatever its label.
    private final double[] hazards = new double[CLASSES * BINS];
    /// For each label and group: what [#factorOf] has worked out since [#refresh], 0 when it has not.
    private double[] factors = new double[GROUPS];
    /// The kinds whose densities were not asked for since [#refresh].
    private boolean[] isStale = new boolean[CLASSES];
    private int bins;
    /// Uses that the level above has one expect.
    private final double[] expected = new double[BINS];
    private final double[] seenNear = new double[BINS];
    private final double[] expectedNear = new double[BINS];
    private final double[] survival = new double[BINS];
    private final double[] held = new double[BINS];

    ReuseModel(ImportanceConfig rules) {
        this.rules = rules;
        for (int bin = 0; bin < BINS; bin++) {
            belief[bin] = rules.priorRate() / Math.max(1, AgeBins.start(bin));
        }
        refresh(1, BINS - 1);
    }

    long bytes() {
        long ofModel = (long) density.length * Float.BYTES + (long) factors.length * Double.BYTES + isStale.length;
        return counts.bytes()
                + kindCounts.bytes()
                + refreshedKindCounts.bytes()
                + ofModel
                + (11L + CLASSES) * BINS * Double.BYTES;
    }

    /// Adds a label by which blocks are distinguished. What was counted so far is the first one's.
    void addLabel() {
        settle(0);
        boolean first = labels == 1;
        labels++;
        int kinds = labels * CLASSES;
        kindCounts.ensureRows(kinds);
        refreshedKindCounts.ensureRows(kinds);
        density = Arrays.copyOf(density, kinds * BINS);
        factors = new double[labels * GROUPS];
        isStale = new boolean[kinds];
        if (first) {
            kindCounts.copyFrom(counts, FIRST_CLASS, CLASSES);
        }
        System.arraycopy(density, 0, density, (labels - 1) * CLASSES * BINS, CLASSES * BINS);
    }

    /// A block was used at an age.
    ///
    /// @param kind its class, plus [#CLASSES] times its label
    void addUse(int kind, long age) {
        int bin = AgeBins.binOf(age);
        int classId = kind % CLASSES;
        counts.addUse(0, bin);
        counts.addUse(1 + BlockClasses.group(classId), bin);
        counts.addUse(FIRST_CLASS + classId, bin);
        if (classId >= FIRST_FREQUENT_CLASS) {
            counts.addUse(FREQUENT_ROW, bin);
        }
        if (labels > 1) {
            kindCounts.addUse(kind, bin);
        }
    }

    /// Blocks were not used for a while.
    ///
    /// @param kind their class, plus [#CLASSES] times their label
    /// @param bin of their age, as [AgeBins] has it
    /// @param blockTime blocks times time
    void addExposure(int kind, int bin, double blockTime) {
        int classId = kind % CLASSES;
        counts.addExposure(0, bin, blockTime);
        counts.addExposure(1 + BlockClasses.group(classId), bin, blockTime);
        counts.addExposure(FIRST_CLASS + classId, bin, blockTime);
        if (classId >= FIRST_FREQUENT_CLASS) {
            counts.addExposure(FREQUENT_ROW, bin, blockTime);
        }
        if (labels > 1) {
            kindCounts.addExposure(kind, bin, blockTime);
        }
    }

    /// Uses expected per block and unit of time, as of the last [#refresh].
    ///
    /// @param kind their class, plus [#CLASSES] times their label
    /// @param bin of their age, as [AgeBins] has it
    float density(int kind, int bin) {
        if (isStale[kind]) {
            settle(kind, 0);
        }
        return density[kind * BINS + bin];
    }

    /// Learns anew what has been counted. Of classes that is done at once; of labels, and of what
    /// follows for densities, when it is asked for, which for most kinds it never is.
    ///
    /// @param keep share of the counts that is kept, above 0 to 1
    /// @param oldestBin bins above it hold nothing
    void refresh(double keep, int oldestBin) {
        int fresh = Math.min(BINS, oldestBin + 3);
        if (fresh < bins) {
            settle(fresh);
        }
        bins = fresh;
        counts.decay(keep);
        kindCounts.decay(keep);
        refreshedKindCounts.copyFrom(kindCounts, 0, labels > 1 ? labels * CLASSES : 0);
        estimate(counts, 0, belief, 1, rules.priorEvents(), ofAll);
        estimate(counts, FREQUENT_ROW, ofAll, rules.groupEvents(), ofOften);
        for (int group = 0; group < GROUPS; group++) {
            estimate(counts, 1 + group, group < FIRST_FREQUENT_GROUP ? ofAll : ofOften, rules.groupEvents(), ofGroup);
            for (int classId = BlockClasses.firstClass(group);
                    classId < BlockClasses.firstClass(group + 1);
                    classId++) {
                estimate(counts, FIRST_CLASS + classId, ofGroup, rules.classEvents(), hazard);
                System.arraycopy(hazard, 0, hazards, classId * BINS, bins);
            }
        }
        Arrays.fill(factors, 0);
        Arrays.fill(isStale, true);
    }

    private void settle(int from) {
        for (int kind = 0; kind < isStale.length; kind++) {
            if (isStale[kind]) {
                settle(kind, from);
            }
        }
    }

    /// Computes the densities of a kind, from a bin on.
    private void settle(int kind, int from) {
        int classId = kind % CLASSES;
        if (labels == 1) {
            System.arraycopy(hazards, classId * BINS, hazard, 0, bins);
        } else {
            double factor = factor(kind / CLASSES, BlockClasses.group(classId));
            for (int bin = 0; bin < bins; bin++) {
                ofLabel[bin] = factor * hazards[classId * BINS + bin];
            }
            estimate(refreshedKindCounts, kind, ofLabel, rules.labelEvents(), hazard);
        }
        densities(kind, from);
        isStale[kind] = false;
    }

    private double factor(int label, int group) {
        int at = label * GROUPS + group;
        if (factors[at] == 0) {
            factors[at] = factorOf(label, group);
        }
        return factors[at];
    }

    /// How much oftener blocks with a label are used than others of their classes and ages.
    private double factorOf(int label, int group) {
        double seen = rules.labelEvents();
        double sum = seen;
        for (int classId = BlockClasses.firstClass(group); classId < BlockClasses.firstClass(group + 1); classId++) {
            int kind = label * CLASSES + classId;
            int end = Math.min(bins, refreshedKindCounts.reach(kind));
            for (int bin = 0; bin < end; bin++) {
                seen += refreshedKindCounts.uses(kind, bin);
                sum += refreshedKindCounts.exposure(kind, bin) * hazards[classId * BINS + bin];
            }
        }
        return seen / sum;
    }

    private void estimate(ReuseCounts of, int row, double[] above, double weight, double[] result) {
        int end = Math.min(bins, of.reach(row));
        if (end == 0) {
            System.arraycopy(above, 0, result, 0, bins);
            return;
        }
        double seen = weight;
        double sum = weight;
        for (int bin = 0; bin < end; bin++) {
            seen += of.uses(row, bin);
            sum += of.exposure(row, bin) * above[bin];
        }
        estimate(of, row, above, seen / sum, weight, result);
    }

    /// @param factor by which the whole row differs from the level above
    private void estimate(ReuseCounts of, int row, double[] above, double factor, double weight, double[] result) {
        for (int bin = 0; bin < bins; bin++) {
            expected[bin] = factor * above[bin] * of.exposure(row, bin);
        }
        Arrays.fill(seenNear, 0, bins, weight);
        Arrays.fill(expectedNear, 0, bins, weight);
        for (int away = -REACH; away <= REACH; away++) {
            addNeighbours(of, row, away);
        }
        for (int bin = 0; bin < bins; bin++) {
            result[bin] = factor * above[bin] * seenNear[bin] / expectedNear[bin];
        }
    }

    /// Adds the counts of the bins at this distance to each bin. It goes neighbour by neighbour and not bin by
    /// bin, so that the loop has no branches.
    private void addNeighbours(ReuseCounts of, int row, int away) {
        double share = 1 - Math.abs(away) / (REACH + 1.0);
        int end = Math.min(bins, bins - away);
        for (int bin = Math.max(0, -away); bin < end; bin++) {
            seenNear[bin] += share * of.uses(row, bin + away);
            expectedNear[bin] += share * expected[bin + away];
        }
    }

    private void densities(int kind, int from) {
        for (int bin = from; bin < bins; bin++) {
            double inBin = hazard[bin] * AgeBins.width(bin);
            survival[bin] = Math.exp(-inBin);
            held[bin] = inBin < 1e-6 ? AgeBins.width(bin) : (1 - survival[bin]) / hazard[bin];
        }
        for (int bin = from; bin < bins; bin++) {
            density[kind * BINS + bin] = (float) Math.min(MAX_DENSITY, bestDensity(bin));
        }
    }

    private double bestDensity(int from) {
        double alive = 1;
        double time = 0;
        double best = 0;
        for (int bin = from; bin < bins; bin++) {
            time += alive * held[bin];
            alive *= survival[bin];
            if (1 - alive > best * time * ALMOST_ONE) { // else the quotient is no better, and need not be worked out
                best = Math.max(best, (1 - alive) / time);
            }
        }
        return best;
    }

    /// Uses and exposure by age, for rows of blocks that [ReuseModel] tells apart or together.
    ///
    /// **Threads.** One writer, the holder of the store's lock.
    private static final class ReuseCounts {

        private static final int BINS = AgeBins.COUNT;

        private double[] uses;
        private double[] exposure;
        /// Bins of each row up to the last that has anything, 0 for a row of which nothing was seen.
        private byte[] reach;

        ReuseCounts(int rows) {
            uses = new double[rows * BINS];
            exposure = new double[rows * BINS];
            reach = new byte[rows];
        }

        /// Makes room for more rows.
        void ensureRows(int rows) {
            uses = Arrays.copyOf(uses, rows * BINS);
            exposure = Arrays.copyOf(exposure, rows * BINS);
            reach = Arrays.copyOf(reach, rows);
        }

        /// A block of a row was used.
        void addUse(int row, int bin) {
            uses[row * BINS + bin]++;
            extendReach(row, bin);
        }

        /// Blocks of a row were not used for a while.
        ///
        /// @param blockTime blocks times time
        void addExposure(int row, int bin, double blockTime) {
            exposure[row * BINS + bin] += blockTime;
            extendReach(row, bin);
        }

        private void extendReach(int row, int bin) {
            if (bin >= reach[row]) {
                reach[row] = (byte) (bin + 1);
            }
        }

        double uses(int row, int bin) {
            return uses[row * BINS + bin];
        }

        double exposure(int row, int bin) {
            return exposure[row * BINS + bin];
        }

        int reach(int row) {
            return reach[row];
        }

        /// Takes rows over from another one.
        ///
        /// @param from the first of them there; the first one here is the first of all
        void copyFrom(ReuseCounts other, int from, int rows) {
            for (int row = 0; row < rows; row++) {
                int length = other.reach[from + row];
                System.arraycopy(other.uses, (from + row) * BINS, uses, row * BINS, length);
                System.arraycopy(other.exposure, (from + row) * BINS, exposure, row * BINS, length);
                reach[row] = (byte) length;
            }
        }

        /// Has each count weigh less.
        ///
        /// @param keep share of it that is kept
        void decay(double keep) {
            for (int row = 0; row < reach.length; row++) {
                decay(uses, row, keep);
                decay(exposure, row, keep);
            }
        }

        private void decay(double[] counts, int row, double keep) {
            int end = row * BINS + reach[row];
            for (int i = row * BINS; i < end; i++) {
                counts[i] *= keep;
            }
        }

        long bytes() {
            return (long) (uses.length + exposure.length) * Double.BYTES + reach.length;
        }
    }

    /// Ages in half octaves: two bins for each doubling, so that a bin is about 40 % wide whatever the age.
    static final class AgeBins {

        /// Ages up to 2^42 are told apart; older ones share the last bin.
        static final int COUNT = 84;

        private AgeBins() {}

        /// The bin of an age, from 0 to [#COUNT], exclusive.
        static int binOf(long age) {
            if (age < 2) {
                return 0;
            }
            int octave = Long.SIZE - 1 - Long.numberOfLeadingZeros(age);
            int upperHalf = (int) (age >>> (octave - 1)) & 1;
            return Math.min(COUNT - 1, 2 * octave + upperHalf);
        }

        /// The first age of a bin. Bin 1 is empty.
        static long start(int bin) {
            if (bin < 2) {
                return 2L * bin;
            }
            long octave = 1L << (bin / 2);
            return bin % 2 == 0 ? octave : octave + octave / 2;
        }

        /// How many ages a bin has.
        static long width(int bin) {
            return Math.max(0, start(bin + 1) - start(bin));
        }
    }
}
