package io.kvcache.bench.suite;

import io.kvcache.bench.disk.DiskBenchDirs;
import io.kvcache.bench.disk.DiskBenchFixture;
import io.kvcache.bench.disk.DiskRun;
import io.kvcache.bench.disk.DiskRunLength;
import java.io.IOException;
import java.util.List;
import java.util.Set;
import java.util.function.Consumer;

/// Runs a suite in rounds, each benchmark and each trial once a round, and takes medians over the rounds.
///
/// So a question and what it is held against are measured minutes apart at most, again and again, and a
/// ratio is one of two numbers from the same round.
public final class SuiteRunner {

    private final Effort effort;
    private final Consumer<String> progress;

    /// @param progress told what is about to run
    public SuiteRunner(Effort effort, Consumer<String> progress) {
        this.effort = effort;
        this.progress = progress;
    }

    /// Answers every question of a suite that needs no files.
    ///
    /// @throws IllegalStateException when a benchmark fails
    public List<Answer> run(Suite suite) {
        Readings readings = new Readings();
        JmhRunner jmh = new JmhRunner(effort);
        for (Measure.Rounds measure : suite.rounds()) {
            progress.accept(measure.name());
            readings.add(measure, measure.rounds().apply(effort));
        }
        for (int round = 1; round <= effort.rounds(); round++) {
            for (Fork fork : suite.forks()) {
                progress.accept("round " + round + " of " + effort.rounds() + ": " + fork.describe());
                readings.add(fork, jmh.run(fork));
            }
        }
        return answers(suite, readings);
    }

    /// Answers every question of a suite that moves bytes through files.
    ///
    /// @throws IOException when a file or fio fails
    public List<Answer> run(Suite suite, DiskBenchDirs places) throws IOException {
        Readings readings = new Readings();
        DiskRunLength disk = effort.disk();
        progress.accept("writing the files");
        try (DiskBenchFixture bench = DiskBenchFixture.open(places.retainOnly(suite.places()), disk)) {
            for (int round = 1; round <= disk.memoryRounds(); round++) {
                runRound(round, suite.trials(), bench, readings);
            }
        }
        return answers(suite, readings);
    }

    private void runRound(int round, Set<DiskRun> trials, DiskBenchFixture bench, Readings readings)
            throws IOException {
        for (DiskRun trial : trials) {
            int rounds = effort.disk().rounds(trial.place());
            if (round <= rounds) {
                progress.accept("round " + round + " of " + rounds + ": " + trial.describe());
                readings.add(trial, bench.run(trial));
            }
        }
    }

    private static List<Answer> answers(Suite suite, Readings readings) {
        return suite.questions().stream().map(readings::answer).toList();
    }
}
