/// The same cache from another process, over TCP, TLS and shared memory. What is exported to some modules alone may
/// change at any time.
@SuppressWarnings("module") // Those modules are compiled later, or have no descriptor.
module io.kvcache.transport {
    requires transitive io.kvcache.core;
    requires com.github.benmanes.caffeine;

    uses io.kvcache.transport.net.Connector.Provider;
    uses io.kvcache.transport.net.FabricReader.Provider;

    exports io.kvcache.transport.client;
    exports io.kvcache.transport.cluster;
    exports io.kvcache.transport.endpoint;
    exports io.kvcache.transport.peer;
    exports io.kvcache.transport.net to
            io.kvcache.cluster,
            io.kvcache.server,
            io.kvcache.transport.aeron,
            io.kvcache.transport.ucx;
    exports io.kvcache.transport.wire to
            io.kvcache.cluster,
            io.kvcache.server,
            io.kvcache.transport.aeron,
            io.kvcache.transport.ucx;
}
