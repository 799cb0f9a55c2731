package io.kvcache.core.policy;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.policy.ImportancePolicy.ScanResistantClock;
import org.junit.jupiter.api.Test;

final class ScanResistantClockTest {

    private static final int SIZE = 1000;

    private final ScanResistantClock scanResistantClock = new ScanResistantClock();

    /// So many new blocks; answers how many of them moved the clock.
    private int come(int blocks) {
        int moved = 0;
        for (int i = 0; i < blocks; i++) {
            moved += scanResistantClock.advancesClock(SIZE) ? 1 : 0;
        }
        return moved;
    }

    private void use(int times, int newBlocksEach) {
        for (int i = 0; i < times; i++) {
            come(newBlocksEach);
            scanResistantClock.onKnownUse(SIZE);
        }
    }

    @Test
    void givenNothingUsedAgain_whenBlocksCome_thenEachMovesTheClock() {
        assertThat(come(5 * SIZE)).isEqualTo(5 * SIZE);
    }

    @Test
    void givenTwoNewBlocksForEachUse_whenItGoesOnSo_thenEachMovesTheClock() {
        use(4 * SIZE, 2);
        int moved = 0;
        for (int i = 0; i < 1000; i++) {
            moved += come(2);
            scanResistantClock.onKnownUse(SIZE);
        }
        assertThat(moved).isGreaterThan(1950);
    }

    @Test
    void givenFewNewBlocks_whenAScanComes_thenTheClockStandsAfterHalfACache() {
        use(4 * SIZE, 1);
        assertThat(come(10 * SIZE)).isLessThanOrEqualTo(SIZE / 2);
        scanResistantClock.onKnownUse(SIZE);
        assertThat(come(10)).isPositive();
    }
}
