package io.kvcache.transport.endpoint;

import io.kvcache.core.KvCache;
import io.kvcache.core.identity.Namespace;
import io.kvcache.transport.cluster.DropListener;
import io.kvcache.transport.cluster.ViewSource;
import io.kvcache.transport.wire.Secret;
import io.kvcache.transport.wire.SharedMemoryCodec.FabricDescriptor;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/// The options of an endpoint: authentication, limits and timeouts of its clients.
///
/// @param auth how clients authenticate
/// @param limits most resources that clients may use
/// @param timeouts longest times that clients may take
/// @param namespaces the namespaces that clients may use
/// @param fabric describes the store's slots for one-sided reads by clients that may see all tenants, or null
/// @param domains stores of tenants that have one of their own, by tenant; see [#withDomain]
/// @param cluster the server's cluster, or null for a server in none; see [#withCluster]
/// @param listener hears of clients' requests
@SuppressWarnings("exports") // A descriptor comes from UcxMemory.
public record EndpointOptions(
        EndpointAuthentication auth,
        Limits limits,
        Timeouts timeouts,
        NamespaceFilter namespaces,
        @Nullable FabricDescriptor fabric,
        Map<String, KvCache> domains,
        @Nullable ClusterAccess cluster,
        EndpointListener listener) {

    // First, because the defaults are checked against them.
    private static final Duration MIN_TIMEOUT = Duration.ofMillis(10);
    private static final Duration MAX_TIMEOUT = Duration.ofMinutes(10);

    public static final EndpointOptions DEFAULTS = new EndpointOptions(
            EndpointAuthentication.unauthenticated(),
            new Limits(256, 1 << 16, 1024, HeapLimits.of(Runtime.getRuntime().maxMemory())),
            new Timeouts(Duration.ofSeconds(30), Duration.ofSeconds(10), Duration.ofSeconds(5)),
            NamespaceFilter.ALLOW_ALL,
            null,
            Map.of(),
            null,
            EndpointListener.NONE);

    /// Limits of the resources that clients use at a time.
    ///
    /// @param connections 1 to 65,536; as many more may be unauthenticated
    /// @param handles leases and reservations of one session, 1 to 1,048,576
    /// @param pendingRequests waiting requests of one session, 1 to 65,536
    /// @param heap limits for the heap of this process
    public record Limits(int connections, int handles, int pendingRequests, HeapLimits heap) {

        public Limits {
            HeapLimits.check("maxConnections", connections, 1, 1 << 16);
            HeapLimits.check("maxHandles", handles, 1, 1 << 20);
            HeapLimits.check("maxPendingRequests", pendingRequests, 1, 1 << 16);
        }
    }

    /// Timeouts of clients, 10 ms to 10 minutes each.
    ///
    /// @param maxLease a silent client keeps its leases for this long; clients may ask for less
    /// @param stall a client may leave requested bytes untaken, or a frame unfinished, for this long
    /// @param handshake a client must authenticate within this time
    public record Timeouts(Duration maxLease, Duration stall, Duration handshake) {

        public Timeouts {
            check("maxLease", maxLease);
            check("stall", stall);
            check("handshake", handshake);
        }
    }

    public EndpointOptions {
        domains = Map.copyOf(domains);
    }

    private static void check(String name, Duration value) {
        if (value.compareTo(MIN_TIMEOUT) < 0 || value.compareTo(MAX_TIMEOUT) > 0) {
            throw new IllegalArgumentException(
                    "%s = %s is out of range; allowed: %s to %s".formatted(name, value, MIN_TIMEOUT, MAX_TIMEOUT));
        }
    }

    private EndpointOptions with(Limits other) {
        return new EndpointOptions(auth, other, timeouts, namespaces, fabric, domains, cluster, listener);
    }

    private EndpointOptions with(Timeouts other) {
        return new EndpointOptions(auth, limits, other, namespaces, fabric, domains, cluster, listener);
    }

    public EndpointOptions withAuth(EndpointAuthentication other) {
        return new EndpointOptions(other, limits, timeouts, namespaces, fabric, domains, cluster, listener);
    }

    public EndpointOptions withMaxConnections(int other) {
        return with(new Limits(other, limits.handles, limits.pendingRequests, limits.heap));
    }

    public EndpointOptions withMaxHandles(int other) {
        return with(new Limits(limits.connections, other, limits.pendingRequests, limits.heap));
    }

    public EndpointOptions withMaxPendingRequests(int other) {
        return with(new Limits(limits.connections, limits.handles, other, limits.heap));
    }

    public EndpointOptions withHeap(HeapLimits other) {
        return with(new Limits(limits.connections, limits.handles, limits.pendingRequests, other));
    }

    public EndpointOptions withMaxLease(Duration other) {
        return with(new Timeouts(other, timeouts.stall, timeouts.handshake));
    }

    public EndpointOptions withStallTimeout(Duration other) {
        return with(new Timeouts(timeouts.maxLease, other, timeouts.handshake));
    }

    public EndpointOptions withHandshakeTimeout(Duration other) {
        return with(new Timeouts(timeouts.maxLease, timeouts.stall, other));
    }

    public EndpointOptions withNamespaces(NamespaceFilter other) {
        return new EndpointOptions(auth, limits, timeouts, other, fabric, domains, cluster, listener);
    }

    /// Returns these options with slots for one-sided reads, or without if null. The slots must be those of the
    /// served store.
    public EndpointOptions withFabric(@Nullable FabricDescriptor other) {
        return new EndpointOptions(auth, limits, timeouts, namespaces, other, domains, cluster, listener);
    }

    /// Returns these options for a server in a cluster.
    ///
    /// @param views tells clients the view
    /// @param local answers the other servers of the cluster. It asks none of them, or two servers could wait for
    ///     each other
    public EndpointOptions withCluster(ViewSource views, KvCache local) {
        return withCluster(views, local, (groups, from, mark) -> () -> {});
    }

    /// Returns these options for a server in a cluster.
    ///
    /// @param views tells clients the view
    /// @param local answers the other servers of the cluster, as above
    /// @param drops hears of drops of groups by clients
    public EndpointOptions withCluster(ViewSource views, KvCache local, DropListener drops) {
        return withCluster(new ClusterAccess(views, local, drops, null, null));
    }

    private EndpointOptions withCluster(ClusterAccess other) {
        return new EndpointOptions(auth, limits, timeouts, namespaces, fabric, domains, other, listener);
    }

    /// Returns these options for a server in a cluster whose other servers act as such.
    ///
    /// @param secret by which they prove what they are, at least 16 bytes of UTF-8, that only they have been told
    /// @param commands runs what they pass on, or null to refuse that
    /// @throws IllegalStateException without [#withCluster]
    public EndpointOptions withServers(String secret, @Nullable CommandRunner commands) {
        ClusterAccess now = cluster;
        if (now == null) {
            throw new IllegalStateException("servers are of a cluster; call withCluster first");
        }
        return withCluster(
                new ClusterAccess(now.views, now.local, now.drops, EndpointAuthentication.secret(secret), commands));
    }

    /// Returns these options with a listener for what clients ask of objects.
    public EndpointOptions withListener(EndpointListener other) {
        return new EndpointOptions(auth, limits, timeouts, namespaces, fabric, domains, cluster, other);
    }

    /// Returns how other servers of the cluster authenticate. Without a secret none can.
    EndpointAuthentication serverAuth() {
        ClusterAccess now = cluster;
        return now == null || now.servers == null
                ? new EndpointAuthentication.BySecret(List.of(Secret.random(Secret.MIN_SHARED_BYTES)))
                : now.servers;
    }

    /// What clients and servers of a cluster ask for.
    ///
    /// @param servers how the other servers authenticate, or null when none can
    /// @param commands runs what they pass on, or null
    record ClusterAccess(
            ViewSource views,
            KvCache local,
            DropListener drops,
            @Nullable EndpointAuthentication servers,
            @Nullable CommandRunner commands) {}

    /// Returns these options with a trust domain: a store for tenants that may read each other's blocks.
    ///
    /// A client that may speak for only one of these tenants uses that store and no other. All other clients use
    /// the served store, or that of their own domain. So with shared memory ([io.kvcache.core.shm.SharedMemory]), a
    /// client maps only the store that it uses.
    ///
    /// A domain needs an [EndpointAuthentication] that tells tenants apart. The caller keeps the ownership of the
    /// store, and closes the endpoint first.
    ///
    /// @throws IllegalArgumentException when a tenant is in another domain already
    public EndpointOptions withDomain(Set<String> tenants, KvCache store) {
        Map<String, KvCache> all = new HashMap<>(domains);
        for (String tenant : tenants) {
            if (all.putIfAbsent(tenant, store) != null) {
                throw new IllegalArgumentException("tenant \"" + tenant + "\" is in a trust domain already");
            }
        }
        return new EndpointOptions(auth, limits, timeouts, namespaces, fabric, all, cluster, listener);
    }

    /// Limits of the heap that an endpoint uses for its clients. It rejects a request that exceeds one, and the
    /// connection stays open.
    ///
    /// @param chainBlocks blocks of one chain that a client sends, 1 to 16,777,216
    /// @param connectionBytes bytes of all chains of one connection, 1 KiB and up
    /// @param chainBytes bytes of all chains of all connections and of waiting requests, 1 KiB and up
    /// @param snapshots snapshots that are made or read at one time, 1 to 1,024
    /// @param snapshotEntries entries of one snapshot, 1 and up
    public record HeapLimits(
            int chainBlocks, long connectionBytes, long chainBytes, int snapshots, long snapshotEntries) {

        /// Sixteen million tokens in blocks of sixteen.
        private static final int DEFAULT_CHAIN_BLOCKS = 1 << 20;

        private static final int MAX_CHAIN_BLOCKS = 1 << 24;
        private static final long MIN_BYTES = 1 << 10;
        private static final int DEFAULT_SNAPSHOTS = 2;
        private static final int MAX_SNAPSHOTS = 1024;

        /// Heap bytes of an entry while a snapshot is made.
        private static final long ENTRY_BYTES = 250;

        public HeapLimits {
            check("chainBlocks", chainBlocks, 1, MAX_CHAIN_BLOCKS);
            check("connectionBytes", connectionBytes, MIN_BYTES, Long.MAX_VALUE);
            check("chainBytes", chainBytes, MIN_BYTES, Long.MAX_VALUE);
            check("snapshots", snapshots, 1, MAX_SNAPSHOTS);
            check("snapshotEntries", snapshotEntries, 1, Long.MAX_VALUE);
        }

        /// Returns limits for a heap: an eighth of it for chains, a quarter of that for one connection, and an
        /// eighth for each of two snapshots.
        ///
        /// @param bytes of the heap, 1 MiB and up
        public static HeapLimits of(long bytes) {
            return new HeapLimits(
                    DEFAULT_CHAIN_BLOCKS, bytes / 32, bytes / 8, DEFAULT_SNAPSHOTS, bytes / 8 / ENTRY_BYTES);
        }

        /// @throws IllegalArgumentException that names the range when a number is outside of it
        static void check(String name, long value, long least, long most) {
            if (value < least || value > most) {
                throw new IllegalArgumentException(
                        "%s = %s is out of range; allowed: %s to %s".formatted(name, value, least, most));
            }
        }
    }

    /// Decides which namespaces clients may use, in addition to the rules of [EndpointAuthentication].
    ///
    /// **Threads.** Any.
    @FunctionalInterface
    public interface NamespaceFilter {

        /// Allows all namespaces.
        NamespaceFilter ALLOW_ALL = namespace -> null;

        /// Returns the reason why clients may not use a namespace, or null if they may.
        @Nullable
        String rejectionReason(Namespace namespace);
    }
}
