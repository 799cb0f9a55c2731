package io.kvcache.server.cluster;

import io.kvcache.cluster.ClusterTls;
import io.kvcache.cluster.JGroupsMembership;
import io.kvcache.cluster.JGroupsMembership.Settings;
import io.kvcache.cluster.Membership;
import io.kvcache.cluster.ViewKeeper;
import io.kvcache.core.ForwardingKvCache;
import io.kvcache.core.LocalKvCache;
import io.kvcache.server.config.ClusterAddress;
import io.kvcache.server.config.ClusterConfig;
import io.kvcache.server.config.ClusterConfig.ClusterTlsConfig;
import io.kvcache.server.config.HostName;
import io.kvcache.server.config.ServerConfig;
import io.kvcache.transport.cluster.ClusterNode;
import io.kvcache.transport.cluster.NodeInfo;
import io.kvcache.transport.cluster.NodeState;
import io.kvcache.transport.peer.PeerConnector;
import io.kvcache.transport.peer.PeeredKvCache;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// This server's part in its cluster: it joins, serves, drains and leaves, in this order.
///
/// **Ownership.** [#close] leaves the cluster; the endpoint that tells clients the view is closed before.
///
/// **Threads.** Any.
public final class ClusterMember implements AutoCloseable {

    private static final Logger LOG = System.getLogger(ClusterMember.class.getName());

    private final ClusterConfig config;
    private final @Nullable ClusterTls tls;
    private final ViewKeeper keeper;
    private volatile NodeState state = NodeState.JOINING;
    private volatile @Nullable PeeredKvCache handover;

    /// Without certificates.
    public ClusterMember(ClusterConfig config, Membership membership) {
        this(config, membership, null);
    }

    private ClusterMember(ClusterConfig config, Membership membership, @Nullable ClusterTls tls) {
        this.config = config;
        this.tls = tls;
        keeper = new ViewKeeper(config.name(), membership, config.failureAfter(), System::nanoTime);
    }

    /// Makes a member that has not joined yet. Opens no port.
    ///
    /// @throws IOException when the certificates cannot be used
    public static ClusterMember open(ClusterConfig config) throws IOException {
        ClusterTls tls = openTls(config);
        ClusterAddress dns = config.dns();
        Settings settings = new Settings(
                config.name(),
                config.listen().toString(),
                config.seeds().stream().map(ClusterAddress::toString).toList(),
                dns == null ? "" : dns.toString(),
                tls,
                config.failureAfter());
        return new ClusterMember(config, new JGroupsMembership(settings), tls);
    }

    /// Returns null where the servers have no certificates.
    static @Nullable ClusterTls openTls(ClusterConfig config) throws IOException {
        ClusterTlsConfig files = config.tls();
        if (files == null) {
            return null;
        }
        try {
            return ClusterTls.open(Path.of(files.certificate()), Path.of(files.key()), Path.of(files.authority()));
        } catch (IOException unusable) {
            throw new IOException("cluster.tls cannot be used: " + unusable.getMessage(), unusable);
        }
    }

    /// Opens a cache over the server's store that fetches groups from their former owners. It is closed with this, and
    /// the store stays its caller's.
    ///
    /// @throws IOException when the secret of the transport cannot be read
    public LocalKvCache openStore(LocalKvCache store, ServerConfig server) throws IOException {
        PeerConnector connector = ServerConnector.open(config, server.transport());
        PeeredKvCache opened = PeeredKvCache.ofCluster(
                new BorrowedStore(store),
                new PeeredKvCache.Handover(config.node(), keeper, config.handover()),
                connector);
        handover = opened;
        return opened;
    }

    /// A store that somebody else closes.
    private static final class BorrowedStore extends ForwardingKvCache {

        BorrowedStore(LocalKvCache store) {
            super(store);
        }

        @Override
        public void close() {
            // Its owner closes it.
        }
    }

    /// Joins, and returns when the view has this server, which takes some seconds where no other one is there. It owns
    /// nothing before [#serve].
    ///
    /// @param server whose cluster this is
    /// @param port of the transport
    /// @param valuePort of the listener for clients of Redis Cluster, if there is one
    /// @param version of the software
    /// @throws IllegalStateException when the cluster's port cannot be had, or another live server has this name
    public void join(ServerConfig server, int port, int valuePort, String version) {
        LOG.log(Level.INFO, "Joins " + config.describe());
        ClusterNode node = new ClusterNode(
                config.node(), config.weightFor(server.memory().hostBytes()), config.zone(), HostName.detect());
        String address = config.transportAddress(server.transport(), port);
        String values = config.valueAddress(server.access().redisClusterListener(), valuePort);
        try {
            keeper.start(new NodeInfo(node, System.currentTimeMillis(), NodeState.JOINING, address, values, version, 0));
        } catch (IllegalStateException refused) {
            throw new IllegalStateException(
                    refused.getMessage() + " (cluster.node is " + config.node() + ", cluster.listen is "
                            + config.listen() + ")",
                    refused);
        }
    }

    /// Tells all that this server owns its share from now on.
    public void serve() {
        become(NodeState.SERVING);
    }

    /// Tells all that this server is about to leave, so that clients turn to others. Does nothing a second time, or
    /// before [#serve].
    public void drain() {
        if (state == NodeState.SERVING) {
            become(NodeState.DRAINING);
            LOG.log(Level.INFO, "Drains from cluster " + config.name() + ": clients turn to the other servers");
        }
    }

    /// Gives what this server has in memory to those that own it now. Call it after [#drain].
    ///
    /// @param limit how long it may take
    public void handOver(Duration limit) {
        PeeredKvCache opened = handover;
        if (opened != null && state == NodeState.DRAINING) {
            PeeredKvCache.HandedOver given = opened.handOver(limit);
            LOG.log(
                    Level.INFO,
                    given.left() == 0
                            ? "Handed over %d chains of groups".formatted(given.chains())
                            : "Handed over %d chains of groups; there was no time for %d more"
                                    .formatted(given.chains(), given.left()));
        }
    }

    private void become(NodeState next) {
        keeper.setState(next);
        state = next;
    }

    /// Returns whether it still has to join before it owns anything.
    public boolean isJoining() {
        return state == NodeState.JOINING;
    }

    /// The files of its certificate; none without TLS.
    public List<Path> certificateFiles() {
        return tls == null ? List.of() : tls.files();
    }

    /// When its certificate ends; null without TLS.
    public @Nullable Instant certificateExpiry() {
        return tls == null ? null : tls.expiresAt();
    }

    /// Reads the certificate again. Connections that there are stay as they are.
    ///
    /// @throws IOException when a file cannot be used; the certificate from before stays
    public void reloadCertificate() throws IOException {
        if (tls != null) {
            tls.reload();
        }
    }

    /// This server's name.
    public String node() {
        return config.node();
    }

    /// Returns how many blocks it has fetched from their former owners.
    public long handoverBlocks() {
        PeeredKvCache opened = handover;
        return opened == null ? 0 : opened.fetchedCount();
    }

    /// The views.
    public ViewKeeper views() {
        return keeper;
    }

    /// Leaves. Does nothing where it has not joined.
    @Override
    public void close() {
        keeper.close();
        PeeredKvCache opened = handover;
        if (opened != null) {
            opened.close();
        }
    }
}
