package io.kvcache.planner.replay;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import io.kvcache.core.policy.EvictionPolicies;
import io.kvcache.core.policy.EvictionPolicyFactory;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.planner.replay.HitCounter.HitTotals;
import io.kvcache.planner.trace.Trace;
import io.kvcache.planner.trace.TraceGenerator;
import io.kvcache.planner.trace.TraceGenerator.Workload;
import io.kvcache.planner.trace.TraceRequest;
import java.util.List;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;

final class SimulatedCacheTest {

    private static final Workload.SessionKind CHAT = new Workload.SessionKind(4, 60_000, 700, 500);
    private static final Workload SMALL = new Workload(5, 1500, 1, 0.2, CHAT, CHAT, 5000, 12_000);

    @ParameterizedTest
    @CsvSource({"1, 5", "1, 60", "2, 20", "3, 120", "4, 35", "5, 400"})
    void givenGeneratedTrace_whenReplayed_thenHitsEqualTheNaiveModel(long seed, int blocks) {
        Trace trace = new TraceGenerator(SMALL, seed).generate("generated:" + seed, 250);
        PrefixForest forest = new PrefixForest(trace, BlockCountingRule.REFERENCE);
        assertThat(new PolicyReplay(PolicyKind.LRU).run(forest, blocks, 0).blockHits())
                .isEqualTo(naive(NaiveReplay.VictimRule.LRU, trace, blocks));
        assertThat(new BeladyReplay(false).run(forest, blocks, 0).blockHits())
                .isEqualTo(naive(NaiveReplay.VictimRule.BELADY, trace, blocks));
        assertThat(new BeladyReplay(true).run(forest, blocks, 0).blockHits())
                .isEqualTo(naive(NaiveReplay.VictimRule.BELADY_BYPASS, trace, blocks));
    }

    static List<EvictionPolicyFactory> policies() {
        return EvictionPolicies.all();
    }

    @ParameterizedTest
    @MethodSource("policies")
    void givenAnyPolicy_whenReplayed_thenBetweenNothingAndBelady(EvictionPolicyFactory kind) {
        Trace trace = new TraceGenerator(SMALL, 6).generate("generated:6", 2000);
        PrefixForest forest = new PrefixForest(trace, BlockCountingRule.REFERENCE);
        for (int blocks : new int[] {50, 300, 2000}) {
            double bound = new BeladyReplay(true).run(forest, blocks, 0).blockHitRatio();
            double ratio = new PolicyReplay(kind).run(forest, blocks, 0).blockHitRatio();
            assertThat(ratio).as("%s at %d", kind, blocks).isPositive().isLessThanOrEqualTo(bound);
        }
        double ideal = 1 - (double) forest.nodeCount() / trace.totals().blockAccesses();
        assertThat(new PolicyReplay(kind).run(forest, forest.nodeCount(), 0).blockHitRatio())
                .isCloseTo(ideal, within(1e-9));
    }

    @Test
    void givenPartialLastBlock_whenHit_thenOnlyItsTokensCount() {
        Trace trace = new Trace("hand-made", List.of(request(600, 1, 2), request(600, 1, 2)));
        HitTotals totals = lru(trace, BlockCountingRule.REFERENCE, 0);
        assertThat(totals).isEqualTo(new HitTotals(4, 2, 1200, 600, 600 * 600));
        assertThat(totals.tokenHitRatio()).isEqualTo(0.5);
    }

    @Test
    void givenStoresOwnRule_whenReplayed_thenPartialBlocksAndTheLastTokenNeverHit() {
        Trace trace = new Trace(
                "hand-made", List.of(request(600, 1, 2), request(600, 1, 2), request(1024, 1, 3), request(1024, 1, 3)));
        HitTotals totals = lru(trace, BlockCountingRule.FULL_BLOCKS, 0);
        assertThat(totals).isEqualTo(new HitTotals(4, 3, 3248, 3 * 512, 3 * 512 * 512));
    }

    @Test
    void givenWarmup_whenReplayed_thenItsRequestsFillTheCacheButDoNotCount() {
        Trace trace = new Trace("hand-made", List.of(request(600, 1, 2), request(600, 1, 2)));
        assertThat(lru(trace, BlockCountingRule.REFERENCE, 1)).isEqualTo(new HitTotals(2, 2, 600, 600, 600 * 600));
    }

    @Test
    void givenSameIdsUnderDifferentParents_whenForestIsBuilt_thenDifferentNodes() {
        Trace trace = new Trace("hand-made", List.of(request(1024, 1, 9), request(1024, 2, 9)));
        assertThat(new PrefixForest(trace, BlockCountingRule.REFERENCE).nodeCount())
                .isEqualTo(4);
    }

    @Test
    void givenPromptsShorterThanABlock_whenReplayedByTheStoresRule_thenNoAccesses() {
        Trace trace = new Trace("hand-made", List.of(request(100, 1), request(100, 1)));
        assertThat(lru(trace, BlockCountingRule.FULL_BLOCKS, 0)).isEqualTo(new HitTotals(0, 0, 200, 0, 0));
        assertThat(new BeladyReplay(true)
                        .run(new PrefixForest(trace, BlockCountingRule.FULL_BLOCKS), 5, 0)
                        .blockHitRatio())
                .isZero();
    }

    private static HitTotals lru(Trace trace, BlockCountingRule rule, int warmup) {
        return new PolicyReplay(PolicyKind.LRU).run(new PrefixForest(trace, rule), 100, warmup);
    }

    private static TraceRequest request(int inputTokens, int... ids) {
        return new TraceRequest(
                0,
                inputTokens,
                1,
                LongStream.range(0, ids.length).map(i -> ids[(int) i]).toArray());
    }

    private static long naive(NaiveReplay.VictimRule rule, Trace trace, int blocks) {
        return new NaiveReplay(rule, trace, blocks).run().blockHits();
    }
}
