package io.kvcache.bench.server;

import io.kvcache.bench.suite.BenchmarkSuite.BenchResult;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.function.Consumer;

/// A part of what `bench server` measures; it starts and stops the servers that it needs.
public interface ServerBenchmark {

    /// As on the command line.
    String name();

    /// Returns its subject, in one line.
    String title();

    /// The parts that take minutes.
    static List<ServerBenchmark> all() {
        return List.of(
                new GetSetBenchmark(),
                new BaselineGetBenchmark(),
                new PipelineBenchmark(),
                new NewcomerBenchmark(),
                new EvictionPressureBenchmark(),
                new AllocationBenchmark(),
                new StartupBenchmark());
    }

    /// The part that takes as long as it is told to.
    static ServerBenchmark soak(Duration time) {
        return new SoakBenchmark(time);
    }

    /// Measures.
    ///
    /// @throws IOException when a server or a client fails, or a peer is not installed
    List<BenchResult> run(BenchmarkOptions benchmarkOptions) throws IOException, InterruptedException;

    /// The number and length of the measurements, and the receiver of progress messages.
    ///
    /// @param count rounds; each round puts each load on each server, so that other work of the machine
    ///     affects all of them alike
    /// @param time of a load
    /// @param maxHostBytes limit of a server's memory for values, in the benchmarks that can do with less.
    ///     So a test can run them beside others.
    /// @param progress receives the name of each run before it starts
    public record BenchmarkOptions(int count, Duration time, long maxHostBytes, Consumer<String> progress) {

        /// More than the largest working set of a [ServerLoadSpec].
        private static final long QUICK_HOST_BYTES = 768L << 20;

        /// Five rounds, enough for a median, of a second each.
        public static BenchmarkOptions full(Consumer<String> progress) {
            return new BenchmarkOptions(5, Duration.ofSeconds(1), Long.MAX_VALUE, progress);
        }

        /// Shows what is broken, not what is slow.
        public static BenchmarkOptions quick(Consumer<String> progress) {
            return new BenchmarkOptions(1, Duration.ofMillis(200), QUICK_HOST_BYTES, progress);
        }

        /// Returns the memory for values that a benchmark gives a server: the wanted bytes, up to the limit.
        long limitHostBytes(long wanted) {
            return Math.min(wanted, maxHostBytes);
        }

        void report(String what) {
            progress.accept(what);
        }
    }
}
