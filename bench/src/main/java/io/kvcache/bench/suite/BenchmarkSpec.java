package io.kvcache.bench.suite;

/// One thing that a suite wants to know.
///
/// @param name what `--filter` looks at
/// @param text the question in words
/// @param unit of the value and of the reference
/// @param reference a limit of this machine or a simpler way, measured in the same round
public record BenchmarkSpec(
        String name, String text, String unit, MetricSource source, MetricSource reference, Threshold threshold) {}
