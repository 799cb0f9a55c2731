package io.kvcache.server.config;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.UnknownHostException;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/// A place where clients connect.
///
/// @param path of its settings: `listen`, or `listeners.0`
/// @param name by which the configuration speaks of it
/// @param address name or number of one of the machine's addresses
/// @param port 0 lets the system choose
/// @param protocols what is spoken there, never [ListenProtocol#AUTO]
/// @param auth which clients are accepted there
/// @param tls what it proves its name with; null for no TLS
public record ListenerConfig(
        String path,
        String name,
        String address,
        int port,
        Set<ListenProtocol> protocols,
        ListenerAuthConfig auth,
        @Nullable TlsConfig tls) {

    /// Not 6379, so that it starts beside a Redis.
    public static final int DEFAULT_PORT = 7379;

    static final String SHORT_FORM = "listen";

    private static final String CONSENT = "allow_unauthenticated";

    public ListenerConfig {
        if (port < 0 || port > 65_535) {
            throw new IllegalArgumentException(path + ".port is " + port + "; it takes 0 to 65535");
        }
        protocols = Set.copyOf(protocols);
        if (protocols.contains(ListenProtocol.RESP) && protocols.contains(ListenProtocol.RESP_CLUSTER)) {
            throw new IllegalArgumentException(path + ".protocols has resp and resp-cluster, which differ in what they"
                    + " answer; it takes one of them, and the other at a listener of its own");
        }
        if (protocols.contains(ListenProtocol.LM) && auth.auth()) {
            throw new IllegalArgumentException(path + ".auth is true and protocols has lm, which has no"
                    + " authentication; lm takes a listener of its own");
        }
        if (!auth.auth() && !resolve(path, address).isLoopbackAddress()) {
            requireConsent(path, name, address, auth, protocols.contains(ListenProtocol.LM));
        }
    }

    /// Without TLS.
    public ListenerConfig(
            String path,
            String name,
            String address,
            int port,
            Set<ListenProtocol> protocols,
            ListenerAuthConfig entry) {
        this(path, name, address, port, protocols, entry, null);
    }

    private static void requireConsent(String path, String name, String address, ListenerAuthConfig entry, boolean lm) {
        if (!entry.allowUnauthenticated()) {
            throw new IllegalArgumentException(path + ".address is " + address
                    + ", which other machines can reach without authentication; it takes a loopback address, "
                    + path + ".auth: true, or "
                    + (path.equals(SHORT_FORM)
                            ? "listen.without_auth: true"
                            : "allow_unauthenticated: [" + name + "]"));
        }
        if (lm && (entry.tenant() == null || entry.cidrs().isEmpty())) {
            throw new IllegalArgumentException(
                    path + ".protocols has lm, which has no authentication, and other machines can reach " + address
                            + "; it takes " + path + ".tenant and " + path + ".cidrs beside it");
        }
    }

    /// This machine only, all protocols.
    public static ListenerConfig defaults() {
        return onLoopback(DEFAULT_PORT);
    }

    /// This machine only, all protocols, without authentication.
    public static ListenerConfig onLoopback(int port) {
        return new ListenerConfig(
                SHORT_FORM, SHORT_FORM, "127.0.0.1", port, allProtocols(), ListenerAuthConfig.UNRESTRICTED);
    }

    /// The list `listeners`, or `listen`, the short form of one listener.
    static List<ListenerConfig> readAll(Settings from, ListenerConfig usual) {
        int items = from.itemCount("listeners");
        if (items == 0) {
            return List.of(read(from, SHORT_FORM, usual));
        }
        if (from.isAnySet(SHORT_FORM)) {
            from.addProblem("listeners are set, and listen (or --address, --port) beside them; it takes one of them");
            read(from, SHORT_FORM, usual);
        }
        List<ListenerConfig> listeners = new ArrayList<>();
        for (int i = 0; i < items; i++) {
            listeners.add(read(from, "listeners." + i, usual));
        }
        List<String> names = listeners.stream().map(ListenerConfig::name).toList();
        consents(from).stream()
                .filter(each -> !names.contains(each))
                .distinct()
                .forEach(each -> from.addProblem(CONSENT + " has " + each + "; there are " + String.join(", ", names)));
        return listeners;
    }

    private static List<String> consents(Settings from) {
        return from.list(CONSENT, List.of(), String::strip);
    }

    private static ListenerConfig read(Settings from, String path, ListenerConfig usual) {
        String name = path.equals(SHORT_FORM) ? path : from.text(path + ".name", path);
        String address = from.text(path + ".address", usual.address);
        int port = from.integer(path + ".port", usual.port, 0, 65_535);
        ListenerAuthConfig auth = readAuth(from, path, name);
        Set<ListenProtocol> protocols = readProtocols(from, path, auth.auth);
        TlsConfig tls = TlsConfig.read(from, path + ".tls");
        return from.getValid(
                new ListenerConfig(path, name, usual.address, 0, allProtocols(), ListenerAuthConfig.UNRESTRICTED),
                () -> new ListenerConfig(path, name, address, port, protocols, auth, tls));
    }

    private static ListenerAuthConfig readAuth(Settings from, String path, String name) {
        String tenant = from.textOrNull(path + ".tenant");
        boolean auth = from.flag(path + ".auth", false);
        List<String> cidrs = from.list(path + ".cidrs", List.of(), SettingParsers::parseCidr);
        List<String> hosts = from.list(path + ".hosts", List.of(), String::strip);
        boolean only = path.equals(SHORT_FORM);
        boolean consent =
                only ? from.flag(path + ".without_auth", false) : consents(from).contains(name);
        return only && consent && !auth
                ? new ListenerAuthConfig(
                        tenant == null ? TenantConfig.DEFAULT : tenant,
                        false,
                        true,
                        cidrs.isEmpty() ? List.of("0.0.0.0/0", "::/0") : cidrs,
                        hosts.isEmpty() ? List.of("*") : hosts)
                : new ListenerAuthConfig(tenant, auth, consent, cidrs, hosts);
    }

    /// Reads the protocols of a listener. With authentication, two are off by default: lm, which cannot
    /// authenticate, and the pages, which show values of all tenants.
    private static Set<ListenProtocol> readProtocols(Settings from, String path, boolean auth) {
        Set<ListenProtocol> usual = auth ? EnumSet.of(ListenProtocol.RESP, ListenProtocol.HTTP) : allProtocols();
        List<ListenProtocol> asked =
                from.list(path + ".protocols", List.of(), text -> SettingParsers.parseEnum(ListenProtocol.class, text));
        if (path.equals(SHORT_FORM)) {
            ListenProtocol only = from.constant(path + ".protocol", ListenProtocol.AUTO);
            if (only == ListenProtocol.HTTP) {
                return EnumSet.of(only, ListenProtocol.PAGES);
            }
            asked = asked.isEmpty() ? List.of(only) : asked;
        }
        return asked.isEmpty() || asked.contains(ListenProtocol.AUTO) ? usual : EnumSet.copyOf(asked);
    }

    static Set<ListenProtocol> allProtocols() {
        return EnumSet.of(ListenProtocol.RESP, ListenProtocol.LM, ListenProtocol.HTTP, ListenProtocol.PAGES);
    }

    /// Returns whether clients of Redis Cluster connect here.
    public boolean isForRedisCluster() {
        return protocols.contains(ListenProtocol.RESP_CLUSTER);
    }

    /// The address, looked up.
    public InetSocketAddress socketAddress() {
        return new InetSocketAddress(resolve(path, address), port);
    }

    /// Returns whether this listener occupies an address: both use the same port, and the same address or all
    /// addresses.
    boolean conflictsWith(InetSocketAddress other) {
        InetAddress own = resolve(path, address);
        return port != 0
                && port == other.getPort()
                && (own.equals(other.getAddress())
                        || own.isAnyLocalAddress()
                        || other.getAddress().isAnyLocalAddress());
    }

    private static InetAddress resolve(String path, String address) {
        try {
            return InetAddress.getByName(address);
        } catch (UnknownHostException unknown) {
            throw new IllegalArgumentException(
                    path + ".address is " + address + ", which is not known; it takes an address of this machine",
                    unknown);
        }
    }

    /// The clients that a listener accepts.
    ///
    /// @param tenant with `auth`, the only tenant accepted, or null for any; without, the tenant of all clients, or
    ///     null for the default one
    /// @param auth whether clients must authenticate
    /// @param allowUnauthenticated whether other machines may connect without authentication
    /// @param cidrs the networks that clients may be in; empty for all
    /// @param hosts names by which HTTP clients may call a listener without authentication; `*` for any
    public record ListenerAuthConfig(
            @Nullable String tenant,
            boolean auth,
            boolean allowUnauthenticated,
            List<String> cidrs,
            List<String> hosts) {

        /// Every client is the default tenant.
        public static final ListenerAuthConfig UNRESTRICTED =
                new ListenerAuthConfig(null, false, false, List.of(), List.of());

        public ListenerAuthConfig {
            cidrs = List.copyOf(cidrs);
            hosts = List.copyOf(hosts);
        }
    }

    /// A protocol that a listener speaks.
    public enum ListenProtocol {
        /// Everything, told by the first bytes of each connection.
        AUTO,
        /// Redis' protocol.
        RESP,
        /// Redis' protocol as a server of Redis Cluster speaks it, for clients that find the owner of a key themselves.
        RESP_CLUSTER,
        /// LMCache's `lm://` of August 2025 and later, which has no authentication.
        LM,
        /// Objects by HTTP/1.1, and the health pages.
        HTTP,
        /// All pages for operators by HTTP/1.1, health, metrics and statistics; no objects.
        PAGES
    }
}
