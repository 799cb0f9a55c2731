package io.kvcache.server.remote;

import io.kvcache.core.KvCache;
import io.kvcache.core.LocalKvCache;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.shm.SharedMemory;
import io.kvcache.server.access.PasswordHash;
import io.kvcache.server.access.ReloadableTls;
import io.kvcache.server.access.SecretFile;
import io.kvcache.server.config.TenantConfig;
import io.kvcache.server.config.TransportConfig;
import io.kvcache.server.net.Listener;
import io.kvcache.server.quota.FairSharePool.NamespaceQuotas;
import io.kvcache.transport.aeron.AeronEndpoint;
import io.kvcache.transport.cluster.DropListener;
import io.kvcache.transport.cluster.ViewSource;
import io.kvcache.transport.endpoint.CommandRunner;
import io.kvcache.transport.endpoint.EndpointAuthentication;
import io.kvcache.transport.endpoint.EndpointListener;
import io.kvcache.transport.endpoint.EndpointOptions;
import io.kvcache.transport.endpoint.EndpointOptions.NamespaceFilter;
import io.kvcache.transport.endpoint.EndpointStats;
import io.kvcache.transport.endpoint.TcpEndpoint;
import io.kvcache.transport.ucx.UcxMemory;
import io.netty.buffer.UnpooledByteBufAllocator;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.net.InetSocketAddress;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import javax.net.ssl.SSLEngine;
import org.jspecify.annotations.Nullable;

/// Serves a server's store to other JVMs.
///
/// **Kept from clients** are the namespaces in which the server keeps its own values, whose form only it knows, and
/// those of tenants with a quota, as blocks are not counted against it.
///
/// **Ownership.** The stores stay their caller's, and the caller closes this first.
///
/// **Threads.** Any; one at a time reloads.
public final class RemoteEndpoint implements AutoCloseable {

    private static final Logger LOG = System.getLogger(RemoteEndpoint.class.getName());

    private final @Nullable TcpEndpoint tcp;
    private final @Nullable AeronEndpoint aeron;
    private final @Nullable UcxMemory ucx;
    private final SharedSecrets secrets;
    private final @Nullable ReloadableTls reloadableTls;

    private RemoteEndpoint(Endpoints endpoints, SharedSecrets secrets, @Nullable ReloadableTls reloadableTls) {
        this.reloadableTls = reloadableTls;
        tcp = endpoints.tcp;
        aeron = endpoints.aeron;
        ucx = endpoints.ucx;
        this.secrets = secrets;
    }

    /// By what it is served.
    private record Endpoints(
            @Nullable TcpEndpoint tcp,
            @Nullable AeronEndpoint aeron,
            @Nullable UcxMemory ucx) {}

    /// The served stores, which the caller closes: the shared one, and those of the trust domains.
    ///
    /// @param namespaceQuotas what tenants take of the shared store for their namespaces
    /// @param cluster null for a server in no cluster
    public record ServedStores(
            LocalKvCache defaultStore,
            TrustDomainStores domains,
            NamespaceQuotas namespaceQuotas,
            @Nullable ClusterStore cluster) {}

    /// The shared store of a server in a cluster.
    ///
    /// @param views tells clients the view
    /// @param store answers clients; over the shared store, and closed by its owner
    /// @param drops hears of clients' drops of groups
    /// @param secret by which the other servers prove what they are; null when they tell each other none
    /// @param commands runs what they pass on
    public record ClusterStore(
            ViewSource views,
            LocalKvCache store,
            DropListener drops,
            @Nullable String secret,
            CommandRunner commands) {}

    /// Begins to listen, when the configuration says so.
    ///
    /// @param own the namespace in which the server keeps a tenant's values
    /// @param listener hears of clients' requests
    /// @return null when it does not
    /// @throws IOException when an address cannot be had, or a file of secrets not be used
    /// @throws IllegalStateException when Aeron is asked for and this JVM lacks the flag for it
    public static @Nullable RemoteEndpoint open(
            TransportConfig config,
            List<TenantConfig> tenants,
            Function<String, Namespace> own,
            ServedStores stores,
            EndpointListener listener)
            throws IOException {
        if (!config.isServing()) {
            return null;
        }
        SharedSecrets secrets = SharedSecrets.open(config, tenants);
        EndpointOptions options = EndpointOptions.DEFAULTS
                .withListener(listener)
                .withAuth(secrets.endpointAuth())
                .withMaxConnections(config.connections())
                .withMaxLease(config.lease())
                .withNamespaces(namespaceFilter(tenants, own, stores));
        options = stores.domains.assignTenants(options);
        LocalKvCache cache = stores.defaultStore;
        ClusterStore cluster = stores.cluster;
        if (cluster != null) {
            options = options.withCluster(cluster.views, cache, cluster.drops);
            if (cluster.secret != null) {
                options = options.withServers(cluster.secret, cluster.commands);
            }
            cache = cluster.store;
        }
        ReloadableTls reloadableTls = config.tls() == null ? null : ReloadableTls.open(config.tls());
        AeronEndpoint aeron = config.aeron().isEnabled() ? aeron(config, cache, options) : null;
        UcxMemory ucx = null;
        boolean good = false;
        try {
            ucx = UcxExporter.open(config, cache);
            EndpointOptions offering = options.withFabric(ucx == null ? null : ucx.descriptor());
            TcpEndpoint tcp = config.isTcpEnabled() ? tcp(config, cache, offering, tlsEngines(reloadableTls)) : null;
            RemoteEndpoint front = new RemoteEndpoint(new Endpoints(tcp, aeron, ucx), secrets, reloadableTls);
            good = true;
            return front;
        } finally {
            if (!good) {
                close(aeron, ucx);
            }
        }
    }

