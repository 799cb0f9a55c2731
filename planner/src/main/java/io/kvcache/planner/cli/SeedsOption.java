package io.kvcache.planner.cli;

import io.kvcache.planner.trace.TraceSource;
import java.util.List;
import java.util.stream.LongStream;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;

/// `--seeds N`: a planning command over several seeds of a generated trace.
final class SeedsOption {

    private static final int MAX_SEEDS = 1000;

    @Option(
            names = "--seeds",
            paramLabel = "N",
            description =
                    "Generate the trace from N seeds, its own and the following, and print the mean of each figure"
                            + " with its 95 %% interval (Student's t). 2 to " + MAX_SEEDS + ".")
    private @Nullable Integer seeds;

    /// Returns whether there are several seeds.
    boolean isGiven() {
        return seeds != null;
    }

    /// Returns the traces to replay: the trace itself, or one of each seed.
    ///
    /// @throws IllegalArgumentException when the number is out of range, or the trace is not made from a seed
    List<TraceSource> sources(TraceSource source) {
        Integer count = seeds;
        if (count == null) {
            return List.of(source);
        }
        if (count < 2 || count > MAX_SEEDS) {
            throw PlanningOptions.invalidOption("--seeds", String.valueOf(count), "2 to " + MAX_SEEDS);
        }
        if (!(source instanceof TraceSource.Seeded seeded)) {
            throw new IllegalArgumentException(
                    "--seeds is '" + count + "', must be: left out for a trace that is not made"
                            + " from a seed, as " + source.name()
                            + "; --trace takes generated:SEED, popular:SEED, hostile:SEED,"
                            + " agents:SEED and mixed:SEED with it");
        }
        if (seeded.seed() > Long.MAX_VALUE - count) {
            throw PlanningOptions.invalidOption("--seeds", String.valueOf(count), "within the seeds of 64 bits");
        }
        return LongStream.range(0, count)
                .<TraceSource>mapToObj(i -> seeded.withSeed(seeded.seed() + i))
                .toList();
    }

    /// Checks that no report of one run is asked for.
    ///
    /// @throws IllegalArgumentException when it is
    void checkWithout(String option, boolean given) {
        if (given && isGiven()) {
            throw new IllegalArgumentException(
                    "--seeds is '" + seeds + "', must be: left out where " + option + " is given");
        }
    }
}
