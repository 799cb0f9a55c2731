package io.kvcache.core.policy;

import io.kvcache.core.policy.AgeBucketLists.MinScoreIndex;
import io.kvcache.core.policy.ImportancePolicy.CandidateIndex;
import io.kvcache.core.policy.LabelClasses.BlockLabel;
import io.kvcache.core.policy.ReuseModel.AgeBins;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;

/// Memory of [ImportancePolicy] of all blocks, resident or gone, and the scores of its leaves that follow.
///
/// Each remembered block counts in [AgeHistogram] under its kind and the span of its last use. Once a turn, time
/// passes for all of them at once, so blocks without uses cost nothing. A turn is 16 uses or a 64th of the
/// resident blocks, whichever is more. The model is computed anew every 1,024 uses or an eighth of them. Only uses
/// of this instance's blocks count: others move the shared clock, but give this instance nothing to do.
///
/// **Threads.** One writer, the holder of the store's lock.
final class ReuseTracker {

    /// Evicted blocks that even a small cache remembers, 8 bytes each.
    private static final int MIN_GHOSTS = 1 << 13;

    private static final int MIN_EPOCH = 16;
    private static final int EPOCHS_PER_TURNOVER = 64;
    private static final int MIN_REFRESH = 1024;
    private static final int REFRESHES_PER_TURNOVER = 8;

    private static final int KINDS = ReuseModel.CLASSES * BlockLabel.LABELS;
    /// From here on a class of [GhostCache] says that a use of the block was announced and is still ahead: one
    /// class for each step of use and label.
    private static final int FIRST_ANNOUNCED_CLASS = KINDS;

    private final ImportanceConfig rules;
    private final PolicyState state;
    private final AgeHistogram ageHistogram;
    private final AgeBucketLists buckets;
    private final LabelClasses labelClasses;
    private final ReuseModel model;
    private final BucketScores bucketScores;
    private GhostCache ghostCache = new GhostCache(1);
    private long epochStart;
    private int epochLength = 1;
    private int usesInEpoch;
    private long usesSinceRefresh;

    ReuseTracker(ImportanceConfig rules, PolicyState state, LabelClasses labelClasses) {
        this.rules = rules;
        this.state = state;
        this.labelClasses = labelClasses;
        model = new ReuseModel(rules);
        bucketScores = new BucketScores(labelClasses, model);
        ageHistogram = new AgeHistogram(model);
        buckets = new AgeBucketLists(state, bucketScores, ageHistogram);
        epochStart = state.now();
    }

    /// The lists of the leaves.
    AgeBucketLists buckets() {
        return buckets;
    }

    /// Sees that there are lists and rows for what is said of a block. The lists are to be ranked
    /// when there were none.
    ///
    /// @return whether there were none
    boolean ensureLabel(byte blockLabel) {
        int before = labelClasses.count();
        int labels = labelClasses.labelCount();
        labelClasses.ensureClass(blockLabel);
        if (labelClasses.labelCount() > labels) {
            model.addLabel();
            ageHistogram.addLabel();
        }
        for (int labelClass = before; labelClass < labelClasses.count(); labelClass++) {
            buckets.addLabelClass();
        }
        return labelClasses.count() > before;
    }

    /// A resident block with this word is remembered from now on.
    void addResident(int labelClass, long word) {
        countResident(labelClass, word, 1);
    }

    /// It is remembered no longer, or in another lane, or with another word.
    void removeResident(int labelClass, long word) {
        countResident(labelClass, word, -1);
    }

    /// A resident block with this word was used, or became known to be used.
    void onUse(int labelClass, long word, long now) {
        if (ImportanceWord.isCounted(word)) {
            model.addUse(kind(labelClass, word), now - ImportanceWord.stamp(word));
        }
        removeResident(labelClass, word);
    }

    /// A block is used that is not resident.
    ///
    /// @return its ghost, which it has no longer, as [#ghostOf] has it
    long onReturn(long fingerprint, long now) {
        long ghost = ghostCache.remove(fingerprint);
        if (isTracked(ghost)) {
            model.addUse(GhostCache.classOf(ghost), ageOf(ghost, now));
            onGhostRemoved(ghost);
        }
        return ghost;
    }

    /// Returns the ghost of a block that is not resident, or was not used since it came; [GhostCache#NONE] when
    /// nothing is known of it.
    long ghostOf(long fingerprint) {
        return ghostCache.find(fingerprint);
    }

