package io.kvcache.bench.suite;

import io.kvcache.bench.suite.BenchmarkSuite.BenchmarkSpec;

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
