package io.kvcache.transport.client;

import io.kvcache.core.KvCache;
import io.kvcache.core.identity.Namespace;
import io.kvcache.transport.endpoint.EndpointOptions;
import io.kvcache.transport.endpoint.TcpEndpoint;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;

/// Endpoints at free TCP ports of this machine, and strict clients of theirs.
final class LoopbackServers {

    private LoopbackServers() {}

    static TcpEndpoint serve(KvCache store) {
        try {
            return TcpEndpoint.open(
                    store, new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), EndpointOptions.DEFAULTS);
        } catch (IOException impossible) {
            throw new AssertionError(impossible);
        }
    }

    /// @param spaces registered with the client
    static RemoteKvCache connect(TcpEndpoint endpoint, Namespace... spaces) {
        RemoteKvCache cache = RemoteKvCache.builder(
                        "127.0.0.1:" + endpoint.address().getPort())
                .requestTimeout(TestBlocks.PATIENCE)
                .strict(true)
                .connect();
        for (Namespace space : spaces) {
            cache.register(space);
        }
        return cache;
    }
}
