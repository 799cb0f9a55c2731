package io.kvcache.core.policy;

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
/// **Labels.** When callers say of what class requests are, each label has rows of its own below
/// the classes, which count for those as well. A label differs from the others first by one factor
/// for each group, and then class by class and bin by bin. With one label there are no such rows,
/// and nothing differs.
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
    /// Of the groups used more than twice.
    private static final int OFTEN = FIRST_CLASS + CLASSES;
    private static final int ROWS = OFTEN + 1;

    private static final int FIRST_OFTEN = 2;
    private static final int FIRST_OFTEN_CLASS = BlockClasses.first(FIRST_OFTEN);

    /// Bounds densities. Ages below half a turn of [Lessons] have uses and next to no exposure, so
    /// what is used all the time looks better at each level.
    static final float MOST_DENSITY = 1e5f;

    /// Bins on either side that speak for a bin, the less the farther.
    private static final int REACH = 2;

    private final ImportanceRules rules;
    private double[] uses = new double[ROWS * BINS];
    private double[] exposure = new double[ROWS * BINS];
    /// Bins of each row up to the last that has anything, 0 for a row of which nothing was seen.
    private byte[] reach = new byte[ROWS];
    private float[] density = new float[CLASSES * BINS];
    private int labels = 1;
    private final double[] belief = new double[BINS];
    private final double[] ofAll = new double[BINS];
    private final double[] ofOften = new double[BINS];
    private final double[] ofGroup = new double[BINS];
    /// Of one label in one group.
    private final double[] ofLabel = new double[BINS];
    private final double[] hazard = new double[BINS];
    /// Of each class of one group, whatever its label.
    private final double[] hazards = new double[BlockClasses.PLACES * BINS];
    /// Of each kind whose densities were not asked for since [#refresh], as long as there are
    /// labels.
    private double[] hazardOfKind = new double[0];
    private boolean[] waiting = new boolean[0];
    private int bins;
    /// Uses that the level above has one expect.
    private final double[] expected = new double[BINS];
    private final double[] seenNear = new double[BINS];
    private final double[] expectedNear = new double[BINS];
    private final double[] survival = new double[BINS];
    private final double[] held = new double[BINS];

    ReuseModel(ImportanceRules rules) {
        this.rules = rules;
        for (int bin = 0; bin < BINS; bin++) {
            belief[bin] = rules.priorRate() / Math.max(1, AgeBins.start(bin));
        }
        refresh(1, BINS - 1);
    }

    long bytes() {
        long counts = (long) (uses.length + exposure.length) * Double.BYTES + reach.length;
        long ofKinds = (long) density.length * Float.BYTES + (long) hazardOfKind.length * Double.BYTES + waiting.length;
        return counts + ofKinds + (11L + BlockClasses.PLACES) * BINS * Double.BYTES;
    }

    /// Tells blocks with one label more apart. What was counted so far is the first one's.
    void addLabel() {
        settle();
        boolean first = labels == 1;
        labels++;
        int rows = ROWS + labels * CLASSES;
        uses = Arrays.copyOf(uses, rows * BINS);
        exposure = Arrays.copyOf(exposure, rows * BINS);
        reach = Arrays.copyOf(reach, rows);
        density = Arrays.copyOf(density, labels * CLASSES * BINS);
        hazardOfKind = new double[labels * CLASSES * BINS];
        waiting = new boolean[labels * CLASSES];
        if (first) {
            System.arraycopy(uses, FIRST_CLASS * BINS, uses, ROWS * BINS, CLASSES * BINS);
            System.arraycopy(exposure, FIRST_CLASS * BINS, exposure, ROWS * BINS, CLASSES * BINS);
            System.arraycopy(reach, FIRST_CLASS, reach, ROWS, CLASSES);
        }
        System.arraycopy(density, 0, density, (labels - 1) * CLASSES * BINS, CLASSES * BINS);
    }

    /// A block was used at an age.
    ///
    /// @param kind its class, plus [#CLASSES] times its label
    void used(int kind, long age) {
        add(uses, kind, AgeBins.of(age), 1);
    }

    /// Blocks were not used for a while.
    ///
    /// @param kind their class, plus [#CLASSES] times their label
    /// @param bin of their age, as [AgeBins] has it
    /// @param blockTime blocks times time
    void unused(int kind, int bin, double blockTime) {
        add(exposure, kind, bin, blockTime);
    }

    /// Uses expected per block and unit of time, as of the last [#refresh].
    ///
    /// @param kind their class, plus [#CLASSES] times their label
    /// @param bin of their age, as [AgeBins] has it
    float density(int kind, int bin) {
        if (labels > 1 && waiting[kind]) {
            settle(kind);
        }
        return density[kind * BINS + bin];
    }

    /// Computes the densities anew.
    ///
    /// @param keep share of the counts that is kept, above 0 to 1
    /// @param oldestBin bins above it hold nothing
    void refresh(double keep, int oldestBin) {
        fade(keep);
        int fresh = Math.min(BINS, oldestBin + 3);
        if (fresh < bins) {
            settle();
        }
        bins = fresh;
        learn(0, belief, 1, rules.priorEvents(), ofAll);
        learn(OFTEN, ofAll, rules.groupEvents(), ofOften);
        for (int group = 0; group < GROUPS; group++) {
            learn(1 + group, group < FIRST_OFTEN ? ofAll : ofOften, rules.groupEvents(), ofGroup);
            int first = BlockClasses.first(group);
            for (int classId = first; classId < BlockClasses.first(group + 1); classId++) {
                learn(FIRST_CLASS + classId, ofGroup, rules.classEvents(), hazard);
                if (labels == 1) {
                    densities(classId, bins);
                } else {
                    System.arraycopy(hazard, 0, hazards, (classId - first) * BINS, bins);
                }
            }
            for (int label = 0; label < labels && labels > 1; label++) {
                learnLabel(label, group, bins);
            }
        }
    }

    private void fade(double keep) {
        for (int row = 0; row < reach.length; row++) {
            for (int i = row * BINS; i < row * BINS + reach[row]; i++) {
                uses[i] *= keep;
                exposure[i] *= keep;
            }
        }
    }

    private void learnLabel(int label, int group, int bins) {
        double factor = factorOf(label, group, bins);
        int first = BlockClasses.first(group);
        for (int classId = first; classId < BlockClasses.first(group + 1); classId++) {
            int kind = label * CLASSES + classId;
            for (int bin = 0; bin < bins; bin++) {
                ofLabel[bin] = factor * hazards[(classId - first) * BINS + bin];
            }
            learn(ROWS + kind, ofLabel, rules.classEvents(), hazard);
            System.arraycopy(hazard, 0, hazardOfKind, kind * BINS, bins);
            waiting[kind] = true;
        }
    }

    private void settle() {
        for (int kind = 0; kind < waiting.length; kind++) {
            if (waiting[kind]) {
                settle(kind);
            }
        }
    }

    /// Computes the densities of a kind, of which most are never asked for.
    private void settle(int kind) {
        System.arraycopy(hazardOfKind, kind * BINS, hazard, 0, bins);
        densities(kind, bins);
        waiting[kind] = false;
    }

    /// How much oftener blocks with a label are used than others of their classes and ages.
    private double factorOf(int label, int group, int bins) {
        double seen = rules.classEvents();
        double sum = seen;
        int first = BlockClasses.first(group);
        for (int classId = first; classId < BlockClasses.first(group + 1); classId++) {
            int row = ROWS + label * CLASSES + classId;
            for (int bin = 0; bin < Math.min(bins, reach[row]); bin++) {
                seen += uses[row * BINS + bin];
                sum += exposure[row * BINS + bin] * hazards[(classId - first) * BINS + bin];
            }
        }
        return seen / sum;
    }

    private void add(double[] to, int kind, int bin, double amount) {
        int classId = kind % CLASSES;
        addTo(to, 0, bin, amount);
        addTo(to, 1 + BlockClasses.group(classId), bin, amount);
        addTo(to, FIRST_CLASS + classId, bin, amount);
        if (classId >= FIRST_OFTEN_CLASS) {
            addTo(to, OFTEN, bin, amount);
        }
        if (labels > 1) {
            addTo(to, ROWS + kind, bin, amount);
        }
    }

    private void addTo(double[] to, int row, int bin, double amount) {
        to[row * BINS + bin] += amount;
        if (bin >= reach[row]) {
            reach[row] = (byte) (bin + 1);
        }
    }

    private void learn(int row, double[] above, double weight, double[] result) {
        if (reach[row] == 0) {
            System.arraycopy(above, 0, result, 0, bins);
            return;
        }
        double seen = weight;
        double sum = weight;
        for (int bin = 0; bin < Math.min(bins, reach[row]); bin++) {
            seen += uses[row * BINS + bin];
            sum += exposure[row * BINS + bin] * above[bin];
        }
        learn(row, above, seen / sum, weight, result);
    }

    /// @param factor by which the whole row differs from the level above
    private void learn(int row, double[] above, double factor, double weight, double[] result) {
        int from = row * BINS;
        for (int bin = 0; bin < bins; bin++) {
            expected[bin] = factor * above[bin] * exposure[from + bin];
        }
        Arrays.fill(seenNear, 0, bins, weight);
        Arrays.fill(expectedNear, 0, bins, weight);
        for (int away = -REACH; away <= REACH; away++) {
            addNeighbours(from, away);
        }
        for (int bin = 0; bin < bins; bin++) {
            result[bin] = factor * above[bin] * seenNear[bin] / expectedNear[bin];
        }
    }

    /// What the bins that are so far away say of each one, neighbour by neighbour and not bin by
    /// bin, so that there is a loop without branches.
    private void addNeighbours(int from, int away) {
        double share = 1 - Math.abs(away) / (REACH + 1.0);
        int end = Math.min(bins, bins - away);
        for (int bin = Math.max(0, -away); bin < end; bin++) {
            seenNear[bin] += share * uses[from + bin + away];
            expectedNear[bin] += share * expected[bin + away];
        }
    }

    private void densities(int kind, int bins) {
        for (int bin = 0; bin < bins; bin++) {
            double inBin = hazard[bin] * AgeBins.width(bin);
            survival[bin] = Math.exp(-inBin);
            held[bin] = inBin < 1e-6 ? AgeBins.width(bin) : (1 - survival[bin]) / hazard[bin];
        }
        for (int bin = 0; bin < bins; bin++) {
            density[kind * BINS + bin] = (float) Math.min(MOST_DENSITY, best(bin, bins));
        }
    }

    private double best(int from, int bins) {
        double alive = 1;
        double time = 0;
        double best = 0;
        for (int bin = from; bin < bins; bin++) {
            time += alive * held[bin];
            alive *= survival[bin];
            best = time > 0 ? Math.max(best, (1 - alive) / time) : best;
        }
        return best;
    }
}
