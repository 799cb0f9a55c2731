package io.kvcache.planner.store;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import io.kvcache.core.policy.EvictionPolicies;
import io.kvcache.core.policy.EvictionPolicyFactory;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.planner.replay.BlockCountingRule;
import io.kvcache.planner.replay.HitCounter.HitTotals;
import io.kvcache.planner.replay.PolicyReplay;
import io.kvcache.planner.replay.PrefixForest;
import io.kvcache.planner.store.StoreReplay.StoreReplayResult;
import io.kvcache.planner.trace.Trace;
import io.kvcache.planner.trace.TraceGenerator;
import io.kvcache.planner.trace.TraceGenerator.Workload;
import io.kvcache.planner.trace.TraceReader;
import io.kvcache.planner.trace.TraceReader.MalformedLine;
import io.kvcache.planner.trace.TraceSource;
import java.io.IOException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class StoreReplayTest {

    private static final long SEED = 11;
    private static final int BLOCKS = 1500;

    private final Trace trace = new TraceGenerator(Workload.mixed(), SEED).generate("generated:" + SEED, 1500);

    /// The policies whose decisions do not depend on ghosts, whose number the metadata-only replay sets
    /// differently.
    @ParameterizedTest
    @ValueSource(strings = {"lru", "fifo", "slru", "sieve"})
    void givenTheSameTrace_whenReplayedThroughTheRealStore_thenHitsEqualTheMetadataReplay(String name) {
        EvictionPolicyFactory kind = EvictionPolicies.find(name).orElseThrow();
        PrefixForest forest = new PrefixForest(trace, BlockCountingRule.REFERENCE);
        StoreReplayResult real =
                new StoreReplay(forest, new StoreReplay.Settings(kind, BLOCKS, 4096, 0)).run(request -> {});
        HitTotals expected = new PolicyReplay(kind).run(forest, BLOCKS, 0);
        assertThat(real.check().wrongBlocks()).isZero();
        assertThat(real.check().blocksServed()).isEqualTo(real.totals().blockHits());
        assertThat(real.totals()).isEqualTo(expected);
        assertThat(real.totals().blockHits()).isPositive();
    }

    /// Agents make importance decline blocks.
    @Test
    void givenAgents_whenReplayedThroughTheRealStore_thenNearlyTheHitsOfTheMetadataReplay() throws IOException {
        Trace agents = TraceSource.parse("agents:2:requests=1200:context=40000")
                .load(new TraceReader(MalformedLine.Handling.REFUSE, _ -> {}));
        PrefixForest forest = new PrefixForest(agents, BlockCountingRule.FULL_BLOCKS);
        int blocks = 400;
        StoreReplayResult real = new StoreReplay(
                        forest, new StoreReplay.Settings(PolicyKind.IMPORTANCE, blocks, 4096, 0))
                .run(request -> {});
        double expected =
                new PolicyReplay(PolicyKind.IMPORTANCE).run(forest, blocks, 0).blockHitRatio();
        assertThat(real.check().wrongBlocks()).isZero();
        assertThat(real.totals().blockHitRatio()).isCloseTo(expected, within(0.01));
    }

    /// Importance remembers evicted blocks by their keys, in sets; which of them share one differs between the
    /// two.
    @Test
    void givenImportance_whenReplayedThroughTheRealStore_thenRightBytesAndNearlyTheSameHits() {
        PrefixForest forest = new PrefixForest(trace, BlockCountingRule.REFERENCE);
        StoreReplayResult real = new StoreReplay(
                        forest, new StoreReplay.Settings(PolicyKind.IMPORTANCE, BLOCKS, 4096, 0))
                .run(request -> {});
        double expected =
                new PolicyReplay(PolicyKind.IMPORTANCE).run(forest, BLOCKS, 0).blockHitRatio();
        assertThat(real.check().wrongBlocks()).isZero();
        assertThat(real.check().blocksServed()).isEqualTo(real.totals().blockHits());
        assertThat(real.totals().blockHitRatio()).isCloseTo(expected, within(0.01));
    }
}
