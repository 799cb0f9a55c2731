package io.kvcache.bench.suite;

import io.kvcache.bench.suite.SuiteRunner.RunLength;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.profile.GCProfiler;
import org.openjdk.jmh.results.Result;
import org.openjdk.jmh.results.RunResult;
import org.openjdk.jmh.runner.Runner;
import org.openjdk.jmh.runner.RunnerException;
import org.openjdk.jmh.runner.options.ChainedOptionsBuilder;
import org.openjdk.jmh.runner.options.Options;
import org.openjdk.jmh.runner.options.OptionsBuilder;
import org.openjdk.jmh.runner.options.TimeValue;
import org.openjdk.jmh.runner.options.VerboseMode;

/// Runs one benchmark in one JVM of its own and reads the median and the allocation.
public final class JmhRunner {

    private static final String ALLOCATION = "gc.alloc.rate.norm";

    /// The launcher's JVM flags, and a heap of one size. Assertions are off, whatever this JVM runs with.
    static final List<String> JVM_ARGUMENTS = List.of(
            "-Xms2g",
            "-Xmx2g",
            "-XX:+UseCompactObjectHeaders",
            "--enable-native-access=ALL-UNNAMED",
            "--sun-misc-unsafe-memory-access=allow");

    private final RunLength runLength;

    JmhRunner(RunLength runLength) {
        this.runLength = runLength;
        // JMH's lock is one for the machine, and a second user cannot take it. The caller keeps the machine quiet.
        System.setProperty("jmh.ignoreLock", "true");
    }

    /// @throws IllegalStateException when the benchmark fails
    JmhSample run(JmhRun jmhRun) {
        try {
            RunResult result = new Runner(options(jmhRun)).runSingle();
            Result<?> allocation = result.getSecondaryResults().get(ALLOCATION);
            Map<String, Double> events = new HashMap<>();
            result.getSecondaryResults().forEach((name, event) -> events.put(name, event.getScore()));
            return new JmhSample(
                    result.getPrimaryResult().getStatistics().getPercentile(50),
                    allocation == null ? 0 : allocation.getScore(),
                    result.getPrimaryResult().getSampleCount(),
                    events);
        } catch (RunnerException failed) {
            throw new IllegalStateException(jmhRun.benchmark() + " failed", failed);
        }
    }

    private Options options(JmhRun jmhRun) {
        TimeValue time = new TimeValue(runLength.iterationMillis(), TimeUnit.MILLISECONDS);
        ChainedOptionsBuilder options = new OptionsBuilder()
                .include("\\." + jmhRun.benchmark().replace(".", "\\.") + "$")
                .threads(jmhRun.threads())
                .forks(1)
                .warmupIterations(runLength.iterations())
                .warmupTime(time)
                .measurementIterations(runLength.iterations())
                .measurementTime(time)
                .addProfiler(GCProfiler.class)
                .jvmArgs(JVM_ARGUMENTS.toArray(String[]::new))
                .shouldFailOnError(true)
                .verbosity(VerboseMode.SILENT);
        jmhRun.parameters().forEach(options::param);
        return options.build();
    }

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

        /// Returns the benchmark and its parameters as text.
        String describe() {
            return benchmark + (parameters.isEmpty() ? "" : " " + new TreeMap<>(parameters));
        }

        /// In one thread.
        public static JmhRun of(String benchmark) {
            return new JmhRun(benchmark, 1);
        }
    }

    /// The result of one fork of a benchmark.
    ///
    /// @param nanos median time of an invocation, in one thread
    /// @param allocatedBytes heap bytes allocated in an invocation, on average
    /// @param iterations measured ones
    /// @param events what the benchmark counted, summed up over its iterations
    public record JmhSample(double nanos, double allocatedBytes, long iterations, Map<String, Double> events) {

        /// Copies the events.
        public JmhSample {
            events = Map.copyOf(events);
        }

        /// One count over another; 0 when there is neither.
        double ratio(String event, String ofEvent) {
            double of = events.getOrDefault(ofEvent, 0.0);
            return of == 0 ? 0 : events.getOrDefault(event, 0.0) / of;
        }
    }
}
