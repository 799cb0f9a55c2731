package io.kvcache.server.cluster;

import io.kvcache.cluster.ViewKeeper;
import io.kvcache.server.config.ClusterConfig;
import io.kvcache.transport.client.RemoteKvCache;
import io.kvcache.transport.client.RemoteKvCacheBuilder;
import io.kvcache.transport.client.SharedMemoryMode;
import java.nio.file.Path;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/// Connects this server to the transport of another one in its cluster: it shows the secret that the other one has told
/// the members, and trusts the cluster's authority.
///
/// **Threads.** Any.
final class ServerConnector {

    private static final Duration REQUEST_TIMEOUT = Duration.ofSeconds(1);
    private static final int REQUESTS_AT_A_TIME = 64;

    private final ViewKeeper views;
    private final @Nullable Path authority;

    ServerConnector(ViewKeeper views, ClusterConfig cluster) {
        this.views = views;
        ClusterConfig.ClusterTlsConfig tls = cluster.tls();
        authority = tls == null ? null : Path.of(tls.authority());
    }

    /// For blocks.
    RemoteKvCache connect(String address) {
        return builder(address).connect();
    }

    /// For requests of a tenant's clients.
    RemoteKvCache connect(String address, String tenant) {
        return builder(address).tenant(tenant).connections(REQUESTS_AT_A_TIME).connect();
    }

    private RemoteKvCacheBuilder builder(String address) {
        RemoteKvCacheBuilder builder = RemoteKvCache.builder(address)
                .server(() -> views.secretAt(address))
                .sharedMemory(SharedMemoryMode.OFF) // few blocks come, and only once
                .requestTimeout(REQUEST_TIMEOUT);
        if (authority != null && address.startsWith("tls:")) {
            builder.trust(authority);
        }
        return builder;
    }
}
