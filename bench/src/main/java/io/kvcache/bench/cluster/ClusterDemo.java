package io.kvcache.bench.cluster;

import io.kvcache.bench.cluster.ClusterReplay.Progress;
import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.KvCache;
import io.kvcache.core.check.BlockContent;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.planner.replay.PrefixForest;
import io.kvcache.transport.client.RemoteKvCache;
import io.kvcache.transport.cluster.BlockGroup;
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
        return "%s sees that %s differs at %s, as the demo has set it"
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

    /// A group of blocks at single servers of a cluster, by clients that know one server each. So what is
    /// dropped at one of them reaches the others by their messages alone.
    ///
    /// **Threads.** One at a time.
    static final class GroupChain {

        private static final int BLOCK_TOKENS = 16;
        private static final int BLOCKS = 4;
        private static final Namespace SPACE =
                BlockGroup.namespace(Namespace.of("groups", BlockShape.kv(4, 1, 1024, BLOCK_TOKENS, Dtype.BF16)));
        private static final Duration TIMEOUT = Duration.ofSeconds(10);
        private static final Duration POLL = Duration.ofMillis(50);

        private final BlockChain chain;

        /// @param number another one for another chain
        GroupChain(int number) {
            chain = BlockChain.of(
                    SPACE,
                    IntStream.range(0, BLOCKS * BLOCK_TOKENS)
                            .map(i -> 1000 * number + i)
                            .toArray());
        }

        private static RemoteKvCache connect(ServerNode server) {
            RemoteKvCache cache = ClientTransport.TCP
                    .connection(server.address())
                    .requestTimeout(TIMEOUT)
                    .localOnly(true)
                    .connect();
            cache.register(SPACE);
            return cache;
        }

        void put(ServerNode server) {
            try (RemoteKvCache cache = connect(server)) {
                for (int block = 0; block < BLOCKS; block++) {
                    try (BlockWriter writer = cache.put(chain, block, 0, KvCache.NO_WAIT)) {
                        BlockContent.of(chain.key(block)).fill(writer.segment());
                        var _ = writer.seal();
                    }
                }
            }
        }

        /// Returns whether a server has all of it, as it was put.
        boolean isAt(ServerNode server) {
            try (RemoteKvCache cache = connect(server);
                    BlockTable table = cache.acquire(chain, 0, TIMEOUT)) {
                int ready = table.await(BLOCKS, TIMEOUT);
                for (int block = 0; block < ready; block++) {
                    BlockContent.of(chain.key(block)).requireEqual(table.segment(block));
                }
                return ready == BLOCKS;
            }
        }

        private boolean isGone(ServerNode server) {
            try (RemoteKvCache cache = connect(server)) {
                return cache.match(chain).blocks() == 0;
            }
        }

        void drop(ServerNode server) {
            try (RemoteKvCache cache = connect(server)) {
                cache.drop(chain, 0);
            }
        }

        /// Waits until no server has any of it.
        ///
        /// @return how long that took
        /// @throws IOException when it takes too long
        Duration awaitGone(List<ServerNode> servers, Duration limit) throws IOException, InterruptedException {
            long start = System.nanoTime();
            for (ServerNode server : servers) {
                while (!isGone(server)) {
                    if (System.nanoTime() - start > limit.toNanos()) {
                        throw new IOException("%s has blocks that were dropped at another server %s s ago"
                                .formatted(server.name(), limit.toSeconds()));
                    }
                    Thread.sleep(POLL);
                }
            }
            return Duration.ofNanos(System.nanoTime() - start);
        }
    }
}
