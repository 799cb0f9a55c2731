package io.kvcache.bench.cluster;

import io.kvcache.bench.cluster.ClusterReplay.Progress;
import io.kvcache.planner.replay.PrefixForest;
import io.kvcache.transport.cluster.ReplicaPolicy;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.function.Consumer;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// Replays a trace through a cluster of three server processes, kills one in the middle, and starts it again. Before, a
/// chain is dropped at one server and goes at all, and the one server that has another setting is found.
public final class ClusterDemo {

    private static final LocalCluster.Settings CLUSTER = new LocalCluster.Settings(
            "demo",
            3,
            0,
            256L << 20,
            0,
            Duration.ZERO,
            ClientTransport.TCP,
            ReplicaPolicy.HEAT,
            List.of("cluster.handover=5m"));

    /// Neither the first nor the last of the cluster.
    private static final int VICTIM = 1;

    private static final Duration START = Duration.ofSeconds(150);
    private static final Duration TICK = Duration.ofSeconds(1);

    private static final Duration MESSAGES = Duration.ofSeconds(30);

    /// Of the requests.
    private static final double COMPARE_AT = 0.1;

    private static final double DROP_AT = 0.2;
    private static final double KILL_AT = 0.4;

    private static final double RETURN_AT = 0.6;

    private final PrefixForest forest;
    private final ClusterReplay.Settings settings;
    private final Consumer<Tick> listener;

    /// What came in a second.
    ///
    /// @param second from the start of the replay
    /// @param progress of this second
    /// @param servers that run
    /// @param event that happened to a server; empty where none did
    public record Tick(int second, Progress progress, int servers, String event) {}

    /// What came in all.
    ///
    /// @param seconds of the replay
    /// @param firstError the first exception of a request, or null
    public record Result(
            Progress progress, double seconds, @Nullable String firstError) {

        public boolean passed() {
            return progress.errors() == 0 && progress.wrong() == 0;
        }
    }

    /// @param listener is told each second
    public ClusterDemo(PrefixForest forest, ClusterReplay.Settings settings, Consumer<Tick> listener) {
        this.forest = forest;
        this.settings = settings;
        this.listener = listener;
    }

    /// Runs it.
    public Result run() throws IOException, InterruptedException {
        ClusterReplay replay = new ClusterReplay(forest, settings);
        try (LocalCluster cluster = LocalCluster.start(CLUSTER, START);
                ExecutorService beside = Executors.newSingleThreadExecutor()) {
            long start = System.nanoTime();
            Future<?> all = beside.submit(() -> {
                replay.run(cluster.addresses());
                return null;
            });
            try {
                watch(cluster, replay, all);
                all.get();
            } catch (ExecutionException failed) {
                throw new IOException("the replay ended early: " + failed.getCause(), failed);
            } finally {
                beside.shutdownNow();
            }
            return new Result(replay.progress(), (System.nanoTime() - start) / 1e9, replay.firstError());
        }
    }

    private void watch(LocalCluster cluster, ClusterReplay replay, Future<?> all)
            throws IOException, InterruptedException {
        List<Event> events = new ArrayList<>(List.of(
                new Event(COMPARE_AT, () -> compare(cluster)),
                new Event(DROP_AT, () -> drop(cluster)),
                new Event(KILL_AT, () -> kill(cluster)),
                new Event(RETURN_AT, () -> restart(cluster))));
        Progress before = replay.progress();
        String event = "";
        for (int second = 1; !all.isDone(); second++) {
            Thread.sleep(TICK);
            Progress now = replay.progress();
            if (now.requests() > before.requests() || !event.isEmpty()) { // not while clients begin or end
                listener.accept(
                        new Tick(second, now.since(before), cluster.running().size(), event));
            }
            before = now;
            event = "";
            if (!events.isEmpty() && replay.begun() >= events.getFirst().share() * forest.requestCount()) {
                event = events.removeFirst().action().run();
            }
        }
    }

    /// @param share of the requests, after which it happens
    private record Event(double share, Action action) {}

    @FunctionalInterface
    private interface Action {

        /// Returns what happened, for people.
        String run() throws IOException, InterruptedException;
    }

    private static String compare(LocalCluster cluster) throws IOException, InterruptedException {
        List<String> differences = cluster.awaitDifferences(MESSAGES);
        if (differences.isEmpty()) {
            throw new IOException(
                    "servers with other settings do not find a difference: " + CLUSTER.ofLast() + " of the last one");
        }
        return "%s sees that %s differs at %s"
                .formatted(
                        cluster.node(0).name(),
                        String.join(", ", differences),
                        cluster.node(cluster.servers() - 1).name());
    }

    private static String drop(LocalCluster cluster) throws IOException, InterruptedException {
        List<ServerNode> servers =
                IntStream.range(0, cluster.servers()).mapToObj(cluster::node).toList();
        GroupChain chain = new GroupChain(1);
        servers.forEach(chain::put);
        chain.drop(servers.getFirst());
        Duration gone = chain.awaitGone(servers, MESSAGES);
        return String.format(
                Locale.ROOT,
                "a chain that all had was dropped at %s, and after %.1f s none has it",
                servers.getFirst().name(),
                gone.toMillis() / 1e3);
    }

    private static String kill(LocalCluster cluster) throws InterruptedException {
        cluster.node(VICTIM).kill();
        return cluster.node(VICTIM).name() + " was killed";
    }

    private static String restart(LocalCluster cluster) throws IOException {
        cluster.node(VICTIM).start();
        return cluster.node(VICTIM).name() + " was started again";
    }
}
