package io.kvcache.bench.suite;

import java.util.Map;
import java.util.TreeMap;

/// A benchmark method as JMH runs it in a JVM of its own; what several questions ask for is run once a
/// round.
///
/// @param benchmark class and method, as `MatchBenchmark.whole`
/// @param threads that call it at once
/// @param parameters of the benchmark that are not as it says itself
public record Fork(String benchmark, int threads, Map<String, String> parameters) {

    /// Copies the parameters.
    public Fork {
        parameters = Map.copyOf(parameters);
    }

    /// With the benchmark's own parameters.
    public Fork(String benchmark, int threads) {
        this(benchmark, threads, Map.of());
    }

    /// What runs, for people.
    String describe() {
        return benchmark + (parameters.isEmpty() ? "" : " " + new TreeMap<>(parameters));
    }

    /// In one thread.
    public static Fork of(String benchmark) {
        return new Fork(benchmark, 1);
    }
}
