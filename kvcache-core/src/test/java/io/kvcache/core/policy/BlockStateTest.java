package io.kvcache.core.policy;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Random;
import org.junit.jupiter.api.Test;

final class BlockStateTest {

    @Test
    void givenUses_whenCounted_thenThreeOneByOneAndEightStepsEachTwiceAsFar() {
        int rounds = 2000;
        double[] usesAtStep = new double[BlockState.MAX_USES + 1];
        long stamp = 1;
        Random random = new Random(8);
        for (int round = 0; round < rounds; round++) {
            long word = BlockState.of(1, 1, 0, stamp);
            for (int uses = 1; BlockState.uses(word) < BlockState.MAX_USES; uses++) {
                int before = BlockState.uses(word);
                word = BlockState.withUse(word, false, stamp += 1 + random.nextInt(1000));
                usesAtStep[BlockState.uses(word)] += BlockState.uses(word) > before ? uses + 1.0 : 0;
            }
            assertThat(BlockState.uses(BlockState.withUse(word, false, stamp += 1 + random.nextInt(1000))))
                    .isEqualTo(BlockState.MAX_USES);
        }
        assertThat(usesAtStep[2] / rounds).isEqualTo(2);
        assertThat(usesAtStep[3] / rounds).isEqualTo(3);
        double mean = 3;
        for (int step = 4; step <= BlockState.MAX_USES; step++) {
            mean += 1 << (step - 3);
            assertThat(usesAtStep[step] / rounds).as("step " + step).isBetween(0.92 * mean, 1.08 * mean);
        }
    }

    @Test
    void givenAWord_whenEachFieldChanges_thenTheOthersStay() {
        long latest = (1L << 44) - 1;
        long word = BlockState.of(255, 3, 4, latest);
        assertThat(BlockState.isLast(word)).isTrue();
        assertThat(BlockState.baseClass(word)).isEqualTo(BlockClasses.classOf(2, true, 4));
        for (long changed : new long[] {
            BlockState.withCopied(word, true),
            BlockState.withStatus(word, BlockState.EXPECTED),
            BlockState.withContinuation(word),
            BlockState.withStamp(BlockState.withStamp(word, 3), latest)
        }) {
            assertThat(BlockState.owner(changed)).isEqualTo(255);
            assertThat(BlockState.uses(changed)).isEqualTo(3);
            assertThat(BlockState.stamp(changed)).isEqualTo(latest);
        }
        assertThat(BlockState.baseClass(BlockState.withContinuation(word)))
                .isEqualTo(BlockClasses.classOf(2, false, 4));
        assertThat(BlockState.classOf(BlockState.withStatus(word, BlockState.EXPECTED)))
                .isEqualTo(BlockState.EXPECTED_CLASS);
    }
}
