package io.kvcache.bench.suite;

import io.kvcache.bench.ChildProcess;
import io.kvcache.bench.suite.BenchmarkSuite.BenchmarkSpec;
import io.kvcache.bench.suite.BuildComparison.BuildBenchmark;
import io.kvcache.bench.suite.JmhRunner.JmhRun;
import io.kvcache.server.doctor.ProcessRunner;
import io.kvcache.server.doctor.ProcessRunner.ProcessOutput;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalDouble;
import java.util.Set;
import java.util.function.Consumer;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/// The timed questions of `bench core`, each a fork of JMH with a build's own benchmark and store.
public final class CoreBuildBenchmark implements BuildBenchmark {

    private static final String NO_SUCH_BENCHMARK = "No matching benchmarks";

    /// As the one jar of a server does.
    private static final String WITHOUT_JMH = "ClassNotFoundException: org.openjdk.jmh.Main";

    private static final JsonMapper JSON = JsonMapper.builder().build();

    /// A fork takes seconds.
    private static final Duration TIMEOUT = Duration.ofMinutes(10);

    /// 3 × 200 ms to come to speed and 5 × 200 ms to measure.
    private static final List<String> RUN_LENGTH =
            List.of("-f", "1", "-wi", "3", "-w", "200ms", "-i", "5", "-r", "200ms", "-foe", "true", "-v", "SILENT");

    private final Map<String, JmhRun> forks = new LinkedHashMap<>();

    public CoreBuildBenchmark() {
        for (BenchmarkSpec benchmarkSpec : CoreSuite.suite().specs()) {
            if (benchmarkSpec.source() instanceof MetricSource.JmhMetric jmhMetric
                    && !benchmarkSpec.unit().startsWith("B")) {
                forks.put(benchmarkSpec.name(), jmhMetric.fork());
            }
        }
    }

    @Override
    public String suiteName() {
        return "core";
    }

    @Override
    public List<String> cellNames() {
        return List.copyOf(forks.keySet());
    }

    @Override
    public Map<String, Double> measurePair(
            RunnableBuild older, RunnableBuild newer, boolean newFirst, Set<String> cells, Consumer<String> progress)
            throws IOException {
        Map<String, Double> ratios = new LinkedHashMap<>();
        for (Map.Entry<String, JmhRun> cell : forks.entrySet()) {
            if (cells.contains(cell.getKey())) {
                progress.accept(cell.getKey());
                OptionalDouble first = nanos(newFirst ? newer : older, cell.getValue());
                OptionalDouble second = nanos(newFirst ? older : newer, cell.getValue());
                if (first.isPresent() && second.isPresent()) {
                    double ratio = second.getAsDouble() / first.getAsDouble();
                    ratios.put(cell.getKey(), newFirst ? ratio : 1 / ratio);
                }
            }
        }
        return ratios;
    }

    /// The median time of an invocation; empty when the build has no such benchmark.
    private static OptionalDouble nanos(RunnableBuild build, JmhRun jmhRun) throws IOException {
        Path result = Files.createTempFile("kvcache-pairs", ".json");
        try {
            ProcessOutput output = ProcessRunner.run(
                    TIMEOUT, new ProcessBuilder(command(build, jmhRun, result)).redirectErrorStream(true));
            if (output.text().contains(NO_SUCH_BENCHMARK) || output.text().contains(WITHOUT_JMH)) {
                return OptionalDouble.empty();
            }
            if (!output.isSuccessful() || Files.size(result) == 0) {
                throw new IOException(
                        jmhRun.describe() + " of " + build.name() + " " + output.describeFailure(TIMEOUT));
            }
            JsonNode metric = JSON.readTree(Files.readString(result)).path(0).path("primaryMetric");
            return OptionalDouble.of(
                    metric.path("scorePercentiles").path("50.0").doubleValue());
        } finally {
            Files.deleteIfExists(result);
        }
    }

    private static List<String> command(RunnableBuild build, JmhRun jmhRun, Path result) {
        List<String> command = new ArrayList<>(List.of(ChildProcess.java(), "-Djmh.ignoreLock=true"));
        command.addAll(JmhRunner.JVM_ARGUMENTS.stream()
                .filter(argument -> !argument.startsWith("-Xm"))
                .toList());
        command.addAll(List.of("-cp", build.classPath(), "org.openjdk.jmh.Main"));
        command.addAll(RUN_LENGTH);
        command.addAll(List.of("-tu", "ns", "-t", Integer.toString(jmhRun.threads())));
        command.addAll(List.of("-jvmArgs", String.join(" ", JmhRunner.JVM_ARGUMENTS)));
        command.addAll(List.of("-rf", "json", "-rff", result.toString()));
        jmhRun.parameters().forEach((name, value) -> command.addAll(List.of("-p", name + "=" + value)));
        command.add("\\." + jmhRun.benchmark().replace(".", "\\.") + "$");
        return command;
    }
}
