package io.kvcache.bench.cluster;

import java.io.IOException;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;

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

    /// Returns the share of the rate of requests at which it is run, so that it is over before the trace is.
    double pace() {
        return this == ROLLING ? 0.5 : 1;
    }

    boolean withDisks() {
        return withDisks;
    }
}
