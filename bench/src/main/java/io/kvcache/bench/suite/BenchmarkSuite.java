package io.kvcache.bench.suite;

import io.kvcache.bench.disk.DiskRun;
import io.kvcache.bench.disk.DiskRun.StorageMedium;
import io.kvcache.bench.suite.BenchmarkSuite.BenchmarkSpec;
import io.kvcache.bench.suite.JmhRunner.JmhRun;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/// Questions that belong together.
///
/// @param name as on the command line
public record BenchmarkSuite(String name, String title, List<BenchmarkSpec> specs) {

    public BenchmarkSuite {
        specs = List.copyOf(specs);
    }

    /// The questions without those that move bytes elsewhere than in these places.
    public BenchmarkSuite onMedia(Set<StorageMedium> places) {
        return new BenchmarkSuite(
                name,
                title,
                specs.stream()
                        .filter(benchmarkSpec -> measures(benchmarkSpec)
                                .flatMap(BenchmarkSuite::trial)
                                .allMatch(diskRun -> places.contains(diskRun.place())))
                        .toList());
    }

    /// Returns whether it needs files to read and write.
    public boolean needsFiles() {
        return !diskRuns().isEmpty();
    }

    /// Returns the JMH runs of its numbers, the reference before the measured one.
    Set<JmhRun> jmhRuns() {
        Set<JmhRun> forks = new LinkedHashSet<>();
        specs.stream()
                .flatMap(BenchmarkSuite::measures)
                .flatMap(BenchmarkSuite::fork)
                .forEach(forks::add);
        return forks;
    }

    /// Likewise.
    Set<DiskRun> diskRuns() {
        Set<DiskRun> trials = new LinkedHashSet<>();
        specs.stream()
                .flatMap(BenchmarkSuite::measures)
                .flatMap(BenchmarkSuite::trial)
                .forEach(trials::add);
        return trials;
    }

    /// Likewise.
    Set<MetricSource.RoundsMetric> roundsMetrics() {
        Set<MetricSource.RoundsMetric> rounds = new LinkedHashSet<>();
        specs.stream().flatMap(BenchmarkSuite::measures).forEach(metricSource -> {
            if (metricSource instanceof MetricSource.RoundsMetric measured) {
                rounds.add(measured);
            }
        });
        return rounds;
    }

    /// Returns the media that its trials run on.
    Set<StorageMedium> media() {
        return diskRuns().stream().map(DiskRun::place).collect(Collectors.toSet());
    }

    private static Stream<MetricSource> measures(BenchmarkSpec benchmarkSpec) {
        return Stream.of(benchmarkSpec.reference(), benchmarkSpec.source());
    }

    private static Stream<JmhRun> fork(MetricSource metricSource) {
        return metricSource instanceof MetricSource.JmhMetric jmhMetric ? Stream.of(jmhMetric.fork()) : Stream.empty();
    }

    private static Stream<DiskRun> trial(MetricSource metricSource) {
        return metricSource instanceof MetricSource.TransferMetric transferMetric
                ? Stream.of(transferMetric.trial())
                : Stream.empty();
    }

    /// The questions whose name contains `filter`, in any case.
    public BenchmarkSuite filterByName(String filter) {
        String wanted = filter.toLowerCase(Locale.ROOT);
        return new BenchmarkSuite(
                name,
                title,
                specs.stream()
                        .filter(benchmarkSpec -> benchmarkSpec.name().contains(wanted))
                        .toList());
    }

    /// One thing that a suite wants to know.
    ///
    /// @param name what `--filter` looks at
    /// @param text the question in words
    /// @param unit of the value and of the reference
    /// @param reference a limit of this machine or a simpler way, measured in the same round
    public record BenchmarkSpec(
            String name, String text, String unit, MetricSource source, MetricSource reference, Threshold threshold) {}

    /// The answer to a question: medians over the rounds, and of the ratio the median of each round's.
    ///
    /// @param ratio value by reference; 0 when the reference is 0
    /// @param runs rounds
    /// @param path how the bytes of the value travelled; empty where none did
    public record BenchResult(
            BenchmarkSpec spec, double value, double referenceValue, double ratio, int runs, String path) {

        public boolean isWithinThreshold() {
            return spec.threshold().isMet(value, ratio);
        }
    }
}
