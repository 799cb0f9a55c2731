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
/// @param most how much of each they may have
/// @param times how long they may take
/// @param namespaces which of them clients may use
/// @param fabric where the store's slots can be read one-sided by clients that may see all of them, or null
/// @param domains stores of tenants that have one of their own, by tenant; see [#withDomain]
/// @param aeron where the same store is served over Aeron's UDP; see [#withAeron]
public record EndpointOptions(
        Access access,
        Most most,
        Times times,
        NamespaceRule namespaces,
        @Nullable FabricPlace fabric,
        Map<String, KvCache> domains,
        String aeron) {

    // First, because the defaults are checked against them.
    private static final Duration SHORTEST = Duration.ofMillis(10);
    private static final Duration LONGEST = Duration.ofMinutes(10);

    public static final EndpointOptions DEFAULTS = new EndpointOptions(
            Access.open(),
            new Most(256, 1 << 16, 1024, HeapLimits.of(Runtime.getRuntime().maxMemory())),
            new Times(Duration.ofSeconds(30), Duration.ofSeconds(10), Duration.ofSeconds(5)),
            NamespaceRule.ANY,
            null,
            Map.of(),
            "");

    /// How much clients may have at a time.
    ///
    /// @param connections 1 to 65,536; and as many that have not said who they are
    /// @param claims leases and reservations of one session, 1 to 1,048,576
    /// @param waiting requests of one session that wait for something, 1 to 65,536
    /// @param heap of this process
    public record Most(int connections, int claims, int waiting, HeapLimits heap) {

        public Most {
            HeapLimits.check("maxConnections", connections, 1, 1 << 16);
            HeapLimits.check("maxClaims", claims, 1, 1 << 20);
            HeapLimits.check("maxWaiting", waiting, 1, 1 << 16);
        }
    }

    /// How long clients may take, 10 ms to 10 minutes each.
    ///
    /// @param longestLease how long one that is not heard of keeps what it has; clients may ask for less
    /// @param stall how long one may take no bytes that it has asked for, or send none that it has begun
    /// @param handshake how long one may take to say who it is
    public record Times(Duration longestLease, Duration stall, Duration handshake) {

        public Times {
            check("longestLease", longestLease);
            check("stall", stall);
            check("handshake", handshake);
        }
    }

    public EndpointOptions {
        domains = Map.copyOf(domains);
    }

    private static void check(String name, Duration value) {
        if (value.compareTo(SHORTEST) < 0 || value.compareTo(LONGEST) > 0) {
            throw new IllegalArgumentException(
                    "%s = %s is out of range; allowed: %s to %s".formatted(name, value, SHORTEST, LONGEST));
        }
    }

    private EndpointOptions with(Most other) {
        return new EndpointOptions(access, other, times, namespaces, fabric, domains, aeron);
    }

    private EndpointOptions with(Times other) {
        return new EndpointOptions(access, most, other, namespaces, fabric, domains, aeron);
    }

    public EndpointOptions withAccess(Access other) {
        return new EndpointOptions(other, most, times, namespaces, fabric, domains, aeron);
    }

    public EndpointOptions withMaxConnections(int other) {
        return with(new Most(other, most.claims, most.waiting, most.heap));
    }

    public EndpointOptions withMaxClaims(int other) {
        return with(new Most(most.connections, other, most.waiting, most.heap));
    }

    public EndpointOptions withMaxWaiting(int other) {
        return with(new Most(most.connections, most.claims, other, most.heap));
    }

    public EndpointOptions withHeap(HeapLimits other) {
        return with(new Most(most.connections, most.claims, most.waiting, other));
    }

    public EndpointOptions withLongestLease(Duration other) {
        return with(new Times(other, times.stall, times.handshake));
    }

    public EndpointOptions withStall(Duration other) {
        return with(new Times(times.longestLease, other, times.handshake));
    }

    public EndpointOptions withHandshake(Duration other) {
        return with(new Times(times.longestLease, times.stall, other));
    }

    public EndpointOptions withNamespaces(NamespaceRule other) {
        return new EndpointOptions(access, most, times, other, fabric, domains, aeron);
    }

    /// With slots that can be read one-sided, which must be those of the store that is served; null for
    /// none.
    public EndpointOptions withFabric(@Nullable FabricPlace other) {
        return new EndpointOptions(access, most, times, namespaces, other, domains, aeron);
    }

    /// With the address of another endpoint of the same store and the same access,
    /// `aeron:udp?endpoint=host:port`: a client that connects to `auto:host:port` is told, and
    /// takes what is faster; nothing for none.
    public EndpointOptions withAeron(String other) {
        return new EndpointOptions(access, most, times, namespaces, fabric, domains, other);
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
        return new EndpointOptions(access, most, times, namespaces, fabric, all, aeron);
    }
}
