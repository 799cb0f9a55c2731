package io.kvcache.server.config;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.UnknownHostException;
import java.util.EnumSet;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/// A place where clients connect.
///
/// @param path of its settings: `listen`, or `listeners.0`
/// @param name by which the configuration speaks of it
/// @param address name or number of one of the machine's addresses
/// @param port 0 lets the system choose
/// @param protocols what is spoken there, never [ListenProtocol#AUTO]
/// @param auth who may come in there
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

    public ListenerConfig {
        if (port < 0 || port > 65_535) {
            throw new IllegalArgumentException(path + ".port is " + port + "; it takes 0 to 65535");
        }
        protocols = Set.copyOf(protocols);
        if (protocols.stream().filter(ListenProtocol::isLm).count() > 1) {
            throw new IllegalArgumentException(path + ".protocols has several layouts of lm; it takes one of them,"
                    + " or lm, which tells them apart");
        }
        if (speaksLm(protocols) && auth.auth()) {
            throw new IllegalArgumentException(path + ".auth is true and lm is spoken there, by which nobody can say"
                    + " who he is; lm takes a listener of its own");
        }
        if (!auth.auth() && !resolve(path, address).isLoopbackAddress()) {
            requireConsent(path, name, address, auth, speaksLm(protocols));
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
                    + ", which others can reach, and nobody has to say who he is; it takes a loopback address, "
                    + path + ".auth: true, or "
                    + (path.equals(SHORT_FORM)
                            ? "listen.without_auth: true"
                            : "allow_unauthenticated: [" + name + "]"));
        }
        if (lm && (entry.tenant() == null || entry.cidrs().isEmpty())) {
            throw new IllegalArgumentException(
                    path + ".protocols has lm, by which nobody can say who he is, and " + "others can reach " + address
                            + "; it takes " + path + ".tenant and " + path + ".cidrs beside it");
        }
    }

    /// This machine only, all protocols.
    public static ListenerConfig defaults() {
        return onLoopback(DEFAULT_PORT);
    }

    /// This machine only, all protocols, nobody asked who he is.
    public static ListenerConfig onLoopback(int port) {
        return new ListenerConfig(
                SHORT_FORM, SHORT_FORM, "127.0.0.1", port, allProtocols(), ListenerAuthConfig.UNRESTRICTED);
    }

    static Set<ListenProtocol> allProtocols() {
        return EnumSet.of(ListenProtocol.RESP, ListenProtocol.LM, ListenProtocol.HTTP, ListenProtocol.PAGES);
    }

    private static boolean speaksLm(Set<ListenProtocol> protocols) {
        return protocols.stream().anyMatch(ListenProtocol::isLm);
    }

    /// The `lm://` that is spoken here, or null.
    public @Nullable ListenProtocol lmProtocol() {
        return protocols.stream().filter(ListenProtocol::isLm).findFirst().orElse(null);
    }

    /// The address, looked up.
    public InetSocketAddress socketAddress() {
        return new InetSocketAddress(resolve(path, address), port);
    }

    /// Whether something else cannot listen at an address because this does: they have one port, and one address or all
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
}
