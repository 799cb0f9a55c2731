package io.kvcache.core.policy;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.policy.LabelClasses.BlockLabel;
import io.kvcache.core.policy.LabelClasses.TurnGap;
import org.junit.jupiter.api.Test;

final class TurnGapTest {

    private static final int BLOCKS = 1000;
    private static final int USES = 200_000;
    private static final int TURNS = 8;

    @Test
    void givenTheFirstReturn_whenStepped_thenEachStepIsTwiceAsLong() {
        long[] first = {0, 250, 500, 1000, 2000};
        for (int step = 1; step <= TurnGap.STEPS; step++) {
            assertThat(TurnGap.afterTurn(TurnGap.NONE, first[step - 1], BLOCKS)).isEqualTo(step);
            assertThat(TurnGap.afterTurn(TurnGap.NONE, Math.max(0, first[step - 1] - 1), BLOCKS))
                    .isEqualTo(Math.max(1, step - 1));
        }
        assertThat(TurnGap.afterTurn(TurnGap.NONE, Long.MAX_VALUE, 1)).isEqualTo(TurnGap.STEPS);
        assertThat(TurnGap.afterTurn(TurnGap.NONE, 0, 0)).isEqualTo(1);
    }

    @Test
    void givenASessionsGap_whenOneTurnTakesLonger_thenTheMeanFollowsSlowly() {
        int once = TurnGap.afterTurn(1, 100_000, BLOCKS);
        assertThat(once).isEqualTo(2);
        int gap = once;
        for (int turn = 0; turn < 10; turn++) {
            gap = TurnGap.afterTurn(gap, 100_000, BLOCKS);
        }
        assertThat(gap).isGreaterThanOrEqualTo(TurnGap.STEPS - 1);
    }

    @Test
    void givenALabel_whenItIsATurnGap_thenNoCallerSaidIt() {
        for (int gap = TurnGap.NONE; gap <= TurnGap.STEPS; gap++) {
            byte label = BlockLabel.ofTurnGap(gap);
            assertThat(BlockLabel.turnGap(label)).isEqualTo(gap);
            assertThat(BlockLabel.isGiven(label)).isFalse();
            assertThat(BlockLabel.reuseClass(label)).isZero();
            assertThat(BlockLabel.halvings(label)).isZero();
        }
        assertThat(BlockLabel.isGiven(BlockLabel.of(0, 1))).isTrue();
        assertThat(BlockLabel.isGiven(BlockLabel.of(1, 0))).isTrue();
        assertThat(BlockLabel.turnGap(BlockLabel.of(BlockLabel.REUSE_CLASSES - 1, 3)))
                .isEqualTo(TurnGap.NONE);
    }

    /// A session has eight turns. One half return after 1.2 cache fulls, so LRU finds none of them, the others after
    /// three. Labels that mean nothing stand in for not knowing the gaps.
    @Test
    void givenSessionsThatReturnSoonAndLate_whenReplayed_thenThoseThatReturnSoonAreKept() {
        double known = ratio(PolicyKind.IMPORTANCE, false);
        double unknown = ratio(PolicyKind.IMPORTANCE, true);
        double lru = ratio(PolicyKind.LRU, false);
        System.out.printf("turn gaps known: %.3f found, %.3f unknown, LRU %.3f%n", known, unknown, lru);
        assertThat(lru).isLessThan(0.05);
        assertThat(known).isGreaterThan(unknown + 0.03);
    }

    private static double ratio(PolicyKind kind, boolean labelled) {
        int soon = BLOCKS * 6 / 5;
        int late = 3 * BLOCKS;
        FlatCache cache = new FlatCache(kind, USES, BLOCKS);
        int[] due = new int[2 * USES];
        int[] turns = new int[USES];
        int hits = 0;
        for (int use = 1; use < USES; use++) {
            int key = due[use] == 0 ? use : due[use];
            int turn = ++turns[key];
            hits += cache.use(key) ? 1 : 0;
            if (labelled) {
                cache.label(key, 1);
            }
            int next = use + (key % 2 == 0 ? soon : late);
            while (turn < TURNS && due[next] != 0) {
                next++;
            }
            due[next] = turn < TURNS ? key : due[next];
        }
        return (double) hits / USES;
    }
}
