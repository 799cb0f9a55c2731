package io.kvcache.bench.suite;

import io.kvcache.bench.disk.DiskRun;
import io.kvcache.bench.disk.StorageMedium;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/// Questions that belong together.
///
/// @param name as on the command line
public record Suite(String name, String title, List<Question> questions) {

    public Suite {
        questions = List.copyOf(questions);
    }

    /// The questions without those that move bytes elsewhere than in these places.
    public Suite within(Set<StorageMedium> places) {
        return new Suite(
                name,
                title,
                questions.stream()
                        .filter(question -> measures(question)
                                .flatMap(Suite::trial)
                                .allMatch(trial -> places.contains(trial.place())))
                        .toList());
    }

    /// Whether it needs files to read and write.
    public boolean movesBytes() {
        return !trials().isEmpty();
    }

    /// What its numbers come from, the reference before what is held against it.
    Set<Fork> forks() {
        Set<Fork> forks = new LinkedHashSet<>();
        questions.stream().flatMap(Suite::measures).flatMap(Suite::fork).forEach(forks::add);
        return forks;
    }

    /// Likewise.
    Set<DiskRun> trials() {
        Set<DiskRun> trials = new LinkedHashSet<>();
        questions.stream().flatMap(Suite::measures).flatMap(Suite::trial).forEach(trials::add);
        return trials;
    }

    /// Likewise.
    Set<Measure.Rounds> rounds() {
        Set<Measure.Rounds> rounds = new LinkedHashSet<>();
        questions.stream().flatMap(Suite::measures).forEach(measure -> {
            if (measure instanceof Measure.Rounds measured) {
                rounds.add(measured);
            }
        });
        return rounds;
    }

    /// Where its trials run.
    Set<StorageMedium> places() {
        return trials().stream().map(DiskRun::place).collect(Collectors.toSet());
    }

    private static Stream<Measure> measures(Question question) {
        return Stream.of(question.against(), question.value());
    }

    private static Stream<Fork> fork(Measure measure) {
        return measure instanceof Measure.Timed timed ? Stream.of(timed.fork()) : Stream.empty();
    }

    private static Stream<DiskRun> trial(Measure measure) {
        return measure instanceof Measure.Moved moved ? Stream.of(moved.trial()) : Stream.empty();
    }

    /// The questions whose name contains `filter`, in any case.
    public Suite filtered(String filter) {
        String wanted = filter.toLowerCase(Locale.ROOT);
        return new Suite(
                name,
                title,
                questions.stream()
                        .filter(question -> question.name().contains(wanted))
                        .toList());
    }
}