    private static @Nullable Supplier<SSLEngine> tlsEngines(@Nullable ReloadableTls reloadableTls) {
        return reloadableTls == null ? null : () -> reloadableTls.context().newEngine(UnpooledByteBufAllocator.DEFAULT);
    }

    private static TcpEndpoint tcp(
            TransportConfig config, KvCache cache, EndpointOptions options, @Nullable Supplier<SSLEngine> tls)
            throws IOException {
        try {
            return TcpEndpoint.open(cache, config.socketAddress(), options, tls);
        } catch (IOException taken) {
            throw new IOException(
                    "transport.listen is " + config.listen() + ": " + Listener.reason(taken) + Listener.remedy(taken),
                    taken);
        }
    }

    private static AeronEndpoint aeron(TransportConfig config, KvCache cache, EndpointOptions options)
            throws IOException {
        try {
            return AeronEndpoint.open(cache, config.aeron().addressFor(config.port()), options);
        } catch (IOException taken) {
            throw new IOException("transport.aeron is " + config.aeron().address() + ": " + taken.getMessage(), taken);
        }
    }

    /// Reads the files of secrets and forgets them.
    ///
    /// @throws IOException when one cannot be used; the message says which and why
    public static void checkSecrets(TransportConfig config, List<TenantConfig> tenants) throws IOException {
        SharedSecrets.open(config, tenants);
    }

    private static NamespaceFilter namespaceFilter(
            List<TenantConfig> tenants, Function<String, Namespace> own, ServedStores stores) {
        Set<Namespace> kept = tenants.stream().map(TenantConfig::name).map(own).collect(Collectors.toUnmodifiableSet());
        Set<String> limited = tenants.stream()
                .filter(each -> each.quotaBytes() > 0)
                .map(TenantConfig::name)
                .collect(Collectors.toUnmodifiableSet());
        return namespace -> {
            if (kept.contains(namespace)) {
                return namespace + " is where the server keeps its own values; choose another name";
            }
            if (limited.contains(namespace.owner())) {
                return "tenant " + namespace.owner() + " has a quota, and what clients of transport store is not"
                        + " counted against it; allowed: tenants without one, or values over Redis' protocol, lm:// or HTTP";
            }
            return stores.namespaceQuotas.tryRegister(namespace);
        };
    }

    /// Returns the address at which it listens over TCP, or null when it does not.
    public @Nullable InetSocketAddress address() {
        return tcp == null ? null : tcp.address();
    }

    /// Returns the address to which clients connect over Aeron, or null when they cannot.
    public @Nullable String aeronAddress() {
        return aeron == null ? null : aeron.address();
    }

    /// Returns the statistics over all transports together.
    public EndpointStats stats() {
        EndpointStats one = tcp == null ? null : tcp.stats();
        EndpointStats other = aeron == null ? null : aeron.stats();
        if (one == null || other == null) {
            return Objects.requireNonNull(one == null ? other : one);
        }
        return one.plus(other);
    }

    /// Returns the programs and versions of the clients that use each namespace now, as they say.
    public Map<Namespace, Set<String>> clients() {
        Map<Namespace, Set<String>> clients = new HashMap<>();
        if (tcp != null) {
            tcp.addClients(clients);
        }
        if (aeron != null) {
            aeron.addClients(clients);
        }
        return clients;
    }

    /// The files of secrets.
    public List<Path> files() {
        return secrets.files();
    }

    /// Reads the secrets again. Clients that are connected stay.
    ///
    /// @throws IOException when a file cannot be used; the secrets from before stay
    public void reload() throws IOException {
        secrets.reload();
    }

    /// Its certificate, or null without TLS.
    public @Nullable ReloadableTls reloadableTls() {
        return reloadableTls;
    }

    /// The files of its certificate; none without TLS.
    public List<Path> certificateFiles() {
        return reloadableTls == null ? List.of() : reloadableTls.files();
    }

    /// Reads the certificate again. Connections that there are stay as they are.
    ///
    /// @throws IOException when a file cannot be used; the certificate from before stays
    public void reloadCertificate() throws IOException {
        if (reloadableTls != null) {
            reloadableTls.reload();
        }
    }

    /// Begins nothing new any more.
    public void drain() {
        if (tcp != null) {
            tcp.drain();
        }
        if (aeron != null) {
            aeron.drain();
        }
    }

