package io.kvcache.core.policy;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.policy.AgeBucketLists.AgeBuckets;
import io.kvcache.core.policy.ReuseModel.AgeBins;
import io.kvcache.core.policy.ReuseTracker.AgeHistogram;
import java.util.Random;
import org.junit.jupiter.api.Test;

/// The time that is told late and in sums beside the same told block by block, turn by turn.
final class AgeHistogramTest {

    private static final int BLOCKS = 300;
    private static final int TURNS = 3000;
    private static final int LABELS = 3;

    @Test
    void givenBlocksThatComeAndGo_whenTheirTimeIsTold_thenTheModelKnowsWhatItWouldByTurns() {
        for (int seed = 1; seed <= 4; seed++) {
            System.out.println("remembered blocks, seed " + seed);
            Random random = new Random(seed);
            NaiveHistogram naiveHistogram = new NaiveHistogram();
            for (int turn = 0; turn < TURNS; turn++) {
                int changes = random.nextInt(20);
                for (int i = 0; i < changes; i++) {
                    naiveHistogram.change(random);
                }
                if (naiveHistogram.labels < LABELS && random.nextInt(TURNS / 6) == 0) {
                    naiveHistogram.addLabel();
                }
                naiveHistogram.turn(1 + random.nextInt(40));
                if (random.nextInt(50) == 0) {
                    naiveHistogram.compare();
                }
            }
            naiveHistogram.compare();
            assertThat(naiveHistogram.ages.count()).isGreaterThan(20);
        }
    }

    private static final class NaiveHistogram {

        private final ReuseModel told = new ReuseModel(ImportanceConfig.DEFAULT);
        private final ReuseModel plain = new ReuseModel(ImportanceConfig.DEFAULT);
        private final AgeHistogram ageHistogram = new AgeHistogram(told);
        private final AgeBucketLists buckets =
                new AgeBucketLists(new PolicyState(BLOCKS), (span, list) -> 0, ageHistogram);
        private final AgeBuckets ages = new AgeBuckets(0);
        private final int[] kinds = new int[BLOCKS];
        private final long[] stamps = new long[BLOCKS];
        private final boolean[] here = new boolean[BLOCKS];
        private int labels = 1;
        private long turnBegan;

        void change(Random random) {
            int block = random.nextInt(BLOCKS);
            if (!here[block]) {
                kinds[block] = random.nextInt(labels * ReuseModel.CLASSES);
                stamps[block] = random.nextInt(4) == 0 ? random.nextLong(turnBegan + 1) : turnBegan;
            }
            here[block] = !here[block];
            int change = here[block] ? 1 : -1;
            ageHistogram.addCount(buckets.rowOfUse(stamps[block]), kinds[block], change, turnBegan);
            if (!here[block]) {
                told.addUse(kinds[block], turnBegan - stamps[block]);
                plain.addUse(kinds[block], turnBegan - stamps[block]);
            }
        }

        void addLabel() {
            labels++;
            told.addLabel();
            plain.addLabel();
            ageHistogram.addLabel();
        }

        void turn(int length) {
            long now = turnBegan + length;
            for (int block = 0; block < BLOCKS; block++) {
                if (here[block]) {
                    long age = ages.age(ages.bucketOf(stamps[block]), now);
                    plain.addExposure(kinds[block], AgeBins.binOf(age), length);
                }
            }
            for (int span = 0; span < buckets.bucketCount(); span++) {
                ageHistogram.setAge(buckets.rowAt(span), AgeBins.binOf(buckets.age(span, now)), turnBegan);
            }
            buckets.startBucket(now);
            ages.startBucket(now);
            for (int span = ages.findMergeable(0, now); span >= 0; span = ages.findMergeable(span, now)) {
                ages.merge(span);
            }
            turnBegan = now;
        }

        void compare() {
            for (int span = 0; span < buckets.bucketCount(); span++) {
                ageHistogram.creditExposure(buckets.rowAt(span), turnBegan);
            }
            told.refresh(1, AgeBins.COUNT - 1);
            plain.refresh(1, AgeBins.COUNT - 1);
            for (int kind = 0; kind < labels * ReuseModel.CLASSES; kind++) {
                for (int bin = 0; bin < AgeBins.COUNT; bin++) {
                    assertThat(told.density(kind, bin))
                            .as("kind %d, bin %d", kind, bin)
                            .isEqualTo(plain.density(kind, bin));
                }
            }
        }
    }
}
