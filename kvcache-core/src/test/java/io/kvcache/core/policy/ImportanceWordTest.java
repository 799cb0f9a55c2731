package io.kvcache.core.policy;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.policy.ImportanceWord.BlockClasses;
import java.util.Random;
import org.junit.jupiter.api.Test;

final class ImportanceWordTest {

    @Test
    void givenUses_whenCounted_thenThreeOneByOneAndEightStepsEachTwiceAsFar() {
        int rounds = 2000;
        double[] usesAtStep = new double[ImportanceWord.MAX_USES + 1];
        long stamp = 1;
        Random random = new Random(8);
        for (int round = 0; round < rounds; round++) {
            long word = ImportanceWord.of(1, 1, 0, stamp);
            for (int uses = 1; ImportanceWord.uses(word) < ImportanceWord.MAX_USES; uses++) {
                int before = ImportanceWord.uses(word);
                word = ImportanceWord.withUse(word, false, stamp += 1 + random.nextInt(1000));
                usesAtStep[ImportanceWord.uses(word)] += ImportanceWord.uses(word) > before ? uses + 1.0 : 0;
            }
        }
        assertThat(usesAtStep[2] / rounds).isEqualTo(2);
        assertThat(usesAtStep[3] / rounds).isEqualTo(3);
        double mean = 3;
        for (int step = 4; step <= ImportanceWord.MAX_USES; step++) {
            mean += 1 << (step - 3);
            assertThat(usesAtStep[step] / rounds).as("step " + step).isBetween(0.92 * mean, 1.08 * mean);
        }
    }

    @Test
    void givenMillionsOfUses_whenCounted_thenTheNumberGoesOnWithinAFactorOfEight() {
        long stamp = 1;
        long word = ImportanceWord.of(1, 1, 0, stamp);
        Random random = new Random(9);
        int classOfMany = BlockClasses.classOf(BlockClasses.GROUPS - 1, false, 0);
        for (int uses = 2; uses <= 10_000_000; uses++) {
            word = ImportanceWord.withUse(word, false, stamp += 1 + random.nextInt(1000));
            if (uses == 20_000 || uses == 200_000 || uses == 10_000_000) {
                assertThat(ImportanceWord.expectedUses(ImportanceWord.uses(word)))
                        .as(uses + " uses")
                        .isBetween(uses / 12, 8 * uses);
                assertThat(ImportanceWord.baseClass(word)).isEqualTo(classOfMany);
            }
        }
        assertThat(ImportanceWord.uses(word)).isEqualTo(ImportanceWord.LAST_STEP);
        assertThat(ImportanceWord.expectedUses(ImportanceWord.LAST_STEP)).isEqualTo(1_198_593);
    }

    @Test
    void givenAWord_whenEachFieldChanges_thenTheOthersStay() {
        long latest = (1L << 44) - 1;
        long word = ImportanceWord.of(255, 3, 4, latest);
        assertThat(ImportanceWord.isLast(word)).isTrue();
        assertThat(ImportanceWord.baseClass(word)).isEqualTo(BlockClasses.classOf(2, true, 4));
        for (long changed : new long[] {
            ImportanceWord.withCopied(word, true),
            ImportanceWord.withStatus(word, ImportanceWord.EXPECTED),
            ImportanceWord.withContinuation(word),
            ImportanceWord.withStamp(ImportanceWord.withStamp(word, 3), latest)
        }) {
            assertThat(ImportanceWord.owner(changed)).isEqualTo(255);
            assertThat(ImportanceWord.uses(changed)).isEqualTo(3);
            assertThat(ImportanceWord.stamp(changed)).isEqualTo(latest);
        }
        assertThat(ImportanceWord.baseClass(ImportanceWord.withContinuation(word)))
                .isEqualTo(BlockClasses.classOf(2, false, 4));
        assertThat(ImportanceWord.classOf(ImportanceWord.withStatus(word, ImportanceWord.EXPECTED)))
                .isEqualTo(ImportanceWord.EXPECTED_CLASS);
    }
}
