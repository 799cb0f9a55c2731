package io.kvcache.transport.client;

import io.kvcache.transport.net.Connector;

/// Clients of simulations in other packages, over their own connectors.
public final class ConnectorClients {

    private ConnectorClients() {}

    /// Returns a builder of a client over a connector.
    public static RemoteKvCacheBuilder builder(Connector connector) {
        return new RemoteKvCacheBuilder(connector);
    }
}