    /// Returns whether anything is known of a block that is not resident.
    boolean hasGhost(long fingerprint) {
        return ghostOf(fingerprint) != GhostCache.NONE;
    }

    /// Nothing is to be known of a block any more that is not resident, or was not used since it
    /// came.
    void removeGhost(long fingerprint) {
        onGhostRemoved(ghostCache.remove(fingerprint));
    }

    /// A block, resident or not, is known to be used soon. To the model that is the use of one that is not
    /// resident, as it is of others.
    void onAnnounced(long fingerprint, long now) {
        long ghost = onReturn(fingerprint, now);
        if (ghost == GhostCache.NONE) {
            return;
        }
        int known = GhostCache.classOf(ghost);
        int announced = known;
        if (known < FIRST_ANNOUNCED_CLASS) {
            int steps = ImportanceWord.usesOf(known % ReuseModel.CLASSES) - 1;
            announced = FIRST_ANNOUNCED_CLASS + labelOf(ghost) * ImportanceWord.MAX_USES + steps;
        }
        onGhostRemoved(ghostCache.put(fingerprint, announced, now, now));
    }

    /// The step of use that a block has come to that has returned, with this use, 1 to
    /// [ImportanceWord#LAST_STEP].
    static int usesOf(long ghost, long now) {
        return ghost == GhostCache.NONE ? 1 : ImportanceWord.nextUseStep(useStepOf(ghost), now);
    }

    /// The step of use that a block had come to when it left; 1 when nothing is known of it.
    static int useStepOf(long ghost) {
        if (ghost == GhostCache.NONE) {
            return 1;
        }
        int known = GhostCache.classOf(ghost);
        return known < FIRST_ANNOUNCED_CLASS
                ? ImportanceWord.usesOf(known % ReuseModel.CLASSES)
                : 1 + (known - FIRST_ANNOUNCED_CLASS) % ImportanceWord.MAX_USES;
    }

    /// The label of a ghost's block.
    static int labelOf(long ghost) {
        if (ghost == GhostCache.NONE) {
            return 0;
        }
        int known = GhostCache.classOf(ghost);
        return known < FIRST_ANNOUNCED_CLASS
                ? known / ReuseModel.CLASSES
                : (known - FIRST_ANNOUNCED_CLASS) / ImportanceWord.MAX_USES;
    }

    /// Uses since the last one of a ghost's block, or since it was announced.
    static long ageOf(long ghost, long now) {
        return now - GhostCache.lastUse(ghost, now);
    }

    /// A block with this word was evicted. Its weight is forgotten, its label is not.
    ///
    /// @param size resident blocks; the memory of those that are gone follows it, and is begun anew
    ///     when it grows
    void onEvicted(long fingerprint, int labelClass, long word, int size) {
        if (ImportanceWord.status(word) == ImportanceWord.PREFETCHED) {
            return; // what is remembered of it is as true as before it came
        }
        double wanted = Math.max(MIN_GHOSTS, rules.ghosts() * size);
        if (ghostCache.capacity() < wanted) {
            ghostCache.forEach(this::onGhostRemoved);
            ghostCache = new GhostCache((long) wanted);
        }
        int kind = kind(labelClass, word);
        long lastUse = GhostCache.rounded(ImportanceWord.stamp(word));
        onGhostRemoved(ghostCache.remove(fingerprint));
        onGhostRemoved(ghostCache.put(fingerprint, kind, lastUse, state.now()));
        removeResident(labelClass, word);
        count(kind, lastUse, 1);
    }

    /// A block of this instance is used.
    ///
    /// @return whether time is to pass
    boolean countUse() {
        return ++usesInEpoch >= epochLength;
    }

    /// Lets time pass for everything that is remembered. The lists are to be ranked then.
    ///
    /// @param size resident blocks
    void advanceEpoch(long now, int size) {
        for (int span = 0; span < buckets.bucketCount(); span++) {
            ageHistogram.setAge(buckets.rowAt(span), AgeBins.binOf(buckets.age(span, now)), epochStart);
        }
        epochStart = now;
        buckets.startBucket(now);
        usesSinceRefresh += usesInEpoch;
        if (usesSinceRefresh >= Math.max(MIN_REFRESH, size / REFRESHES_PER_TURNOVER)) {
            for (int span = 0; span < buckets.bucketCount(); span++) {
                ageHistogram.creditExposure(buckets.rowAt(span), now);
            }
            double halfLives = usesSinceRefresh / (rules.halfLife() * Math.max(MIN_REFRESH, size));
            model.refresh(Math.pow(0.5, halfLives), AgeBins.binOf(buckets.age(0, now)));
            usesSinceRefresh = 0;
        }
        usesInEpoch = 0;
        epochLength = Math.max(MIN_EPOCH, size / EPOCHS_PER_TURNOVER);
    }

