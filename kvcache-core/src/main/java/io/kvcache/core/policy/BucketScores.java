package io.kvcache.core.policy;

import java.util.Arrays;

/// What the leaves of a list are worth beside those of others, as of the moment when they were
/// ranked last: a rank is worked out when it is asked for.
///
/// **Threads.** One writer, the holder of the store's lock.
final class BucketScores implements MinScoreIndex.ListScorer {

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
