package io.kvcache.core.store;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import org.junit.jupiter.api.Test;

final class ReuseOddsTest {

    private final ReuseOdds odds = new ReuseOdds();

    @Test
    void givenNothingSeen_whenAsked_thenTheOddsAreSober() {
        assertThat(odds.of(0)).isEqualTo(0.4);
        assertThat(odds.of(ReuseOdds.MOST_USES)).isEqualTo(0.4);
    }

    @Test
    void givenOneInTenUsedAgain_whenAsked_thenTheOddsAreOneInTen() {
        for (int block = 0; block < 10_000; block++) {
            odds.put();
            if (block % 10 == 0) {
                odds.used(0);
                odds.used(1);
            }
        }
        assertThat(odds.of(0)).isCloseTo(0.1, within(0.01));
        assertThat(odds.of(1)).isGreaterThan(0.9);
    }

    @Test
    void givenTheLoadChanges_whenManyHavePassed_thenTheOddsFollow() {
        for (int block = 0; block < 3_000_000; block++) {
            odds.put();
            odds.used(0);
        }
        for (int block = 0; block < 12_000_000; block++) {
            odds.put();
        }
        assertThat(odds.of(0)).isLessThan(0.1);
    }
}
