package io.kvcache.transport.endpoint;

import io.kvcache.core.KvCache;
import io.kvcache.core.identity.Namespace;
import io.kvcache.transport.wire.SharedMemoryCodec.FabricDescriptor;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/// How an endpoint treats its clients.
///
/// @param auth how clients authenticate
/// @param limits how much of each they may have
/// @param timeouts how long they may take
/// @param namespaces which of them clients may use
/// @param fabric where the store's slots can be read one-sided by clients that may see all of them, or null
/// @param domains stores of tenants that have one of their own, by tenant; see [#withDomain]
/// @param aeron where the same store is served over Aeron's UDP; see [#withAeron]
public record EndpointOptions(
        EndpointAuth auth,
        Limits limits,
        Timeouts timeouts,
        NamespaceFilter namespaces,
        @Nullable FabricDescriptor fabric,
        Map<String, KvCache> domains,
        String aeron) {

    // First, because the defaults are checked against them.
    private static final Duration MIN_TIMEOUT = Duration.ofMillis(10);
    private static final Duration MAX_TIMEOUT = Duration.ofMinutes(10);

    public static final EndpointOptions DEFAULTS = new EndpointOptions(
            EndpointAuth.unauthenticated(),
            new Limits(256, 1 << 16, 1024, HeapLimits.of(Runtime.getRuntime().maxMemory())),
            new Timeouts(Duration.ofSeconds(30), Duration.ofSeconds(10), Duration.ofSeconds(5)),
            NamespaceFilter.ALLOW_ALL,
            null,
            Map.of(),
            "");

    /// How much clients may have at a time.
    ///
    /// @param connections 1 to 65,536; and as many that have not authenticated
    /// @param handles leases and reservations of one session, 1 to 1,048,576
    /// @param pendingRequests requests of one session that wait for something, 1 to 65,536
    /// @param heap of this process
    public record Limits(int connections, int handles, int pendingRequests, HeapLimits heap) {

        public Limits {
            HeapLimits.check("maxConnections", connections, 1, 1 << 16);
            HeapLimits.check("maxClaims", handles, 1, 1 << 20);
            HeapLimits.check("maxWaiting", pendingRequests, 1, 1 << 16);
        }
    }

    /// How long clients may take, 10 ms to 10 minutes each.
    ///
    /// @param maxLease how long one that is not heard of keeps what it has; clients may ask for less
    /// @param stall how long one may take no bytes that it has asked for, or send none that it has begun
    /// @param handshake how long one may take to authenticate
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
        return new EndpointOptions(auth, other, timeouts, namespaces, fabric, domains, aeron);
    }

    private EndpointOptions with(Timeouts other) {
        return new EndpointOptions(auth, limits, other, namespaces, fabric, domains, aeron);
    }

    public EndpointOptions withAuth(EndpointAuth other) {
        return new EndpointOptions(other, limits, timeouts, namespaces, fabric, domains, aeron);
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
        return new EndpointOptions(auth, limits, timeouts, other, fabric, domains, aeron);
    }

    /// With slots that can be read one-sided, which must be those of the store that is served; null for
    /// none.
    public EndpointOptions withFabric(@Nullable FabricDescriptor other) {
        return new EndpointOptions(auth, limits, timeouts, namespaces, other, domains, aeron);
    }

    /// With the address of another endpoint of the same store and the same access,
    /// `aeron:udp?endpoint=host:port`: a client that connects to `auto:host:port` is told, and
    /// takes what is faster; nothing for none.
    public EndpointOptions withAeron(String other) {
        return new EndpointOptions(auth, limits, timeouts, namespaces, fabric, domains, other);
    }

    /// With a store for tenants that may read each other: a trust domain. A client that may speak for one of them
    /// only uses that store and no other; all others use the one that is served, or that of their own domain. So
    /// where the store is shared ([io.kvcache.core.shm.SharedMemory]) they map what is theirs and nothing else.
    ///
    /// It takes an [EndpointAuth] by which tenants are told apart. The owner keeps the store, and closes the
    /// endpoint first.
    ///
    /// @throws IllegalArgumentException when one of them is in another domain already
    public EndpointOptions withDomain(Set<String> tenants, KvCache store) {
        Map<String, KvCache> all = new HashMap<>(domains);
        for (String tenant : tenants) {
            if (all.putIfAbsent(tenant, store) != null) {
                throw new IllegalArgumentException("tenant \"" + tenant + "\" is in a trust domain already");
            }
        }
        return new EndpointOptions(auth, limits, timeouts, namespaces, fabric, all, aeron);
    }

    /// How much of the heap clients may have an endpoint keep for them. What does not fit is refused; the
    /// connection goes on.
    ///
    /// @param chainBlocks of one chain that a client tells, 1 to 16,777,216
    /// @param connectionBytes that all chains told over one connection take, 1 KiB and up
    /// @param chainBytes that all chains of all connections take, and of requests that wait, 1 KiB and up
    /// @param snapshots that are made or read at one time, 1 to 1,024
    /// @param snapshotEntries that one of them may have, 1 and up
    public record HeapLimits(
            int chainBlocks, long connectionBytes, long chainBytes, int snapshots, long snapshotEntries) {

        /// Sixteen million tokens in blocks of sixteen.
        private static final int DEFAULT_CHAIN_BLOCKS = 1 << 20;

        private static final int MAX_CHAIN_BLOCKS = 1 << 24;
        private static final long MIN_BYTES = 1 << 10;
        private static final int DEFAULT_SNAPSHOTS = 2;
        private static final int MAX_SNAPSHOTS = 1024;

        /// What an entry takes while a snapshot is made.
        private static final long ENTRY_BYTES = 250;

        public HeapLimits {
            check("chainBlocks", chainBlocks, 1, MAX_CHAIN_BLOCKS);
            check("connectionBytes", connectionBytes, MIN_BYTES, Long.MAX_VALUE);
            check("chainBytes", chainBytes, MIN_BYTES, Long.MAX_VALUE);
            check("snapshots", snapshots, 1, MAX_SNAPSHOTS);
            check("snapshotEntries", snapshotEntries, 1, Long.MAX_VALUE);
        }

        /// Shares of a heap: an eighth of it for chains, and a quarter of that for those of one connection; an
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
                        "%s = %d is out of range; allowed: %d to %d".formatted(name, value, least, most));
            }
        }
    }

    /// Which namespaces clients may use, beside the limits of [EndpointAuth].
    ///
    /// **Threads.** Any.
    @FunctionalInterface
    public interface NamespaceFilter {

        /// All of them.
        NamespaceFilter ALLOW_ALL = namespace -> null;

        /// Why clients may not use a namespace, or null when they may.
        @Nullable
        String rejectionReason(Namespace namespace);
    }
}
