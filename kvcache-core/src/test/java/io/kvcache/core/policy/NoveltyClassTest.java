package io.kvcache.core.policy;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

final class NoveltyClassTest {

    private static final int BLOCKS = 1000;
    private static final int ROUNDS = 30_000;
    /// Rounds after which a block returns: with four blocks each, more than the cache has.
    private static final int AWAY = 600;

    @Test
    void givenTokens_whenStepped_thenFromATurnOnEachStepBeginsFourTimesAsFar() {
        long[] first = {0, 512, 2048, 8192, 32_768};
        for (int step = 0; step < NoveltyClass.COUNT; step++) {
            assertThat(NoveltyClass.of(first[step])).isEqualTo(step);
            assertThat(NoveltyClass.of(Math.max(0, first[step] - 1))).isEqualTo(Math.max(0, step - 1));
        }
        assertThat(NoveltyClass.of(Long.MAX_VALUE)).isEqualTo(NoveltyClass.COUNT - 1);
    }

    @Test
    void givenABlockThatCameAlone_whenItLiesDeeper_thenItsStepGrows() {
        assertThat(NoveltyClass.ofSingleBlock(0)).isZero();
        assertThat(NoveltyClass.ofSingleBlock(15)).isGreaterThan(NoveltyClass.ofSingleBlock(2));
        assertThat(NoveltyClass.ofSingleBlock(Integer.MAX_VALUE)).isEqualTo(NoveltyClass.COUNT - 1);
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
            cache.setNoveltyClass(oneOff);
            cache.useThenContinue(1_000_000 + 2 * round);
            cache.useThenContinue(1_000_001 + 2 * round);
            cache.setNoveltyClass(returning);
            cache.useThenContinue(round);
            hits += round >= AWAY && cache.useThenContinue(round - AWAY) ? 1 : 0;
        }
        return (double) hits / (ROUNDS - AWAY);
    }
}
