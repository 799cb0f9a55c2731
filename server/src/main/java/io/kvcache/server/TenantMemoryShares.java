package io.kvcache.server;

import io.kvcache.core.identity.Namespace;
import io.kvcache.server.config.ServerConfig;
import io.kvcache.tiers.TieredKvCache;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.HashSet;
import java.util.Set;

/// Has tenants' blocks held out of the same share of host memory as their values, so that nobody's blocks push out
/// another's beyond what is his.
///
/// The store numbers its queues with eight bits: one for each tenant and size of slots, of which values have three.
/// When there are too many, further blocks share what blocks of all tenants without a share have together.
///
/// **Threads.** One at a time.
final class TenantMemoryShares {

    private static final Logger LOG = System.getLogger(TenantMemoryShares.class.getName());

    private static final int MAX_QUEUES = 255;
    private static final int VALUE_SIZE_CLASSES = 3;
    private static final int RESERVED_FOR_DISKS = 16;

    private record Queue(String tenant, long blockBytes) {}

    private final TieredKvCache cache;
    private final int tenants;
    private final int maxPerTenant;
    private final Set<Queue> queues = new HashSet<>();

    TenantMemoryShares(TieredKvCache cache, ServerConfig config) {
        this.cache = cache;
        tenants = config.access().tenants().size();
        int each = Math.max(1, config.memory().policy().queueCount());
        // Half of what is left, as the common share may come to hold each size of blocks as well.
        maxPerTenant = (MAX_QUEUES / each - RESERVED_FOR_DISKS - VALUE_SIZE_CLASSES * (tenants + 1)) / 2;
    }

    /// A namespace is about to be used.
    void addQueue(Namespace namespace) {
        if (tenants == 1) {
            return;
        }
        Queue queue = new Queue(namespace.tenant(), namespace.parts().getFirst().bytes());
        boolean fits = queues.contains(queue) || queues.size() < maxPerTenant;
        if (fits && cache.joinShare(namespace, TenantKeyspaces.namespaceOf(namespace.tenant()))) {
            queues.add(queue);
        } else {
            LOG.log(
                    Level.WARNING,
                    "Blocks of {0} of tenant {1} have no part of the tenant''s share of memory: {2}",
                    namespace.model(),
                    namespace.tenant(),
                    fits ? "some are there already" : "there are too many tenants and sizes of blocks");
        }
    }
}
