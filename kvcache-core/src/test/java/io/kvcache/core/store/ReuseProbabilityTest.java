package io.kvcache.core.store;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import io.kvcache.core.store.WriteAdmission.PromptClass;
import io.kvcache.core.store.WriteAdmission.ReuseProbability;
import org.junit.jupiter.api.Test;

final class ReuseProbabilityTest {

    private static final int KIND = PromptClass.of(20, 3);

    private final ReuseProbability odds = new ReuseProbability();

    @Test
    void givenNothingSeen_whenAsked_thenTheOddsAreSober() {
        assertThat(odds.probability(KIND)).isEqualTo(0.4);
        assertThat(odds.probability(PromptClass.ofSingleBlock(Integer.MAX_VALUE)))
                .isEqualTo(0.4);
    }

    @Test
    void givenOneInTenUsedAgain_whenAsked_thenTheOddsAreOneInTen() {
        for (int block = 0; block < 10_000; block++) {
            odds.onPut(KIND);
            if (block % 10 == 0) {
                odds.onFirstUse(KIND);
            }
        }
        assertThat(odds.probability(KIND)).isCloseTo(0.1, within(0.01));
    }

    @Test
    void givenKindsThatReturnAndOthersThatDoNot_whenAsked_thenEachHasItsOwnOdds() {
        for (int block = 0; block < 10_000; block++) {
            odds.onPut(PromptClass.of(4, 0));
            odds.onFirstUse(PromptClass.of(4, 0));
            odds.onPut(PromptClass.of(100, 0));
        }
        assertThat(odds.probability(PromptClass.of(4, 0))).isGreaterThan(0.95);
        assertThat(odds.probability(PromptClass.of(100, 0))).isLessThan(0.05);
        assertThat(odds.probability(PromptClass.of(4, 50)))
                .as("of a kind that was never seen: as of its group")
                .isGreaterThan(0.95);
        assertThat(odds.probability(PromptClass.ofSingleBlock(10)))
                .as("of a group that was never seen: as of all")
                .isCloseTo(0.5, within(0.01));
    }

    @Test
    void givenTheLoadChanges_whenManyHavePassed_thenTheOddsFollow() {
        for (int block = 0; block < 3_000_000; block++) {
            odds.onPut(KIND);
            odds.onFirstUse(KIND);
        }
        for (int block = 0; block < 12_000_000; block++) {
            odds.onPut(KIND);
        }
        assertThat(odds.probability(KIND)).isLessThan(0.1);
    }
}
