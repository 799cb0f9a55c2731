package io.kvcache.bench.suite;

import io.kvcache.bench.disk.DiskRun;
import io.kvcache.bench.disk.TransferResult;
import java.util.function.DoubleSupplier;
import java.util.function.Function;
import java.util.function.ToDoubleFunction;

/// Where a number comes from.
public sealed interface Measure {

    /// What the number is of, for the table.
    String name();

    /// A number out of a fork's sample, another one each round.
    ///
    /// @param reading turns the sample into the question's unit
    record Timed(String name, Fork fork, ToDoubleFunction<Sample> reading) implements Measure {}

    /// A number out of what a trial moved, another one each round.
    ///
    /// @param reading turns the traffic into the question's unit
    record Moved(String name, DiskRun trial, ToDoubleFunction<TransferResult> reading) implements Measure {}

    /// A number that is the same whenever it is asked for.
    record Counted(String name, DoubleSupplier count) implements Measure {}

    /// A number for each of so many rounds, from something that measures itself.
    ///
    /// @param rounds in the question's unit; measures that belong together take as many, in the same
    ///     rounds
    record Rounds(String name, Function<Effort, double[]> rounds) implements Measure {}

    /// Nanoseconds for each of `operations` in an invocation.
    static Measure nanosPer(String name, long operations, Fork fork) {
        return new Timed(name, fork, sample -> sample.nanos() / operations);
    }

    /// Bytes a nanosecond, which are GB/s.
    static Measure speed(String name, long bytes, Fork fork) {
        return new Timed(name, fork, sample -> bytes / sample.nanos());
    }

    /// Operations a microsecond, of all threads together.
    static Measure rate(String name, long operations, Fork fork) {
        return new Timed(name, fork, sample -> 1e3 * fork.threads() * operations / sample.nanos());
    }

    /// Heap bytes for each of `operations` in an invocation.
    static Measure allocationPer(String name, long operations, Fork fork) {
        return new Timed(name, fork, sample -> sample.allocatedBytes() / operations);
    }
}
