package io.kvcache.bench.suite;

import java.util.Map;
import java.util.TreeMap;

/// A benchmark method as JMH runs it in a JVM of its own; what several questions ask for is run once a
/// round.
///
/// @param benchmark class and method, as `MatchBenchmark.whole`
/// @param threads that call it at once
/// @param parameters of the benchmark that are not as it says itself
public record JmhRun(String benchmark, int threads, Map<String, String> parameters) {

    /// Copies the parameters.
    public JmhRun {
        parameters = Map.copyOf(parameters);
    }

    /// With the benchmark's own parameters.
    public JmhRun(String benchmark, int threads) {
        this(benchmark, threads, Map.of());
    }

    /// What runs, for people.
    String describe() {
        return benchmark + (parameters.isEmpty() ? "" : " " + new TreeMap<>(parameters));
    }

    /// In one thread.
    public static JmhRun of(String benchmark) {
        return new JmhRun(benchmark, 1);
    }
}
