package io.kvcache.server.block;

import io.kvcache.core.NamespaceStats;
import io.kvcache.core.identity.Namespace;
import io.kvcache.server.quota.NamespaceShares;
import io.kvcache.server.quota.Shares;
import io.kvcache.tiers.TieredKvCache;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// The namespaces that clients may name, each tenant its own. A namespace's name is its model.
///
/// Names last as long as the server, or until they are deleted; blocks on disk last longer, and are found again once
/// their namespace is registered again.
///
/// **Threads.** Any.
public final class BlockNamespaces {

    /// Names of all tenants together.
    static final int MOST = 4096;

    private final TieredKvCache cache;
    private final Ownership ownership;
    private final BlockStocks stocks;
    private final Consumer<Namespace> shares;
    private final Shares places;
    private final NamespaceShares numbers;
    private final ConcurrentMap<Named, Namespace> named = new ConcurrentHashMap<>();

    private record Named(String tenant, String name) {}

    /// A namespace as it was registered.
    ///
    /// @param isNew whether it was not there before
    record Registered(Namespace namespace, boolean isNew) {}

    /// Each of them is who registered it.
    public BlockNamespaces(TieredKvCache cache) {
        this(cache, Ownership.ASKERS, BlockStocks.none(cache), _ -> {}, new Room(1, new NamespaceShares(1)));
    }

    /// What tenants may take of it.
    ///
    /// @param tenants that there are
    /// @param numbers what they take of the store, by whatever way they come
    public record Room(int tenants, NamespaceShares numbers) {}

    /// @param stocks told of each namespace that is used
    /// @param shares told of each one before anything is put into it
    public BlockNamespaces(
            TieredKvCache cache, Ownership ownership, BlockStocks stocks, Consumer<Namespace> shares, Room room) {
        places = new Shares(MOST, room.tenants);
        numbers = room.numbers;
        this.shares = shares;
        this.cache = cache;
        this.ownership = ownership;
        this.stocks = stocks;
    }

    /// Whose a namespace is that is to be registered.
    String owner(String asking, String name, String salt) {
        return ownership.of(asking, name, salt);
    }

    /// Registers a namespace under its model's name, once or again. When another one has the name, that
    /// one is answered.
    ///
    /// @throws IllegalArgumentException when the store refuses it, or there are too many
    synchronized Registered register(Namespace namespace) {
        Named name = new Named(namespace.tenant(), namespace.model());
        Namespace known = named.get(name);
        if (known != null) {
            return new Registered(known, false);
        }
        if (!places.take(namespace.tenant())) {
            throw new IllegalArgumentException("tenant " + namespace.tenant() + " has "
                    + places.taken(namespace.tenant()) + " namespaces; of " + MOST
                    + " a tenant may have as many as are free: delete some that are empty");
        }
        boolean done = false;
        try {
            String refusal = numbers.refusal(namespace);
            if (refusal != null) {
                throw new IllegalArgumentException(refusal);
            }
            cache.register(namespace);
            shares.accept(namespace);
            stocks.registered(namespace);
            named.put(name, namespace);
            done = true;
        } finally {
            if (!done) {
                places.give(namespace.tenant());
            }
        }
        return new Registered(namespace, true);
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
            named.remove(new Named(namespace.tenant(), namespace.model()));
            stocks.forgotten(namespace);
            places.give(namespace.tenant());
        }
        return blocks;
    }

    /// The namespace that a tenant means by a name, or null.
    @Nullable
    Namespace find(String tenant, String name) {
        return named.get(new Named(owner(tenant, name, ""), name));
    }

    /// Those of a tenant, by name.
    List<Namespace> of(String tenant) {
        return named.entrySet().stream()
                .filter(each -> each.getKey().tenant().equals(tenant))
                .map(java.util.Map.Entry::getValue)
                .sorted(Comparator.comparing(Namespace::model))
                .toList();
    }
}
