package io.kvcache.planner.replay;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.policy.PolicyKind;
import io.kvcache.planner.trace.SessionTrace;
import io.kvcache.planner.trace.Trace;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Sessions that return, in a cache that holds all of them and a half more, and prompts that come
/// once, twice as many blocks as the cache holds.
final class SessionScanTest {

    private static final int SESSIONS = 64;

    /// 64 sessions of 24 blocks on average, half as many more.
    private static final int BLOCKS = 2400;

    /// Hits of the sessions' first return after the scan, over blocks looked up.
    private static double afterScan(PolicyKind policy, int scanBlocks, long seed) {
        Trace trace = SessionTrace.of(SESSIONS, scanBlocks, seed);
        int first = 0;
        while (trace.requests().get(first).timestampMillis() < SessionTrace.scanEndMillis()) {
            first++;
        }
        PrefixForest forest = new PrefixForest(trace.firstRequests(first + SESSIONS), BlockCountingRule.FULL_BLOCKS);
        return new PolicyReplay(policy).run(forest, BLOCKS, first).blockHitRatio();
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3})
    void givenSessionsThatReturn_whenAScanOfTwiceTheCacheCame_thenTheyFindNearlyAllTheyHad(long seed) {
        double without = afterScan(PolicyKind.IMPORTANCE, 0, seed);
        double with = afterScan(PolicyKind.IMPORTANCE, 2 * BLOCKS, seed);
        assertThat(without).isGreaterThan(0.85);
        assertThat(with).isGreaterThan(0.85 * without);
    }

    /// That the scan would take all from who goes by the last use: else the test above would show nothing.
    @Test
    void givenTheSame_whenThePolicyIsLru_thenTheyFindLittle() {
        assertThat(afterScan(PolicyKind.LRU, 2 * BLOCKS, 1)).isLessThan(0.6 * afterScan(PolicyKind.LRU, 0, 1));
    }
}
