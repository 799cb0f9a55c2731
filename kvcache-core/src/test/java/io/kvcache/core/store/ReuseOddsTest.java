package io.kvcache.core.store;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import org.junit.jupiter.api.Test;

final class ReuseOddsTest {

    private static final int KIND = PutKind.of(20, 3);

    private final ReuseOdds odds = new ReuseOdds();

    @Test
    void givenNothingSeen_whenAsked_thenTheOddsAreSober() {
        assertThat(odds.of(KIND)).isEqualTo(0.4);
        assertThat(odds.of(PutKind.alone(Integer.MAX_VALUE))).isEqualTo(0.4);
    }

    @Test
    void givenOneInTenUsedAgain_whenAsked_thenTheOddsAreOneInTen() {
        for (int block = 0; block < 10_000; block++) {
            odds.put(KIND);
            if (block % 10 == 0) {
                odds.used(KIND);
            }
        }
        assertThat(odds.of(KIND)).isCloseTo(0.1, within(0.01));
    }

    @Test
    void givenKindsThatReturnAndOthersThatDoNot_whenAsked_thenEachHasItsOwnOdds() {
        for (int block = 0; block < 10_000; block++) {
            odds.put(PutKind.of(4, 0));
            odds.used(PutKind.of(4, 0));
            odds.put(PutKind.of(100, 0));
        }
        assertThat(odds.of(PutKind.of(4, 0))).isGreaterThan(0.95);
        assertThat(odds.of(PutKind.of(100, 0))).isLessThan(0.05);
        assertThat(odds.of(PutKind.of(4, 50)))
                .as("of a kind that was never seen: as of its group")
                .isGreaterThan(0.95);
        assertThat(odds.of(PutKind.alone(10)))
                .as("of a group that was never seen: as of all")
                .isCloseTo(0.5, within(0.01));
    }

    @Test
    void givenTheLoadChanges_whenManyHavePassed_thenTheOddsFollow() {
        for (int block = 0; block < 3_000_000; block++) {
            odds.put(KIND);
            odds.used(KIND);
        }
        for (int block = 0; block < 12_000_000; block++) {
            odds.put(KIND);
        }
        assertThat(odds.of(KIND)).isLessThan(0.1);
    }
}
