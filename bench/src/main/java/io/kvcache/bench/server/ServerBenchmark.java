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

    /// What it answers, in one line.
    String title();

    /// The parts that take minutes.
    static List<ServerBenchmark> all() {
        return List.of(
                new GetSetBenchmark(),
                new BaselineGetBenchmark(),
                new PipelineBenchmark(),
                new RedisToolBenchmark(),
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

    /// How thoroughly to measure, and who is told of it.
    ///
    /// @param count times that each load is put on each server, in turn, so that what else the machine
    ///     does meets all
    /// @param time of a load
    /// @param maxHostBytes for values in a part that can do with less, so that a test can run it beside
    ///     others
    /// @param progress told what is about to run
    public record BenchmarkOptions(int count, Duration time, long maxHostBytes, Consumer<String> progress) {

        /// More than the largest working set of a [ServerLoadSpec].
        private static final long QUICK_HOST_BYTES = 768L << 20;

        /// Enough to find the middle of, with a second each.
        public static BenchmarkOptions full(Consumer<String> progress) {
            return new BenchmarkOptions(5, Duration.ofSeconds(1), Long.MAX_VALUE, progress);
        }

        /// Shows what is broken, not what is slow.
        public static BenchmarkOptions quick(Consumer<String> progress) {
            return new BenchmarkOptions(1, Duration.ofMillis(200), QUICK_HOST_BYTES, progress);
        }

        /// What a part gives a server for values, who wants so much.
        long limitHostBytes(long wanted) {
            return Math.min(wanted, maxHostBytes);
        }

        void report(String what) {
            progress.accept(what);
        }
    }
}
