package io.kvcache.bench.cluster;

import io.kvcache.transport.client.RemoteKvCache;
import io.kvcache.transport.client.RemoteKvCacheBuilder;

/// How clients reach the servers of a cluster on this host.
public enum ClientTransport {
    /// By TCP over loopback.
    TCP,
    /// By TCP, and blocks in the servers' memory, which they map.
    SHARED_MEMORY,
    /// By Aeron's UDP over loopback, at the number of the server's TCP port.
    AERON;

    private static final String CHANNEL = "aeron:udp?endpoint=";

    /// Returns a builder of a connection.
    ///
    /// @param address of the server's transport over TCP, as a view tells it
    RemoteKvCacheBuilder connection(String address) {
        return RemoteKvCache.builder(this == AERON ? CHANNEL + address : address);
    }

    /// Returns `transport.shared_memory` of a server.
    String sharedMemory() {
        return this == SHARED_MEMORY ? "auto" : "off";
    }

    /// Returns `transport.aeron` of a server; empty for none.
    ///
    /// @param address of its transport over TCP
    String aeron(String address) {
        return this == AERON ? CHANNEL + address : "";
    }
}
