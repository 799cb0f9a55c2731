package io.kvcache.core.policy;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.policy.AgeBucketLists.AgeBuckets;
import io.kvcache.core.policy.ReuseModel.AgeBins;
import org.junit.jupiter.api.Test;

final class AgeBucketsTest {

    @Test
    void givenManyCuts_whenMerged_thenSpansAreShortForTheirAgeAndFew() {
        AgeBuckets spans = new AgeBuckets(0);
        long now = 0;
        for (int cut = 0; cut < 20_000; cut++) {
            now += 64;
            spans.startBucket(now);
            for (int span = spans.findMergeable(0, now); span >= 0; span = spans.findMergeable(span, now)) {
                spans.merge(span);
            }
        }
        assertThat(spans.count()).isLessThan(150);
        long previous = -1;
        for (long reading = 0; reading < now; reading += 1000) {
            int span = spans.bucketOf(reading);
            assertThat(span).isGreaterThanOrEqualTo((int) Math.max(0, previous));
            long age = now - reading;
            assertThat((double) spans.age(span, now))
                    .as("age of the span of reading %d at %d", reading, now)
                    .isBetween(age * 0.9 - 64, age * 1.1 + 64);
            previous = span;
        }
    }

    @Test
    void givenReadingBeforeTheFirstSpan_whenAsked_thenTheFirst() {
        AgeBuckets spans = new AgeBuckets(1000);
        spans.startBucket(2000);
        assertThat(spans.bucketOf(5)).isZero();
        assertThat(spans.bucketOf(1999)).isZero();
        assertThat(spans.bucketOf(2000)).isEqualTo(1);
    }

    @Test
    void givenAges_whenBinned_thenEveryAgeLiesInItsBin() {
        for (long age : new long[] {0, 1, 2, 3, 4, 5, 6, 7, 100, 4095, 4096, 6143, 6144, 1L << 40}) {
            int bin = AgeBins.binOf(age);
            assertThat(age).isBetween(AgeBins.start(bin), AgeBins.start(bin) + AgeBins.width(bin) - 1);
        }
        assertThat(AgeBins.binOf(Long.MAX_VALUE)).isEqualTo(AgeBins.COUNT - 1);
    }
}
