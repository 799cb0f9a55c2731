package io.kvcache.server.quota;

import java.util.HashMap;
import java.util.Map;

/// Places of a number that several tenants share: a tenant may take one while it has fewer than are free. So one tenant
/// gets half of them, the next one half of the rest, and every tenant finds some. A sole tenant may take all.
///
/// **Threads.** Any.
public final class Shares {

    private final int most;
    private final boolean sole;
    private final Map<String, Integer> taken = new HashMap<>();
    private int all;

    /// @param most places
    /// @param tenants that there are
    public Shares(int most, int tenants) {
        this.most = most;
        sole = tenants <= 1;
    }

    /// Takes a place for a tenant; answers whether it may have one.
    public synchronized boolean take(String tenant) {
        int own = taken.getOrDefault(tenant, 0);
        if (sole ? all >= most : own >= most - all) {
            return false;
        }
        taken.put(tenant, own + 1);
        all++;
        return true;
    }

    /// Gives back a place that a tenant has taken.
    public synchronized void give(String tenant) {
        taken.merge(tenant, -1, (before, less) -> before + less == 0 ? null : before + less);
        all--;
    }

    /// Places that are taken by a tenant.
    public synchronized int taken(String tenant) {
        return taken.getOrDefault(tenant, 0);
    }

    /// Places that there are.
    public int most() {
        return most;
    }
}
