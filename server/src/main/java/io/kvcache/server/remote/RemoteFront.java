package io.kvcache.server.remote;

import io.kvcache.core.KvCache;
import io.kvcache.core.identity.Namespace;
import io.kvcache.server.config.TenantConfig;
import io.kvcache.server.config.TransportConfig;
import io.kvcache.transport.endpoint.EndpointOptions;
import io.kvcache.transport.endpoint.EndpointStats;
import io.kvcache.transport.endpoint.NamespaceRule;
import io.kvcache.transport.tcp.TcpEndpoint;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.net.InetSocketAddress;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/// Serves a server's store to other JVMs.
///
/// **Kept from clients** are the namespaces in which the server keeps its own values, whose form only it knows, and
/// those of tenants with a quota, as blocks are not counted against it.
///
/// **Ownership.** The store stays its caller's, who closes this first.
///
/// **Threads.** Any; one at a time reloads.
public final class RemoteFront implements AutoCloseable {

    private static final Logger LOG = System.getLogger(RemoteFront.class.getName());

    private final TcpEndpoint endpoint;
    private final Secrets secrets;

    private RemoteFront(TcpEndpoint endpoint, Secrets secrets) {
        this.endpoint = endpoint;
        this.secrets = secrets;
    }

    /// Begins to listen, when the configuration says so.
    ///
    /// @param own the namespace in which the server keeps a tenant's values
    /// @return null when it does not
    /// @throws IOException when the address cannot be had, or a file of secrets not be used
    public static @Nullable RemoteFront open(
            TransportConfig config, List<TenantConfig> tenants, Function<String, Namespace> own, KvCache cache)
            throws IOException {
        if (!config.on()) {
            return null;
        }
        Secrets secrets = Secrets.open(config, tenants);
        EndpointOptions options = EndpointOptions.DEFAULTS
                .withAccess(secrets.access())
                .withMaxConnections(config.connections())
                .withLongestLease(config.lease())
                .withNamespaces(rule(tenants, own));
        try {
            return new RemoteFront(TcpEndpoint.open(cache, config.socketAddress(), options), secrets);
        } catch (IOException taken) {
            throw new IOException("transport.listen is " + config.listen() + ": " + taken.getMessage(), taken);
        }
    }

    private static NamespaceRule rule(List<TenantConfig> tenants, Function<String, Namespace> own) {
        Set<Namespace> kept = tenants.stream().map(TenantConfig::name).map(own).collect(Collectors.toUnmodifiableSet());
        Set<String> limited = tenants.stream()
                .filter(each -> each.quotaBytes() > 0)
                .map(TenantConfig::name)
                .collect(Collectors.toUnmodifiableSet());
        return namespace -> {
            if (kept.contains(namespace)) {
                return namespace + " is where the server keeps its own values; choose another name";
            }
            return limited.contains(namespace.tenant())
                    ? "tenant " + namespace.tenant() + " has a quota, and blocks are not counted against it"
                    : null;
        };
    }

    /// Where it listens.
    public InetSocketAddress address() {
        return endpoint.address();
    }

    /// What it serves and has served.
    public EndpointStats stats() {
        return endpoint.stats();
    }

    /// The files of secrets.
    public List<Path> files() {
        return secrets.files();
    }

    /// Reads the secrets again. Who is in stays in.
    ///
    /// @throws IOException when a file cannot be used; the secrets from before stay
    public void reload() throws IOException {
        secrets.reload();
    }

    /// Begins nothing new any more.
    public void drain() {
        endpoint.drain();
    }

    /// Whether all that had begun has ended; to be asked again and again after [#drain].
    public boolean drained() {
        return endpoint.drained();
    }

    /// Ends all connections. Does nothing a second time.
    @Override
    public void close() {
        try {
            endpoint.close();
        } catch (IOException failed) {
            LOG.log(Level.WARNING, "the endpoint at " + address() + " did not close well", failed);
        }
    }
}
