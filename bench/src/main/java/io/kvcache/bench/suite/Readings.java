package io.kvcache.bench.suite;

import io.kvcache.bench.disk.DiskRun;
import io.kvcache.bench.disk.TransferResult;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;

/// What the runs of a suite have given so far, and the answers that follow.
final class Readings {

    private static final double[] NONE = {};

    private final Map<Fork, List<Sample>> samples = new HashMap<>();
    private final Map<DiskRun, List<TransferResult>> traffic = new HashMap<>();

    private final Map<Measure.Rounds, double[]> measured = new HashMap<>();

    void add(Measure.Rounds measure, double[] numbers) {
        measured.put(measure, numbers);
    }

    void add(Fork fork, Sample sample) {
        samples.computeIfAbsent(fork, _ -> new ArrayList<>()).add(sample);
    }

    void add(DiskRun trial, TransferResult moved) {
        traffic.computeIfAbsent(trial, _ -> new ArrayList<>()).add(moved);
    }

    /// Medians over the rounds, and of the ratio the median of each round's.
    Answer answer(Question question) {
        double[] values = read(question.value());
        double[] against = read(question.against());
        int rounds = Math.max(values.length, against.length);
        double[] ratios = IntStream.range(0, rounds)
                .mapToDouble(round -> ratio(of(values, round), of(against, round)))
                .toArray();
        return new Answer(question, median(values), median(against), median(ratios), rounds, path(question.value()));
    }

    private static double ratio(double value, double against) {
        return against == 0 ? 0 : value / against;
    }

    /// What was counted is the same in every round.
    private static double of(double[] numbers, int round) {
        return numbers[numbers.length == 1 ? 0 : round];
    }

    private double[] read(Measure measure) {
        return switch (measure) {
            case Measure.Timed timed ->
                samples.getOrDefault(timed.fork(), List.of()).stream()
                        .mapToDouble(timed.reading())
                        .toArray();
            case Measure.Moved moved ->
                traffic.getOrDefault(moved.trial(), List.of()).stream()
                        .mapToDouble(moved.reading())
                        .toArray();
            case Measure.Rounds rounds -> measured.getOrDefault(rounds, NONE);
            case Measure.Counted counted -> new double[] {counted.count().getAsDouble()};
        };
    }

    /// The path may change while it runs, as when memory gets short; all of them are said.
    private String path(Measure measure) {
        return measure instanceof Measure.Moved moved
                ? String.join(
                        " / ",
                        traffic.getOrDefault(moved.trial(), List.of()).stream()
                                .map(TransferResult::path)
                                .distinct()
                                .toList())
                : "";
    }

    static double median(double[] values) {
        double[] sorted = values.clone();
        Arrays.sort(sorted);
        int middle = sorted.length / 2;
        return sorted.length % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
    }
}
