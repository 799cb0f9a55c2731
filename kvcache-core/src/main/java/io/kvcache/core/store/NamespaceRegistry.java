package io.kvcache.core.store;

import io.kvcache.core.identity.Namespace;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/// The registered namespaces, by number and by name.
///
/// **Threads.** Any; registering copies the table, so that look-ups take no lock.
final class NamespaceRegistry {

    /// A record has 16 bits for its namespace.
    static final int MAX = 1 << 16;

    /// No namespace's number.
    static final int UNKNOWN = -1;

    private volatile Table table = new Table(List.of(), Map.of());

    private record Table(List<NamespaceEntry> byId, Map<Namespace, NamespaceEntry> byName) {}

    /// The entry of a registered namespace.
    ///
    /// @throws IllegalArgumentException when it is not registered
    NamespaceEntry require(Namespace namespace) {
        NamespaceEntry entry = table.byName.get(namespace);
        if (entry == null) {
            throw new IllegalArgumentException(namespace + " is not registered with this store");
        }
        return entry;
    }

    @Nullable
    NamespaceEntry find(Namespace namespace) {
        return table.byName.get(namespace);
    }

    /// The number of a namespace, or [#UNKNOWN], which no record has.
    int idOf(Namespace namespace) {
        NamespaceEntry entry = find(namespace);
        return entry == null ? UNKNOWN : entry.id();
    }

    /// A registered namespace that differs from this one in nothing but its parts.
    @Nullable
    NamespaceEntry findWithOtherParts(Namespace namespace) {
        Namespace bare = withoutParts(namespace);
        for (NamespaceEntry entry : table.byId) {
            if (withoutParts(entry.namespace()).equals(bare)) {
                return entry;
            }
        }
        return null;
    }

    NamespaceEntry byId(int id) {
        return table.byId.get(id);
    }

    List<NamespaceEntry> all() {
        return table.byId;
    }

    synchronized void add(NamespaceEntry entry) {
        List<NamespaceEntry> byId = new ArrayList<>(table.byId);
        Map<Namespace, NamespaceEntry> byName = new HashMap<>(table.byName);
        byId.add(entry);
        byName.put(entry.namespace(), entry);
        table = new Table(List.copyOf(byId), Map.copyOf(byName));
    }

    private static Namespace withoutParts(Namespace namespace) {
        return namespace.toBuilder().parts(List.of()).build();
    }
}
