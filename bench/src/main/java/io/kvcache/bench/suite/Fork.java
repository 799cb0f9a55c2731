package io.kvcache.bench.suite;

/// A benchmark method as JMH runs it in a JVM of its own; what several questions ask for is run once a round.
///
/// @param benchmark class and method, as `MatchBenchmark.whole`
/// @param threads that call it at once
public record Fork(String benchmark, int threads) {

    /// In one thread.
    public static Fork of(String benchmark) {
        return new Fork(benchmark, 1);
    }
}
