package io.kvcache.bench.suite;

import io.kvcache.bench.suite.BuildComparison.BuildBenchmark;
import io.kvcache.server.doctor.ProcessRunner;
import io.kvcache.server.doctor.ProcessRunner.ProcessOutput;
import java.io.IOException;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;
import java.util.stream.Stream;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/// A suite of `bench` in one short round of each build, part by part: each build measures itself, and the speeds that
/// both report are compared. A part stands for all cells whose names begin with it.
///
/// @param suiteName as on the command line
/// @param parts each measured by a process of its own
public record ReportBuildBenchmark(String suiteName, List<Part> parts) implements BuildBenchmark {

    private static final JsonMapper JSON = JsonMapper.builder().build();

    /// The longest part takes half a minute.
    private static final Duration TIMEOUT = Duration.ofMinutes(10);

    /// A part of a suite.
    ///
    /// @param name what the names of its cells begin with
    /// @param arguments of `bench` that measure it
    public record Part(String name, List<String> arguments) {}

    /// Blocks through the remote cache, over TCP, Aeron and shared memory, and matches.
    public static ReportBuildBenchmark transport() {
        return new ReportBuildBenchmark(
                "transport",
                Stream.of("tcp", "shared", "staged", "match", "aeron")
                        .map(name ->
                                new Part(name + "-", List.of("transport", "--part", name.toUpperCase(Locale.ROOT))))
                        .toList());
    }

    /// The block device on a file in memory, with and without io_uring; a real disk varies more than builds do.
    public static ReportBuildBenchmark disk() {
        return new ReportBuildBenchmark(
                "disk",
                Stream.of("memory", "onboard-read", "denied")
                        .map(name -> new Part(name + "-", List.of("disk", "--filter", name)))
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
            if (cells.stream().noneMatch(cell -> cell.startsWith(part.name()))) {
                continue;
            }
            progress.accept(part.name());
            Map<String, Double> first = speeds(newFirst ? newer : older, part);
            Map<String, Double> second = speeds(newFirst ? older : newer, part);
            first.forEach((cell, speed) -> {
                Double other = second.get(cell);
                if (other != null && cells.stream().anyMatch(cell::startsWith)) {
                    ratios.put(cell, newFirst ? speed / other : other / speed);
                }
            });
        }
        return ratios;
    }

    /// The speeds by cell, larger ones better; heap, processor time and the slowest requests are left out.
    private Map<String, Double> speeds(RunnableBuild build, Part part) throws IOException {
        List<String> command = build.javaCommand();
        command.addAll(List.of(build.mainClass(), "bench"));
        command.addAll(part.arguments());
        command.addAll(List.of("--quick", "--json"));
        ProcessOutput output = ProcessRunner.run(TIMEOUT, command);
        if (!output.isSuccessful()) {
            throw new IOException(
                    String.join(" ", part.arguments()) + " of " + build.name() + " " + output.describeFailure(TIMEOUT));
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