    /// Ranks all lists by what their leaves are worth, as [BucketScores#rankByScore] does.
    void rankByScore(long now, double reloadCostRatio) {
        bucketScores.rankByScore(buckets, now, reloadCostRatio);
    }

    /// Ranks all lists by last use alone.
    void rankByAge() {
        bucketScores.rankByAge(buckets);
    }

    /// Returns the score of a resident block with this word.
    ///
    /// @param byAge whether to score by its last use alone
    double score(int labelClass, long word, long now, boolean byAge) {
        return switch (ImportanceWord.status(word)) {
            case ImportanceWord.DEMOTED -> 0;
            case ImportanceWord.EXPECTED -> BucketScores.EXEMPT_SCORE;
            default -> {
                double worth = score(kind(labelClass, word), now - ImportanceWord.stamp(word), byAge);
                yield byAge ? worth : labelClasses.weightOf(labelClass) * worth;
            }
        };
    }

    /// Returns the score of a block that is not resident, from its ghost entry: 0 when it has none.
    ///
    /// @param horizon uses after which an announcement counts no more
    double ghostScore(long fingerprint, long now, long horizon, boolean byAge) {
        long ghost = ghostOf(fingerprint);
        if (ghost == GhostCache.NONE) {
            return 0;
        }
        long age = ageOf(ghost, now);
        if (isTracked(ghost)) {
            return score(GhostCache.classOf(ghost), age, byAge);
        }
        return age <= horizon ? BucketScores.EXEMPT_SCORE : 0;
    }

    private double score(int kind, long age, boolean byAge) {
        return byAge ? 1.0 / (1 + age) : density(kind, age);
    }

    /// Bytes of what is learned and of the lists.
    long bytes() {
        return model.bytes() + bucketScores.bytes() + buckets.bytes() + ageHistogram.bytes();
    }

    /// Bytes of the memory of evicted blocks.
    long ghostBytes() {
        return ghostCache.bytes();
    }

    /// Checks that all that is remembered is counted, and nothing else.
    void validate(CandidateIndex candidateIndex, int records) {
        Map<Integer, Integer> counts = new HashMap<>();
        for (int record = 0; record < records; record++) {
            long word = candidateIndex.stateOf(record);
            if (candidateIndex.contains(record) && ImportanceWord.isCounted(word)) {
                counts.merge(
                        rowFor(kind(candidateIndex.labelClassOf(record), word), ImportanceWord.stamp(word)),
                        1,
                        Integer::sum);
            }
        }
        ghostCache.forEach(entry -> {
            if (isTracked(entry)) {
                long lastUse = GhostCache.lastUse(entry, state.now());
                counts.merge(rowFor(GhostCache.classOf(entry), lastUse), 1, Integer::sum);
            }
        });
        for (int span = 0; span < buckets.bucketCount(); span++) {
            for (int kind = 0; kind < labelClasses.labelCount() * ReuseModel.CLASSES; kind++) {
                validate(counts.getOrDefault(buckets.rowAt(span) * KINDS + kind, 0), kind, span);
            }
        }
    }

    private int rowFor(int kind, long lastUse) {
        return buckets.rowOfUse(lastUse) * KINDS + kind;
    }

    private void validate(int found, int kind, int span) {
        int row = buckets.rowAt(span);
        if (found != ageHistogram.count(row, kind)) {
            throw new AssertionError("kind " + kind + ", span " + span + " remembers " + found + ", counted as "
                    + ageHistogram.count(row, kind));
        }
        if (ageHistogram.hasKind(row, kind) != (found > 0)) {
            throw new AssertionError("kind " + kind + ", span " + span + " remembers other blocks than it says");
        }
    }

    private void onGhostRemoved(long entry) {
        if (isTracked(entry)) {
            count(GhostCache.classOf(entry), GhostCache.lastUse(entry, state.now()), -1);
        }
    }

    /// Returns whether a ghost knows when its block was used, which it does not once a use was announced.
    static boolean isTracked(long entry) {
        return entry != GhostCache.NONE && GhostCache.classOf(entry) < FIRST_ANNOUNCED_CLASS;
    }

