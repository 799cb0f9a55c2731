package io.kvcache.planner.replay;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.kvcache.core.baseline.Baseline;
import io.kvcache.core.policy.EvictionPolicies;
import io.kvcache.core.policy.EvictionPolicyFactory;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.planner.replay.HitCounter.HitTotals;
import io.kvcache.planner.replay.HitCounter.ReplayListener;
import io.kvcache.planner.replay.ReplayCatalogue.CaffeineReplay;
import io.kvcache.planner.store.StoreReplay;
import io.kvcache.planner.trace.Trace;
import io.kvcache.planner.trace.TraceFinder;
import io.kvcache.planner.trace.TraceReader;
import io.kvcache.planner.trace.TraceReader.MalformedLine;
import io.kvcache.planner.trace.TraceSource;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Every policy finds what was recorded, to the last bit, and evicts the same blocks in the same order.
@Tag(Baseline.TAG)
final class PolicyBaselineTest {

    private static final int[] CAPACITIES = {1_000, 5_000, 20_000};
    private static final int STORE_REQUESTS = 2_000;
    private static final int STORE_BLOCKS = 900;
    private static final int BLOCK_BYTES = 4096;

    /// A rolling hash of what was evicted.
    private static final class EvictionHash implements ReplayListener {
        private long count;
        private long hash;

        @Override
        public void onEvicted(int node) {
            count++;
            hash = hash * 0x9E37_79B9_7F4A_7C15L + node + 1;
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"generated:1", "generated:2", "popular:1", "hostile:1", "conversation", "synthetic"})
    void givenATrace_whenReplayed_thenHitsAndEvictionsAreTheSame(String name) throws IOException {
        Trace trace = trace(name);
        PrefixForest forest = new PrefixForest(trace, BlockCountingRule.REFERENCE);
        List<String> lines = new ArrayList<>();
        for (int blocks : CAPACITIES) {
            for (SimulatedCache replay : ReplayCatalogue.all()) {
                if (replay instanceof CaffeineReplay) {
                    continue; // draws at random
                }
                lines.add(line(replay, forest, blocks));
            }
            lines.add(line(new PolicyReplay(PolicyKind.IMPORTANCE, 64), forest, blocks));
        }
        Baseline.compare(PolicyBaselineTest.class, "policies-" + name.replace(':', '-') + ".txt", lines);
    }

    private static String line(SimulatedCache replay, PrefixForest forest, int blocks) {
        EvictionHash evictionHash = new EvictionHash();
        HitTotals totals = replay.run(forest, blocks, new HitCounter(forest, 0, evictionHash));
        return "%s %d blocks: %s of blocks, %s of tokens, %d evictions %016x"
                .formatted(
                        replay.commandName(),
                        blocks,
                        totals.blockHitRatio(),
                        totals.tokenHitRatio(),
                        evictionHash.count,
                        evictionHash.hash);
    }

    @Test
    void givenAStoreOfEachPolicy_whenATraceIsReplayedThroughIt_thenItsHitsAreTheSame() throws IOException {
        PrefixForest forest =
                new PrefixForest(trace("generated:3").firstRequests(STORE_REQUESTS), BlockCountingRule.REFERENCE);
        List<String> lines = new ArrayList<>();
        for (EvictionPolicyFactory policy : EvictionPolicies.all()) {
            HitTotals totals = new StoreReplay(forest, new StoreReplay.Settings(policy, STORE_BLOCKS, BLOCK_BYTES, 0))
                    .run(served -> {})
                    .totals();
            lines.add(policy.commandName() + " " + totals.blockHitRatio() + " of blocks, " + totals.tokenHitRatio()
                    + " of tokens");
        }
        Baseline.compare(PolicyBaselineTest.class, "stores.txt", lines);
    }

    private static Trace trace(String name) throws IOException {
        assumeTrue(name.indexOf(':') > 0 || new TraceFinder().find(name).isPresent(), "trace " + name);
        return TraceSource.parse(name).load(new TraceReader(MalformedLine.Handling.REFUSE, line -> {}));
    }
}
