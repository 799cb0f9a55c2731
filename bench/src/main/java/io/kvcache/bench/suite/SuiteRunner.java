package io.kvcache.bench.suite;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/// Runs a suite in rounds, each benchmark once a round, and takes medians over the rounds.
///
/// So a question and what it is held against are measured minutes apart at most, again and again, and a ratio is
/// one of two numbers from the same round.
public final class SuiteRunner {

    private final JmhRunner jmh;
    private final int rounds;
    private final Consumer<String> progress;

    /// @param progress told what is about to run
    public SuiteRunner(Effort effort, Consumer<String> progress) {
        jmh = new JmhRunner(effort);
        rounds = effort.rounds();
        this.progress = progress;
    }

    /// Answers every question of a suite.
    ///
    /// @throws IllegalStateException when a benchmark fails
    public List<Answer> run(Suite suite) {
        Set<Fork> forks = new LinkedHashSet<>();
        suite.questions().stream()
                .flatMap(question -> Stream.of(question.against(), question.value()))
                .forEach(measure -> addFork(measure, forks));
        List<Map<Fork, Sample>> samples = new ArrayList<>();
        for (int round = 1; round <= rounds; round++) {
            samples.add(runRound(round, forks));
        }
        return suite.questions().stream()
                .map(question -> answer(question, samples))
                .toList();
    }

    private static void addFork(Measure measure, Set<Fork> forks) {
        switch (measure) {
            case Measure.Timed timed -> forks.add(timed.fork());
            case Measure.Counted _ -> {}
        }
    }

    private Map<Fork, Sample> runRound(int round, Set<Fork> forks) {
        Map<Fork, Sample> samples = new HashMap<>();
        for (Fork fork : forks) {
            progress.accept("round " + round + " of " + rounds + ": " + fork.benchmark());
            samples.put(fork, jmh.run(fork));
        }
        return samples;
    }

    private static Answer answer(Question question, List<Map<Fork, Sample>> samples) {
        double[] values = read(question.value(), samples);
        double[] against = read(question.against(), samples);
        double[] ratios = IntStream.range(0, values.length)
                .mapToDouble(i -> against[i] == 0 ? 0 : values[i] / against[i])
                .toArray();
        return new Answer(question, median(values), median(against), median(ratios), samples.size());
    }

    private static double[] read(Measure measure, List<Map<Fork, Sample>> samples) {
        return switch (measure) {
            case Measure.Timed timed ->
                samples.stream()
                        .map(round -> round.getOrDefault(timed.fork(), new Sample(Double.NaN, Double.NaN)))
                        .mapToDouble(timed.reading())
                        .toArray();
            case Measure.Counted counted -> {
                double[] same = new double[samples.size()];
                Arrays.fill(same, counted.count().getAsDouble());
                yield same;
            }
        };
    }

    private static double median(double[] values) {
        double[] sorted = values.clone();
        Arrays.sort(sorted);
        int middle = sorted.length / 2;
        return sorted.length % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
    }
}
