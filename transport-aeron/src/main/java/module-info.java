/// Addresses `aeron:…`: client and endpoint over Aeron.
@SuppressWarnings("requires-automatic") // Aeron has no descriptors.
module io.kvcache.transport.aeron {
    requires transitive io.kvcache.transport;
    requires io.aeron.client;
    requires io.aeron.driver;
    requires org.agrona;

    provides io.kvcache.transport.net.Connector.Provider with
            io.kvcache.transport.aeron.AeronConnector.Provider;

    exports io.kvcache.transport.aeron;
}
