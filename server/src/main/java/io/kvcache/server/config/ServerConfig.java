package io.kvcache.server.config;

import io.kvcache.server.log.LogLineFormatter.LogFormat;
import io.kvcache.server.log.LogLineFormatter.LogLevel;
import io.kvcache.server.net.NetLimits;
import io.kvcache.server.net.NettyTransport.TransportKind;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.function.IntPredicate;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/// All that can be set of a server.
///
/// @param cluster that it joins; null for none
public record ServerConfig(
        AccessConfig access,
        MemoryConfig memory,
        NetworkConfig network,
        NetLimits limits,
        ExistsPinConfig existsPin,
        DiskTierConfig disks,
        EventsConfig events,
        TraceConfig trace,
        TransportConfig transport,
        RequestLimits requestLimits,
        LogConfig log,
        ShutdownConfig shutdown,
        @Nullable ClusterConfig cluster) {

    /// A store has 255 queues; each tenant takes two of them for each of three sizes of slots.
    private static final int MAX_TENANTS_WITH_TWO_QUEUES = 32;

    private static final Pattern TCP_ENDPOINT = Pattern.compile("tcp://(\\S+):([1-9]\\d{0,4})");

    public ServerConfig {
        if (memory.policy().queueCount() > 1 && access.tenants().size() > MAX_TENANTS_WITH_TWO_QUEUES) {
            String policy = memory.policy().commandName();
            throw new IllegalArgumentException("memory.policy is " + policy + " and there are "
                    + access.tenants().size() + " tenants; with " + policy + " there may be "
                    + MAX_TENANTS_WITH_TWO_QUEUES);
        }
        transport.validate(access.tenants());
        requireDistinctPorts(access, transport, events);
        ListenerConfig redisCluster = access.redisClusterListener();
        if (cluster != null) {
            cluster.validate(access, transport);
        } else if (redisCluster != null) {
            throw new IllegalArgumentException(
                    redisCluster.path() + ".protocols has resp-cluster, and this server is in"
                            + " no cluster; it takes cluster.name and cluster.listen beside it, or resp");
        }
        access.domains().forEach(each -> each.validate(transport));
        List<String> tenants = access.tenants().stream().map(TenantConfig::name).toList();
        if (!tenants.contains(events.tenant())) {
            throw new IllegalArgumentException(
                    "events.tenant is " + events.tenant() + "; there are " + String.join(", ", tenants));
        }
    }

    /// Returns whether only clients of this host reach the store.
    public boolean isLoopbackOnly() {
        return access.isLoopbackOnly() && transport.isUnreachable() && cluster == null;
    }

    private static void requireDistinctPorts(AccessConfig access, TransportConfig transport, EventsConfig events) {
        if (transport.isTcpEnabled() && transport.port() != 0) {
            requireDistinctPort(access, "transport.listen", transport.listen(), transport.socketAddress());
        }
        requireDistinctPort(access, "events.publish", events.publish());
        requireDistinctPort(access, "events.replay", events.replay());
        if (TCP_ENDPOINT.matcher(events.publish()).matches() && events.publish().equals(events.replay())) {
            throw new IllegalArgumentException("events.replay is " + events.replay()
                    + ", as events.publish is; each takes an endpoint of its own");
        }
    }

    private static void requireDistinctPort(AccessConfig access, String setting, String endpoint) {
        Matcher tcp = TCP_ENDPOINT.matcher(endpoint);
        if (tcp.matches()) {
            String host = tcp.group(1).equals("*") ? "0.0.0.0" : tcp.group(1);
            InetSocketAddress address = new InetSocketAddress(host, Integer.parseInt(tcp.group(2)));
            if (!address.isUnresolved()) {
                requireDistinctPort(access, setting, endpoint, address);
            }
        }
    }

    private static void requireDistinctPort(
            AccessConfig access, String setting, String value, InetSocketAddress address) {
        ListenerConfig taken = access.listenerAt(address);
        if (taken != null) {
            throw new IllegalArgumentException(setting + " is " + value + ", and " + taken.path() + ".port is "
                    + taken.port() + " at " + taken.address() + "; each takes a port of its own");
        }
    }

    /// As a server on this machine runs it: what is `auto` is decided.
    ///
    /// @param free whether a port of loopback can be had
    public ServerConfig withAutoResolved(IntPredicate free) {
        IntPredicate open =
                port -> access.listenerAt(new InetSocketAddress(InetAddress.getLoopbackAddress(), port)) == null;
        TransportConfig settled = transport.withAutoResolved(access, open.and(free));
        return new ServerConfig(
                access,
                memory,
                network,
                limits,
                existsPin,
                disks,
                events,
                trace,
                settled,
                requestLimits,
                log,
                shutdown,
                cluster);
    }

    /// Returns the configuration of a server without any settings.
    public static ServerConfig defaults(HostResources hostResources) {
        return new ServerConfig(
                AccessConfig.defaults(),
                MemoryConfig.defaults(hostResources.memoryBytes()),
                NetworkConfig.defaults(hostResources.cores()),
                NetLimits.defaults(),
                ExistsPinConfig.defaults(),
                DiskTierConfig.defaults(),
                EventsConfig.defaults(),
                TraceConfig.defaults(),
                TransportConfig.defaults(),
                RequestLimits.defaults(
                        MemoryConfig.defaults(hostResources.memoryBytes()).hostBytes()),
                LogConfig.defaults(),
                ShutdownConfig.defaults(),
                null);
    }

    /// The trace of all uses of keys and blocks.
    ///
    /// @param file beside which the one of the run before is kept; null for nowhere
    /// @param bytes that it may have at most
    public record TraceConfig(@Nullable Path file, long bytes) {

        private static final long MIN_BYTES = 4096;

        public TraceConfig {
            if (bytes < MIN_BYTES) {
                throw new IllegalArgumentException("trace.bytes is " + bytes + "; it takes " + MIN_BYTES + " and up");
            }
        }

        /// Nowhere; where it is on, a gibibyte.
        public static TraceConfig defaults() {
            return new TraceConfig(null, 1L << 30);
        }

        static TraceConfig read(Settings from, TraceConfig usual) {
            String out = from.get("trace.out", "", text -> text);
            long bytes = from.bytes("trace.bytes", usual.bytes);
            return from.getValid(usual, () -> new TraceConfig(out.isEmpty() ? null : file(out), bytes));
        }

        private static Path file(String out) {
            try {
                return Path.of(out);
            } catch (InvalidPathException not) {
                throw new IllegalArgumentException(
                        "trace.out is '" + out + "'; it takes the name of a file: " + not.getMessage(), not);
            }
        }
    }

    /// How a server shuts down.
    ///
    /// @param delay how long the server reports not ready and still serves, so that load balancers send clients
    ///     elsewhere
    /// @param drain how long it waits after that for requests that have begun and for the disks, together
    public record ShutdownConfig(Duration delay, Duration drain) {

        private static final Duration MAX_DURATION = Duration.ofMinutes(10);

        public ShutdownConfig {
            validate("shutdown.delay", delay);
            validate("shutdown.drain", drain);
        }

        private static void validate(String setting, Duration value) {
            if (value.isNegative() || value.compareTo(MAX_DURATION) > 0) {
                throw new IllegalArgumentException(setting + " is " + value.toSeconds() + "s; it takes 0s to 600s");
            }
        }

        /// No delay, and what systemd and Kubernetes leave of their 30 seconds.
        public static ShutdownConfig defaults() {
            return new ShutdownConfig(Duration.ZERO, Duration.ofSeconds(25));
        }

        static ShutdownConfig read(Settings from, ShutdownConfig usual) {
            return from.getValid(
                    usual,
                    () -> new ShutdownConfig(
                            from.duration("shutdown.delay", usual.delay),
                            from.duration("shutdown.drain", usual.drain)));
        }
    }

    /// The log's level and format.
    ///
    /// @param level the least important events that are written
    /// @param slow requests that take longer are logged; zero for none
    public record LogConfig(LogFormat format, LogLevel level, Duration slow) {

        private static final Duration MAX_SLOW_THRESHOLD = Duration.ofHours(1);

        public LogConfig {
            if (slow.isNegative() || slow.compareTo(MAX_SLOW_THRESHOLD) > 0) {
                throw new IllegalArgumentException(
                        "log.slow is " + slow.toSeconds() + "s; it takes 0 for no log of slow requests, or 1ms to 1h");
            }
        }

        /// Lines of keys and values, from `info` on; slow requests are not logged.
        public static LogConfig defaults() {
            return new LogConfig(LogFormat.KEY_VALUE, LogLevel.INFO, Duration.ZERO);
        }

        static LogConfig read(Settings from, LogConfig usual) {
            LogFormat format = from.constant("log.format", usual.format);
            LogLevel level = from.constant("log.level", usual.level);
            Duration slow = from.duration("log.slow", usual.slow);
            return from.getValid(new LogConfig(format, level, Duration.ZERO), () -> new LogConfig(format, level, slow));
        }
    }

    /// How long a positive answer to EXISTS protects the value from eviction.
    ///
    /// @param duration zero for not at all
    /// @param percent of host memory that may be protected so at one time, all tenants together; zero for none
    public record ExistsPinConfig(Duration duration, int percent) {

        private static final Duration MAX_DURATION = Duration.ofMinutes(1);

        public ExistsPinConfig {
            if (duration.isNegative() || duration.compareTo(MAX_DURATION) > 0) {
                throw new IllegalArgumentException(
                        "promise.time is " + duration.toMillis() + "ms; it takes 0ms to 60s");
            }
            if (percent < 0 || percent > 90) {
                throw new IllegalArgumentException("promise.percent is " + percent + "; it takes 0 to 90");
            }
        }

        /// Two seconds, and half: a client may have asked for so much that it has not fetched yet, and
        /// what is not asked for is evicted first in any case.
        public static ExistsPinConfig defaults() {
            return new ExistsPinConfig(Duration.ofSeconds(2), 50);
        }

        static ExistsPinConfig read(Settings from, ExistsPinConfig usual) {
            return from.getValid(
                    usual,
                    () -> new ExistsPinConfig(
                            from.duration("promise.time", usual.duration),
                            from.integer("promise.percent", usual.percent, 0, 90)));
        }
    }

    /// How sockets are driven.
    ///
    /// @param transport epoll, io_uring or NIO
    /// @param loops threads that serve connections
    public record NetworkConfig(TransportKind transport, int loops) {

        static final int MAX_LOOPS = 1024;

        public NetworkConfig {
            if (loops < 1 || loops > MAX_LOOPS) {
                throw new IllegalArgumentException("network.loops is " + loops + "; it takes 1 to " + MAX_LOOPS);
            }
        }

        /// One loop a core.
        public static NetworkConfig defaults(int cores) {
            return new NetworkConfig(TransportKind.AUTO, cores);
        }

        static NetworkConfig read(Settings from, NetworkConfig usual) {
            return from.getValid(
                    usual,
                    () -> new NetworkConfig(
                            from.constant("network.transport", usual.transport),
                            from.integer("network.loops", usual.loops, 1, MAX_LOOPS)));
        }
    }
}
