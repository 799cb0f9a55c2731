package io.kvcache.transport.client;

import io.kvcache.core.memory.Pages;
import io.kvcache.transport.net.ClientTlsContexts;
import io.kvcache.transport.net.Connector;
import io.kvcache.transport.net.FabricReader;
import io.kvcache.transport.net.TcpConnector;
import io.kvcache.transport.wire.Secret;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Objects;
import java.util.ServiceLoader;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.net.ssl.SSLContext;
import org.jspecify.annotations.Nullable;

/// Builds a [RemoteKvCache]. Not safe for several threads.
public final class RemoteKvCacheBuilder {

    private static final int MAX_CONNECTIONS = 64;
    private static final Duration MIN_DURATION = Duration.ofMillis(10);
    private static final Duration MAX_DURATION = Duration.ofMinutes(10);

    private final RemoteAddress address;
    private @Nullable Secret secret;
    private String tenant = "";
    private int connections = 2;
    private Duration requestTimeout = Duration.ofSeconds(5);
    private Duration lease = Duration.ofSeconds(10);
    private long memoryBytes = 512L << 20;
    private boolean checked;
    private boolean strict;
    private boolean localOnly;
    private @Nullable Supplier<@Nullable String> serverSecret;
    private @Nullable SharedMemoryMode sharedMemory;
    private long stagingBytes = 64L << 20;
    private @Nullable SSLContext trusted;
    private LinkCoding coding = new LinkCoding();

    RemoteKvCacheBuilder(RemoteAddress address) {
        this.address = address;
    }

    /// Creates a builder for a cache over any connector.
    RemoteKvCacheBuilder(Connector connector) {
        this(new RemoteAddress(connector));
    }

    /// Sets the secret that the server requires, at least 16 bytes of UTF-8. Then the server must prove that it
    /// knows the secret too.
    public RemoteKvCacheBuilder secret(String value) {
        byte[] bytes = value.getBytes(StandardCharsets.UTF_8);
        if (bytes.length < Secret.MIN_SHARED_BYTES) {
            throw new IllegalArgumentException(
                    "the secret has " + bytes.length + " bytes; allowed: " + Secret.MIN_SHARED_BYTES + " and up");
        }
        secret = new Secret(bytes);
        return this;
    }

    /// Sets the trusted certificates for servers at addresses `tls:host:port`: the client trusts these certificates
    /// and those signed by them. By default it trusts the authorities that the JVM knows.
    ///
    /// @param pem one or more certificates
    /// @throws UncheckedIOException when the file cannot be used
    public RemoteKvCacheBuilder trust(Path pem) {
        try {
            return trust(ClientTlsContexts.of(pem));
        } catch (IOException unusable) {
            throw new UncheckedIOException("trust: " + unusable.getMessage(), unusable);
        }
    }

    /// Trusts the servers that a context trusts. The context may also have a certificate of the client.
    ///
    /// @throws IllegalArgumentException when the address is not of the form `tls:host:port`
    public RemoteKvCacheBuilder trust(SSLContext context) {
        if (!address.isEncrypted()) {
            throw new IllegalArgumentException("trust is set, but the address has no TLS; allowed: with tls:host:port");
        }
        trusted = context;
        return this;
    }

    /// Sets the tenant of this client; default none. A server with tenants allows it only the namespaces of this
    /// tenant.
    public RemoteKvCacheBuilder tenant(String value) {
        tenant = value;
        return this;
    }

    /// Sets the number of connections for blocks, 1 to 64; default 2. One more connection carries everything else.
    public RemoteKvCacheBuilder connections(int count) {
        if (count < 1 || count > MAX_CONNECTIONS) {
            throw new IllegalArgumentException("connections = " + count + "; allowed: 1 to " + MAX_CONNECTIONS);
        }
        connections = count;
        return this;
    }

    /// Sets the request timeout, 10 ms to 10 minutes; default 5 seconds. A call's own timeout is added to it.
    public RemoteKvCacheBuilder requestTimeout(Duration value) {
        requestTimeout = checked("requestTimeout", value);
        return this;
    }

    /// Sets how long the server keeps the leases of this client without a message from it, 10 ms to 10 minutes;
    /// default 10 seconds. The server may allow less.
    public RemoteKvCacheBuilder lease(Duration value) {
        lease = checked("lease", value);
        return this;
    }

    private static Duration checked(String name, Duration value) {
        if (value.compareTo(MIN_DURATION) < 0 || value.compareTo(MAX_DURATION) > 0) {
            throw new IllegalArgumentException(
                    "%s = %s; allowed: %s to %s".formatted(name, value, MIN_DURATION, MAX_DURATION));
        }
        return value;
    }

