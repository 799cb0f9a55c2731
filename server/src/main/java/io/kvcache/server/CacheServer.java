package io.kvcache.server;

import io.kvcache.core.spi.Clock;
import io.kvcache.server.cluster.ClusterMember;
import io.kvcache.server.config.ClusterConfig;
import io.kvcache.server.config.ConfigReader.SettingInForce;
import io.kvcache.server.config.ListenerConfig;
import io.kvcache.server.config.ServerConfig;
import io.kvcache.server.net.Connection;
import io.kvcache.server.net.Connection.CloseReason;
import io.kvcache.server.net.NettyTransport.TransportKind;
import io.kvcache.server.zmq.ZmqPublisher;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.tiers.os.SystemClock;
import io.netty.util.internal.logging.InternalLoggerFactory;
import io.netty.util.internal.logging.JdkLoggerFactory;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/// A running server: a store, the front ends over it, the housekeeping, and a place in a cluster.
///
/// **Ownership.** [#close] takes everything down; [#drain] before it lets requests that have begun end well.
///
/// **Threads.** Any.
public final class CacheServer implements AutoCloseable {

    private static final long PRE_DRAIN_STEP_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

    private final Clock clock;
    private final @Nullable ClusterMember cluster;
    private final ServedStore store;
    private final FrontEnds fronts;
    private final OperatorPages pages;
    private final MaintenanceScheduler scheduler = new MaintenanceScheduler();
    private final ProblemDigest problemDigest;

    private CacheServer(
            Clock clock, @Nullable ClusterMember cluster, ServedStore store, FrontEnds fronts, OperatorPages pages) {
        this.clock = clock;
        this.cluster = cluster;
        this.store = store;
        this.fronts = fronts;
        this.pages = pages;
        problemDigest = ProblemDigest.of(store, fronts);
        store.schedule(scheduler);
        fronts.schedule(scheduler);
        pages.schedule(scheduler);
        if (cluster != null) {
            scheduler.scheduleReload("cluster.tls files", cluster.certificateFiles(), cluster::reloadCertificate);
        }
        scheduler.scheduleRepeating(ProblemDigest.INTERVAL_MILLIS, problemDigest);
    }

    /// Takes the memory, binds, begins to serve and joins the cluster.
    ///
    /// @throws IOException when the address cannot be had
    /// @throws IllegalStateException when the memory, the transport, a GPU or a place in the cluster cannot be had
    /// @throws io.kvcache.tiers.directory.DiskDirectoryException when a directory cannot be used for a disk
    public static CacheServer start(ServerConfig config) throws IOException {
        return start(config, cluster -> ClusterMember.open(cluster)); // a method reference would load classes of it
    }

    /// @param members makes the part in the cluster that the settings name
    static CacheServer start(ServerConfig config, MemberFactory members) throws IOException {
        CacheServer server = open(config, members);
        try {
            server.joinCluster(config);
            return server;
        } catch (RuntimeException refused) {
            server.close();
            throw refused;
        }
    }

    /// Makes a server's part in its cluster.
    interface MemberFactory {
        ClusterMember open(ClusterConfig config) throws IOException;
    }

    private static CacheServer open(ServerConfig config, MemberFactory members) throws IOException {
        InternalLoggerFactory.setDefaultFactory(JdkLoggerFactory.INSTANCE); // where System.Logger goes too
        Clock clock = SystemClock.INSTANCE;
        ClusterMember cluster = config.cluster() == null ? null : members.open(config.cluster());
        ServedStore store = null;
        FrontEnds fronts = null;
        try {
            store = ServedStore.open(config, clock, cluster);
            fronts = FrontEnds.open(config, store, cluster);
            OperatorPages pages = new OperatorPages(config, store, fronts, cluster);
            fronts.listen(pages);
            StoreFactory.logSharing(config, store.cache());
            return new CacheServer(clock, cluster, store, fronts, pages);
        } catch (IOException | RuntimeException failed) {
            close(fronts, cluster, store);
            throw failed;
        }
    }

    private static void close(
            @Nullable FrontEnds fronts, @Nullable ClusterMember cluster, @Nullable ServedStore store) {
        if (fronts != null) {
            fronts.close();
        }
        if (cluster != null) {
            cluster.close(); // the others know at once
        }
        if (store != null) {
            store.close();
        }
    }

    /// The recovery of disks goes on meanwhile: a server that owns nothing until then would miss everything.
    private void joinCluster(ServerConfig config) {
        InetSocketAddress transportAddress = remoteAddress();
        if (cluster != null && transportAddress != null) {
            cluster.join(config, transportAddress.getPort(), valuePort(config), OperatorPages.version());
            cluster.serve();
        }
    }

    /// Returns the port of the listener for clients of Redis Cluster; 0 without one.
    private int valuePort(ServerConfig config) {
        ListenerConfig listener = config.access().redisClusterListener();
        return listener == null
                ? 0
                : addresses().get(config.access().listeners().indexOf(listener)).getPort();
    }

