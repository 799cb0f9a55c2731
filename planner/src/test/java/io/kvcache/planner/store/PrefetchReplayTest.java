package io.kvcache.planner.store;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.policy.PolicyKind;
import io.kvcache.planner.replay.BlockCountingRule;
import io.kvcache.planner.replay.PrefixForest;
import io.kvcache.planner.trace.TraceGenerator;
import io.kvcache.planner.trace.TraceGenerator.Workload;
import java.nio.file.Path;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// A generated trace through two stores in turns, one of which guesses.
@Tag("slow")
final class PrefetchReplayTest {

    private static final int REQUESTS = 300;

    @TempDir
    private Path folder;

    @Test
    void givenTwoStores_whenOneBringsInAhead_thenItAloneGuessesAndBothServeWhatWasPut() {
        PrefixForest forest = new PrefixForest(
                new TraceGenerator(Workload.mixed(), 3).generate("generated:3", REQUESTS),
                BlockCountingRule.FULL_BLOCKS);
        PrefetchReplay.Settings settings =
                new PrefetchReplay.Settings(PolicyKind.IMPORTANCE, 512, 20_000, 64 << 10, 1_000_000);
        PrefetchReplay.Results results = new PrefetchReplay(forest, settings).run(REQUESTS, folder, request -> {});
        assertThat(results.without().guesses().begun()).isZero();
        assertThat(results.with().guesses().begun()).isPositive();
        assertThat(results.with().wrongBlocks()).isZero();
        assertThat(results.without().wrongBlocks()).isZero();
        assertThat(results.with().blocks()).isPositive();
        assertThat(results.without().waited()).isPositive();
    }
}