    /// Returns whether all requests that had begun have ended. Callers poll it after [#drain].
    public boolean isDrained() {
        boolean one = tcp == null || tcp.isDrained(); // both are asked each time, as they tell by what they saw before
        boolean other = aeron == null || aeron.isDrained();
        return one && other;
    }

    /// Ends all connections. Does nothing a second time.
    @Override
    public void close() {
        try {
            if (tcp != null) {
                tcp.close();
            }
        } catch (IOException failed) {
            LOG.log(Level.WARNING, "the endpoint at " + address() + " did not close well", failed);
        } finally {
            close(aeron, ucx);
        }
    }

    private static void close(@Nullable AeronEndpoint aeron, @Nullable UcxMemory ucx) {
        try {
            if (aeron != null) {
                aeron.close();
            }
        } finally {
            if (ucx != null) {
                ucx.close();
            }
        }
    }

    /// Offers a server's store over UCX, if the settings say so. Where UCX is missing, one line in the log says
    /// so, and clients get their blocks by message.
    ///
    /// UCX has no authentication, and over TCP listens at ports of its own: a client that reaches one can read and
    /// write all of the process. So it uses only loopback where the endpoint uses only loopback.
    private static final class UcxExporter {

        private static final String LOOPBACK = "lo";

        private UcxExporter() {}

        /// The store's slots over UCX, or null where there is none.
        static @Nullable UcxMemory open(TransportConfig config, LocalKvCache cache) {
            if (!config.ucx().isEnabled()) {
                return null;
            }
            SharedMemory shared = cache.sharedMemory();
            if (shared == null) {
                LOG.log(Level.INFO, "Clients cannot read over UCX: the store is not in shared memory");
                return null;
            }
            try {
                boolean local = config.isLoopbackOnly();
                UcxMemory offered = UcxMemory.export(shared, config.ucx().transports(), local ? LOOPBACK : "");
                LOG.log(
                        Level.INFO,
                        "Clients may read over UCX ({0}, {1})",
                        config.ucx().text(),
                        local ? "loopback only" : "without authentication");
                return offered;
            } catch (IOException missing) {
                LOG.log(Level.INFO, "Clients cannot read over UCX: {0}", missing.getMessage());
                return null;
            }
        }
    }

    /// The secrets of clients, as of the moment when their files were read last.
    ///
    /// **Threads.** Any; one at a time reads the files.
    static final class SharedSecrets {

        private final TransportConfig config;
        private final List<TenantConfig> tenants;
        private volatile EndpointAuthentication current;

        private SharedSecrets(TransportConfig config, List<TenantConfig> tenants) throws IOException {
            this.config = config;
            this.tenants = List.copyOf(tenants);
            current = load(config, tenants);
        }

        /// @throws IOException when a file cannot be used; the message names the setting and the file, never
        ///     what is in it
        static SharedSecrets open(TransportConfig config, List<TenantConfig> tenants) throws IOException {
            return new SharedSecrets(config, tenants);
        }

        /// Returns the policy that accepts clients, now and after a reload.
        EndpointAuthentication endpointAuth() {
            return new EndpointAuthentication.Reloadable(() -> current);
        }

        /// Reads all files again.
        ///
        /// @throws IOException when one cannot be used; the secrets from before stay
        void reload() throws IOException {
            current = load(config, tenants);
        }

        List<Path> files() {
            return Stream.concat(
                            Stream.ofNullable(config.secretFile()),
                            tenants.stream().map(TenantConfig::secretFile).filter(Objects::nonNull))
                    .map(Path::of)
                    .toList();
        }

        /// With tenants, a client is the one whose secret it shows, and the default one without a secret.
        private static EndpointAuthentication load(TransportConfig config, List<TenantConfig> tenants)
                throws IOException {
            Map<String, List<String>> each = new HashMap<>();
            for (TenantConfig tenant : tenants) {
                if (tenant.secretFile() != null) {
                    each.put(tenant.name(), lines(tenant.path() + ".secret_file", tenant.secretFile()));
                }
            }
            if (!each.isEmpty()) {
                return EndpointAuthentication.tenantSecrets(each);
            }
            EndpointAuthentication all = config.secretFile() == null
                    ? EndpointAuthentication.unauthenticated()
                    : EndpointAuthentication.secrets(lines("transport.secret_file", config.secretFile()));
            return tenants.equals(List.of(TenantConfig.defaultTenant()))
                    ? all
                    : new EndpointAuthentication.SingleTenant(TenantConfig.DEFAULT, all);
        }

        private static List<String> lines(String setting, String file) throws IOException {
            List<String> lines = SecretFile.readPrivateLines(setting, file, "secret").stream()
                    .map(String::strip)
                    .toList();
            for (String line : lines) {
                if (PasswordHash.isHash(line)) {
                    throw new IOException(setting + " " + file + " has a hash; a proof takes the secret itself");
                }
            }
            try {
                EndpointAuthentication.secrets(lines);
            } catch (IllegalArgumentException shorter) {
                throw new IOException(setting + " " + file + ": " + shorter.getMessage(), shorter);
            }
            return lines;
        }
    }
}
