package io.kvcache.server.config;

import io.kvcache.server.config.HostResources.HostName;
import io.kvcache.transport.cluster.ReplicaPolicy;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.UnknownHostException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/// The cluster that a server joins. A server without these settings is in none.
///
/// @param name of the cluster. Servers of other names are not let in
/// @param node this server's name, which decides what it keeps; the same over restarts, and different from those of
///     the other servers
/// @param listen an address of this machine, where the other servers reach this one
/// @param seeds some of the servers, this one perhaps among them; empty where `dns` is set, or for the first server
/// @param dns a name with an address for each server, and their common port; or null
/// @param tls how servers prove that they belong to the cluster; null for servers on loopback alone
/// @param failureAfter how long a silent server stays in the view
/// @param weight share of the blocks relative to the other servers, or `auto` for its host memory in GiB
/// @param zone where servers fail together; empty if unknown
/// @param handover how long former owners of blocks are asked, and values are given away, after a change of the view
/// @param replicas which groups of blocks have copies
/// @param advertise where clients reach the transport; null for where it listens
public record ClusterConfig(
        String name,
        String node,
        ClusterAddress listen,
        List<ClusterAddress> seeds,
        @Nullable ClusterAddress dns,
        @Nullable ClusterTlsConfig tls,
        Duration failureAfter,
        String weight,
        String zone,
        Duration handover,
        ReplicaPolicy replicas,
        @Nullable ClusterAddress advertise) {

    static final int DEFAULT_PORT = 7421;

    private static final String SECTION = "cluster";
    private static final String AUTO = "auto";
    private static final Duration DEFAULT_FAILURE_AFTER = Duration.ofSeconds(3);
    private static final Duration MAX_FAILURE_AFTER = Duration.ofMinutes(1);
    private static final String FAILURE_AFTER_RANGE = "1s to 60s";
    private static final Duration MIN_FAILURE_AFTER = Duration.ofSeconds(1);
    private static final Duration DEFAULT_HANDOVER = Duration.ofMinutes(10);
    private static final Duration MAX_HANDOVER = Duration.ofHours(24);

    /// Those of [io.kvcache.transport.cluster.ClusterNode].
    private static final double MIN_WEIGHT = 0.001;

    private static final double MAX_WEIGHT = 1_000_000;
    private static final String WEIGHT_FORM = "it takes auto, or a number, 0.001 to 1000000";
    private static final double GIBIBYTE = 1L << 30;

    private static final Pattern NAME = Pattern.compile("[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}");
    private static final String NAME_FORM = "it takes 1 to 100 letters, digits, dots, dashes and underscores";

    public ClusterConfig {
        seeds = List.copyOf(seeds);
        List<String> problems = new ArrayList<>();
        addNameProblem("cluster.name", name, problems);
        addNameProblem("cluster.node", node, problems);
        if (!zone.isEmpty()) {
            addNameProblem("cluster.zone", zone, problems);
        }
        if (!seeds.isEmpty() && dns != null) {
            problems.add("cluster.dns is " + dns + ", and cluster.seeds are set; it takes one of them");
        }
        if (failureAfter.compareTo(MIN_FAILURE_AFTER) < 0 || failureAfter.compareTo(MAX_FAILURE_AFTER) > 0) {
            problems.add("cluster.failure_after is " + failureAfter.toMillis() + "ms; it takes " + FAILURE_AFTER_RANGE);
        }
        if (handover.isNegative() || handover.compareTo(MAX_HANDOVER) > 0) {
            problems.add("cluster.handover is " + handover.toMinutes() + "m; it takes 0 to 24h");
        }
        addListenProblem(listen, tls, problems);
        if (advertise != null && advertise.isWildcard()) {
            problems.add("cluster.advertise is " + advertise
                    + ", which stands for all addresses; it takes the one at which clients and the other servers reach"
                    + " the transport, as in 10.0.0.5:7420");
        }
        SettingParsers.requireNone(problems);
    }

    private static void addNameProblem(String setting, String name, List<String> problems) {
        if (!NAME.matcher(name).matches()) {
            problems.add(setting + " is '" + name + "'; " + NAME_FORM);
        }
    }

    private static void addListenProblem(ClusterAddress listen, @Nullable ClusterTlsConfig tls, List<String> problems) {
        try {
            InetAddress address = listen.resolve();
            if (address.isAnyLocalAddress()) {
                problems.add("cluster.listen is " + listen
                        + ", which stands for all addresses; it takes the one at which the other servers reach this"
                        + " one, as in 10.0.0.5:" + DEFAULT_PORT);
            } else if (tls == null && !address.isLoopbackAddress()) {
                problems.add("cluster.listen is " + listen
                        + ", which other machines can reach, and cluster.tls is not set; it takes a loopback address,"
                        + " or cluster.tls.certificate, cluster.tls.key and cluster.tls.authority beside it");
            }
        } catch (UnknownHostException unknown) {
            problems.add("cluster.listen is " + listen
                    + ", whose host is not known; it takes an address of this machine, as in 10.0.0.5:"
                    + DEFAULT_PORT);
        }
    }

    /// Returns the settings, or null when none are set. The node's name is the host's unless one is set.
    static @Nullable ClusterConfig read(Settings from) {
        String name = from.text("cluster.name", "");
        String node = from.text("cluster.node", "");
        Optional<ClusterAddress> noPlace = Optional.empty();
        Optional<ClusterAddress> listen = from.get("cluster.listen", noPlace, ClusterConfig::parsePlace);
        List<ClusterAddress> seeds =
                from.list("cluster.seeds", List.of(), text -> ClusterAddress.parse(text, DEFAULT_PORT));
        Optional<ClusterAddress> dns = from.get("cluster.dns", noPlace, ClusterConfig::parsePlace);
        String certificate = from.textOrNull("cluster.tls.certificate");
        String key = from.textOrNull("cluster.tls.key");
        String authority = from.textOrNull("cluster.tls.authority");
        Duration failureAfter = from.duration("cluster.failure_after", DEFAULT_FAILURE_AFTER, FAILURE_AFTER_RANGE);
        String weight = from.get("cluster.weight", AUTO, ClusterConfig::parseWeight);
        String zone = from.text("cluster.zone", "");
        Duration handover = from.duration("cluster.handover", DEFAULT_HANDOVER);
        ReplicaPolicy replicas = from.constant("cluster.replicas", ReplicaPolicy.HEAT);
        Optional<ClusterAddress> advertise =
                from.get("cluster.advertise", noPlace, text -> Optional.of(ClusterAddress.parse(text)));
        if (!from.hasSettings(SECTION) || (from.isSet("cluster.listen") && listen.isEmpty())) {
            return null; // nothing is asked for, or the parser reported it
        }
        Optional<ClusterConfig> none = Optional.empty();
        return from.getValid(none, () -> {
                    requireNamed(name, listen);
                    return Optional.of(new ClusterConfig(
                            name,
                            node.isEmpty() ? HostName.detect() : node,
                            listen.orElseThrow(),
                            seeds,
                            dns.orElse(null),
                            from.hasSettings("cluster.tls") ? ClusterTlsConfig.of(certificate, key, authority) : null,
                            failureAfter,
                            weight,
                            zone,
                            handover,
                            replicas,
                            advertise.orElse(null)));
                })
                .orElse(null);
    }

    private static Optional<ClusterAddress> parsePlace(String text) {
        return Optional.of(ClusterAddress.parse(text, DEFAULT_PORT));
    }

    private static String parseWeight(String text) {
        String stripped = text.strip();
        if (stripped.equals(AUTO)) {
            return AUTO;
        }
        try {
            double weight = Double.parseDouble(stripped);
            if (weight >= MIN_WEIGHT && weight <= MAX_WEIGHT) {
                return stripped;
            }
        } catch (NumberFormatException notOne) {
            throw new IllegalArgumentException(WEIGHT_FORM, notOne);
        }
        throw new IllegalArgumentException(WEIGHT_FORM);
    }

    private static void requireNamed(String name, Optional<ClusterAddress> listen) {
        List<String> problems = new ArrayList<>();
        if (name.isEmpty()) {
            problems.add("cluster.name is not set; it takes the same name at each server, as in prod-kv");
        }
        if (listen.isEmpty()) {
            problems.add("cluster.listen is not set; it takes an address of this machine for the other servers, as in"
                    + " 10.0.0.5:" + DEFAULT_PORT);
        }
        SettingParsers.requireNone(problems);
    }

    /// Looks at it together with where the server listens for others.
    ///
    /// @throws IllegalArgumentException when they do not go together
    void validate(AccessConfig access, TransportConfig transport) {
        if (!transport.isTcpEnabled()) {
            throw new IllegalArgumentException("cluster.listen is " + listen
                    + "; it takes transport.listen with HOST:PORT beside it, where clients and the other servers reach"
                    + " the blocks, as in 10.0.0.5:7420");
        }
        InetSocketAddress place = new InetSocketAddress(listen.host(), listen.port());
        ListenerConfig taken = access.listenerAt(place);
        if (taken != null) {
            throw new IllegalArgumentException("cluster.listen is " + listen + ", and " + taken.path() + ".port is "
                    + taken.port() + " at " + taken.address() + "; each takes a port of its own");
        }
        if (transport.port() == listen.port() && isSameHost(place, transport.socketAddress())) {
            throw new IllegalArgumentException("cluster.listen is " + listen + ", and transport.listen is "
                    + transport.listen() + "; each takes a port of its own");
        }
        if (!place.getAddress().isLoopbackAddress()) {
            requireReachable(transport);
            requireReachable(access.redisClusterListener());
        }
    }

    private static boolean isSameHost(InetSocketAddress one, InetSocketAddress other) {
        return other.getAddress().isAnyLocalAddress() || other.getAddress().equals(one.getAddress());
    }

    private void requireReachable(TransportConfig transport) {
        if (advertise != null && advertise.isLoopback()) {
            throw new IllegalArgumentException("cluster.advertise is " + advertise
                    + ", which other machines cannot reach, and cluster.listen is " + listen
                    + "; it takes an address of this machine that they reach");
        }
        if (advertise == null && transport.isLoopbackOnly()) {
            throw new IllegalArgumentException("transport.listen is " + transport.listen()
                    + ", which other machines cannot reach, and cluster.listen is " + listen
                    + "; it takes an address that they reach, or cluster.advertise");
        }
    }

    private void requireReachable(@Nullable ListenerConfig listener) {
        if (listener != null && listener.socketAddress().getAddress().isLoopbackAddress()) {
            throw new IllegalArgumentException(listener.path() + ".address is " + listener.address()
                    + ", which other machines cannot reach, and cluster.listen is " + listen
                    + "; with resp-cluster it takes an address that they reach, as clients are sent there");
        }
    }

    /// Describes which cluster it is, as which node, and by whom it is found, for people.
    public String describe() {
        return "cluster " + name + " as node " + node + " at " + listen + (tls == null ? ", no TLS, " : ", TLS, ")
                + describeDiscovery();
    }

    private String describeDiscovery() {
        if (dns != null) {
            return "servers of DNS name " + dns;
        }
        return seeds.isEmpty()
                ? "no seeds: alone until another server names it as a seed"
                : "seeds " + seeds.stream().map(ClusterAddress::toString).collect(Collectors.joining(", "));
    }

    /// Share of the blocks relative to the other servers.
    ///
    /// @param hostBytes host memory of this server
    public double weightFor(long hostBytes) {
        return weight.equals(AUTO) ? Math.max(MIN_WEIGHT, hostBytes / GIBIBYTE) : Double.parseDouble(weight);
    }

    /// Where clients reach the blocks, as `RemoteKvCache.connect` takes it. A server that listens at all addresses
    /// is reached by its host's name.
    ///
    /// @param transport where the server listens
    /// @param port that it has, where the setting leaves the choice to the system
    public String transportAddress(TransportConfig transport, int port) {
        ClusterAddress place = advertise;
        if (place == null) {
            InetAddress address = transport.socketAddress().getAddress();
            place = new ClusterAddress(
                    address.isAnyLocalAddress() ? HostName.detect() : address.getHostAddress(), port);
        }
        return (transport.tls() == null ? "" : "tls:") + place;
    }

    /// Where clients of Redis Cluster reach the values: at the host of `advertise` where that is set, unless the
    /// listener is for this machine alone.
    ///
    /// @param listener for these clients; null for none
    /// @param port that it has, where the setting leaves the choice to the system
    /// @return `host:port`; empty without a listener
    public String valueAddress(@Nullable ListenerConfig listener, int port) {
        if (listener == null) {
            return "";
        }
        InetAddress address = listener.socketAddress().getAddress();
        if (advertise != null && !address.isLoopbackAddress()) {
            return new ClusterAddress(advertise.host(), port).toString();
        }
        return new ClusterAddress(address.isAnyLocalAddress() ? HostName.detect() : address.getHostAddress(), port)
                .toString();
    }

    /// Certificates between servers, in PEM files.
    ///
    /// @param certificate with its chain, the server's own first
    /// @param key of the certificate, in PKCS#8
    /// @param authority the certificates that sign those of all servers, and of nothing else
    public record ClusterTlsConfig(String certificate, String key, String authority) {

        private static ClusterTlsConfig of(
                @Nullable String certificate, @Nullable String key, @Nullable String authority) {
            if (certificate == null || key == null || authority == null) {
                throw new IllegalArgumentException("cluster.tls takes certificate, key and authority, a PEM file each");
            }
            return new ClusterTlsConfig(certificate, key, authority);
        }
    }

    /// A host and a port, as the settings of a cluster write them: `kv-0:7421`, `10.0.0.5:7421`, `[fd00::5]:7421`.
    ///
    /// @param host a name, or an IP address without brackets; not looked up
    /// @param port 1 to 65535
    public record ClusterAddress(String host, int port) {

        /// The form that settings with a default port take.
        private static final String WITH_DEFAULT_PORT = "it takes HOST or HOST:PORT, as in kv-0:";

        private static final Pattern FORM =
                Pattern.compile("(?:\\[([0-9A-Fa-f:.]+(?:%\\w+)?)]|([A-Za-z0-9_.-]+))(?::(\\d{1,5}))?");
        private static final int MAX_PORT = 65_535;

        public ClusterAddress {
            if (port < 1 || port > MAX_PORT) {
                throw new IllegalArgumentException("the port is " + port + "; it takes 1 to " + MAX_PORT);
            }
        }

        /// @param defaultPort where the text names none
        /// @throws IllegalArgumentException that says what it takes
        static ClusterAddress parse(String text, int defaultPort) {
            return parse(text, Integer.toString(defaultPort), WITH_DEFAULT_PORT + defaultPort);
        }

        /// @throws IllegalArgumentException that says what it takes, also for a text without a port
        static ClusterAddress parse(String text) {
            return parse(text, "0", "it takes HOST:PORT, as in kv-0:7420");
        }

        private static ClusterAddress parse(String text, String defaultPort, String form) {
            Matcher parts = FORM.matcher(text.strip());
            if (!parts.matches()) {
                throw new IllegalArgumentException(form);
            }
            String port = parts.group(3) == null ? defaultPort : parts.group(3);
            String host = parts.group(1) == null ? parts.group(2) : parts.group(1);
            int number = Integer.parseInt(port);
            if (number < 1 || number > MAX_PORT) {
                throw new IllegalArgumentException(form + ", the port from 1 to " + MAX_PORT);
            }
            return new ClusterAddress(host, number);
        }

        /// Looks the host up.
        ///
        /// @throws UnknownHostException when it is not known
        public InetAddress resolve() throws UnknownHostException {
            return InetAddress.getByName(host);
        }

        /// Returns whether the host is known and is this machine alone.
        public boolean isLoopback() {
            try {
                return resolve().isLoopbackAddress();
            } catch (UnknownHostException unknown) {
                return false;
            }
        }

        /// Returns whether the host is known and stands for all addresses of a machine.
        public boolean isWildcard() {
            try {
                return resolve().isAnyLocalAddress();
            } catch (UnknownHostException unknown) {
                return false;
            }
        }

        /// As it is written: an IPv6 address in brackets.
        @Override
        public String toString() {
            return (host.indexOf(':') < 0 ? host : "[" + host + "]") + ":" + port;
        }
    }
}
