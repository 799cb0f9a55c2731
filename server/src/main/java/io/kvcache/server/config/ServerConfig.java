package io.kvcache.server.config;

import io.kvcache.server.net.NetLimits;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.List;
import java.util.function.IntPredicate;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/// All that can be set of a server.
public record ServerConfig(
        AccessConfig access,
        MemoryConfig memory,
        NetworkConfig network,
        NetLimits limits,
        ExistsPinConfig existsPin,
        DiskTierConfig disks,
        EventsConfig events,
        LeaseConfig lease,
        TraceConfig trace,
        TransportConfig transport,
        RequestLimits requestLimits,
        LogConfig log,
        ShutdownConfig shutdown) {

    /// A store has 255 queues; each tenant takes two of them for each of three sizes of slots.
    private static final int MAX_TENANTS_WITH_TWO_QUEUES = 32;

    private static final Pattern TCP_ENDPOINT = Pattern.compile("tcp://(\\S+):([1-9]\\d{0,4})");

    public ServerConfig {
        if (lease.isEnabled() && access.tenants().size() > 1) {
            throw new IllegalArgumentException("lease.shared_memory is " + lease.sharedMemory() + " and there are "
                    + access.tenants().size()
                    + " tenants; who maps it sees the values of all, so it takes a server without tenants");
        }
        if (memory.policy().queueCount() > 1 && access.tenants().size() > MAX_TENANTS_WITH_TWO_QUEUES) {
            String policy = memory.policy().commandName();
            throw new IllegalArgumentException("memory.policy is " + policy + " and there are "
                    + access.tenants().size() + " tenants; with " + policy + " there may be "
                    + MAX_TENANTS_WITH_TWO_QUEUES);
        }
        transport.validate(access.tenants(), lease);
        requireDistinctPorts(access, transport, events);
        access.domains().forEach(each -> each.validate(transport, lease));
        List<String> tenants = access.tenants().stream().map(TenantConfig::name).toList();
        if (!tenants.contains(events.tenant())) {
            throw new IllegalArgumentException(
                    "events.tenant is " + events.tenant() + "; there are " + String.join(", ", tenants));
        }
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
                lease,
                trace,
                settled,
                requestLimits,
                log,
                shutdown);
    }

    /// The first place where clients connect.
    public ListenerConfig firstListener() {
        return access.listeners().getFirst();
    }

    /// What a server does when nothing is set.
    public static ServerConfig defaults(HostResources hostResources) {
        return new ServerConfig(
                AccessConfig.defaults(),
                MemoryConfig.defaults(hostResources.memoryBytes()),
                NetworkConfig.defaults(hostResources.cores()),
                NetLimits.defaults(),
                ExistsPinConfig.defaults(),
                DiskTierConfig.defaults(),
                EventsConfig.defaults(),
                LeaseConfig.defaults(),
                TraceConfig.defaults(),
                TransportConfig.defaults(),
                RequestLimits.defaults(
                        MemoryConfig.defaults(hostResources.memoryBytes()).hostBytes()),
                LogConfig.defaults(),
                ShutdownConfig.defaults());
    }
}
