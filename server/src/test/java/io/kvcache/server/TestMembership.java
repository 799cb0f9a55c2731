package io.kvcache.server;

import io.kvcache.cluster.Membership;
import io.kvcache.server.cluster.ClusterMember;
import io.kvcache.server.config.ConfigException;
import io.kvcache.server.config.ConfigReader;
import io.kvcache.server.config.HostResources;
import io.kvcache.server.config.ServerConfig;
import io.kvcache.transport.cluster.NodeInfo;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// A membership in which the test says who is there.
///
/// **Threads.** One at a time.
final class TestMembership implements Membership {

    private final List<NodeInfo> others;
    private final Runnable joining;
    private final List<String> told = new ArrayList<>();
    private @Nullable Listener listener;
    private long epoch;

    /// @param joining runs while the server joins
    /// @param others servers that are there already
    TestMembership(Runnable joining, NodeInfo... others) {
        this.joining = joining;
        this.others = List.of(others);
    }

    /// Starts the server `kv-0` with this membership.
    ///
    /// @param port of its listener; 0 for a free one
    CacheServer serve(int port) throws IOException, ConfigException {
        String yaml = """
                listen: { port: %d }
                memory: { host_bytes: 64MiB }
                transport: { listen: 127.0.0.1:0 }
                cluster: { name: test, node: kv-0, listen: 127.0.0.1:1 }
                """.formatted(port);
        ServerConfig config = new ConfigReader(new HostResources(1L << 30, 2), Map.of())
                .read(new ConfigReader.Source("f", yaml), Map.of());
        return CacheServer.start(config, cluster -> new ClusterMember(cluster, this, null));
    }

    /// What this server told, in order.
    List<String> told() {
        return List.copyOf(told);
    }

    @Override
    public void start(NodeInfo self, Listener listener) {
        joining.run();
        this.listener = listener;
        update(self);
    }

    @Override
    public void update(NodeInfo self) {
        told.add(self.state().toString());
        epoch++;
        Objects.requireNonNull(listener)
                .onMembers(Stream.concat(Stream.of(self), others.stream()).toList(), epoch == 2);
    }

    @Override
    public void broadcast(byte[] message) {
        // The other servers are only names.
    }

    @Override
    public void close() {
        told.add("left");
    }
}
