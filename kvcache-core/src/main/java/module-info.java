/// Blocks, keys, namespaces, the index and eviction policies: the API of every cache. What is exported to some
/// modules alone may change at any time.
@SuppressWarnings("module") // Those modules are compiled later, or have no descriptor.
module io.kvcache.core {
    requires static transitive org.jspecify;

    uses io.kvcache.core.policy.EvictionPolicyFactory;

    exports io.kvcache.core;
    exports io.kvcache.core.cost;
    exports io.kvcache.core.event;
    exports io.kvcache.core.identity;
    exports io.kvcache.core.policy;
    exports io.kvcache.core.shm;
    exports io.kvcache.core.spi;
    exports io.kvcache.core.stats;
    exports io.kvcache.core.tier;
    exports io.kvcache.core.check to
            io.kvcache.transport;
    exports io.kvcache.core.codec to
            io.kvcache.tiers,
            io.kvcache.transport;
    exports io.kvcache.core.engine to
            io.kvcache.server,
            io.kvcache.tiers;
    exports io.kvcache.core.hash to
            io.kvcache.server,
            io.kvcache.transport;
    exports io.kvcache.core.memory to
            io.kvcache.gpu,
            io.kvcache.server,
            io.kvcache.tiers,
            io.kvcache.transport;
    exports io.kvcache.core.store to
            io.kvcache.tiers;
    exports io.kvcache.core.time to
            io.kvcache.server,
            io.kvcache.tiers,
            io.kvcache.transport;
    exports io.kvcache.core.tree to
            io.kvcache.server,
            io.kvcache.tiers,
            io.kvcache.transport;
}