    /// Uses expected for the time that a block of a kind and an age is kept.
    double density(int kind, long age) {
        return model.density(kind, AgeBins.binOf(age));
    }

    /// The model's kind of a block with this word.
    int kind(int labelClass, long word) {
        return labelClasses.labelOf(labelClass) * ReuseModel.CLASSES + ImportanceWord.baseClass(word);
    }

    private void countResident(int labelClass, long word, int change) {
        if (ImportanceWord.isCounted(word)) {
            count(kind(labelClass, word), ImportanceWord.stamp(word), change);
        }
    }

    private void count(int kind, long lastUse, int change) {
        ageHistogram.addCount(buckets.rowOfUse(lastUse), kind, change, epochStart);
    }

    /// Scores of the lists of leaves, as of the moment when they were ranked last: a rank is computed when it is
    /// asked for.
    ///
    /// **Threads.** One writer, the holder of the store's lock.
    static final class BucketScores implements MinScoreIndex.ListScorer {

        /// Above every density by more than there are spans: see [ReuseModel#MAX_DENSITY].
        static final float EXEMPT_SCORE = 1e6f;

        private final LabelClasses labelClasses;
        private final ReuseModel model;
        /// The bin of each span's age.
        private int[] bins = new int[64];
        /// Spans that were ranked, none before the first time.
        private int spans;
        private boolean byAge;
        private double reloadCostRatio = 1;

        BucketScores(LabelClasses labelClasses, ReuseModel model) {
            this.labelClasses = labelClasses;
            this.model = model;
        }

        /// Ranks all lists by what their leaves are worth. What is known to be used soon is above all
        /// others.
        ///
        /// @param share what is lost with a block that a slower tier has too, as a share of what is
        ///     lost with one that is to be computed again
        void rankByScore(AgeBucketLists buckets, long now, double share) {
            spans = buckets.bucketCount();
            bins = spans <= bins.length ? bins : Arrays.copyOf(bins, 2 * spans);
            for (int span = 0; span < spans; span++) {
                bins[span] = AgeBins.binOf(buckets.age(span, now));
            }
            byAge = false;
            reloadCostRatio = share;
            buckets.invalidateScores();
        }

        /// Ranks all lists by last use alone.
        void rankByAge(AgeBucketLists buckets) {
            spans = buckets.bucketCount();
            byAge = true;
            buckets.invalidateScores();
        }

        @Override
        public float score(int span, int list) {
            if (span >= spans) {
                return 0;
            }
            return byAge ? span : listScore(list / ImportanceWord.LISTS, list % ImportanceWord.LISTS, span);
        }

        private float listScore(int labelClass, int classId, int span) {
            if (classId == ImportanceWord.EXPECTED_CLASS) {
                return EXEMPT_SCORE - span;
            }
            boolean copied = classId > ImportanceWord.EXPECTED_CLASS;
            int ownClass = copied ? classId - ImportanceWord.copiedClass(0) : classId;
            float worth = labelClasses.weightOf(labelClass)
                    * model.density(labelClasses.labelOf(labelClass) * ReuseModel.CLASSES + ownClass, bins[span]);
            return copied ? (float) (worth * reloadCostRatio) : worth;
        }

        long bytes() {
            return (long) bins.length * Integer.BYTES;
        }
    }

    /// How many blocks of each kind are remembered, resident or not, by the row of [AgeBucketLists] that
    /// has the span of their last use; and the time that they spend unused, which [ReuseModel] is to
    /// hear of.
    ///
    /// **Mechanism.** Time passes for all of them, but nothing is added up turn by turn: a span's age
    /// stays in one bin of [ReuseModel.AgeBins] for many turns, and only when it leaves that is the time told that
    /// its blocks have had there. It is their number times the clock, less what is *owed*: the sum of
    /// the clock's readings at which they came, less those at which others went. So a block that comes
    /// or goes costs two additions, and a turn next to nothing, however many kinds there are.
    ///
    /// Sums of readings wrap around; the differences that are told are far below 2^63.
    ///
    /// **Threads.** One writer, the holder of the store's lock.
    static final class AgeHistogram {

        private static final int CLASSES = ReuseModel.CLASSES;
        /// Marks a row that is new, or has been reported.
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
                System.arraycopy(
                        owedExposure, row * labels * CLASSES, wideOwed, row * wide * CLASSES, labels * CLASSES);
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

        /// Returns whether a row is known to have blocks of a kind.
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

        /// Moves the contents of one row to another.
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
}
