package io.kvcache.transport.peer;

import io.kvcache.core.BlockTable;
import io.kvcache.core.ForwardingKvCache;
import io.kvcache.core.LocalKvCache;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.transport.client.RemoteKvCache;
import io.kvcache.transport.cluster.ClusterNode;
import io.kvcache.transport.cluster.ClusterView;
import io.kvcache.transport.cluster.DropMark;
import io.kvcache.transport.cluster.NodeInfo;
import io.kvcache.transport.cluster.NodeState;
import io.kvcache.transport.cluster.ReplicaPolicy;
import io.kvcache.transport.endpoint.EndpointOptions;
import io.kvcache.transport.endpoint.TcpEndpoint;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;

/// Servers of one cluster in this process, whose view the test decides on.
final class TestCluster implements AutoCloseable {

    private final List<Server> servers = new ArrayList<>();
    private final ReplicaPolicy replicas;
    private List<NodeInfo> nodes = List.of();
    private long epoch;

    /// Servers that make no copies.
    TestCluster() {
        this(ReplicaPolicy.NONE);
    }

    TestCluster(ReplicaPolicy replicas) {
        this.replicas = replicas;
    }

    /// A server with a store of its own.
    static final class Server {

        final TieredKvCache store;
        final PeeredKvCache served;
        final SettableView view = new SettableView();
        final NodeInfo info;

        /// Blocks that clients were given.
        final LongAdder blocksRead = new LongAdder();

        private final Runnable told;

        /// Digest of the drops that it knows, and of those that it has applied.
        private final AtomicLong knownDrops = new AtomicLong();

        private final AtomicLong appliedDrops = new AtomicLong();
        private TcpEndpoint endpoint;

        /// @param told is run when it has applied a drop
        private Server(String name, TieredKvCache store, ReplicaPolicy replicas, Runnable told) throws IOException {
            this.told = told;
            this.store = store;
            served = PeeredKvCache.ofCluster(
                    store,
                    new PeeredKvCache.Handover(name, view, Duration.ofMinutes(1), knownDrops::get),
                    address -> RemoteKvCache.builder(address)
                            .localOnly(true)
                            .requestTimeout(Duration.ofMinutes(1))
                            .connect());
            // Not where clients come from: one that connects again could get the very port that it looks for.
            endpoint = open(new InetSocketAddress(InetAddress.getByName("127.0.0.2"), 0));
            info = new NodeInfo(
                    ClusterNode.named(name),
                    System.currentTimeMillis(),
                    NodeState.SERVING,
                    "127.0.0.2:" + endpoint.address().getPort(),
                    "",
                    "test",
                    replicas.features());
        }

        private TcpEndpoint open(InetSocketAddress at) throws IOException {
            return TcpEndpoint.open(
                    new CountedReads(served, blocksRead),
                    at,
                    EndpointOptions.DEFAULTS.withCluster(view, store, this::onDrop));
        }

        private Runnable onDrop(Namespace groups, @Nullable BlockKey from, DropMark mark) {
            long drop = mark.id() * (from == null ? 1 : from.lo() | 1); // a client drops each group of a chain
            knownDrops.accumulateAndGet(drop, (one, other) -> one ^ other);
            return () -> {
                appliedDrops.accumulateAndGet(drop, (one, other) -> one ^ other);
                told.run();
            };
        }

        /// Ends all connections, as a crash does.
        void stop() throws IOException {
            endpoint.close();
        }

        void restart() throws IOException {
            endpoint = open(endpoint.address());
        }
    }

    /// Counts the blocks that clients get. Servers ask each other's stores without it.
    private static final class CountedReads extends ForwardingKvCache {

        private final LongAdder blocksRead;

        CountedReads(LocalKvCache cache, LongAdder blocksRead) {
            super(cache);
            this.blocksRead = blocksRead;
        }

        @Override
        public BlockTable acquire(BlockChain chain, int from, Duration timeout) {
            BlockTable table = super.acquire(chain, from, timeout);
            blocksRead.add(table.readyBlocks());
            return table;
        }
    }

    /// Adds a server that the others do not know yet.
    Server add(TieredKvCache store) throws IOException {
        Server server = new Server("kv-" + servers.size(), store, replicas, this::tellDrops);
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
    synchronized void tell(List<NodeInfo> present) {
        epoch++;
        nodes = List.copyOf(present);
        ClusterView view = new ClusterView(
                "test", epoch, nodes.stream().map(this::withDrops).toList());
        servers.forEach(server -> server.view.set(view));
    }

    private synchronized void tellDrops() {
        tell(nodes);
    }

    private NodeInfo withDrops(NodeInfo node) {
        return servers.stream()
                .filter(server -> server.info.name().equals(node.name()))
                .findFirst()
                .map(server -> node.withDrops(server.appliedDrops.get()))
                .orElse(node);
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
