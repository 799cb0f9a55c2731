package io.kvcache.bench.lab;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.kvcache.bench.trace.MalformedLine;
import io.kvcache.bench.trace.Trace;
import io.kvcache.bench.trace.TraceFinder;
import io.kvcache.bench.trace.TraceGenerator;
import io.kvcache.bench.trace.TraceReader;
import io.kvcache.bench.trace.Workload;
import io.kvcache.bench.trace.ZipfTrace;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Optional;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// The six capacities at which importance has to hold its own: of the published traces where they
/// are, and of generated ones always.
final class PolicyRegressionCheckTest {

    /// Of conversation up to this share, importance finds at least so many times what LRU finds.
    private static final double SMALL = 0.03;

    private static final double TIMES_LRU = 1.3;

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
        PolicyRegressionCheck policyRegressionCheck = new PolicyRegressionCheck(trace, 0);
        for (double share : PolicyRegressionCheck.SHARES) {
            MarginRow row = policyRegressionCheck.compareAt(share);
            System.out.println(row);
            assertThat(row.margin()).as(row.toString()).isGreaterThanOrEqualTo(-MarginRow.MAX_SHORTFALL);
            if (name.equals("conversation") && share <= SMALL) {
                assertThat(row.timesLru()).as(row.toString()).isGreaterThanOrEqualTo(TIMES_LRU);
            }
        }
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 2})
    void givenPromptsOfWhichSomeAreVeryPopular_whenReplayedAtSixShares_thenNowhereHalfAPointBelow(long seed) {
        PolicyRegressionCheck policyRegressionCheck =
                new PolicyRegressionCheck(new ZipfTrace(seed).generate("popular:" + seed), 0);
        for (double share : PolicyRegressionCheck.SHARES) {
            MarginRow row = policyRegressionCheck.compareAt(share);
            System.out.println(row);
            assertThat(row.margin()).as(row.toString()).isGreaterThanOrEqualTo(-MarginRow.MAX_SHORTFALL);
        }
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3})
    void givenAGeneratedTrace_whenReplayedAtSixShares_thenNowhereHalfAPointBelow(long seed) {
        Trace trace = new TraceGenerator(Workload.mixed(), seed).generate("generated:" + seed, 10_000);
        PolicyRegressionCheck policyRegressionCheck = new PolicyRegressionCheck(trace, 0);
        for (double share : PolicyRegressionCheck.SHARES) {
            MarginRow row = policyRegressionCheck.compareAt(share);
            System.out.println(row);
            assertThat(row.margin()).as(row.toString()).isGreaterThanOrEqualTo(-MarginRow.MAX_SHORTFALL);
            assertThat(row.gapClosed()).as(row.toString()).isLessThanOrEqualTo(1);
        }
    }
}
