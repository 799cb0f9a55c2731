package io.kvcache.bench.cluster;

import io.kvcache.bench.cluster.ClusterReplay.Progress;
import io.kvcache.bench.cluster.ClusterReplay.Served;
import io.kvcache.planner.replay.PrefixForest;
import io.kvcache.transport.cluster.ReplicaPolicy;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.Collectors;
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

    /// What happens to the servers in the middle of a trace.
    public enum TrialScenario {
        /// A server is killed for good.
        KILL("a server is killed", 0.5, false) {
            @Override
            void run(Stage stage) throws IOException, InterruptedException {
                stage.victim().kill();
                stage.awaitView();
            }
        },
        /// A server is killed and started again at once, under its name and with its disk.
        RESTART("a server is killed and started again", 0.5, true) {
            @Override
            void run(Stage stage) throws IOException, InterruptedException {
                stage.victim().kill();
                stage.victim().start();
                stage.awaitView();
            }
        },
        /// One server after the other is told to end, and started again with its disk.
        ROLLING("each server is restarted in turn", 1.0 / 6, true) {
            @Override
            void run(Stage stage) throws IOException, InterruptedException {
                LocalCluster cluster = stage.cluster();
                for (int i = 0; i < cluster.servers(); i++) {
                    cluster.node(i).terminate(END);
                    cluster.node(i).start();
                    stage.awaitView();
                }
            }
        },
        /// A server is told to end, and does not come back.
        DRAIN("a server drains and leaves", 0.5, false) {
            @Override
            void run(Stage stage) throws IOException, InterruptedException {
                stage.victim().terminate(END);
                stage.awaitView();
            }
        },
        /// One more server joins.
        JOIN("one more server joins", 0.5, false) {
            @Override
            void run(Stage stage) throws IOException, InterruptedException {
                stage.cluster().node(stage.cluster().servers()).start();
                stage.awaitView();
            }
        },
        /// A server's process stands still for a time.
        STOP("a server stands still for 30 s", 1.0 / 4, false) {
            @Override
            void run(Stage stage) throws IOException, InterruptedException {
                long start = System.nanoTime();
                stage.victim().suspend();
                stage.awaitView();
                Thread.sleep(STANDSTILL.minusNanos(System.nanoTime() - start));
                stage.victim().resume();
                stage.awaitView();
            }
        };

        private static final Duration END = Duration.ofMinutes(2);
        private static final Duration STANDSTILL = Duration.ofSeconds(30);

        private final String title;
        private final double begin;
        private final boolean withDisks;

        /// @param title in a few words
        /// @param begin share of the requests before it
        /// @param withDisks whether servers have disks
        TrialScenario(String title, double begin, boolean withDisks) {
            this.title = title;
            this.begin = begin;
            this.withDisks = withDisks;
        }

        /// Does it.
        abstract void run(Stage stage) throws IOException, InterruptedException;

        /// What a scenario may touch.
        ///
        /// @param viewSeconds how long the servers took to agree, after each of its steps
        record Stage(LocalCluster cluster, ServerNode victim, List<Double> viewSeconds) {

            private static final Duration LIMIT = Duration.ofMinutes(3);

            /// Waits until all servers that run agree.
            void awaitView() throws IOException, InterruptedException {
                viewSeconds.add(cluster.awaitOneView(LIMIT).toNanos() / 1e9);
            }
        }

        public String title() {
            return title;
        }

        /// Name on command lines and in results.
        public String commandName() {
            return name().toLowerCase(Locale.ROOT);
        }

        /// Returns all names, for messages.
        public static String names() {
            return Arrays.stream(values()).map(TrialScenario::commandName).collect(Collectors.joining(", "));
        }

        /// Returns the first request that begins after it does.
        int beginOf(int requests) {
            return (int) (requests * begin);
        }

        /// Returns the share of the rate of requests at which it is run, so that it is over before the trace
        /// is.
        double pace() {
            return this == ROLLING ? 0.5 : 1;
        }

        boolean withDisks() {
            return withDisks;
        }
    }
}
