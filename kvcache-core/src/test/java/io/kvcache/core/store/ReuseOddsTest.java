package io.kvcache.core.store;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import org.junit.jupiter.api.Test;

final class ReuseOddsTest {

    private static final int DEPTH = 3;

    private final ReuseOdds odds = new ReuseOdds();

    @Test
    void givenNothingSeen_whenAsked_thenTheOddsAreSober() {
        assertThat(odds.of(DEPTH)).isEqualTo(0.4);
        assertThat(odds.of(Integer.MAX_VALUE)).isEqualTo(0.4);
    }

    @Test
    void givenOneInTenUsedAgain_whenAsked_thenTheOddsAreOneInTen() {
        for (int block = 0; block < 10_000; block++) {
            odds.put(DEPTH);
            if (block % 10 == 0) {
                odds.used(DEPTH);
            }
        }
        assertThat(odds.of(DEPTH)).isCloseTo(0.1, within(0.01));
    }

    @Test
    void givenHeadsThatReturnAndTailsThatDoNot_whenAsked_thenEachDepthHasItsOwnOdds() {
        for (int block = 0; block < 10_000; block++) {
            odds.put(0);
            odds.used(0);
            odds.put(100);
        }
        assertThat(odds.of(0)).isGreaterThan(0.95);
        assertThat(odds.of(100)).isLessThan(0.05);
        assertThat(odds.of(10)).as("of a depth that was never seen: as of all").isCloseTo(0.5, within(0.01));
    }

    @Test
    void givenTheLoadChanges_whenManyHavePassed_thenTheOddsFollow() {
        for (int block = 0; block < 3_000_000; block++) {
            odds.put(DEPTH);
            odds.used(DEPTH);
        }
        for (int block = 0; block < 12_000_000; block++) {
            odds.put(DEPTH);
        }
        assertThat(odds.of(DEPTH)).isLessThan(0.1);
    }
}
