package io.kvcache.core.policy;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Random;
import org.junit.jupiter.api.Test;

/// The time that is told late and in sums beside the same told block by block, turn by turn.
final class RememberedTest {

    private static final int BLOCKS = 300;
    private static final int TURNS = 3000;
    private static final int LABELS = 3;

    @Test
    void givenBlocksThatComeAndGo_whenTheirTimeIsTold_thenTheModelKnowsWhatItWouldByTurns() {
        for (int seed = 1; seed <= 4; seed++) {
            System.out.println("remembered blocks, seed " + seed);
            Random random = new Random(seed);
            Books books = new Books();
            for (int turn = 0; turn < TURNS; turn++) {
                int changes = random.nextInt(20);
                for (int i = 0; i < changes; i++) {
                    books.change(random);
                }
                if (books.labels < LABELS && random.nextInt(TURNS / 6) == 0) {
                    books.addLabel();
                }
                books.turn(1 + random.nextInt(40));
                if (random.nextInt(50) == 0) {
                    books.compare();
                }
            }
            books.compare();
            assertThat(books.ages.count()).isGreaterThan(20);
        }
    }

    private static final class Books {

        private final ReuseModel told = new ReuseModel(ImportanceRules.DEFAULT);
        private final ReuseModel plain = new ReuseModel(ImportanceRules.DEFAULT);
        private final Remembered remembered = new Remembered(told);
        private final LeafBuckets buckets = new LeafBuckets(new PolicyState(BLOCKS), (span, list) -> 0, remembered);
        private final AgeSpans ages = new AgeSpans(0);
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
            remembered.change(buckets.rowOfUse(stamps[block]), kinds[block], change, turnBegan);
            if (!here[block]) {
                told.used(kinds[block], turnBegan - stamps[block]);
                plain.used(kinds[block], turnBegan - stamps[block]);
            }
        }

        void addLabel() {
            labels++;
            told.addLabel();
            plain.addLabel();
            remembered.addLabel();
        }

        void turn(int length) {
            long now = turnBegan + length;
            for (int block = 0; block < BLOCKS; block++) {
                if (here[block]) {
                    long age = ages.age(ages.of(stamps[block]), now);
                    plain.unused(kinds[block], AgeBins.of(age), length);
                }
            }
            for (int span = 0; span < buckets.spans(); span++) {
                remembered.age(buckets.row(span), AgeBins.of(buckets.age(span, now)), turnBegan);
            }
            buckets.cut(now);
            ages.cut(now);
            for (int span = ages.mergeable(0, now); span >= 0; span = ages.mergeable(span, now)) {
                ages.merge(span);
            }
            turnBegan = now;
        }

        void compare() {
            for (int span = 0; span < buckets.spans(); span++) {
                remembered.tell(buckets.row(span), turnBegan);
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
