package io.kvcache.transport.client;

import io.kvcache.core.LocalKvCache;
import io.kvcache.transport.endpoint.EndpointOptions;
import io.kvcache.transport.endpoint.TcpEndpoint;
import io.kvcache.transport.ucx.UcxMemory;
import io.kvcache.transport.ucx.UcxReader;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.Objects;

/// Serves a store whose slots are on a fabric.
record UcxServer(TcpEndpoint endpoint, UcxMemory memory, String address) implements AutoCloseable {

    /// Serves, once it is sure that there is a way: a client that finds none would use messages without a word.
    ///
    /// @param store whose memory is shared
    /// @param transports of UCX
    static UcxServer open(LocalKvCache store, String transports) throws IOException {
        UcxMemory memory = UcxMemory.export(Objects.requireNonNull(store.sharedMemory()), transports);
        boolean good = false;
        try {
            new UcxReader.Provider().connect(memory.descriptor(), transports).close();
            TcpEndpoint endpoint = TcpEndpoint.open(
                    store,
                    new InetSocketAddress(InetAddress.getLoopbackAddress(), 0),
                    EndpointOptions.DEFAULTS.withFabric(memory.descriptor()));
            good = true;
            String address = "ucx:127.0.0.1:" + endpoint.address().getPort() + "?tls=" + transports;
            return new UcxServer(endpoint, memory, address);
        } finally {
            if (!good) {
                memory.close();
            }
        }
    }

    @Override
    @SuppressWarnings("try") // closed one after the other, whatever fails
    public void close() throws IOException {
        try (UcxMemory last = memory) {
            endpoint.close();
        }
    }
}
