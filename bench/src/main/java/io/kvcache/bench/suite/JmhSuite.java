package io.kvcache.bench.suite;

import io.kvcache.bench.figure.Figure;
import io.kvcache.bench.figure.RunnableBuild;
import io.kvcache.bench.figure.Suite;
import io.kvcache.bench.suite.JmhProcess.JmhRun;
import io.kvcache.bench.suite.JmhProcess.JmhSample;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.ToDoubleFunction;

/// Figures of JMH benchmarks, each beside another benchmark of the same round. Every benchmark runs once a round,
/// in a JVM of its own.
///
/// @param figures in the order of measuring
record JmhSuite(List<JmhFigure> figures) {

    /// Enough for figures that go into a document.
    private static final JmhProcess FULL = new JmhProcess(6, 6, 400);

    /// Enough to see that something has gone wrong.
    private static final JmhProcess QUICK = new JmhProcess(3, 3, 200);

    private static final int ROUNDS = 3;

    /// A figure.
    ///
    /// @param reference a limit of this machine or a simpler way
    record JmhFigure(String name, String unit, Reading value, Reading reference) {}

    /// One number of a fork's result.
    ///
    /// @param subject what it is of
    /// @param number turns the sample into the figure's unit
    record Reading(String subject, JmhRun run, ToDoubleFunction<JmhSample> number) {

        /// Nanoseconds for each of `operations` in an invocation.
        static Reading nanosPer(String subject, long operations, JmhRun run) {
            return new Reading(subject, run, sample -> sample.nanos() / operations);
        }

        /// Bytes a nanosecond, which are GB/s.
        static Reading bandwidth(String subject, long bytes, JmhRun run) {
            return new Reading(subject, run, sample -> bytes / sample.nanos());
        }

        /// Operations a microsecond, of all threads together.
        static Reading throughput(String subject, long operations, JmhRun run) {
            return new Reading(subject, run, sample -> 1e3 * run.threads() * operations / sample.nanos());
        }

        /// Heap bytes for each of `operations` in an invocation.
        static Reading allocationPer(String subject, long operations, JmhRun run) {
            return new Reading(subject, run, sample -> sample.allocatedBytes() / operations);
        }
    }

    /// Copies the figures.
    JmhSuite {
        figures = List.copyOf(figures);
    }

    List<String> names() {
        return figures.stream().map(JmhFigure::name).toList();
    }

    /// Measures the figures that a run wants.
    List<Figure> measure(Suite.Run run) throws IOException {
        List<JmhFigure> wanted =
                figures.stream().filter(figure -> run.wants(figure.name)).toList();
        Set<JmhRun> benchmarks = new LinkedHashSet<>();
        wanted.forEach(figure -> {
            benchmarks.add(figure.reference.run);
            benchmarks.add(figure.value.run);
        });
        Map<JmhRun, List<JmhSample>> samples = new HashMap<>();
        int rounds = run.rounds(ROUNDS);
        for (int round = 1; round <= rounds; round++) {
            for (JmhRun benchmark : benchmarks) {
                run.progress().accept("round " + round + " of " + rounds + ": " + benchmark.describe());
                JmhSample sample = (run.quick() ? QUICK : FULL)
                        .run(RunnableBuild.running(), benchmark)
                        .orElseThrow(() -> new IOException("there is no benchmark " + benchmark.benchmark()));
                samples.computeIfAbsent(benchmark, _ -> new ArrayList<>()).add(sample);
            }
        }
        return wanted.stream()
                .map(figure -> Figure.of(
                        figure.name,
                        figure.unit,
                        numbers(figure.value, samples),
                        figure.reference.subject,
                        numbers(figure.reference, samples)))
                .toList();
    }

    private static double[] numbers(Reading reading, Map<JmhRun, List<JmhSample>> samples) {
        return samples.getOrDefault(reading.run, List.of()).stream()
                .mapToDouble(reading.number)
                .toArray();
    }
}
