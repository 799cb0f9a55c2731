package io.kvcache.server.config;

import io.kvcache.transport.aeron.AeronAddress;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.UnknownHostException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.function.IntPredicate;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/// The endpoint at which other JVMs use the store itself, by the protocol of PROTOCOL.md.
///
/// Clients prove that they know a secret without sending it, so the server needs the secret itself: files hold
/// secrets, not hashes.
///
/// @param listen `HOST:PORT`, port 0 for any; empty for nowhere, as `auto` is until [#withAutoResolved]
/// @param secretFile a file with secrets, one a line, each of which lets any client in; null for none
/// @param allowUnauthenticated whether other machines may connect without a secret
/// @param connections at a time
/// @param lease how long a client that is not heard of keeps what it holds, at most
/// @param sharedMemory name of a folder below `/dev/shm` for files that clients of this user on this host
///     map read-only; `auto` to choose one where all clients may read all values, `off` for none
/// @param aeron where the same is served over Aeron
/// @param tls what it proves its name with over TCP; null for no TLS
/// @param ucx whether clients read the store one-sided where UCX is installed
public record TransportConfig(
        String listen,
        @Nullable String secretFile,
        boolean allowUnauthenticated,
        int connections,
        Duration lease,
        String sharedMemory,
        AeronConfig aeron,
        @Nullable TlsConfig tls,
        UcxConfig ucx) {

    /// The default port of a server that serves only this machine.
    static final int DEFAULT_PORT = 7420;

    private static final String AUTO = "auto";
    private static final String OFF = "off";

    /// Where files lie that processes of this host share.
    public static final Path SHM_DIRECTORY = Path.of("/dev/shm");

    private static final String UNGUARDED =
            ", which other machines can reach without authentication; it takes a loopback address,"
                    + " transport.secret_file, a secret_file at each tenant, or transport.without_auth: true";

    private static final Pattern NAME = Pattern.compile("[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}");

    private static final Pattern ADDRESS = Pattern.compile("(\\[[^\\[\\]]+]|[^:\\[\\]]+):(\\d{1,5})");
    private static final int MAX_PORT = 65_535;
    private static final int MAX_CONNECTIONS = 1 << 16;
    private static final Duration MIN_LEASE = Duration.ofMillis(100);
    private static final Duration MAX_LEASE = Duration.ofMinutes(10);
    private static final String LEASE_RANGE = "100ms to 600s";

    public TransportConfig {
        if (!isDirectoryName(sharedMemory)) {
            throw new IllegalArgumentException("transport.shared_memory is '" + sharedMemory
                    + "'; it takes auto, off, or 1 to 100 letters, digits, dots, dashes and underscores");
        }
        if (isAddress(listen)) {
            parseAddress(listen);
        } else if (secretFile != null && !aeron.isEnabled()) {
            throw new IllegalArgumentException(
                    "transport.secret_file is " + secretFile + "; it takes transport.listen beside it");
        }
        if (tls != null && !isAddress(listen)) {
            throw new IllegalArgumentException("transport.tls is set; it takes transport.listen beside it");
        }
        if (connections < 1 || connections > MAX_CONNECTIONS) {
            throw new IllegalArgumentException(
                    "transport.connections is " + connections + "; it takes 1 to " + MAX_CONNECTIONS);
        }
        if (lease.compareTo(MIN_LEASE) < 0 || lease.compareTo(MAX_LEASE) > 0) {
            throw new IllegalArgumentException(
                    "transport.lease is " + lease.toMillis() + "ms; it takes " + LEASE_RANGE);
        }
    }

    /// Without TLS and UCX.
    public TransportConfig(
            String listen,
            @Nullable String secretFile,
            boolean withoutAuth,
            int connections,
            Duration lease,
            String sharedMemory,
            AeronConfig aeron) {
        this(listen, secretFile, withoutAuth, connections, lease, sharedMemory, aeron, null, UcxConfig.disabled());
    }

    private static boolean isAddress(String listen) {
        return !listen.isEmpty() && !listen.equals(AUTO);
    }

    /// Returns whether a text can be the name of a directory below `/dev/shm`.
    static boolean isDirectoryName(String text) {
        return NAME.matcher(text).matches();
    }

    /// Returns the defaults: the server decides whether to listen. A listening endpoint uses its own defaults.
    public static TransportConfig defaults() {
        return new TransportConfig(AUTO, null, false, 256, Duration.ofSeconds(30), AUTO, AeronConfig.disabled());
    }

    private TransportConfig listeningAt(String place) {
        return new TransportConfig(
                place, secretFile, allowUnauthenticated, connections, lease, sharedMemory, aeron, tls, ucx);
    }

    /// With `auto` come to what it means for this server: the usual port of loopback, if all its clients are of
    /// this machine, find it by a port that is set, and see the same anyway; nowhere otherwise.
    ///
    /// @param free whether a port of loopback can be had
    TransportConfig withAutoResolved(AccessConfig access, IntPredicate free) {
        if (!listen.equals(AUTO)) {
            return this;
        }
        boolean ownMachine = access.isLoopbackOnly()
                && access.listeners().stream().allMatch(each -> each.port() != 0 && each.port() != DEFAULT_PORT);
        boolean usual = ownMachine && isUnauthenticated(access.tenants()) && free.test(DEFAULT_PORT);
        return listeningAt(usual ? "127.0.0.1:" + DEFAULT_PORT : "");
    }

    /// Returns whether there is only one tenant, and it has no password.
    private static boolean isUnauthenticated(List<TenantConfig> tenants) {
        return tenants.size() == 1 && !tenants.getFirst().hasPassword();
    }

    static TransportConfig read(Settings from, TransportConfig defaultValue) {
        String listen = from.text("transport.listen", defaultValue.listen);
        String secretFile = from.textOrNull("transport.secret_file");
        boolean withoutAuth = from.flag("transport.without_auth", defaultValue.allowUnauthenticated);
        int connections = from.integer("transport.connections", defaultValue.connections, 1, MAX_CONNECTIONS);
        Duration lease = from.duration("transport.lease", defaultValue.lease, LEASE_RANGE);
        String sharedMemory = from.text("transport.shared_memory", defaultValue.sharedMemory);
        String aeron = from.text("transport.aeron", defaultValue.aeron.address());
        TlsConfig tls = TlsConfig.read(from, "transport.tls");
        String ucx = from.text("transport.ucx", defaultValue.ucx.text());
        return from.getValid(
                defaultValue,
                () -> new TransportConfig(
                        listen.equals(OFF) ? "" : listen,
                        secretFile,
                        withoutAuth,
                        connections,
                        lease,
                        sharedMemory,
                        new AeronConfig(aeron),
                        tls,
                        new UcxConfig(ucx)));
    }

    /// Returns whether it listens over TCP.
    public boolean isTcpEnabled() {
        return isAddress(listen);
    }

    /// Returns whether other JVMs can use the store, over TCP or Aeron.
    public boolean isServing() {
        return isTcpEnabled() || aeron.isEnabled();
    }

    /// The port that the settings name, or 0.
    public int port() {
        return isTcpEnabled() ? socketAddress().getPort() : 0;
    }

    /// Returns whether clients must prove that they know a secret.
    public boolean requiresSecret(List<TenantConfig> tenants) {
        return secretFile != null || tenants.stream().anyMatch(each -> each.secretFile() != null);
    }

    /// Returns whether it listens over TCP for this machine only.
    public boolean isLoopbackOnly() {
        return isTcpEnabled() && socketAddress().getAddress().isLoopbackAddress();
    }

    /// Returns whether no other machine can use the store by it.
    boolean isUnreachable() {
        return (!isTcpEnabled() || isLoopbackOnly()) && aeron.isUnreachable();
    }

    /// Returns the resolved address at which it listens.
    public InetSocketAddress socketAddress() {
        return parseAddress(listen);
    }

    /// Returns whether the settings name the shared-memory directory, so that failing to create it is an error.
    public boolean isSharedMemoryExplicit() {
        return !sharedMemory.equals(AUTO) && !sharedMemory.equals(OFF);
    }

    /// The folder for files that clients on this host map, or null when there are to be none.
    ///
    /// A client that maps them reads the values of all tenants. By default a server shares memory only if there is
    /// one tenant without a password, and a port names the folder, so that the next server finds it again.
    public @Nullable Path sharedMemoryDirectory(List<TenantConfig> tenants) {
        if (isSharedMemoryExplicit()) {
            return SHM_DIRECTORY.resolve(sharedMemory);
        }
        boolean shares = sharedMemory.equals(AUTO)
                && port() != 0
                && isUnauthenticated(tenants)
                && socketAddress().getAddress().isLoopbackAddress()
                && Files.isDirectory(SHM_DIRECTORY);
        String user = System.getProperty("user.name").replaceAll("[^A-Za-z0-9_.-]", "_");
        return shares ? SHM_DIRECTORY.resolve("kvcache-" + user + "-" + port()) : null;
    }

    /// Looks at it together with the tenants.
    ///
    /// @throws IllegalArgumentException when they do not go together
    void validate(List<TenantConfig> tenants) {
        String obstacle = isSharedMemoryExplicit() ? sharedMemoryObstacle(tenants) : "";
        if (!obstacle.isEmpty()) {
            throw new IllegalArgumentException("transport.shared_memory is " + sharedMemory + obstacle);
        }
        for (TenantConfig tenant : tenants) {
            if (tenant.secretFile() != null && (!isServing() || secretFile != null)) {
                throw new IllegalArgumentException(tenant.path() + ".secret_file is " + tenant.secretFile()
                        + (isServing()
                                ? ", and transport.secret_file is " + secretFile + "; it takes one of them"
                                : "; it takes transport.listen beside it"));
            }
        }
        boolean unguarded = !allowUnauthenticated && !requiresSecret(tenants);
        aeron.validate(port(), unguarded);
        ucx.validate(isTcpEnabled(), sharedMemoryDirectory(tenants) != null);
        if (isTcpEnabled() && unguarded && !socketAddress().getAddress().isLoopbackAddress()) {
            throw new IllegalArgumentException("transport.listen is " + listen + UNGUARDED);
        }
    }

    /// Why memory cannot be shared, or nothing.
    private String sharedMemoryObstacle(List<TenantConfig> tenants) {
        if (!isTcpEnabled()) {
            return "; it takes transport.listen beside it";
        }
        return tenants.size() == 1
                ? ""
                : " and there are " + tenants.size()
                        + " tenants; a client that maps it reads the values of all tenants, so it takes a server without tenants";
    }

    private static InetSocketAddress parseAddress(String listen) {
        Matcher form = ADDRESS.matcher(listen);
        if (!form.matches() || Integer.parseInt(form.group(2)) > MAX_PORT) {
            throw new IllegalArgumentException("transport.listen is " + listen
                    + "; it takes auto, off, or HOST:PORT, the port from 0 to 65535, as in 127.0.0.1:7420");
        }
        try {
            return new InetSocketAddress(InetAddress.getByName(form.group(1)), Integer.parseInt(form.group(2)));
        } catch (UnknownHostException unknown) {
            throw new IllegalArgumentException(
                    "transport.listen is " + listen + ", whose host is not known; it takes an address of this machine",
                    unknown);
        }
    }

    /// The address at which other JVMs use the store over Aeron. Loads nothing of Aeron.
    ///
    /// @param address `aeron:ipc` or `aeron:udp?endpoint=HOST:PORT`, with more after `?` and `|`; empty for nowhere
    public record AeronConfig(String address) {

        private static final String SETTING = "transport.aeron";

        public AeronConfig {
            if (!address.isEmpty()) {
                parse(address, null);
            }
        }

        /// Nowhere.
        public static AeronConfig disabled() {
            return new AeronConfig("");
        }

        /// Returns whether there is an endpoint.
        public boolean isEnabled() {
            return !address.isEmpty();
        }

        /// The address with the folder of its driver. Unless it names one, that is one of this user and this
        /// port, so that a user's servers have one each.
        ///
        /// @param port where the server listens, or 0
        public AeronAddress addressFor(int port) {
            return parse(address, AeronAddress.defaultDirectory("-" + port));
        }

        private static AeronAddress parse(String address, @Nullable Path usual) {
            try {
                return AeronAddress.parse(address, usual);
            } catch (IllegalArgumentException wrong) {
                throw new IllegalArgumentException(SETTING + " is " + address + ": " + wrong.getMessage(), wrong);
            }
        }

        /// Looks at it together with where the server listens and whether clients must authenticate.
        ///
        /// @param port where the server listens, or 0
        /// @param open whether clients need no secret, and `without_auth` is not set
        /// @throws IllegalArgumentException when they do not go together
        void validate(int port, boolean open) {
            if (!isEnabled()) {
                return;
            }
            AeronAddress parsed = parse(address, null);
            if (parsed.isIpc() && parsed.folder() == null && parsed.driver() == null && port == 0) {
                throw new IllegalArgumentException(SETTING + " is " + address
                        + "; it takes transport.listen with a port beside it, or dir=FOLDER, so that clients find it");
            }
            if (!parsed.isIpc() && open && !isLocal(parsed)) {
                throw new IllegalArgumentException(SETTING + " is " + address + UNGUARDED);
            }
        }

        boolean isUnreachable() {
            return !isEnabled() || parse(address, null).isIpc() || isLocal(parse(address, null));
        }

        private static boolean isLocal(AeronAddress udp) {
            if (udp.socketAddress().isUnresolved()) {
                throw new IllegalArgumentException(SETTING + " is " + udp.text()
                        + ", whose host is not known; it takes an address of this machine");
            }
            return udp.socketAddress().getAddress().isLoopbackAddress();
        }
    }

    /// The switch for one-sided reads of the store over UCX. Loads nothing of UCX.
    ///
    /// @param text `off`, `on` for all transports that UCX has, or their names, as in `tcp` or `rc,tcp`
    public record UcxConfig(String text) {

        private static final String OFF = "off";
        private static final String ON = "on";
        private static final Pattern NAMES = Pattern.compile("[a-z0-9_]{1,40}(,[a-z0-9_]{1,40}){0,19}");

        public UcxConfig {
            if (!NAMES.matcher(text).matches()) {
                throw new IllegalArgumentException("transport.ucx is '" + text
                        + "'; it takes off, on, or the names of 1 to 20 transports as UCX has them, as in rc,tcp");
            }
        }

        public static UcxConfig disabled() {
            return new UcxConfig(OFF);
        }

        /// Returns whether UCX is opened where it is installed.
        public boolean isEnabled() {
            return !text.equals(OFF);
        }

        /// As UCX takes them; empty for all.
        public String transports() {
            return text.equals(ON) ? "" : text;
        }

        /// Looks at it together with what else is served.
        ///
        /// @param listens whether there is an endpoint over TCP, where clients learn of it
        /// @param shares whether memory is shared, which is what they read
        /// @throws IllegalArgumentException when they do not go together
        void validate(boolean listens, boolean shares) {
            if (isEnabled() && !listens) {
                throw new IllegalArgumentException(
                        "transport.ucx is " + text + "; it takes transport.listen beside it");
            }
            if (isEnabled() && !shares) {
                throw new IllegalArgumentException(
                        "transport.ucx is " + text
                                + ", and no memory is shared with clients; it takes transport.shared_memory with a name beside it");
            }
        }
    }
}
