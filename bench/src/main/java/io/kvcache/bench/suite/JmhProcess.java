package io.kvcache.bench.suite;

import io.kvcache.bench.ChildProcess;
import io.kvcache.bench.figure.RunnableBuild;
import io.kvcache.server.doctor.ProcessRunner;
import io.kvcache.server.doctor.ProcessRunner.ProcessOutput;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/// Runs a benchmark of a build by JMH, in JVMs of their own, and reads the median and the allocation.
///
/// @param iterations measured ones
/// @param millis length of each, and of the ones before that warm up
record JmhProcess(int warmups, int iterations, int millis) {

    private static final String NO_SUCH_BENCHMARK = "No matching benchmarks";

    /// As the one jar of a server does.
    private static final String WITHOUT_JMH = "ClassNotFoundException: org.openjdk.jmh.Main";

    private static final JsonMapper JSON = JsonMapper.builder().build();

    /// A fork takes seconds.
    private static final Duration TIMEOUT = Duration.ofMinutes(10);

    /// The launcher's JVM flags. Assertions are off, whatever this JVM runs with.
    private static final List<String> JVM_FLAGS = List.of(
            "-XX:+UseCompactObjectHeaders",
            "--enable-native-access=ALL-UNNAMED",
            "--sun-misc-unsafe-memory-access=allow");

    private static final String FORK_FLAGS = "-Xms2g -Xmx2g " + String.join(" ", JVM_FLAGS);

    /// A benchmark method; what several figures ask for is run once a round.
    ///
    /// @param benchmark class and method, as `MatchBenchmark.whole`
    /// @param threads that call it at once
    /// @param parameters of the benchmark that are not as it says itself
    record JmhRun(String benchmark, int threads, Map<String, String> parameters) {

        /// Copies the parameters.
        JmhRun {
            parameters = Map.copyOf(parameters);
        }

        /// In one thread, with the benchmark's own parameters.
        static JmhRun of(String benchmark) {
            return new JmhRun(benchmark, 1, Map.of());
        }

        /// Returns the benchmark and its parameters as text.
        String describe() {
            return benchmark + (parameters.isEmpty() ? "" : " " + new TreeMap<>(parameters));
        }
    }

    /// The result of one fork.
    ///
    /// @param nanos median time of an invocation, in one thread
    /// @param allocatedBytes heap bytes allocated in an invocation, on average
    record JmhSample(double nanos, double allocatedBytes) {}

    /// Runs it once.
    ///
    /// @return the result; empty when the build has no such benchmark
    /// @throws IOException when it fails
    Optional<JmhSample> run(RunnableBuild build, JmhRun run) throws IOException {
        Path result = Files.createTempFile("kvcache-jmh", ".json");
        try {
            ProcessOutput output = ProcessRunner.run(
                    TIMEOUT, new ProcessBuilder(command(build, run, result)).redirectErrorStream(true));
            if (output.text().contains(NO_SUCH_BENCHMARK) || output.text().contains(WITHOUT_JMH)) {
                return Optional.empty();
            }
            if (!output.isSuccessful() || Files.size(result) == 0) {
                throw new IOException(run.describe() + " of " + build.name() + " " + output.describeFailure(TIMEOUT));
            }
            JsonNode found = JSON.readTree(Files.readString(result)).path(0);
            JsonNode time = found.path("primaryMetric").path("scorePercentiles").path("50.0");
            JsonNode allocation =
                    found.path("secondaryMetrics").path("gc.alloc.rate.norm").path("score");
            return Optional.of(new JmhSample(time.doubleValue(), allocation.asDouble(0)));
        } finally {
            Files.deleteIfExists(result);
        }
    }

    /// JMH's lock is one for the machine, and a second user cannot take it. The caller keeps the machine quiet.
    private List<String> command(RunnableBuild build, JmhRun run, Path result) {
        List<String> command = new ArrayList<>(List.of(ChildProcess.java(), "-Djmh.ignoreLock=true"));
        command.addAll(JVM_FLAGS);
        command.addAll(List.of("-cp", build.classPath(), "org.openjdk.jmh.Main", "-f", "1", "-foe", "true"));
        command.addAll(List.of("-wi", String.valueOf(warmups), "-w", millis + "ms"));
        command.addAll(List.of("-i", String.valueOf(iterations), "-r", millis + "ms"));
        command.addAll(List.of("-v", "SILENT", "-prof", "gc", "-tu", "ns", "-t", String.valueOf(run.threads())));
        command.addAll(List.of("-jvmArgs", FORK_FLAGS, "-rf", "json", "-rff", result.toString()));
        run.parameters().forEach((name, value) -> command.addAll(List.of("-p", name + "=" + value)));
        command.add("\\." + run.benchmark().replace(".", "\\.") + "$");
        return command;
    }
}
