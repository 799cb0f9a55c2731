package io.kvcache.bench.cluster;

import io.kvcache.bench.cluster.ClusterReplay.Progress;
import io.kvcache.bench.cluster.ClusterReplay.Served;
import io.kvcache.planner.replay.PrefixForest;
import io.kvcache.transport.cluster.ReplicaPolicy;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.jspecify.annotations.Nullable;

/// Replays a trace through a cluster of server processes, undisturbed or through a scenario.
///
/// @param forest the trace
/// @param replay how it is replayed
/// @param servers of the cluster
/// @param hostBytes memory of each
/// @param drainDelay how long a server that is told to end answers the others
/// @param replicas which groups of blocks have copies
public record ClusterTrial(
        PrefixForest forest,
        ClusterReplay.Settings replay,
        int servers,
        long hostBytes,
        Duration drainDelay,
        ReplicaPolicy replicas) {

    private static final Duration START = Duration.ofSeconds(150);
    private static final long DISK_BYTES = 1L << 30;

    /// What a run showed.
    ///
    /// @param begin first request behind the begin of the scenario; 0 without one
    /// @param beginNanos when it began
    /// @param endNanos when its last step was done
    /// @param viewSeconds how long the servers took to agree, after each of its steps
    /// @param flaps servers that the others took for gone although they lived
    /// @param handoverBlocks blocks that servers have fetched from former owners
    record Run(
            Served served,
            Progress progress,
            @Nullable String firstError,
            int begin,
            long beginNanos,
            long endNanos,
            List<Double> viewSeconds,
            double flaps,
            double handoverBlocks) {

        /// Returns whether the last request began before the scenario was over.
        boolean hasEndedBeforeScenario() {
            long[] starts = served.startNanos();
            return starts[starts.length - 1] - endNanos < 0;
        }
    }

    /// Runs it once.
    ///
    /// @param scenario null for none
    /// @param round decides on the places of blocks and on the server that suffers
    /// @param disks whether servers have disks
    Run run(@Nullable TrialScenario scenario, int round, boolean disks) throws IOException, InterruptedException {
        LocalCluster.Settings settings = new LocalCluster.Settings(
                "trial-" + round,
                servers,
                scenario == TrialScenario.JOIN ? 1 : 0,
                hostBytes,
                disks ? DISK_BYTES : 0,
                drainDelay,
                replay.transport(),
                replicas,
                List.of());
        double pace = scenario == null ? 1 : scenario.pace();
        ClusterReplay replayed = new ClusterReplay(forest, replay.withRate(replay.rate() * pace));
        try (LocalCluster cluster = LocalCluster.start(settings, START);
                ExecutorService beside = Executors.newSingleThreadExecutor()) {
            Future<?> all = beside.submit(() -> {
                replayed.run(cluster.addresses());
                return null;
            });
            try {
                return watch(cluster, replayed, scenario, round, all);
            } finally {
                beside.shutdownNow();
            }
        }
    }

    private Run watch(
            LocalCluster cluster, ClusterReplay replayed, @Nullable TrialScenario scenario, int round, Future<?> all)
            throws IOException, InterruptedException {
        List<Double> viewSeconds = new ArrayList<>();
        int begin = 0;
        long beginNanos = System.nanoTime();
        if (scenario != null) {
            begin = scenario.beginOf(forest.requestCount());
            replayed.awaitRequest(begin, all);
            beginNanos = System.nanoTime();
            ServerNode victim = cluster.node(round % servers);
            scenario.run(new TrialScenario.Stage(cluster, victim, viewSeconds));
        }
        long endNanos = System.nanoTime();
        if (scenario == TrialScenario.JOIN) { // nothing has happened before it serves
            begin = replayed.begun();
            beginNanos = endNanos;
        }
        try {
            all.get();
        } catch (ExecutionException failed) {
            throw new IOException("the replay ended early: " + failed.getCause(), failed);
        }
        return new Run(
                replayed.served(),
                replayed.progress(),
                replayed.firstError(),
                begin,
                beginNanos,
                endNanos,
                viewSeconds,
                cluster.counter("kv_cluster_flaps_total"),
                cluster.counter("kv_cluster_handover_blocks_total"));
    }
}