    /// Sets the bytes of memory for blocks and objects that arrive or are being written, 1 MiB and up; default
    /// 512 MiB. The cache allocates it on demand and keeps it.
    public RemoteKvCacheBuilder memoryBytes(long bytes) {
        if (bytes < 1 << 20) {
            throw new IllegalArgumentException("memoryBytes = " + bytes + "; allowed: " + (1 << 20) + " and up");
        }
        memoryBytes = bytes;
        return this;
    }

    /// Sets whether segments throw after their table, view or writer is closed. This costs about ten microseconds
    /// for each.
    public RemoteKvCacheBuilder checked(boolean value) {
        checked = value;
        return this;
    }

    /// Sets whether the client reads the memory of a server on this host in place. The default is
    /// [SharedMemoryMode#REQUIRED] for addresses `shm:host:port`, [SharedMemoryMode#OFF] for `ucx:…` and
    /// [SharedMemoryMode#AUTO] for others.
    public RemoteKvCacheBuilder sharedMemory(SharedMemoryMode value) {
        sharedMemory = value;
        return this;
    }

    /// Sets the bytes of memory shared with a server on this host for puts, 4 KiB and up, or 0 for none; default
    /// 64 MiB.
    ///
    /// If the client reads the server's memory in place, it requests the staging memory at the first put. The
    /// server may give less. The client sends a block that does not fit there.
    public RemoteKvCacheBuilder stagingBytes(long bytes) {
        if (bytes != 0 && bytes < Pages.BYTES) {
            throw new IllegalArgumentException(
                    "stagingBytes = " + bytes + "; allowed: 0, or " + Pages.BYTES + " and up");
        }
        stagingBytes = bytes;
        return this;
    }

    /// Sets whether closing the cache throws while tables, views or writers are open.
    public RemoteKvCacheBuilder strict(boolean value) {
        strict = value;
        return this;
    }

    /// Sets whether a server in a cluster answers from its own store alone, and does not ask other servers. Servers ask
    /// each other so.
    public RemoteKvCacheBuilder localOnly(boolean value) {
        localOnly = value;
        return this;
    }

    /// Makes this client another server of the server's cluster, which speaks for any tenant and gets what
    /// [#localOnly] says.
    ///
    /// @param secret answers, at each connection, what the server has told the servers of its cluster; null
    ///     while it is not known
    public RemoteKvCacheBuilder server(Supplier<@Nullable String> secret) {
        serverSecret = secret;
        return this;
    }

    /// Sets whether blocks always or never come [coded][io.kvcache.core.codec] over a connection, which spares a
    /// quarter of the bytes of bf16 and costs both processors. By default that is decided by what comes faster.
    public RemoteKvCacheBuilder coded(boolean value) {
        coding = new LinkCoding(value);
        return this;
    }

    /// Connects to the server.
    ///
    /// @throws UncheckedIOException when it cannot be reached, or rejects this client
    public RemoteKvCache connect() {
        RemoteOptions options = options();
        RemoteStats.Counters counters = new RemoteStats.Counters();
        SessionKeeper keeper = SessionKeeper.open(address.connector(this::trusted), options, counters.oneSided);
        ExecutorService fetching = Executors.newFixedThreadPool(
                connections,
                Thread.ofPlatform().daemon().name("kvcache-remote-fetch-", 0).factory());
        return new RemoteKvCache(new RemoteContext(
                keeper, options, new ReceiveBuffers(memoryBytes), counters, new AtomicInteger(), coding, fetching));
    }

    private SSLContext trusted() {
        return trusted == null ? ClientTlsContexts.systemDefault() : trusted;
    }

    private RemoteOptions options() {
        return new RemoteOptions(
                secret,
                tenant,
                connections,
                requestTimeout,
                lease,
                memoryBytes,
                checked,
                strict,
                sharedMemory == null ? address.sharedMemory() : sharedMemory,
                stagingBytes,
                address.fabric(),
                localOnly,
                serverSecret);
    }

