package io.kvcache.server.quota;

import io.kvcache.core.identity.Namespace;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/// Places of a number that several tenants share: a tenant may take one while it has fewer than are free. So one
/// tenant gets half of them, the next one half of the rest, and every tenant finds some. A sole tenant may take
/// all.
///
/// **Threads.** Any.
public final class FairSharePool {

    private final int capacity;
    private final boolean singleTenant;
    private final Map<String, Integer> usedByTenant = new HashMap<>();
    private int totalUsed;

    /// @param capacity places
    /// @param tenants that there are
    public FairSharePool(int capacity, int tenants) {
        this.capacity = capacity;
        singleTenant = tenants <= 1;
    }

    /// Takes a place for a tenant; answers whether it may have one.
    public synchronized boolean tryAcquire(String tenant) {
        int own = usedByTenant.getOrDefault(tenant, 0);
        if (singleTenant ? totalUsed >= capacity : own >= capacity - totalUsed) {
            return false;
        }
        usedByTenant.put(tenant, own + 1);
        totalUsed++;
        return true;
    }

    /// Gives back a place that a tenant has taken.
    public synchronized void release(String tenant) {
        usedByTenant.merge(tenant, -1, (before, less) -> before + less == 0 ? null : before + less);
        totalUsed--;
    }

    /// Places that are taken by a tenant.
    public synchronized int usedBy(String tenant) {
        return usedByTenant.getOrDefault(tenant, 0);
    }

    /// Places that there are.
    public int capacity() {
        return capacity;
    }

    /// Shares two limited resources of the store among tenants: namespace numbers, which a store never reuses, and
    /// block sizes. A tenant may take one while it has taken fewer than are free ([FairSharePool]).
    ///
    /// **Threads.** Any.
    public static final class NamespaceQuotas {

        /// Part of the store's 65,536; the rest is for the server's own namespaces, and for those found on disks.
        private static final int NAMESPACE_IDS = 60_000;

        /// Part of the store's 100; values use three.
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

        /// Registers a namespace, which then counts for its tenant. Returns null, or the reason for a refusal.
        public synchronized @Nullable String tryRegister(Namespace namespace) {
            if (known.contains(namespace)) {
                return null;
            }
            String tenant = namespace.owner();
            long bytes = namespace.blockBytes();
            boolean another = bytes > 0 && !knownSizes.contains(bytes);
            if (another && !sizeShares.tryAcquire(tenant)) {
                return refusal(tenant, sizeShares, "sizes of blocks") + "; use a size that is registered already";
            }
            if (!idShares.tryAcquire(tenant)) {
                if (another) {
                    sizeShares.release(tenant);
                }
                return refusal(tenant, idShares, "namespaces since the start") + "; use registered ones";
            }
            if (another) {
                knownSizes.add(bytes);
            }
            known.add(namespace);
            return null;
        }

        private static String refusal(String tenant, FairSharePool of, String what) {
            return "tenant " + tenant + " has registered " + of.usedBy(tenant) + " " + what + "; of " + of.capacity()
                    + " a tenant may have as many as are free";
        }
    }
}
