package io.kvcache.bench.server;

import io.kvcache.bench.server.PipelineBenchmark.PipelinedClient;
import io.kvcache.bench.suite.BuildComparison.BuildBenchmark;
import io.kvcache.bench.suite.RunnableBuild;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;

/// The loads of `bench server` on the servers of two builds, which run at the same time and get each load in turn from
/// the same clients. Every pair starts both anew, as no two runs of a JVM compile alike.
public final class ServerBuildBenchmark implements BuildBenchmark {

    private static final List<Integer> SIZES = List.of(64 << 10, 1 << 20, 4 << 20);
    private static final List<Integer> CONNECTIONS = List.of(1, 8);
    private static final long HOST_BYTES = 1L << 30;
    private static final int SMALL_KEYS = 10_000;
    private static final int SMALL_BYTES = 64;
    private static final int SMALL_CONNECTIONS = 2;
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
        List<String> cells = new ArrayList<>();
        for (PipelinedClient.SmallRequest request : PipelinedClient.SmallRequest.values()) {
            cells.add(name(request));
        }
        SIZES.forEach(bytes -> loads(bytes).forEach(load -> cells.add(load.name())));
        return cells;
    }

    @Override
    public Map<String, Double> measurePair(
            RunnableBuild older, RunnableBuild newer, boolean newFirst, Set<String> cells, Consumer<String> progress)
            throws IOException, InterruptedException {
        progress.accept("starting and warming both servers");
        Map<String, Double> ratios = new LinkedHashMap<>();
        try (ServerProcess first = ServerProcess.startBuild(newFirst ? newer : older, HOST_BYTES);
                ServerProcess second = ServerProcess.startBuild(newFirst ? older : newer, HOST_BYTES)) {
            List<ServerProcess> both = List.of(first, second);
            small(both, cells, ratios, progress);
            values(both, cells, ratios, progress);
        }
        if (!newFirst) {
            ratios.replaceAll((_, ratio) -> 1 / ratio);
        }
        return ratios;
    }

    /// Adds the first server's speed by the second's.
    private void small(
            List<ServerProcess> both, Set<String> cells, Map<String, Double> ratios, Consumer<String> progress)
            throws IOException, InterruptedException {
        List<PipelinedClient.SmallRequest> wanted = List.of(PipelinedClient.SmallRequest.values()).stream()
                .filter(request -> cells.contains(name(request)))
                .toList();
        if (wanted.isEmpty()) {
            return;
        }
        for (ServerProcess each : both) {
            try (ValueClient client = new ValueClient(each.port(), SMALL_BYTES, true)) {
                for (int key = 0; key < SMALL_KEYS; key++) {
                    client.roundTrip(key);
                }
            }
            for (PipelinedClient.SmallRequest request : wanted) {
                small(request, each).run(WARMUP);
            }
        }
        for (PipelinedClient.SmallRequest request : wanted) {
            progress.accept(name(request));
            ratios.put(name(request), ratio(small(request, both.getFirst()), small(request, both.getLast())));
        }
    }

    private static LoadGenerator small(PipelinedClient.SmallRequest request, ServerProcess server) {
        return new LoadGenerator(
                port -> new PipelinedClient(port, request, SMALL_KEYS), SMALL_KEYS, SMALL_CONNECTIONS, server.port());
    }

    private void values(
            List<ServerProcess> both, Set<String> cells, Map<String, Double> ratios, Consumer<String> progress)
            throws IOException, InterruptedException {
        for (int bytes : SIZES) {
            List<ServerLoadSpec> wanted = loads(bytes).stream()
                    .filter(load -> cells.contains(load.name()))
                    .toList();
            if (wanted.isEmpty()) {
                continue;
            }
            for (ServerProcess each : both) {
                new ServerLoadSpec(true, bytes, 1).fillKeys(each.port());
                for (boolean write : List.of(true, false)) {
                    new ServerLoadSpec(write, bytes, 2).toGenerator(each.port()).run(WARMUP);
                }
            }
            for (ServerLoadSpec load : wanted) {
                progress.accept(load.name());
                ratios.put(
                        load.name(),
                        ratio(
                                load.toGenerator(both.getFirst().port()),
                                load.toGenerator(both.getLast().port())));
            }
        }
    }

    private static List<ServerLoadSpec> loads(int bytes) {
        List<ServerLoadSpec> loads = new ArrayList<>();
        for (boolean write : List.of(false, true)) {
            CONNECTIONS.forEach(connections -> loads.add(new ServerLoadSpec(write, bytes, connections)));
        }
        return loads;
    }

    /// Requests a second of the first by those of the second, each in two halves around the other's.
    private double ratio(LoadGenerator first, LoadGenerator second) throws IOException, InterruptedException {
        Duration half = time.dividedBy(2);
        double before = first.run(half).perSecond();
        double between = second.run(half).perSecond() + second.run(half).perSecond();
        return (before + first.run(half).perSecond()) / between;
    }

    private static String name(PipelinedClient.SmallRequest request) {
        return "pipe-" + request.name().toLowerCase(Locale.ROOT);
    }
}
