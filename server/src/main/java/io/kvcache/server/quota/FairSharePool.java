package io.kvcache.server.quota;

import java.util.HashMap;
import java.util.Map;

/// Places of a number that several tenants share: a tenant may take one while it has fewer than are free. So one tenant
/// gets half of them, the next one half of the rest, and every tenant finds some. A sole tenant may take all.
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
}
