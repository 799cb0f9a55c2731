package io.kvcache.server.remote;

import io.kvcache.core.KvCache;
import io.kvcache.server.config.TrustDomainConfig;
import io.kvcache.transport.endpoint.EndpointOptions;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Function;
import java.util.stream.Collectors;

/// The stores of a server's trust domains. The tenant as which a client authenticated determines its store, so a
/// request
/// cannot name another domain's store.
///
/// **Ownership.** Owns the stores. The endpoint that serves them is closed first.
///
/// **Threads.** Any.
public final class TrustDomainStores implements AutoCloseable {

    private final List<Domain> domains = new ArrayList<>();
    private final AtomicBoolean closed = new AtomicBoolean();

    private record Domain(TrustDomainConfig config, KvCache store) {}

    private TrustDomainStores() {}

    /// Opens a store for each domain and reserves its memory.
    ///
    /// @param opener opens a domain's store; the result takes ownership of it
    /// @throws IllegalStateException if the memory cannot be reserved
    public static TrustDomainStores open(List<TrustDomainConfig> configs, Function<TrustDomainConfig, KvCache> opener) {
        TrustDomainStores domains = new TrustDomainStores();
        try {
            configs.forEach(config -> domains.domains.add(new Domain(config, opener.apply(config))));
            return domains;
        } catch (RuntimeException refused) {
            domains.close();
            throw refused;
        }
    }

    /// The options with each tenant in its domain.
    EndpointOptions assignTenants(EndpointOptions options) {
        EndpointOptions all = options;
        for (Domain domain : domains) {
            all = all.withDomain(Set.copyOf(domain.config.tenants()), domain.store);
        }
        return all;
    }

    /// The store of each, by the domain's name.
    public Map<String, KvCache> stores() {
        return domains.stream().collect(Collectors.toUnmodifiableMap(each -> each.config.name(), Domain::store));
    }

    /// Closes all stores. Does nothing a second time.
    @Override
    public void close() {
        if (closed.compareAndSet(false, true)) {
            domains.forEach(each -> each.store.close());
        }
    }
}
