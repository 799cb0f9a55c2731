package io.kvcache.server.config;

import io.kvcache.core.policy.PolicyKind;
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
        PromiseConfig promise,
        DisksConfig disks,
        EventsConfig events,
        LeaseConfig lease,
        TraceConfig trace,
        TransportConfig transport,
        ValueConfig values,
        LogConfig log,
        ShutdownConfig shutdown) {

    /// A store has 255 queues; each tenant takes two of them for each of three sizes of slots.
    private static final int MOST_TENANTS_OF_TWO_QUEUES = 32;

    private static final Pattern TCP = Pattern.compile("tcp://(\\S+):([1-9]\\d{0,4})");

    public ServerConfig {
        if (lease.on() && access.tenants().size() > 1) {
            throw new IllegalArgumentException("lease.shared_memory is " + lease.sharedMemory() + " and there are "
                    + access.tenants().size()
                    + " tenants; who maps it sees the values of all, so it takes a server without tenants");
        }
        if (memory.policy() == PolicyKind.SLRU && access.tenants().size() > MOST_TENANTS_OF_TWO_QUEUES) {
            throw new IllegalArgumentException("memory.policy is slru and there are "
                    + access.tenants().size() + " tenants; with slru there may be " + MOST_TENANTS_OF_TWO_QUEUES);
        }
        transport.check(access.tenants(), lease);
        requireOwnPorts(access, transport, events);
        access.domains().forEach(each -> each.check(transport, lease));
        List<String> tenants = access.tenants().stream().map(TenantConfig::name).toList();
        if (!tenants.contains(events.tenant())) {
            throw new IllegalArgumentException(
                    "events.tenant is " + events.tenant() + "; there are " + String.join(", ", tenants));
        }
    }

    private static void requireOwnPorts(AccessConfig access, TransportConfig transport, EventsConfig events) {
        if (transport.on() && transport.port() != 0) {
            requireOwnPort(access, "transport.listen", transport.listen(), transport.socketAddress());
        }
        requireOwnPort(access, "events.publish", events.publish());
        requireOwnPort(access, "events.replay", events.replay());
        if (TCP.matcher(events.publish()).matches() && events.publish().equals(events.replay())) {
            throw new IllegalArgumentException("events.replay is " + events.replay()
                    + ", as events.publish is; each takes an endpoint of its own");
        }
    }

    private static void requireOwnPort(AccessConfig access, String setting, String endpoint) {
        Matcher tcp = TCP.matcher(endpoint);
        if (tcp.matches()) {
            String host = tcp.group(1).equals("*") ? "0.0.0.0" : tcp.group(1);
            InetSocketAddress address = new InetSocketAddress(host, Integer.parseInt(tcp.group(2)));
            if (!address.isUnresolved()) {
                requireOwnPort(access, setting, endpoint, address);
            }
        }
    }

    private static void requireOwnPort(AccessConfig access, String setting, String value, InetSocketAddress address) {
        ListenConfig taken = access.at(address);
        if (taken != null) {
            throw new IllegalArgumentException(setting + " is " + value + ", and " + taken.path() + ".port is "
                    + taken.port() + " at " + taken.address() + "; each takes a port of its own");
        }
    }

    /// As a server on this machine runs it: what is `auto` is decided.
    ///
    /// @param free whether a port of loopback can be had
    public ServerConfig settled(IntPredicate free) {
        IntPredicate open = port -> access.at(new InetSocketAddress(InetAddress.getLoopbackAddress(), port)) == null;
        TransportConfig settled = transport.settled(access, open.and(free));
        return new ServerConfig(
                access, memory, network, limits, promise, disks, events, lease, trace, settled, values, log, shutdown);
    }

    /// The first place where clients connect.
    public ListenConfig listen() {
        return access.listeners().getFirst();
    }

    /// What a server does when nothing is set.
    public static ServerConfig defaults(Machine machine) {
        return new ServerConfig(
                AccessConfig.defaults(),
                MemoryConfig.defaults(machine.memoryBytes()),
                NetworkConfig.defaults(machine.cores()),
                NetLimits.defaults(),
                PromiseConfig.defaults(),
                DisksConfig.defaults(),
                EventsConfig.defaults(),
                LeaseConfig.defaults(),
                TraceConfig.defaults(),
                TransportConfig.defaults(),
                ValueConfig.defaults(
                        MemoryConfig.defaults(machine.memoryBytes()).hostBytes()),
                LogConfig.defaults(),
                ShutdownConfig.defaults());
    }
}
