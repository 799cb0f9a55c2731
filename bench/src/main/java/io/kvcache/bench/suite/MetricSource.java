package io.kvcache.bench.suite;

import io.kvcache.bench.disk.DiskRun;
import io.kvcache.bench.disk.DiskRun.TransferResult;
import io.kvcache.bench.suite.JmhRunner.JmhRun;
import io.kvcache.bench.suite.JmhRunner.JmhSample;
import io.kvcache.bench.suite.SuiteRunner.RunLength;
import java.util.function.DoubleSupplier;
import java.util.function.Function;
import java.util.function.ToDoubleFunction;

/// The source of a number.
public sealed interface MetricSource {

    /// Returns the subject of the number, for the table.
    String name();

    /// A number out of a fork's sample, another one each round.
    ///
    /// @param reading turns the sample into the question's unit
    record JmhMetric(String name, JmhRun fork, ToDoubleFunction<JmhSample> reading) implements MetricSource {}

    /// A number out of what a trial moved, another one each round.
    ///
    /// @param reading turns the traffic into the question's unit
    record TransferMetric(String name, DiskRun trial, ToDoubleFunction<TransferResult> reading)
            implements MetricSource {}

    /// A number that is the same whenever it is asked for.
    record ConstantMetric(String name, DoubleSupplier count) implements MetricSource {}

    /// A number for each of so many rounds, from something that measures itself.
    ///
    /// @param rounds in the question's unit; measures that belong together take as many, in the same
    ///     rounds
    record RoundsMetric(String name, Function<RunLength, double[]> rounds) implements MetricSource {}

    /// Nanoseconds for each of `operations` in an invocation.
    static MetricSource nanosPer(String name, long operations, JmhRun jmhRun) {
        return new JmhMetric(name, jmhRun, sample -> sample.nanos() / operations);
    }

    /// Bytes a nanosecond, which are GB/s.
    static MetricSource bandwidth(String name, long bytes, JmhRun jmhRun) {
        return new JmhMetric(name, jmhRun, sample -> bytes / sample.nanos());
    }

    /// Operations a microsecond, of all threads together.
    static MetricSource throughput(String name, long operations, JmhRun jmhRun) {
        return new JmhMetric(name, jmhRun, sample -> 1e3 * jmhRun.threads() * operations / sample.nanos());
    }

    /// Heap bytes for each of `operations` in an invocation.
    static MetricSource allocationPer(String name, long operations, JmhRun jmhRun) {
        return new JmhMetric(name, jmhRun, sample -> sample.allocatedBytes() / operations);
    }
}
