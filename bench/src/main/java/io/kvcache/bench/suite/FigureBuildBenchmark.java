package io.kvcache.bench.suite;

import io.kvcache.bench.figure.RunnableBuild;
import io.kvcache.bench.suite.BuildComparison.BuildBenchmark;
import io.kvcache.bench.suite.JmhProcess.JmhRun;
import io.kvcache.bench.suite.JmhProcess.JmhSample;
import io.kvcache.server.doctor.ProcessRunner;
import io.kvcache.server.doctor.ProcessRunner.ProcessOutput;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.Consumer;
import java.util.stream.Stream;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/// A suite that each build measures by itself, part by part in turns: the figures that both print are compared. A
/// part stands for all cells whose names begin with it.
///
/// @param suiteName as on the command line
public record FigureBuildBenchmark(String suiteName, List<Part> parts) implements BuildBenchmark {

    private static final JsonMapper JSON = JsonMapper.builder().build();

    /// The longest part takes half a minute.
    private static final Duration TIMEOUT = Duration.ofMinutes(10);

    /// 3 × 200 ms to come to speed and 5 × 200 ms to measure.
    private static final JmhProcess JMH = new JmhProcess(3, 5, 200);

    /// A part of a suite.
    ///
    /// @param name what the names of its cells begin with
    /// @param measurement one short round of a build
    public record Part(String name, Measurement measurement) {

        /// A benchmark of JMH.
        static Part of(String name, JmhRun run) {
            return new Part(name, build -> {
                Optional<JmhSample> found = JMH.run(build, run);
                return found.map(sample -> Map.of(name, 1 / sample.nanos())).orElse(Map.of());
            });
        }

        /// A part that `kvcache bench` of the build measures.
        static Part of(String name, String... arguments) {
            return new Part(name, build -> speeds(build, arguments));
        }
    }

    /// Measures a build.
    @FunctionalInterface
    public interface Measurement {

        /// Returns the speeds by cell, larger ones better; none of what the build does not have.
        Map<String, Double> speeds(RunnableBuild build) throws IOException;
    }

    /// The timed figures of `bench core`, each a fork of JMH with the build's own benchmark and store.
    public static FigureBuildBenchmark core() {
        return new FigureBuildBenchmark(
                "core",
                CoreSuite.timed().entrySet().stream()
                        .map(timed -> Part.of(timed.getKey(), timed.getValue()))
                        .toList());
    }

    /// Blocks through the remote cache, over TCP, Aeron and shared memory, and matches.
    public static FigureBuildBenchmark transport() {
        return new FigureBuildBenchmark(
                "transport",
                Stream.of("tcp", "shared", "staged", "match", "aeron")
                        .map(name -> Part.of(name + "-", "transport", "--part", name.toUpperCase(Locale.ROOT)))
                        .toList());
    }

    /// The block device on a file in memory, with and without io_uring; a real disk varies more than builds do.
    public static FigureBuildBenchmark disk() {
        return new FigureBuildBenchmark(
                "disk",
                Stream.of("memory", "onboard-read", "denied")
                        .map(name -> Part.of(name + "-", "disk", "--filter", name))
                        .toList());
    }

    @Override
    public List<String> cellNames() {
        return parts.stream().map(Part::name).toList();
    }

    @Override
    public Map<String, Double> measurePair(
            RunnableBuild older, RunnableBuild newer, boolean newFirst, Set<String> cells, Consumer<String> progress)
            throws IOException {
        Map<String, Double> ratios = new LinkedHashMap<>();
        for (Part part : parts) {
            if (cells.stream().noneMatch(cell -> cell.startsWith(part.name))) {
                continue;
            }
            progress.accept(part.name);
            Map<String, Double> first = part.measurement.speeds(newFirst ? newer : older);
            Map<String, Double> second = part.measurement.speeds(newFirst ? older : newer);
            first.forEach((cell, speed) -> {
                Double other = second.get(cell);
                if (other != null && cells.stream().anyMatch(cell::startsWith)) {
                    ratios.put(cell, newFirst ? speed / other : other / speed);
                }
            });
        }
        return ratios;
    }

    /// Heap, processor time and the slowest requests are left out.
    private static Map<String, Double> speeds(RunnableBuild build, String... arguments) throws IOException {
        List<String> command = new ArrayList<>(build.javaCommand());
        command.addAll(List.of(build.mainClass(), "bench"));
        command.addAll(List.of(arguments));
        command.addAll(List.of("--quick", "--json"));
        ProcessOutput output = ProcessRunner.run(TIMEOUT, command);
        if (!output.isSuccessful()) {
            throw new IOException(
                    String.join(" ", arguments) + " of " + build.name() + " " + output.describeFailure(TIMEOUT));
        }
        Map<String, Double> speeds = new LinkedHashMap<>();
        for (String line : output.text().lines().toList()) {
            JsonNode cell = JSON.readTree(line);
            String name = cell.path("name").asString();
            double value = cell.path("value").doubleValue();
            boolean isRate = cell.path("unit").asString().equals("GB/s");
            if (value > 0 && (isRate || name.endsWith("-p50"))) {
                speeds.put(name, isRate ? value : 1 / value);
            }
        }
        return speeds;
    }
}
