package io.kvcache.bench.suite;

import io.kvcache.bench.suite.MetricSource.RoundsMetric;
import java.util.List;
import java.util.function.IntFunction;
import java.util.function.ToDoubleFunction;
import org.jspecify.annotations.Nullable;

/// Rounds that several questions read: what is compared takes turns within each of them. The first question that
/// asks has them measured.
///
/// Not safe for several threads.
///
/// @param <R> the figures of a round
final class SharedRounds<R> {

    private final IntFunction<List<R>> measurement;
    private final int perRound;
    private @Nullable List<R> measured;

    /// @param measurement of so many rounds
    /// @param perRound of the suite: more than one where they are short
    SharedRounds(IntFunction<List<R>> measurement, int perRound) {
        this.measurement = measurement;
        this.perRound = perRound;
    }

    /// One of the figures.
    MetricSource metric(String name, ToDoubleFunction<R> reading) {
        return new RoundsMetric(name, length -> {
            List<R> known = measured == null ? measurement.apply(perRound * length.rounds()) : measured;
            measured = known;
            return known.stream().mapToDouble(reading).toArray();
        });
    }
}
