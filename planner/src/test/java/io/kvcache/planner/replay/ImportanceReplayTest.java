package io.kvcache.planner.replay;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.kvcache.core.policy.PolicyKind;
import io.kvcache.planner.trace.AdversarialTrace;
import io.kvcache.planner.trace.Trace;
import io.kvcache.planner.trace.TraceFinder;
import io.kvcache.planner.trace.TraceGenerator;
import io.kvcache.planner.trace.TraceGenerator.Workload;
import io.kvcache.planner.trace.TraceReader;
import io.kvcache.planner.trace.TraceReader.MalformedLine;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Optional;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/// What importance gets, beside LRU.
@Tag("slow")
final class ImportanceReplayTest {

    @ParameterizedTest
    @Tag("traces")
    @CsvSource({
        "conversation, 5000, 0, .160",
        "conversation, 5000, 64, .175",
        "conversation, 5000, 256, .220",
        "conversation, 20000, 0, .295",
        "synthetic, 5000, 0, .288",
    })
    void givenPublishedTrace_whenReplayed_thenAtLeastWhatWasPromised(
            String trace, int blocks, int lookAhead, double promised) throws IOException {
        double ratio = ratio(new PolicyReplay(PolicyKind.IMPORTANCE, lookAhead), published(trace), blocks);
        System.out.printf("importance on %s at %d, %d known: %.4f%n", trace, blocks, lookAhead, ratio);
        assertThat(ratio).isGreaterThanOrEqualTo(promised);
    }

    @ParameterizedTest
    @ValueSource(ints = {1000, 2000, 3000})
    void givenHostileTrace_whenReplayed_thenNeverHalfAPointBelowLru(int blocks) {
        for (long seed = 1; seed <= 3; seed++) {
            PrefixForest forest =
                    new PrefixForest(new AdversarialTrace(seed).generate("hostile"), BlockCountingRule.REFERENCE);
            double lru = ratio(new PolicyReplay(PolicyKind.LRU), forest, blocks);
            double importance = ratio(new PolicyReplay(PolicyKind.IMPORTANCE), forest, blocks);
            System.out.printf("hostile:%d at %d: LRU %.4f, importance %.4f%n", seed, blocks, lru, importance);
            assertThat(importance).isGreaterThanOrEqualTo(lru - 0.005);
        }
    }

    @Test
    void givenKnownQueue_whenReplayed_thenMoreHitsTheMoreIsKnown() {
        Trace trace = new TraceGenerator(Workload.mixed(), 8).generate("generated:8", 4000);
        PrefixForest forest = new PrefixForest(trace, BlockCountingRule.REFERENCE);
        int blocks = forest.nodeCount() / 10;
        double alone = ratio(new PolicyReplay(PolicyKind.IMPORTANCE), forest, blocks);
        double some = ratio(new PolicyReplay(PolicyKind.IMPORTANCE, 32), forest, blocks);
        double more = ratio(new PolicyReplay(PolicyKind.IMPORTANCE, 128), forest, blocks);
        assertThat(some).isGreaterThan(alone);
        assertThat(more).isGreaterThan(some);
    }

    private static double ratio(SimulatedCache replay, PrefixForest forest, int blocks) {
        return replay.run(forest, blocks, 0).blockHitRatio();
    }

    private static PrefixForest published(String name) throws IOException {
        Optional<Path> file = new TraceFinder().find(name);
        if (file.isEmpty()) {
            System.out.println("importance: the " + name + " trace is not here, skipped (set KVCACHE_TRACES)");
        }
        assumeTrue(file.isPresent(), "trace " + name);
        TraceReader reader = new TraceReader(MalformedLine.Handling.REFUSE, line -> {});
        return new PrefixForest(reader.read(file.orElseThrow()), BlockCountingRule.REFERENCE);
    }
}
