/// The embedded store: blocks and objects in host memory and on disks. What is exported to some modules alone may
/// change at any time.
@SuppressWarnings({"module", "requires-automatic"}) // Some of those modules, and two libraries, have no descriptor.
module io.kvcache.tiers {
    requires transitive io.kvcache.core;
    requires com.github.benmanes.caffeine;
    requires HdrHistogram;
    requires static micrometer.core;

    exports io.kvcache.tiers;
    exports io.kvcache.tiers.metrics;
    exports io.kvcache.tiers.options;
    exports io.kvcache.tiers.device to
            io.kvcache.server;
    exports io.kvcache.tiers.directory to
            io.kvcache.server,
            io.kvcache.spring;
    exports io.kvcache.tiers.disk to
            io.kvcache.server;
    exports io.kvcache.tiers.memory to
            io.kvcache.server;
    exports io.kvcache.tiers.movement to
            io.kvcache.server;
    exports io.kvcache.tiers.os to
            io.kvcache.server,
            io.kvcache.spring;
    exports io.kvcache.tiers.use to
            io.kvcache.server;
}
