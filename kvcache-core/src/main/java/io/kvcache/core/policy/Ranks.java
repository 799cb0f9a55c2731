package io.kvcache.core.policy;

import java.util.Arrays;

/// What the leaves of a list are worth beside those of others, as of the moment when they were
/// ranked last: a rank is worked out when it is asked for.
///
/// **Threads.** One writer, the holder of the store's lock.
final class Ranks implements LowestList.Ranking {

    /// Above every density by more than there are spans: see [ReuseModel#MOST_DENSITY].
    static final float EXEMPT = 1e6f;

    private final Lanes lanes;
    private final ReuseModel model;
    /// The bin of each span's age.
    private int[] bins = new int[64];
    /// Spans that were ranked, none before the first time.
    private int spans;
    private boolean byAge;
    private double copyWorth = 1;

    Ranks(Lanes lanes, ReuseModel model) {
        this.lanes = lanes;
        this.model = model;
    }

    /// Ranks all lists by what their leaves are worth. What is known to be used soon is above all
    /// others.
    ///
    /// @param share what is lost with a block that a slower tier has too, as a share of what is
    ///     lost with one that is to be computed again
    void byWorth(LeafBuckets buckets, long now, double share) {
        spans = buckets.spans();
        bins = spans <= bins.length ? bins : Arrays.copyOf(bins, 2 * spans);
        for (int span = 0; span < spans; span++) {
            bins[span] = AgeBins.of(buckets.age(span, now));
        }
        byAge = false;
        copyWorth = share;
        buckets.ranked();
    }

    /// Ranks all lists by last use alone.
    void byAge(LeafBuckets buckets) {
        spans = buckets.spans();
        byAge = true;
        buckets.ranked();
    }

    @Override
    public float rank(int span, int list) {
        if (span >= spans) {
            return 0;
        }
        return byAge ? span : worth(list / BlockWord.LISTS, list % BlockWord.LISTS, span);
    }

    private float worth(int lane, int classId, int span) {
        if (classId == BlockWord.EXPECTED_CLASS) {
            return EXEMPT - span;
        }
        boolean copied = classId > BlockWord.EXPECTED_CLASS;
        int ownClass = copied ? classId - BlockWord.copiedClass(0) : classId;
        float worth = lanes.weight(lane) * model.density(lanes.label(lane) * ReuseModel.CLASSES + ownClass, bins[span]);
        return copied ? (float) (worth * copyWorth) : worth;
    }

    long bytes() {
        return (long) bins.length * Integer.BYTES;
    }
}
