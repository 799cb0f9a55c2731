package io.kvcache.server.quota;

import io.kvcache.core.identity.Namespace;
import java.util.HashSet;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/// What the store has for all namespaces together, shared out to tenants however they come: numbers, which a store
/// gives
/// once and never again, and sizes of blocks. A tenant may take one while it has taken fewer than are free
/// ([FairSharePool]).
///
/// **Threads.** Any.
public final class NamespaceQuotas {

    /// Of the store's 65,536; the rest is for the server's own, and for what disks bring.
    private static final int NAMESPACE_IDS = 60_000;

    /// Of the store's 100; three are of values.
    private static final int BLOCK_SIZES = 96;

    private final FairSharePool idShares;
    private final FairSharePool sizeShares;
    private final Set<Namespace> known = new HashSet<>();
    private final Set<Long> knownSizes = new HashSet<>();

    /// @param tenants that there are
    public NamespaceQuotas(int tenants) {
        idShares = new FairSharePool(NAMESPACE_IDS, tenants);
        sizeShares = new FairSharePool(BLOCK_SIZES, tenants);
    }

    /// Why a namespace may not be registered, or null when it may: then it counts for its tenant.
    public synchronized @Nullable String tryRegister(Namespace namespace) {
        if (known.contains(namespace)) {
            return null;
        }
        String tenant = namespace.tenant();
        long bytes =
                namespace.parts().isEmpty() ? 0 : namespace.parts().getFirst().bytes();
        boolean another = bytes > 0 && !knownSizes.contains(bytes);
        if (another && !sizeShares.tryAcquire(tenant)) {
            return tryRegister(tenant, sizeShares, "sizes of blocks") + "; use a size that there is";
        }
        if (!idShares.tryAcquire(tenant)) {
            if (another) {
                sizeShares.release(tenant);
            }
            return tryRegister(tenant, idShares, "namespaces since the start") + "; use those that there are";
        }
        if (another) {
            knownSizes.add(bytes);
        }
        known.add(namespace);
        return null;
    }

    private static String tryRegister(String tenant, FairSharePool of, String what) {
        return "tenant " + tenant + " has registered " + of.usedBy(tenant) + " " + what + "; of " + of.capacity()
                + " a tenant may have as many as are free";
    }
}
