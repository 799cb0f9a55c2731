package io.kvcache.core.policy;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Random;
import org.junit.jupiter.api.Test;

final class BlockWordTest {

    @Test
    void givenUses_whenCounted_thenThreeOneByOneAndEightStepsEachTwiceAsFar() {
        int rounds = 2000;
        double[] usesAtStep = new double[BlockWord.MOST_USES + 1];
        long stamp = 1;
        Random random = new Random(8);
        for (int round = 0; round < rounds; round++) {
            long word = BlockWord.of(1, 1, 0, stamp);
            for (int uses = 1; BlockWord.uses(word) < BlockWord.MOST_USES; uses++) {
                int before = BlockWord.uses(word);
                word = BlockWord.used(word, false, stamp += 1 + random.nextInt(1000));
                usesAtStep[BlockWord.uses(word)] += BlockWord.uses(word) > before ? uses + 1.0 : 0;
            }
            assertThat(BlockWord.uses(BlockWord.used(word, false, stamp += 1 + random.nextInt(1000))))
                    .isEqualTo(BlockWord.MOST_USES);
        }
        assertThat(usesAtStep[2] / rounds).isEqualTo(2);
        assertThat(usesAtStep[3] / rounds).isEqualTo(3);
        double mean = 3;
        for (int step = 4; step <= BlockWord.MOST_USES; step++) {
            mean += 1 << (step - 3);
            assertThat(usesAtStep[step] / rounds).as("step " + step).isBetween(0.92 * mean, 1.08 * mean);
        }
    }

    @Test
    void givenAWord_whenEachFieldChanges_thenTheOthersStay() {
        long latest = (1L << 44) - 1;
        long word = BlockWord.of(255, 3, 4, latest);
        assertThat(BlockWord.isLast(word)).isTrue();
        assertThat(BlockWord.ownClass(word)).isEqualTo(BlockClasses.of(2, true, 4));
        for (long changed : new long[] {
            BlockWord.withCopied(word, true),
            BlockWord.withStanding(word, BlockWord.EXPECTED),
            BlockWord.continued(word),
            BlockWord.withStamp(BlockWord.withStamp(word, 3), latest)
        }) {
            assertThat(BlockWord.owner(changed)).isEqualTo(255);
            assertThat(BlockWord.uses(changed)).isEqualTo(3);
            assertThat(BlockWord.stamp(changed)).isEqualTo(latest);
        }
        assertThat(BlockWord.ownClass(BlockWord.continued(word))).isEqualTo(BlockClasses.of(2, false, 4));
        assertThat(BlockWord.classOf(BlockWord.withStanding(word, BlockWord.EXPECTED)))
                .isEqualTo(BlockWord.EXPECTED_CLASS);
    }
}
