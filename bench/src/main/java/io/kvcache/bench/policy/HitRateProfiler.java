package io.kvcache.bench.policy;

import static java.util.Objects.requireNonNull;

import java.util.Collection;
import java.util.List;
import java.util.Map;
import org.openjdk.jmh.infra.BenchmarkParams;
import org.openjdk.jmh.infra.IterationParams;
import org.openjdk.jmh.profile.InternalProfiler;
import org.openjdk.jmh.results.AggregationPolicy;
import org.openjdk.jmh.results.IterationResult;
import org.openjdk.jmh.results.Result;
import org.openjdk.jmh.results.ScalarResult;

/// Divides the [HitCounts] of an iteration, which JMH can only add up.
public final class HitRateProfiler implements InternalProfiler {

    /// Hits over accesses.
    static final String RATIO = "hitRatio";

    /// Time of a block that is looked up.
    static final String NANOS = "nanosPerBlock";

    @Override
    public String getDescription() {
        return "Hit ratio, and nanoseconds per block";
    }

    @Override
    public void beforeIteration(BenchmarkParams benchmark, IterationParams iteration) {
        // Nothing is started.
    }

    /// Every replay finds the same blocks, so the largest ratio is each of them; a mean would round it.
    @Override
    public Collection<? extends Result<?>> afterIteration(
            BenchmarkParams benchmark, IterationParams iteration, IterationResult result) {
        if (result.getRawPrimaryResults().isEmpty()) {
            return List.of(); // The replay failed, which JMH tells.
        }
        double accesses = Math.max(1, score(result.getSecondaryResults(), "accesses"));
        return List.of(
                new ScalarResult(
                        RATIO,
                        score(result.getSecondaryResults(), "hits") / accesses,
                        "of blocks",
                        AggregationPolicy.MAX),
                new ScalarResult(
                        NANOS, score(result.getSecondaryResults(), "nanos") / accesses, "ns", AggregationPolicy.AVG));
    }

    /// Returns the score of a result beside the benchmark's own.
    @SuppressWarnings("rawtypes") // JMH's own
    static double score(Map<String, Result> results, String name) {
        return requireNonNull(results.get(name), name).getScore();
    }
}
