package io.kvcache.server.cluster;

import io.kvcache.cluster.ViewKeeper;
import io.kvcache.core.CacheStats;
import io.kvcache.transport.client.RemoteKvCache;
import io.kvcache.transport.cluster.ClusterView;
import io.kvcache.transport.cluster.NodeInfo;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// What each server of a cluster holds, beside the mean: asked of each on request.
///
/// **Threads.** Any; [#ask] waits for the others, a second for one that does not answer.
final class ClusterLoad {

    private static final Executor EXECUTOR =
            task -> Thread.ofVirtual().name("kvcache-cluster-load").start(task);

    private final String node;
    private final ViewKeeper views;
    private final ServerConnector connector;
    private final Supplier<CacheStats> own;

    /// @param node name of this server
    /// @param own statistics of this server's store
    ClusterLoad(String node, ViewKeeper views, ServerConnector connector, Supplier<CacheStats> own) {
        this.node = node;
        this.views = views;
        this.connector = connector;
        this.own = own;
    }

    /// A server that serves.
    ///
    /// @param reachable whether it has answered; the rest is null when it has not
    /// @param heldBytes in its memory
    /// @param stored blocks and values that were stored since its start
    /// @param evicted those that it evicted since then
    /// @param heldOverMean what it holds for its weight, beside the mean of all that answered
    record ServerLoad(
            String name,
            boolean reachable,
            @Nullable Long heldBytes,
            @Nullable Long capacityBytes,
            @Nullable Long stored,
            @Nullable Long evicted,
            @Nullable Double heldOverMean) {}

    private record Answer(NodeInfo server, @Nullable CacheStats stats) {}

    /// Asks all servers that serve.
    List<ServerLoad> ask() {
        ClusterView view = views.view();
        List<CompletableFuture<Answer>> asked = new ArrayList<>();
        for (NodeInfo server : view.serving()) {
            asked.add(CompletableFuture.supplyAsync(() -> new Answer(server, statsOf(server)), EXECUTOR));
        }
        List<Answer> answers = asked.stream().map(CompletableFuture::join).toList();
        double mean = answers.stream()
                .filter(each -> each.stats != null)
                .mapToDouble(ClusterLoad::heldByWeight)
                .average()
                .orElse(0);
        return answers.stream().map(each -> load(each, mean)).toList();
    }

    private @Nullable CacheStats statsOf(NodeInfo server) {
        if (server.name().equals(node)) {
            return own.get();
        }
        try (RemoteKvCache remote = connector.connect(server.address())) {
            CacheStats stats = remote.stats();
            return stats.host().capacityBytes() == 0 ? null : stats; // what a client has of a server that has gone
        } catch (UncheckedIOException unreachable) {
            return null;
        }
    }

    private static double heldByWeight(Answer answer) {
        CacheStats stats = answer.stats;
        return stats == null
                ? 0
                : stats.host().heldBytes() / answer.server.node().weight();
    }

    private static ServerLoad load(Answer answer, double mean) {
        CacheStats stats = answer.stats;
        return stats == null
                ? new ServerLoad(answer.server.name(), false, null, null, null, null, null)
                : new ServerLoad(
                        answer.server.name(),
                        true,
                        stats.host().heldBytes(),
                        stats.host().capacityBytes(),
                        stats.puts().reserved(),
                        stats.removals().evicted(),
                        mean == 0 ? null : Math.round(heldByWeight(answer) / mean * 100) / 100.0);
    }
}
