package io.kvcache.bench.suite;

import io.kvcache.bench.disk.DiskBenchDirs;
import io.kvcache.bench.disk.DiskBenchFixture;
import io.kvcache.bench.disk.DiskRun;
import io.kvcache.bench.disk.DiskBenchFixture.DiskRunLength;
import java.io.IOException;
import java.util.List;
import java.util.Set;
import java.util.function.Consumer;

/// Runs a suite in rounds, each benchmark and each trial once a round, and takes medians over the rounds.
///
/// So a question and what it is held against are measured minutes apart at most, again and again, and a
/// ratio is one of two numbers from the same round.
public final class SuiteRunner {

    private final RunLength runLength;
    private final Consumer<String> progress;

    /// @param progress told what is about to run
    public SuiteRunner(RunLength runLength, Consumer<String> progress) {
        this.runLength = runLength;
        this.progress = progress;
    }

    /// Answers every question of a suite that needs no files.
    ///
    /// @throws IllegalStateException when a benchmark fails
    public List<BenchResult> run(BenchmarkSuite suite) {
        BenchmarkSamples benchmarkSamples = new BenchmarkSamples();
        JmhRunner jmh = new JmhRunner(runLength);
        for (MetricSource.RoundsMetric measure : suite.roundsMetrics()) {
            progress.accept(measure.name());
            benchmarkSamples.add(measure, measure.rounds().apply(runLength));
        }
        for (int round = 1; round <= runLength.rounds(); round++) {
            for (JmhRun jmhRun : suite.jmhRuns()) {
                progress.accept("round " + round + " of " + runLength.rounds() + ": " + jmhRun.describe());
                benchmarkSamples.add(jmhRun, jmh.run(jmhRun));
            }
        }
        return results(suite, benchmarkSamples);
    }

    /// Answers every question of a suite that moves bytes through files.
    ///
    /// @throws IOException when a file or fio fails
    public List<BenchResult> run(BenchmarkSuite suite, DiskBenchDirs places) throws IOException {
        BenchmarkSamples benchmarkSamples = new BenchmarkSamples();
        DiskRunLength disk = runLength.disk();
        progress.accept("writing the files");
        try (DiskBenchFixture bench = DiskBenchFixture.open(places.retainOnly(suite.media()), disk)) {
            for (int round = 1; round <= disk.memoryRounds(); round++) {
                runRound(round, suite.diskRuns(), bench, benchmarkSamples);
            }
        }
        return results(suite, benchmarkSamples);
    }

    private void runRound(int round, Set<DiskRun> trials, DiskBenchFixture bench, BenchmarkSamples benchmarkSamples)
            throws IOException {
        for (DiskRun diskRun : trials) {
            int rounds = runLength.disk().rounds(diskRun.place());
            if (round <= rounds) {
                progress.accept("round " + round + " of " + rounds + ": " + diskRun.describe());
                benchmarkSamples.add(diskRun, bench.run(diskRun));
            }
        }
    }

    private static List<BenchResult> results(BenchmarkSuite suite, BenchmarkSamples benchmarkSamples) {
        return suite.specs().stream().map(benchmarkSamples::toResult).toList();
    }
}