    /// A parsed address: the way to open connections, and the way to transfer blocks.
    ///
    /// @param choice makes the connector
    /// @param sharedMemory whether the client reads the server's memory in place
    /// @param fabric by which blocks are read one-sided; null for none
    record RemoteAddress(
            ConnectorChoice choice,
            SharedMemoryMode sharedMemory,
            @Nullable Fabric fabric) {

        private static final String AERON = "aeron:";
        private static final String SHM = "shm:";
        private static final String TLS = "tls:";
        private static final Pattern UCX = Pattern.compile("ucx:(.*?)(?:\\?tls=([a-z0-9_,]*))?");

        /// The way to open connections.
        sealed interface ConnectorChoice {

            /// By the given connector.
            record Plain(Connector connector) implements ConnectorChoice {}

            /// Behind TLS.
            record Tls(String host, int port) implements ConnectorChoice {}
        }

        /// Creates an address from any connector.
        RemoteAddress(Connector connector) {
            this(new ConnectorChoice.Plain(connector), SharedMemoryMode.AUTO, null);
        }

        /// Returns the parsed address. Loads the modules of Aeron and UCX only for their addresses.
        ///
        /// @throws IllegalArgumentException when the text is not an address
        /// @throws IllegalStateException when the module of its carrier, or a flag that it needs, is missing
        static RemoteAddress of(String address) {
            if (address.startsWith(AERON)) {
                return new RemoteAddress(
                        provider(Connector.Provider.class, address, "aeron").connector(address));
            }
            Matcher ucx = UCX.matcher(address);
            if (ucx.matches()) {
                HostPort hostPort = HostPort.of(ucx.group(1));
                return new RemoteAddress(
                        hostPort.plainConnector(),
                        SharedMemoryMode.OFF,
                        new Fabric(
                                provider(FabricReader.Provider.class, address, "ucx"),
                                Objects.requireNonNullElse(ucx.group(2), "")));
            }
            if (address.startsWith(TLS)) {
                HostPort hostPort = HostPort.of(address.substring(TLS.length()));
                return new RemoteAddress(
                        new ConnectorChoice.Tls(hostPort.host, hostPort.port), SharedMemoryMode.AUTO, null);
            }
            boolean shm = address.startsWith(SHM);
            HostPort hostPort = HostPort.of(shm ? address.substring(SHM.length()) : address);
            return new RemoteAddress(
                    hostPort.plainConnector(), shm ? SharedMemoryMode.REQUIRED : SharedMemoryMode.AUTO, null);
        }

        /// By the loader that has this class: which one a thread has differs between frameworks.
        private static <T> T provider(Class<T> service, String address, String carrier) {
            return ServiceLoader.load(service, service.getClassLoader())
                    .findFirst()
                    .orElseThrow(() -> new IllegalStateException(address + " needs another artifact: add the dependency"
                            + " io.kvcache:kvcache-transport-" + carrier));
        }

        /// Returns whether the connection uses TLS.
        boolean isEncrypted() {
            return choice instanceof ConnectorChoice.Tls;
        }

        /// The way to open connections.
        ///
        /// @param trusted for those behind TLS
        Connector connector(Supplier<SSLContext> trusted) {
            return switch (choice) {
                case ConnectorChoice.Plain(Connector connector) -> connector;
                case ConnectorChoice.Tls(String host, int port) -> new TcpConnector(host, port, trusted.get());
            };
        }

        private record HostPort(String host, int port) {

            static HostPort of(String address) {
                int colon = address.lastIndexOf(':');
                int port = colon < 1 ? -1 : number(address.substring(colon + 1));
                if (port < 1 || port > 65_535 || address.contains(",")) {
                    throw new IllegalArgumentException("address = \"" + address
                            + "\"; allowed: host:port, tls:host:port, shm:host:port or ucx:host:port, the port from 1 to"
                            + " 65535, or aeron:…; for several servers ClusteredKvCache.connect");
                }
                String host = address.substring(0, colon);
                boolean bracketed = host.startsWith("[") && host.endsWith("]");
                return new HostPort(bracketed ? host.substring(1, host.length() - 1) : host, port);
            }

            private static int number(String text) {
                try {
                    return Integer.parseInt(text);
                } catch (NumberFormatException noNumber) {
                    return -1;
                }
            }

            ConnectorChoice plainConnector() {
                return new ConnectorChoice.Plain(new TcpConnector(host, port));
            }
        }
    }

    /// The way to read one-sided.
    ///
    /// @param transports of UCX, empty for all
    record Fabric(FabricReader.Provider provider, String transports) {}

    /// How a remote cache behaves; see [RemoteKvCacheBuilder] for the meanings and limits.
    ///
    /// @param fabric by which blocks are read one-sided; null for none
    /// @param localOnly whether the server asks no other server for this client
    /// @param serverSecret tells the secret of a client that is another server of the cluster; null for others
    record RemoteOptions(
            @Nullable Secret secret,
            String tenant,
            int connections,
            Duration requestTimeout,
            Duration lease,
            long memoryBytes,
            boolean checked,
            boolean strict,
            SharedMemoryMode sharedMemory,
            long stagingBytes,
            @Nullable Fabric fabric,
            boolean localOnly,
            @Nullable Supplier<@Nullable String> serverSecret) {

        /// The secret that a connection is opened with.
        ///
        /// @throws IOException when it is not known yet
        @Nullable
        Secret currentSecret() throws IOException {
            if (serverSecret == null) {
                return secret;
            }
            String told = serverSecret.get();
            if (told == null) {
                throw new IOException("the server has not told its secret to the servers of its cluster");
            }
            return new Secret(told.getBytes(StandardCharsets.UTF_8));
        }

        long requestTimeoutNanos() {
            return requestTimeout.toNanos();
        }

        /// The request time-out beside a time that the caller allows.
        long totalTimeoutNanos(long timeoutNanos) {
            return Math.min(timeoutNanos, Long.MAX_VALUE / 4) + requestTimeoutNanos();
        }
    }
}
