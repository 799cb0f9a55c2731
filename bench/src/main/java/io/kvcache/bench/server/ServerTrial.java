package io.kvcache.bench.server;

import io.kvcache.bench.suite.Build;
import io.kvcache.bench.suite.BuildTrial;
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
public final class ServerTrial implements BuildTrial {

    private static final List<Integer> SIZES = List.of(64 << 10, 1 << 20, 4 << 20);
    private static final List<Integer> CONNECTIONS = List.of(1, 8);
    private static final long HOST_BYTES = 1L << 30;
    private static final int SMALL_KEYS = 10_000;
    private static final int SMALL_BYTES = 64;
    private static final int SMALL_CONNECTIONS = 2;
    private static final Duration WARMING = Duration.ofMillis(700);

    private final Duration time;

    /// Measures `serve`.
    ///
    /// @param time of a load
    public ServerTrial(Duration time) {
        this.time = time;
    }

    @Override
    public String suite() {
        return "server";
    }

    @Override
    public List<String> cells() {
        List<String> cells = new ArrayList<>();
        for (PipelinedClient.Request request : PipelinedClient.Request.values()) {
            cells.add(name(request));
        }
        SIZES.forEach(bytes -> loads(bytes).forEach(load -> cells.add(load.name())));
        return cells;
    }

    @Override
    public Map<String, Double> pair(
            Build older, Build newer, boolean newFirst, Set<String> cells, Consumer<String> progress)
            throws IOException, InterruptedException {
        progress.accept("starting and warming both servers");
        Map<String, Double> ratios = new LinkedHashMap<>();
        try (Contender first = Contender.of(newFirst ? newer : older, HOST_BYTES);
                Contender second = Contender.of(newFirst ? older : newer, HOST_BYTES)) {
            List<Contender> both = List.of(first, second);
            small(both, cells, ratios, progress);
            values(both, cells, ratios, progress);
        }
        if (!newFirst) {
            ratios.replaceAll((_, ratio) -> 1 / ratio);
        }
        return ratios;
    }

    /// Adds the first server's speed by the second's.
    private void small(List<Contender> both, Set<String> cells, Map<String, Double> ratios, Consumer<String> progress)
            throws IOException, InterruptedException {
        List<PipelinedClient.Request> wanted = List.of(PipelinedClient.Request.values()).stream()
                .filter(request -> cells.contains(name(request)))
                .toList();
        if (wanted.isEmpty()) {
            return;
        }
        for (Contender each : both) {
            try (ValueClient client = new ValueClient(each.port(), SMALL_BYTES, true)) {
                for (int key = 0; key < SMALL_KEYS; key++) {
                    client.ask(key);
                }
            }
            for (PipelinedClient.Request request : wanted) {
                small(request, each).run(WARMING);
            }
        }
        for (PipelinedClient.Request request : wanted) {
            progress.accept(name(request));
            ratios.put(name(request), ratio(small(request, both.getFirst()), small(request, both.getLast())));
        }
    }

    private static LoadRun small(PipelinedClient.Request request, Contender server) {
        return new LoadRun(
                port -> new PipelinedClient(port, request, SMALL_KEYS), SMALL_KEYS, SMALL_CONNECTIONS, server.port());
    }

    private void values(List<Contender> both, Set<String> cells, Map<String, Double> ratios, Consumer<String> progress)
            throws IOException, InterruptedException {
        for (int bytes : SIZES) {
            List<Load> wanted = loads(bytes).stream()
                    .filter(load -> cells.contains(load.name()))
                    .toList();
            if (wanted.isEmpty()) {
                continue;
            }
            for (Contender each : both) {
                new Load(true, bytes, 1).fill(each.port());
                for (boolean write : List.of(true, false)) {
                    new Load(write, bytes, 2).against(each.port()).run(WARMING);
                }
            }
            for (Load load : wanted) {
                progress.accept(load.name());
                ratios.put(
                        load.name(),
                        ratio(
                                load.against(both.getFirst().port()),
                                load.against(both.getLast().port())));
            }
        }
    }

    private static List<Load> loads(int bytes) {
        List<Load> loads = new ArrayList<>();
        for (boolean write : List.of(false, true)) {
            CONNECTIONS.forEach(connections -> loads.add(new Load(write, bytes, connections)));
        }
        return loads;
    }

    /// Requests a second of the first by those of the second, each in two halves around the other's.
    private double ratio(LoadRun first, LoadRun second) throws IOException, InterruptedException {
        Duration half = time.dividedBy(2);
        double before = first.run(half).perSecond();
        double between = second.run(half).perSecond() + second.run(half).perSecond();
        return (before + first.run(half).perSecond()) / between;
    }

    private static String name(PipelinedClient.Request request) {
        return "pipe-" + request.name().toLowerCase(Locale.ROOT);
    }
}
