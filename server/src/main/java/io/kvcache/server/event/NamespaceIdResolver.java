package io.kvcache.server.event;

import io.kvcache.core.KvCache;
import io.kvcache.core.NamespaceStats;
import io.kvcache.core.identity.Namespace;
import java.util.List;

/// The namespaces that events name by number.
///
/// **Threads.** Any.
public final class NamespaceIdResolver {

    private final KvCache cache;
    private volatile List<Namespace> known = List.of();

    public NamespaceIdResolver(KvCache cache) {
        this.cache = cache;
    }

    /// The namespace of a number that an event had.
    public Namespace resolve(int id) {
        List<Namespace> now = known;
        if (id >= now.size()) {
            // Numbers are given in the order of registration, which is the order of the statistics.
            now = cache.stats().namespaces().stream()
                    .map(NamespaceStats::namespace)
                    .toList();
            known = now;
        }
        return now.get(id);
    }
}
