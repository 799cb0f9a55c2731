package io.kvcache.transport.endpoint;

import io.kvcache.core.KvCache;
import io.kvcache.transport.wire.FabricPlace;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/// How an endpoint treats its clients.
///
/// @param access who may talk to it
/// @param maxConnections at a time, 1 to 65,536; and as many that have not said who they are
/// @param maxClaims leases and reservations of one session at a time, 1 to 1,048,576
/// @param maxWaiting requests of one session that wait for something at a time, 1 to 65,536
/// @param longestLease how long a client that is not heard of keeps what it has, 10 ms to 10 minutes;
///     clients may ask for less
/// @param stall how long a client may take no bytes that it has asked for, or send none that it has
///     begun, 10 ms to 10 minutes
/// @param handshake how long a client may take to say who it is, 10 ms to 10 minutes
/// @param namespaces which of them clients may use
/// @param fabric where the store's slots can be read one-sided by clients that may see all of them, or null
/// @param domains stores of tenants that have one of their own, by tenant; see [#withDomain]
/// @param heap how much of this process's heap clients may take
public record EndpointOptions(
        Access access,
        int maxConnections,
        int maxClaims,
        int maxWaiting,
        Duration longestLease,
        Duration stall,
        Duration handshake,
        NamespaceRule namespaces,
        @Nullable FabricPlace fabric,
        Map<String, KvCache> domains,
        HeapLimits heap) {

    // First, because the defaults are checked against them.
    private static final Duration SHORTEST = Duration.ofMillis(10);
    private static final Duration LONGEST = Duration.ofMinutes(10);

    public static final EndpointOptions DEFAULTS = new EndpointOptions(
            Access.open(),
            256,
            1 << 16,
            1024,
            Duration.ofSeconds(30),
            Duration.ofSeconds(10),
            Duration.ofSeconds(5),
            NamespaceRule.ANY,
            null,
            Map.of(),
            HeapLimits.of(Runtime.getRuntime().maxMemory()));

    public EndpointOptions {
        domains = Map.copyOf(domains);
        check("maxConnections", maxConnections, 1 << 16);
        check("maxClaims", maxClaims, 1 << 20);
        check("maxWaiting", maxWaiting, 1 << 16);
        check("longestLease", longestLease);
        check("stall", stall);
        check("handshake", handshake);
    }

    private static void check(String name, int value, int most) {
        if (value < 1 || value > most) {
            throw new IllegalArgumentException(
                    "%s = %d is out of range; allowed: 1 to %d".formatted(name, value, most));
        }
    }

    private static void check(String name, Duration value) {
        if (value.compareTo(SHORTEST) < 0 || value.compareTo(LONGEST) > 0) {
            throw new IllegalArgumentException(
                    "%s = %s is out of range; allowed: %s to %s".formatted(name, value, SHORTEST, LONGEST));
        }
    }

    public EndpointOptions withAccess(Access other) {
        return new EndpointOptions(
                other,
                maxConnections,
                maxClaims,
                maxWaiting,
                longestLease,
                stall,
                handshake,
                namespaces,
                fabric,
                domains,
                heap);
    }

    public EndpointOptions withLongestLease(Duration other) {
        return new EndpointOptions(
                access,
                maxConnections,
                maxClaims,
                maxWaiting,
                other,
                stall,
                handshake,
                namespaces,
                fabric,
                domains,
                heap);
    }

    public EndpointOptions withStall(Duration other) {
        return new EndpointOptions(
                access,
                maxConnections,
                maxClaims,
                maxWaiting,
                longestLease,
                other,
                handshake,
                namespaces,
                fabric,
                domains,
                heap);
    }

    public EndpointOptions withHandshake(Duration other) {
        return new EndpointOptions(
                access,
                maxConnections,
                maxClaims,
                maxWaiting,
                longestLease,
                stall,
                other,
                namespaces,
                fabric,
                domains,
                heap);
    }

    public EndpointOptions withMaxConnections(int other) {
        return new EndpointOptions(
                access,
                other,
                maxClaims,
                maxWaiting,
                longestLease,
                stall,
                handshake,
                namespaces,
                fabric,
                domains,
                heap);
    }

    public EndpointOptions withMaxClaims(int other) {
        return new EndpointOptions(
                access,
                maxConnections,
                other,
                maxWaiting,
                longestLease,
                stall,
                handshake,
                namespaces,
                fabric,
                domains,
                heap);
    }

    public EndpointOptions withMaxWaiting(int other) {
        return new EndpointOptions(
                access,
                maxConnections,
                maxClaims,
                other,
                longestLease,
                stall,
                handshake,
                namespaces,
                fabric,
                domains,
                heap);
    }

    public EndpointOptions withNamespaces(NamespaceRule other) {
        return new EndpointOptions(
                access,
                maxConnections,
                maxClaims,
                maxWaiting,
                longestLease,
                stall,
                handshake,
                other,
                fabric,
                domains,
                heap);
    }

    public EndpointOptions withHeap(HeapLimits other) {
        return new EndpointOptions(
                access,
                maxConnections,
                maxClaims,
                maxWaiting,
                longestLease,
                stall,
                handshake,
                namespaces,
                fabric,
                domains,
                other);
    }

    /// With slots that can be read one-sided, which must be those of the store that is served; null for
    /// none.
    public EndpointOptions withFabric(@Nullable FabricPlace other) {
        return new EndpointOptions(
                access,
                maxConnections,
                maxClaims,
                maxWaiting,
                longestLease,
                stall,
                handshake,
                namespaces,
                other,
                domains,
                heap);
    }

    /// With a store for tenants that may read each other: a trust domain. Whoever comes in as one of them,
    /// and may speak for it only, uses that store and no other; everybody else uses the one that is served,
    /// or that of his own domain. So where the store is shared ([io.kvcache.core.SharedMemory]) they map
    /// what is theirs and nothing else.
    ///
    /// It takes an [Access] by which tenants are told apart. The store stays its owner's, who closes the
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
        return new EndpointOptions(
                access,
                maxConnections,
                maxClaims,
                maxWaiting,
                longestLease,
                stall,
                handshake,
                namespaces,
                fabric,
                all,
                heap);
    }
}
