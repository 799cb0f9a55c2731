package io.kvcache.transport.peer;

import io.kvcache.tiers.TieredKvCache;
import io.kvcache.transport.client.RemoteKvCache;
import io.kvcache.transport.cluster.ClusterNode;
import io.kvcache.transport.cluster.ClusterView;
import io.kvcache.transport.cluster.NodeInfo;
import io.kvcache.transport.cluster.NodeState;
import io.kvcache.transport.endpoint.EndpointOptions;
import io.kvcache.transport.endpoint.TcpEndpoint;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/// Servers of one cluster in this process, whose view the test decides on.
final class TestCluster implements AutoCloseable {

    private final List<Server> servers = new ArrayList<>();
    private long epoch;

    /// A server with a store of its own.
    static final class Server {

        final TieredKvCache store;
        final PeeredKvCache served;
        final SettableView view = new SettableView();
        final NodeInfo info;
        private TcpEndpoint endpoint;

        private Server(String name, TieredKvCache store) throws IOException {
            this.store = store;
            served = PeeredKvCache.ofCluster(
                    store,
                    new PeeredKvCache.Handover(name, view, Duration.ofMinutes(1)),
                    address -> RemoteKvCache.builder(address).localOnly(true).connect());
            // Not where clients come from: one that connects again could get the very port that it looks for.
            endpoint = open(new InetSocketAddress(InetAddress.getByName("127.0.0.2"), 0));
            info = new NodeInfo(
                    ClusterNode.named(name),
                    System.currentTimeMillis(),
                    NodeState.SERVING,
                    "127.0.0.2:" + endpoint.address().getPort(),
                    "",
                    "test",
                    0);
        }

        private TcpEndpoint open(InetSocketAddress at) throws IOException {
            return TcpEndpoint.open(served, at, EndpointOptions.DEFAULTS.withCluster(view, store));
        }

        /// Ends all connections, as a crash does.
        void stop() throws IOException {
            endpoint.close();
        }

        void restart() throws IOException {
            endpoint = open(endpoint.address());
        }
    }

    /// Adds a server that the others do not know yet.
    Server add(TieredKvCache store) throws IOException {
        Server server = new Server("kv-" + servers.size(), store);
        servers.add(server);
        return server;
    }

    List<Server> servers() {
        return servers;
    }

    /// Tells all servers that these are there.
    void show(List<Server> present) {
        tell(present.stream().map(server -> server.info).toList());
    }

    /// Tells all servers that these are there.
    void tell(List<NodeInfo> present) {
        epoch++;
        ClusterView view = new ClusterView("test", epoch, present);
        servers.forEach(server -> server.view.set(view));
    }

    /// Addresses of all servers.
    List<String> addresses() {
        return servers.stream().map(server -> server.info.address()).toList();
    }

    @Override
    public void close() throws IOException {
        for (Server server : servers) {
            server.stop();
        }
        for (Server server : servers) {
            server.served.close();
        }
    }
}
