package io.kvcache.server.block;

import io.kvcache.core.NamespaceStats;
import io.kvcache.core.identity.Namespace;
import io.kvcache.server.quota.FairSharePool;
import io.kvcache.server.quota.FairSharePool.NamespaceQuotas;
import io.kvcache.tiers.TieredKvCache;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// The namespaces that clients may name, each tenant its own. A namespace's name is its model.
///
/// Names last as long as the server, or until they are deleted; blocks on disk last longer, and are found again
/// once their namespace is registered again.
///
/// **Threads.** Any.
public final class TenantNamespaceRegistry {

    /// Names of all tenants together.
    static final int MAX_NAMESPACES = 4096;

    private final TieredKvCache cache;
    private final NamespaceOwnerResolver namespaceOwnerResolver;
    private final BlockQuotaTrackers stocks;
    private final Consumer<Namespace> shares;
    private final FairSharePool slots;
    private final NamespaceQuotas namespaceQuotas;
    private final ConcurrentMap<TenantName, Namespace> byName = new ConcurrentHashMap<>();

    private record TenantName(String tenant, String name) {}

    /// A namespace as it was registered.
    ///
    /// @param isNew whether it was not there before
    record RegisterResult(Namespace namespace, boolean isNew) {}

    /// Each namespace belongs to the tenant that registers it.
    public TenantNamespaceRegistry(TieredKvCache cache) {
        this(
                cache,
                NamespaceOwnerResolver.CALLER,
                BlockQuotaTrackers.withoutQuotas(cache),
                _ -> {},
                new RegistryLimits(1, new NamespaceQuotas(1)));
    }

    /// The limits on what tenants may register.
    ///
    /// @param tenants that there are
    /// @param namespaceQuotas what they take of the store, by whatever way they come
    public record RegistryLimits(int tenants, NamespaceQuotas namespaceQuotas) {}

    /// @param stocks told of each namespace that is used
    /// @param shares told of each one before anything is put into it
    public TenantNamespaceRegistry(
            TieredKvCache cache,
            NamespaceOwnerResolver namespaceOwnerResolver,
            BlockQuotaTrackers stocks,
            Consumer<Namespace> shares,
            RegistryLimits registryLimits) {
        slots = new FairSharePool(MAX_NAMESPACES, registryLimits.tenants);
        namespaceQuotas = registryLimits.namespaceQuotas;
        this.shares = shares;
        this.cache = cache;
        this.namespaceOwnerResolver = namespaceOwnerResolver;
        this.stocks = stocks;
    }

    /// Whose a namespace is that is to be registered.
    String ownerOf(String caller, String name, String salt) {
        return namespaceOwnerResolver.ownerOf(caller, name, salt);
    }

    /// Registers a namespace under its model's name, once or again. When another one has the name, that
    /// one is answered.
    ///
    /// @throws IllegalArgumentException when the store refuses it, or there are too many
    synchronized RegisterResult register(Namespace namespace) {
        TenantName name = new TenantName(namespace.tenant(), namespace.model());
        Namespace known = byName.get(name);
        if (known != null) {
            return new RegisterResult(known, false);
        }
        if (!slots.tryAcquire(namespace.tenant())) {
            throw new IllegalArgumentException("tenant " + namespace.tenant() + " has "
                    + slots.usedBy(namespace.tenant()) + " namespaces; of " + MAX_NAMESPACES
                    + " a tenant may have as many as are free: delete some that are empty");
        }
        boolean done = false;
        try {
            String refusal = namespaceQuotas.tryRegister(namespace);
            if (refusal != null) {
                throw new IllegalArgumentException(refusal);
            }
            cache.register(namespace);
            shares.accept(namespace);
            stocks.onRegistered(namespace);
            byName.put(name, namespace);
            done = true;
        } finally {
            if (!done) {
                slots.release(namespace.tenant());
            }
        }
        return new RegisterResult(namespace, true);
    }

    /// Forgets a name, unless there are blocks in it.
    ///
    /// @return those blocks; 0 when the name is forgotten, -1 when there was none
    synchronized long delete(String tenant, String name) {
        Namespace namespace = find(tenant, name);
        if (namespace == null) {
            return -1;
        }
        long blocks = cache.stats().namespaces().stream()
                .filter(each -> each.namespace().equals(namespace))
                .mapToLong(NamespaceStats::live)
                .sum();
        if (blocks == 0) {
            byName.remove(new TenantName(namespace.tenant(), namespace.model()));
            stocks.onUnregistered(namespace);
            slots.release(namespace.tenant());
        }
        return blocks;
    }

    /// The namespace that a tenant means by a name, or null.
    @Nullable
    Namespace find(String tenant, String name) {
        return byName.get(new TenantName(ownerOf(tenant, name, ""), name));
    }

    /// Those of a tenant, by name.
    List<Namespace> namespacesOf(String tenant) {
        return byName.entrySet().stream()
                .filter(each -> each.getKey().tenant().equals(tenant))
                .map(java.util.Map.Entry::getValue)
                .sorted(Comparator.comparing(Namespace::model))
                .toList();
    }

    /// Finds the owner of a namespace.
    @FunctionalInterface
    public interface NamespaceOwnerResolver {

        /// The caller owns it.
        NamespaceOwnerResolver CALLER = (caller, _, _) -> caller;

        /// The tenant that a namespace belongs to.
        ///
        /// @param caller the asking tenant
        /// @param name of the namespace
        /// @param salt that it is to be registered with; empty for none
        String ownerOf(String caller, String name, String salt);
    }
}