    /// Returns the listener's address and the reason of the last failed TLS handshake; empty before the first.
    String lastTlsFailure() {
        return fronts.connections().lastTlsFailure();
    }

    /// Has the console show the settings in force.
    public void showSettings(List<SettingInForce> inForce) {
        pages.showSettings(inForce);
    }

    /// Returns the address of the first listener.
    public InetSocketAddress address() {
        return addresses().getFirst();
    }

    /// Returns the addresses of all listeners, in the order of the configuration.
    public List<InetSocketAddress> addresses() {
        return fronts.addresses();
    }

    /// Returns the address at which other JVMs use the store over TCP, or null when they cannot.
    public @Nullable InetSocketAddress remoteAddress() {
        return fronts.remote() == null ? null : fronts.remote().address();
    }

    /// Returns the address to which other JVMs connect over Aeron, or null when they cannot.
    public @Nullable String aeronAddress() {
        return fronts.remote() == null ? null : fronts.remote().aeronAddress();
    }

    /// Connections that ended for a reason.
    public long closedCount(CloseReason reason) {
        return fronts.connections().closedCount(reason);
    }

    /// Bytes that were written to clients and that the system has not taken yet.
    public long unreadBytes() {
        return fronts.connections().openConnections().stream()
                .mapToLong(Connection::unreadBytes)
                .sum();
    }

    /// How sockets are driven.
    public TransportKind transportKind() {
        return fronts.transport().kind();
    }

    /// Returns the publisher of events over ZeroMQ, or null when events are not published.
    public @Nullable ZmqPublisher publisher() {
        return fronts.publisher();
    }

    /// The store that is served.
    public TieredKvCache cache() {
        return store.cache();
    }

    /// Reports not ready, and serves as before for a while: a load balancer that looks at that sends clients
    /// elsewhere before [#drain] sends them away.
    ///
    /// @param delay how long
    public void announceShutdown(Duration delay) {
        fronts.connections().announceShutdown();
        if (cluster != null) {
            cluster.drain();
        }
        long start = clock.nanos();
        for (long left = delay.toNanos(); left > 0; left = delay.toNanos() - (clock.nanos() - start)) {
            clock.sleep(Math.min(left, PRE_DRAIN_STEP_NANOS));
        }
    }

    /// Leaves the cluster to the other servers: they own everything from now on, and are given what this one has
    /// in memory. Serves meanwhile. Does nothing in no cluster.
    ///
    /// @param limit how long the giving may take
    /// @return what came of it, for the log; empty in no cluster
    public String handOver(Duration limit) {
        ClusterMember member = cluster;
        if (member == null) {
            return "";
        }
        fronts.connections().announceShutdown();
        member.drain();
        return member.handOver(limit);
    }

    /// Accepts no more and closes every connection as soon as its request is answered.
    ///
    /// @param timeout how long to wait for that
    /// @return whether all requests were answered; those that were not are cut off
    public boolean drain(Duration timeout) {
        if (cluster != null) {
            cluster.drain();
        }
        return fronts.drain(timeout);
    }

    /// Writes everything that is only in memory to disk, so that a restart finds it.
    ///
    /// @param timeout longest time to wait
    /// @return whether everything is on disk; true for a server without disks
    public boolean flushToDisk(Duration timeout) {
        return store.flush(Duration.ofNanos(Math.max(0, timeout.toNanos())));
    }

    /// Goes down: as [#drain] and then [#flushToDisk], in one time for both.
    ///
    /// A client that does not go on with its request, or does not read a reply, must not cost what others have
    /// stored. So the disks begin at once, beside the requests, and have the second half of the time to
    /// themselves.
    ///
    /// @param timeout how long both may take
    public ShutdownResult stop(Duration timeout) {
        long start = clock.nanos();
        boolean answered = drain(store.beginFlush() ? timeout.dividedBy(2) : timeout);
        boolean saved = flushToDisk(timeout.minusNanos(clock.nanos() - start));
        return new ShutdownResult(answered, saved, saved ? 0 : store.cache().unsavedBytes());
    }

    /// Returns a line for each problem since the log's last summary, and counts them as told.
    public List<String> newProblems() {
        return problemDigest.newProblems();
    }

    @Override
    public void close() {
        scheduler.close(); // before the front ends and the store, which its turns use
        close(fronts, cluster, store);
    }

    /// The fate of a server's requests and values at shutdown.
    ///
    /// @param requestsCompleted whether all requests that had begun were answered
    /// @param valuesFlushed whether all values are on disk; true when there is no disk
    /// @param unsavedBytes of values that are not
    public record ShutdownResult(boolean requestsCompleted, boolean valuesFlushed, long unsavedBytes) {}
}
