package io.kvcache.server;

import io.kvcache.core.time.Clock;
import io.kvcache.server.config.ServerConfig;
import io.kvcache.server.net.NettyTransport;
import io.kvcache.server.quota.NamespaceQuotas;
import io.kvcache.server.remote.RemoteEndpoint;
import io.kvcache.server.remote.TrustDomains;
import io.kvcache.tiers.TieredKvCache;
import java.io.IOException;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/// Where clients come in: what drives the sockets of all listeners, and the endpoint for other JVMs.
///
/// @param remote for other JVMs, or null
/// @param namespaceQuotas what tenants take of the store for their namespaces
record NetworkResources(NettyTransport transport, @Nullable RemoteEndpoint remote, NamespaceQuotas namespaceQuotas) {

    static NetworkResources open(ServerConfig config, TieredKvCache cache, Clock clock) throws IOException {
        NettyTransport transport = NettyTransport.open(
                config.network().transport(), config.network().loops());
        NamespaceQuotas numbers = new NamespaceQuotas(config.access().tenants().size());
        TrustDomains domains = null;
        try {
            domains = TrustDomains.open(config.access().domains(), each -> StoreFactory.open(config, each, clock));
            return new NetworkResources(
                    transport,
                    RemoteEndpoint.open(
                            config.transport(),
                            config.access().tenants(),
                            TenantKeyspaces::namespaceOf,
                            new RemoteEndpoint.ServedStores(cache, domains, numbers)),
                    numbers);
        } catch (IOException | RuntimeException failed) {
            if (domains != null) {
                domains.close();
            }
            new NetworkResources(transport, null, numbers).close();
            throw failed;
        }
    }

    void close() {
        if (remote != null) {
            remote.close();
        }
        transport.eventLoops().shutdownGracefully(0, 0, TimeUnit.SECONDS);
    }
}
