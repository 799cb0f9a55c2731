package io.kvcache.server.cluster;

import io.kvcache.server.access.SecretFile;
import io.kvcache.server.config.ClusterConfig;
import io.kvcache.server.config.TransportConfig;
import io.kvcache.transport.client.RemoteKvCache;
import io.kvcache.transport.client.RemoteKvCacheBuilder;
import io.kvcache.transport.client.SharedMemoryMode;
import io.kvcache.transport.peer.PeerConnector;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/// Connects this server to the transport of another one in its cluster, whose settings are like its own: it shows
/// the first secret of `transport.secret_file`, and trusts the cluster's authority.
final class ServerConnector {

    private static final Duration REQUEST_TIMEOUT = Duration.ofSeconds(1);

    private final @Nullable String secret;
    private final @Nullable Path authority;

    private ServerConnector(@Nullable String secret, @Nullable Path authority) {
        this.secret = secret;
        this.authority = authority;
    }

    /// @throws IOException when the secret cannot be read
    static PeerConnector open(ClusterConfig cluster, TransportConfig transport) throws IOException {
        String file = transport.secretFile();
        String secret = file == null
                ? null
                : SecretFile.readPrivateLines("transport.secret_file", file, "secret")
                        .getFirst()
                        .strip();
        ClusterConfig.ClusterTlsConfig tls = cluster.tls();
        return new ServerConnector(secret, tls == null ? null : Path.of(tls.authority()))::connect;
    }

    private RemoteKvCache connect(String address) {
        RemoteKvCacheBuilder builder = RemoteKvCache.builder(address)
                .localOnly(true)
                .sharedMemory(SharedMemoryMode.OFF) // few blocks come, and only once
                .requestTimeout(REQUEST_TIMEOUT);
        if (secret != null) {
            builder.secret(secret);
        }
        if (authority != null && address.startsWith("tls:")) {
            builder.trust(authority);
        }
        return builder.connect();
    }
}
