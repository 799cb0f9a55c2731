package io.kvcache.server.block;

import io.kvcache.core.identity.Namespace;
import io.kvcache.tiers.TieredKvCache;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// The namespaces that clients may name, each tenant its own. A namespace's name is its model.
///
/// Names last as long as the server; blocks on disk last longer, and are found again once their
/// namespace is registered again.
///
/// **Threads.** Any.
public final class BlockNamespaces {

    /// Names of all tenants together; a name costs a number of the store for ever.
    static final int MOST = 4096;

    private final TieredKvCache cache;
    private final Ownership ownership;
    private final BlockStocks stocks;
    private final Consumer<Namespace> shares;
    private final ConcurrentMap<Named, Namespace> named = new ConcurrentHashMap<>();

    private record Named(String tenant, String name) {}

    /// A namespace as it was registered.
    ///
    /// @param isNew whether it was not there before
    record Registered(Namespace namespace, boolean isNew) {}

    /// Each of them is who registered it.
    public BlockNamespaces(TieredKvCache cache) {
        this(cache, Ownership.ASKERS, BlockStocks.none(cache), _ -> {});
    }

    /// @param stocks told of each namespace that is used
    /// @param shares told of each one before anything is put into it
    public BlockNamespaces(TieredKvCache cache, Ownership ownership, BlockStocks stocks, Consumer<Namespace> shares) {
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
        if (named.size() >= MOST) {
            throw new IllegalArgumentException("there are " + MOST + " namespaces, as many as may be");
        }
        cache.register(namespace);
        shares.accept(namespace);
        stocks.registered(namespace);
        named.put(name, namespace);
        return new Registered(namespace, true);
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
