package io.kvcache.planner.lab;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.kvcache.core.contract.Repetitions;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.planner.baseline.PolicyParameter;
import io.kvcache.planner.replay.BlockCountingRule;
import io.kvcache.planner.replay.PolicyReplay;
import io.kvcache.planner.replay.PrefixForest;
import io.kvcache.planner.replay.ReplayComparison;
import io.kvcache.planner.trace.Trace;
import io.kvcache.planner.trace.TraceFinder;
import io.kvcache.planner.trace.TraceGenerator;
import io.kvcache.planner.trace.TraceGenerator.Workload;
import io.kvcache.planner.trace.TraceReader;
import io.kvcache.planner.trace.TraceReader.MalformedLine;
import io.kvcache.planner.trace.ZipfTrace;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/// The six capacities at which importance has to hold its own: of the published traces where they
/// are, and of generated ones always.
@Tag("slow")
final class PolicyRegressionCheckTest {

    /// Of conversation up to this share, importance finds at least so many times what LRU finds.
    private static final double SMALL = 0.03;

    private static final double TIMES_LRU = 1.3;

    /// The capacities that are promised, as shares of the distinct blocks.
    private static final List<Double> SHARES = List.of(0.005, 0.015, 0.03, 0.06, 0.11, 0.3);

    /// What importance may find less than the better of LRU and LFU-DA: half a point.
    private static final double MAX_SHORTFALL = 0.005;

    /// Importance beside LRU and LFU-DA at one capacity, as block hit ratios.
    ///
    /// @param share of the trace's distinct blocks that fit
    /// @param belady with bypass: the bound
    /// @param gapClosed share of the way from LRU to the bound
    private record Margin(
            String trace, double share, double lru, double lfuDa, double importance, double belady, double gapClosed) {

        double overTheBetter() {
            return importance - Math.max(lru, lfuDa);
        }
    }

    private static List<Margin> margins(Trace trace) {
        PrefixForest forest = new PrefixForest(trace, BlockCountingRule.REFERENCE);
        ReplayComparison comparison = new ReplayComparison(forest, 0);
        List<Margin> margins = new ArrayList<>();
        for (double share : SHARES) {
            int blocks = (int) Math.max(1, Math.round(share * forest.nodeCount()));
            ReplayComparison.Outcome own = comparison.run(new PolicyReplay(PolicyKind.IMPORTANCE), blocks);
            ReplayComparison.Outcome lfuDa = comparison.run(new PolicyReplay(PolicyParameter.parse("LFU_DA")), blocks);
            Margin margin = new Margin(
                    trace.name(),
                    share,
                    own.bounds().lru().blockHitRatio(),
                    lfuDa.totals().blockHitRatio(),
                    own.totals().blockHitRatio(),
                    own.bounds().beladyBypass().blockHitRatio(),
                    own.shareOfGap().orElse(0));
            System.out.println(margin);
            assertThat(margin.overTheBetter()).as(margin.toString()).isGreaterThanOrEqualTo(-MAX_SHORTFALL);
            margins.add(margin);
        }
        return margins;
    }

    @ParameterizedTest
    @Tag("traces")
    @ValueSource(strings = {"conversation", "synthetic"})
    void givenAPublishedTrace_whenReplayedAtSixShares_thenNowhereHalfAPointBelowTheBetter(String name)
            throws IOException {
        Optional<Path> file = new TraceFinder().find(name);
        if (file.isEmpty()) {
            System.out.println("margins: the " + name + " trace is not here, skipped (set KVCACHE_TRACES);"
                    + " generated traces stand in for it");
        }
        assumeTrue(file.isPresent(), "trace " + name);
        Trace trace = new TraceReader(MalformedLine.Handling.REFUSE, _ -> {}).read(file.orElseThrow());
        for (Margin margin : margins(trace)) {
            if (name.equals("conversation") && margin.share <= SMALL) {
                assertThat(margin.importance / margin.lru).as(margin.toString()).isGreaterThanOrEqualTo(TIMES_LRU);
            }
        }
    }

    private static LongStream seeds() {
        return LongStream.rangeClosed(1, Repetitions.usualOrFull(1, 3));
    }

    @ParameterizedTest
    @MethodSource("seeds")
    @Tag("nightly")
    void givenPromptsOfWhichSomeAreVeryPopular_whenReplayedAtSixShares_thenNowhereHalfAPointBelow(long seed) {
        assertThat(margins(new ZipfTrace(seed).generate("popular:" + seed))).hasSameSizeAs(SHARES);
    }

    @ParameterizedTest
    @MethodSource("seeds")
    void givenAGeneratedTrace_whenReplayedAtSixShares_thenNowhereHalfAPointBelow(long seed) {
        Trace trace = new TraceGenerator(Workload.mixed(), seed).generate("generated:" + seed, 10_000);
        assertThat(margins(trace))
                .allSatisfy(margin -> assertThat(margin.gapClosed).isLessThanOrEqualTo(1));
    }
}
