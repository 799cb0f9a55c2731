package io.kvcache.core.policy;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

final class CohortTest {

    private static final int BLOCKS = 1000;
    private static final int ROUNDS = 30_000;
    /// Rounds after which a block returns: with four blocks each, more than the cache has.
    private static final int AWAY = 600;

    @Test
    void givenTokens_whenStepped_thenFromATurnOnEachStepBeginsFourTimesAsFar() {
        long[] first = {0, 512, 2048, 8192, 32_768};
        for (int step = 0; step < Cohort.STEPS; step++) {
            assertThat(Cohort.of(first[step])).isEqualTo(step);
            assertThat(Cohort.of(Math.max(0, first[step] - 1))).isEqualTo(Math.max(0, step - 1));
        }
        assertThat(Cohort.of(Long.MAX_VALUE)).isEqualTo(Cohort.STEPS - 1);
    }

    @Test
    void givenABlockThatCameAlone_whenItLiesDeeper_thenItsStepGrows() {
        assertThat(Cohort.alone(0)).isZero();
        assertThat(Cohort.alone(15)).isGreaterThan(Cohort.alone(2));
        assertThat(Cohort.alone(Integer.MAX_VALUE)).isEqualTo(Cohort.STEPS - 1);
    }

    /// In each round two blocks come that never return, one that does, and one returns.
    @Test
    void givenOneOffBlocksOfAnotherCohort_whenReplayed_thenThoseThatReturnAreKept() {
        double apart = ratio(0, 3);
        double alike = ratio(3, 3);
        System.out.printf("of what returns: %.3f found, %.3f where cohorts are alike%n", apart, alike);
        assertThat(apart).isGreaterThan(0.8);
        assertThat(alike).isLessThan(apart - 0.2);
    }

    private static double ratio(int oneOff, int returning) {
        FlatCache cache = new FlatCache(PolicyKind.IMPORTANCE, 4 * ROUNDS, BLOCKS);
        int hits = 0;
        for (int round = 0; round < ROUNDS; round++) {
            cache.comingOf(oneOff);
            cache.useAndGoOn(1_000_000 + 2 * round);
            cache.useAndGoOn(1_000_001 + 2 * round);
            cache.comingOf(returning);
            cache.useAndGoOn(round);
            hits += round >= AWAY && cache.useAndGoOn(round - AWAY) ? 1 : 0;
        }
        return (double) hits / (ROUNDS - AWAY);
    }
}
