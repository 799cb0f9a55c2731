package io.kvcache.tiers.front;

import io.kvcache.core.tier.Tier;
import java.util.ArrayDeque;
import java.util.Queue;

/// Fronts whose disk has failed while somebody used their memory: the disk comes back without one,
/// and they are closed when that use is over, before another is opened in their place.
///
/// **Threads.** The tier's.
public final class RetiredTiers {

    private final Queue<Tier> tiers = new ArrayDeque<>();

    void add(Tier used) {
        tiers.add(used);
    }

    boolean isEmpty() {
        return tiers.isEmpty();
    }

    /// Closes all.
    ///
    /// @throws IllegalStateException while somebody uses one; it stays, and can be closed later
    public void close() {
        while (!tiers.isEmpty()) {
            tiers.element().close();
            tiers.remove();
        }
    }
}
