package io.kvcache.server.config;

import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/// The listeners, and the tenants that clients act as.
///
/// @param listeners at least one
/// @param tenants with the default one
/// @param domains of tenants that may read each other; tenants in none share memory with each other
public record AccessConfig(
        List<ListenerConfig> listeners, List<TenantConfig> tenants, List<TrustDomainConfig> domains) {

    /// Each has an index of its own that follows every event of the store.
    private static final int MAX_TENANTS = 64;

    private static final int MAX_LISTENERS = 64;

    public AccessConfig {
        listeners = List.copyOf(listeners);
        tenants = List.copyOf(tenants);
        domains = List.copyOf(domains);
        if (tenants.size() > MAX_TENANTS || listeners.size() > MAX_LISTENERS) {
            throw new IllegalArgumentException("tenants are " + tenants.size() + " and listeners " + listeners.size()
                    + "; there may be " + MAX_TENANTS + " and " + MAX_LISTENERS);
        }
        SettingParsers.requireNone(findProblems(listeners, tenants, domains));
    }

    static AccessConfig read(Settings from, AccessConfig usual) {
        List<TenantConfig> tenants = TenantConfig.readAll(from);
        List<ListenerConfig> listeners = ListenerConfig.readAll(from, usual.listeners.getFirst());
        List<TrustDomainConfig> domains = TrustDomainConfig.read(from);
        return from.getValid(usual, () -> new AccessConfig(listeners, tenants, domains));
    }

    /// Returns whether all listeners are on loopback.
    boolean isLoopbackOnly() {
        return listeners.stream()
                .allMatch(each -> each.socketAddress().getAddress().isLoopbackAddress());
    }

    /// All that is wrong with listeners, tenants and domains together; each begins with the setting's name.
    private static List<String> findProblems(
            List<ListenerConfig> listeners, List<TenantConfig> tenants, List<TrustDomainConfig> domains) {
        List<String> problems = new ArrayList<>();
        Set<String> names = new HashSet<>();
        Set<String> users = new HashSet<>();
        for (TenantConfig tenant : tenants) {
            if (!names.add(tenant.name())) {
                problems.add(tenant.path() + ".name is " + tenant.name() + ", which is already in use");
            } else if (!users.add(tenant.user())) {
                problems.add(tenant.path() + ".user is " + tenant.user() + ", which is already in use");
            }
        }
        addOwnershipProblems(tenants, problems);
        TrustDomainConfig.addProblems(domains, tenants, problems);
        Set<String> places = new HashSet<>();
        for (ListenerConfig listener : listeners) {
            if (!places.add(listener.name())) {
                problems.add(listener.path() + ".name is " + listener.name() + ", which is already in use");
            }
            addAuthProblems(listener, tenants, problems);
        }
        addPortConflicts(listeners, problems);
        addRedisClusterProblems(listeners, problems);
        return problems;
    }

    /// Servers redirect clients to one address of each.
    private static void addRedisClusterProblems(List<ListenerConfig> listeners, List<String> problems) {
        List<ListenerConfig> found =
                listeners.stream().filter(ListenerConfig::isForRedisCluster).toList();
        if (found.size() > 1) {
            problems.add(found.get(1).path() + ".protocols has resp-cluster, and so has "
                    + found.getFirst().path() + ".protocols; it takes one listener");
        }
    }

    /// Returns the listener for clients of Redis Cluster, or null.
    public @Nullable ListenerConfig redisClusterListener() {
        return listeners.stream()
                .filter(ListenerConfig::isForRedisCluster)
                .findFirst()
                .orElse(null);
    }

    private static void addPortConflicts(List<ListenerConfig> listeners, List<String> problems) {
        for (int later = 1; later < listeners.size(); later++) {
            for (int earlier = 0; earlier < later; earlier++) {
                ListenerConfig taken = listeners.get(earlier);
                ListenerConfig listener = listeners.get(later);
                if (taken.conflictsWith(listener.socketAddress())) {
                    problems.add(listener.path() + ".port is " + listener.port() + " at " + listener.address()
                            + ", and " + taken.path() + ".port is " + taken.port() + " at " + taken.address()
                            + "; each listener takes a port of its own, 1 to 65535, or 0 for a free one");
                }
            }
        }
    }

    /// The listener that conflicts with an address, or null.
    @Nullable
    ListenerConfig listenerAt(InetSocketAddress address) {
        return listeners.stream()
                .filter(each -> each.conflictsWith(address))
                .findFirst()
                .orElse(null);
    }

    private static void addOwnershipProblems(List<TenantConfig> tenants, List<String> problems) {
        Set<String> prefixes = new HashSet<>();
        Set<String> salts = new HashSet<>();
        for (TenantConfig tenant : tenants) {
            for (String prefix : tenant.keyOwnership().prefixes()) {
                if (!prefixes.add(prefix)) {
                    problems.add(tenant.path() + ".prefixes has '" + prefix + "', which another tenant has already");
                }
            }
            for (String salt : tenant.keyOwnership().salts()) {
                if (!salts.add(salt)) {
                    problems.add(tenant.path() + ".salts has one that another tenant has already");
                }
            }
        }
    }

    private static void addAuthProblems(ListenerConfig listener, List<TenantConfig> tenants, List<String> problems) {
        String bound = listener.auth().tenant();
        if (bound != null && tenants.stream().noneMatch(each -> each.name().equals(bound))) {
            problems.add(listener.path() + ".tenant is " + bound + "; there are " + TenantConfig.names(tenants));
            return;
        }
        boolean passwords = tenants.stream()
                .anyMatch(each ->
                        each.hasPassword() && (bound == null || each.name().equals(bound)));
        if (listener.auth().auth() && !passwords) {
            problems.add(listener.path() + ".auth is true and no tenant has a password; it takes"
                    + " password_hash or password_file at a tenant");
        }
    }

    /// Without domains.
    public AccessConfig(List<ListenerConfig> listeners, List<TenantConfig> tenants) {
        this(listeners, tenants, List.of());
    }

    /// Memory of all domains together, in bytes.
    public long domainBytes() {
        return domains.stream().mapToLong(TrustDomainConfig::hostBytes).sum();
    }

    /// One listener, on this machine only, and the default tenant.
    public static AccessConfig defaults() {
        return new AccessConfig(List.of(ListenerConfig.defaults()), List.of(TenantConfig.defaultTenant()));
    }
}
