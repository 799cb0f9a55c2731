package io.kvcache.bench.cluster;

import io.kvcache.bench.cluster.ClusterReplay.Progress;
import io.kvcache.bench.replay.PrefixForest;
import io.kvcache.transport.cluster.ReplicaPolicy;
import java.io.IOException;
import java.time.Duration;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// Replays a trace through a cluster of three server processes, kills one in the middle, and starts it again.
public final class ClusterDemo {

    private static final LocalCluster.Settings CLUSTER = new LocalCluster.Settings(
            "demo", 3, 0, 256L << 20, 0, Duration.ZERO, ClientTransport.TCP, ReplicaPolicy.HEAT);

    /// Neither the first nor the last of the cluster.
    private static final int VICTIM = 1;

    private static final Duration START = Duration.ofSeconds(150);
    private static final Duration TICK = Duration.ofSeconds(1);

    /// Of the requests.
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
        ServerNode victim = cluster.node(VICTIM);
        Progress before = replay.progress();
        boolean killed = false;
        boolean back = false;
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
            if (!killed && isAt(replay, KILL_AT)) {
                victim.kill();
                killed = true;
                event = victim.name() + " was killed";
            } else if (!back && isAt(replay, RETURN_AT)) {
                victim.start();
                back = true;
                event = victim.name() + " was started again";
            }
        }
    }

    private boolean isAt(ClusterReplay replay, double share) {
        return replay.begun() >= share * forest.requestCount();
    }
}
