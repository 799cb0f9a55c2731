/// Addresses `ucx:…`: one-sided reads of a server's memory over UCX.
module io.kvcache.transport.ucx {
    requires transitive io.kvcache.transport;

    provides io.kvcache.transport.net.FabricReader.Provider with
            io.kvcache.transport.ucx.UcxReader.Provider;

    exports io.kvcache.transport.ucx;
}
