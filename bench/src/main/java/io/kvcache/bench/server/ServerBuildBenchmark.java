package io.kvcache.bench.server;

import io.kvcache.bench.figure.RunnableBuild;
import io.kvcache.bench.suite.BuildComparison.BuildBenchmark;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;

/// Loads of RESP on the servers of two builds, which run at the same time and get each load in turn from the same
/// clients. Every pair starts both anew, as no two runs of a JVM compile alike.
public final class ServerBuildBenchmark implements BuildBenchmark {

    private static final List<Integer> SIZES = List.of(64 << 10, 1 << 20, 4 << 20);
    private static final List<Integer> CONNECTIONS = List.of(1, 8);
    private static final long HOST_BYTES = 1L << 30;
    private static final Duration WARMUP = Duration.ofMillis(700);

    private final Duration time;

    /// Measures `serve`.
    ///
    /// @param time of a load
    public ServerBuildBenchmark(Duration time) {
        this.time = time;
    }

    @Override
    public String suiteName() {
        return "server";
    }

    @Override
    public List<String> cellNames() {
        return groups().stream().flatMap(List::stream).map(RespLoad::name).toList();
    }

    /// Loads on the same values, with two connections to warm up.
    private static List<List<RespLoad>> groups() {
        List<List<RespLoad>> groups = new ArrayList<>(List.of(RespLoad.piped()));
        SIZES.forEach(bytes -> groups.add(RespLoad.ofValues(bytes, CONNECTIONS)));
        return groups;
    }

    @Override
    public Map<String, Double> measurePair(
            RunnableBuild older, RunnableBuild newer, boolean newFirst, Set<String> cells, Consumer<String> progress)
            throws IOException, InterruptedException {
        progress.accept("starting and warming both servers");
        Map<String, Double> ratios = new LinkedHashMap<>();
        try (ServerProcess first = ServerProcess.startBuild(newFirst ? newer : older, HOST_BYTES);
                ServerProcess second = ServerProcess.startBuild(newFirst ? older : newer, HOST_BYTES)) {
            for (List<RespLoad> group : groups()) {
                List<RespLoad> wanted = group.stream()
                        .filter(load -> cells.contains(load.name()))
                        .toList();
                if (!wanted.isEmpty()) {
                    warmUp(group, first);
                    warmUp(group, second);
                }
                for (RespLoad load : wanted) {
                    progress.accept(load.name());
                    ratios.put(load.name(), ratio(load, first, second));
                }
            }
        }
        if (!newFirst) {
            ratios.replaceAll((_, ratio) -> 1 / ratio);
        }
        return ratios;
    }

    private static void warmUp(List<RespLoad> group, ServerProcess server) throws IOException, InterruptedException {
        group.getFirst().fill(server.port());
        for (RespLoad.Operation operation :
                group.stream().map(RespLoad::operation).distinct().toList()) {
            new RespLoad(operation, group.getFirst().bytes(), 2).run(server.port(), WARMUP);
        }
    }

    /// Requests a second of the first by those of the second, each in two halves around the other's.
    private double ratio(RespLoad load, ServerProcess first, ServerProcess second)
            throws IOException, InterruptedException {
        Duration half = time.dividedBy(2);
        double before = load.run(first.port(), half);
        double between = load.run(second.port(), half) + load.run(second.port(), half);
        return (before + load.run(first.port(), half)) / between;
    }
}
