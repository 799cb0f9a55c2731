package io.kvcache.server.config;

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

/// Where other JVMs use the store itself, by the protocol of PROTOCOL.md.
///
/// Clients prove that they know a secret without saying it, for which the server has to know it too: so
/// secrets are kept in files, and hashes of them do not do.
///
/// @param listen `HOST:PORT`, port 0 for any; empty for nowhere, as `auto` is until [#settled]
/// @param secretFile a file with secrets, one a line, each of which is good for everybody; null for none
/// @param withoutAuth whether others than this machine may connect although they do not have to show a
///     secret
/// @param connections at a time
/// @param lease how long a client that is not heard of keeps what it holds, at most
/// @param sharedMemory name of a folder below `/dev/shm` for files that clients of this user on this host
///     map read-only; `auto` to choose one where nobody has anything to hide and there is room, `off` for
///     none
/// @param aeron where the same is served over Aeron
/// @param tls what it proves its name with over TCP; null for no TLS
/// @param ucx whether clients read the store one-sided where UCX is installed
public record TransportConfig(
        String listen,
        @Nullable String secretFile,
        boolean withoutAuth,
        int connections,
        Duration lease,
        String sharedMemory,
        AeronConfig aeron,
        @Nullable TlsConfig tls,
        UcxConfig ucx) {

    /// Where a server for this machine alone listens when nothing is said.
    static final int USUAL_PORT = 7420;

    private static final String AUTO = "auto";
    private static final String OFF = "off";
    static final Path MEMORY = Path.of("/dev/shm");
    private static final Pattern NAME = Pattern.compile("[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}");

    private static final Pattern PLACE = Pattern.compile("(\\[[^\\[\\]]+]|[^:\\[\\]]+):(\\d{1,5})");
    private static final int MOST_PORT = 65_535;
    private static final int MOST_CONNECTIONS = 1 << 16;
    private static final Duration SHORTEST_LEASE = Duration.ofMillis(100);
    private static final Duration LONGEST_LEASE = Duration.ofMinutes(10);

    public TransportConfig {
        if (!isFolder(sharedMemory)) {
            throw new IllegalArgumentException("transport.shared_memory is '" + sharedMemory
                    + "'; it takes auto, off, or 1 to 100 letters, digits, dots, dashes and underscores");
        }
        if (isPlace(listen)) {
            place(listen);
        } else if (secretFile != null && !aeron.on()) {
            throw new IllegalArgumentException(
                    "transport.secret_file is " + secretFile + "; it takes transport.listen beside it");
        }
        if (tls != null && !isPlace(listen)) {
            throw new IllegalArgumentException("transport.tls is set; it takes transport.listen beside it");
        }
        if (connections < 1 || connections > MOST_CONNECTIONS) {
            throw new IllegalArgumentException(
                    "transport.connections is " + connections + "; it takes 1 to " + MOST_CONNECTIONS);
        }
        if (lease.compareTo(SHORTEST_LEASE) < 0 || lease.compareTo(LONGEST_LEASE) > 0) {
            throw new IllegalArgumentException("transport.lease is " + lease.toMillis() + "ms; it takes "
                    + SHORTEST_LEASE.toMillis() + "ms to " + LONGEST_LEASE.toSeconds() + "s");
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
        this(listen, secretFile, withoutAuth, connections, lease, sharedMemory, aeron, null, UcxConfig.off());
    }

    private static boolean isPlace(String listen) {
        return !listen.isEmpty() && !listen.equals(AUTO);
    }

    /// Whether a text can be the name of a folder below `/dev/shm`.
    static boolean isFolder(String text) {
        return NAME.matcher(text).matches();
    }

    /// Where the server decides; where it is on, what an endpoint does by itself.
    public static TransportConfig defaults() {
        return new TransportConfig(AUTO, null, false, 256, Duration.ofSeconds(30), AUTO, AeronConfig.off());
    }

    /// At a place, with nothing else set.
    public static TransportConfig at(String listen) {
        return defaults().listeningAt(listen);
    }

    private TransportConfig listeningAt(String place) {
        return new TransportConfig(place, secretFile, withoutAuth, connections, lease, sharedMemory, aeron, tls, ucx);
    }

    /// With `auto` come to what it means for this server: the usual port of loopback, if all its clients are of this
    /// machine, find it by a port that is set, and see the same anyway; nowhere otherwise.
    ///
    /// @param free whether a port of loopback can be had
    TransportConfig settled(AccessConfig access, IntPredicate free) {
        if (!listen.equals(AUTO)) {
            return this;
        }
        boolean ownMachine = access.listeners().stream()
                .allMatch(each -> each.port() != 0
                        && each.port() != USUAL_PORT
                        && each.socketAddress().getAddress().isLoopbackAddress());
        boolean usual = ownMachine && isOpen(access.tenants()) && free.test(USUAL_PORT);
        return listeningAt(usual ? "127.0.0.1:" + USUAL_PORT : "");
    }

    /// Whether there is one tenant, and it has no password.
    private static boolean isOpen(List<TenantConfig> tenants) {
        return tenants.size() == 1 && !tenants.getFirst().hasPassword();
    }

    static TransportConfig read(Settings from, TransportConfig otherwise) {
        String listen = from.get("transport.listen", otherwise.listen, String::strip);
        String secretFile = from.get("transport.secret_file", "", String::strip);
        boolean withoutAuth = from.get("transport.without_auth", otherwise.withoutAuth, Values::truth);
        int connections = from.get("transport.connections", otherwise.connections, Values.integer(1, MOST_CONNECTIONS));
        Duration lease = from.get("transport.lease", otherwise.lease, Values::duration);
        String sharedMemory = from.get("transport.shared_memory", otherwise.sharedMemory, String::strip);
        String aeron = from.get("transport.aeron", otherwise.aeron.address(), String::strip);
        TlsConfig tls = TlsConfig.read(from, "transport.tls");
        String ucx = from.get("transport.ucx", otherwise.ucx.text(), String::strip);
        return from.checked(
                otherwise,
                () -> new TransportConfig(
                        listen.equals(OFF) ? "" : listen,
                        secretFile.isEmpty() ? null : secretFile,
                        withoutAuth,
                        connections,
                        lease,
                        sharedMemory,
                        new AeronConfig(aeron),
                        tls,
                        new UcxConfig(ucx)));
    }

    /// Whether it listens, which is over TCP.
    public boolean on() {
        return isPlace(listen);
    }

    /// Whether other JVMs use the store, by whatever way.
    public boolean serves() {
        return on() || aeron.on();
    }

    /// The port that the settings name, or 0.
    public int port() {
        return on() ? socketAddress().getPort() : 0;
    }

    /// Whether clients have to show a secret.
    public boolean guarded(List<TenantConfig> tenants) {
        return secretFile != null || tenants.stream().anyMatch(each -> each.secretFile() != null);
    }

    /// Whether nobody but this machine reaches it over TCP.
    public boolean forThisMachine() {
        return on() && socketAddress().getAddress().isLoopbackAddress();
    }

    /// Where it listens, looked up.
    public InetSocketAddress socketAddress() {
        return place(listen);
    }

    /// Whether a folder for shared memory was asked for by name, so that it must be had.
    public boolean sharesByName() {
        return !sharedMemory.equals(AUTO) && !sharedMemory.equals(OFF);
    }

    /// The folder for files that clients on this host map, or null when there are to be none.
    ///
    /// Whoever maps them sees the values of all. By itself a server shares only what each of its clients
    /// may see anyway: there is one tenant, and it has no password. And there is no other use of shared
    /// memory, and a port by which the next server knows the folder again.
    public @Nullable Path sharedFolder(List<TenantConfig> tenants, LeaseConfig leases) {
        if (sharesByName()) {
            return MEMORY.resolve(sharedMemory);
        }
        boolean shares = sharedMemory.equals(AUTO)
                && port() != 0
                && isOpen(tenants)
                && !leases.on()
                && socketAddress().getAddress().isLoopbackAddress()
                && Files.isDirectory(MEMORY);
        String user = System.getProperty("user.name").replaceAll("[^A-Za-z0-9_.-]", "_");
        return shares ? MEMORY.resolve("kvcache-" + user + "-" + port()) : null;
    }

    /// Looks at it together with the tenants and leases.
    ///
    /// @throws IllegalArgumentException when they do not go together
    void check(List<TenantConfig> tenants, LeaseConfig leases) {
        String obstacle = sharesByName() ? obstacle(tenants, leases) : "";
        if (!obstacle.isEmpty()) {
            throw new IllegalArgumentException("transport.shared_memory is " + sharedMemory + obstacle);
        }
        for (TenantConfig tenant : tenants) {
            if (tenant.secretFile() != null && (!serves() || secretFile != null)) {
                throw new IllegalArgumentException(tenant.path() + ".secret_file is " + tenant.secretFile()
                        + (serves()
                                ? ", and transport.secret_file is " + secretFile + "; it takes one of them"
                                : "; it takes transport.listen beside it"));
            }
        }
        boolean anybody = !withoutAuth && !guarded(tenants);
        aeron.check(port(), anybody);
        ucx.check(on(), sharedFolder(tenants, leases) != null);
        if (on() && anybody && !socketAddress().getAddress().isLoopbackAddress()) {
            throw new IllegalArgumentException("transport.listen is " + listen + ", which others can reach, and nobody"
                    + " has to show a secret; it takes a loopback address, transport.secret_file, a secret_file at"
                    + " each tenant, or transport.without_auth: true");
        }
    }

    /// Why memory cannot be shared, or nothing.
    private String obstacle(List<TenantConfig> tenants, LeaseConfig leases) {
        if (!on()) {
            return "; it takes transport.listen beside it";
        }
        if (leases.on()) {
            return ", and lease.shared_memory is " + leases.sharedMemory() + "; it takes one of them";
        }
        return tenants.size() == 1
                ? ""
                : " and there are " + tenants.size()
                        + " tenants; who maps it sees the values of all, so it takes a server without tenants";
    }

    private static InetSocketAddress place(String listen) {
        Matcher form = PLACE.matcher(listen);
        if (!form.matches() || Integer.parseInt(form.group(2)) > MOST_PORT) {
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
}
