package io.kvcache.transport.peer;

import io.kvcache.transport.client.RemoteKvCache;

/// Connects to a peer by its name. The seam between peers and the network.
@FunctionalInterface
public interface PeerConnector {

    /// Connects; the caller closes what it gets.
    ///
    /// @throws java.io.UncheckedIOException when the peer cannot be reached
    RemoteKvCache connect(String name);
}
