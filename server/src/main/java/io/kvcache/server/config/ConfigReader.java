package io.kvcache.server.config;

import io.kvcache.core.policy.PolicyKind;
import io.kvcache.server.net.NetLimits;
import io.kvcache.server.net.TransportKind;
import io.kvcache.tiers.memory.StagingLimits;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/// Makes a configuration of a file, the environment and the command line, the later before the earlier, over the
/// defaults. Everything is looked at before anything is said.
public final class ConfigReader {

    /// Of the machine's memory, values may take this much; the rest is for the JVM and the system.
    private static final int MOST_PERCENT = 90;

    private final Machine machine;
    private final Map<String, String> environment;
    private @Nullable Settings last;

    public ConfigReader(Machine machine, Map<String, String> environment) {
        this.machine = machine;
        this.environment = Map.copyOf(environment);
    }

    /// A file's name and content; the name is for messages.
    public record Source(String name, String text) {

        /// No file.
        public static final Source NONE = new Source("", "");
    }

    /// Reads and checks.
    ///
    /// @param options of the command line: the option as typed by the path it sets, and its text
    /// @throws ConfigException with all that is wrong
    public ServerConfig read(Source file, Map<String, Option> options) throws ConfigException {
        List<String> problems = new ArrayList<>();
        Settings settings = new Settings(problems);
        last = settings;
        settings.add(YamlSettings.read(file.name(), file.text(), problems));
        settings.add(EnvironmentSettings.read(environment));
        Map<String, Setting> typed = new LinkedHashMap<>();
        options.forEach((path, option) -> typed.put(path, new Setting(option.text(), option.name())));
        if (typed.keySet().stream().anyMatch(path -> path.matches(DiskSettings.LIST + "\\.\\d+"))) {
            settings.clear(DiskSettings.LIST); // `--disk` gives the whole list
        }
        settings.add(typed);
        LogConfig log = LogConfig.read(settings, LogConfig.defaults());
        ServerConfig config = fill(settings, log);
        settings.reportUnknown();
        EnvironmentSettings.reportShort(environment, settings::isKnown, problems);
        if (!problems.isEmpty()) {
            throw new ConfigException(problems, log);
        }
        return config;
    }

    /// What was found wrong later about a setting that was read last, with the place where it was set if that is known.
    ///
    /// @param problem begins with the setting's name
    public String placed(String problem) {
        return last == null ? problem : last.placed(problem);
    }

    /// An option of the command line.
    ///
    /// @param name as typed, `--port`
    public record Option(String name, String text) {}

    private ServerConfig fill(Settings from, LogConfig log) {
        ServerConfig otherwise = ServerConfig.defaults(machine);
        AccessConfig access = new AccessReader(from).read(otherwise.access());
        MemoryConfig memory = memory(from, otherwise.memory(), access.domainBytes());
        NetworkConfig network = network(from, otherwise.network());
        NetLimits limits = limits(from, otherwise.limits());
        PromiseConfig promise = promise(from, otherwise.promise());
        DisksConfig disks = DiskSettings.read(from, otherwise.disks());
        EventsConfig events = EventSettings.read(from, otherwise.events());
        LeaseConfig lease = LeaseConfig.read(from, otherwise.lease());
        TraceConfig trace = TraceConfig.read(from, otherwise.trace());
        TransportConfig transport = TransportConfig.read(from, otherwise.transport());
        ValueConfig values = values(from, ValueConfig.defaults(memory.hostBytes()), memory.hostBytes());
        ShutdownConfig shutdown = ShutdownConfig.read(from, otherwise.shutdown());
        return from.checked(
                otherwise,
                () -> new ServerConfig(
                        access, memory, network, limits, promise, disks, events, lease, trace, transport, values, log,
                        shutdown));
    }

    private MemoryConfig memory(Settings from, MemoryConfig otherwise, long domainBytes) {
        long hostBytes = from.get("memory.host_bytes", otherwise.hostBytes(), Values::bytes);
        PolicyKind policy =
                from.get("memory.policy", otherwise.policy(), text -> Values.choice(PolicyKind.class, text));
        Prefault prefault =
                from.get("memory.prefault", otherwise.prefault(), text -> Values.choice(Prefault.class, text));
        StagingLimits staging = staging(from, otherwise.staging());
        return from.checked(otherwise, () -> fits(new MemoryConfig(hostBytes, policy, prefault, staging), domainBytes));
    }

    private static StagingLimits staging(Settings from, StagingLimits otherwise) {
        long total = from.get("memory.staging", otherwise.totalBytes(), Values::bytes);
        long client = from.get("memory.client_staging", Math.min(otherwise.clientBytes(), total), Values::bytes);
        return from.checked(otherwise, () -> limits(client, total));
    }

    private static StagingLimits limits(long client, long total) {
        try {
            return new StagingLimits(client, total);
        } catch (IllegalArgumentException wrong) {
            throw new IllegalArgumentException(
                    "memory.client_staging is " + client + " and memory.staging " + total + ": " + wrong.getMessage(),
                    wrong);
        }
    }

    private MemoryConfig fits(MemoryConfig memory, long domainBytes) {
        long most = machine.memoryBytes() / 100 * MOST_PERCENT - domainBytes;
        if (memory.hostBytes() > most) {
            throw new IllegalArgumentException("memory.host_bytes is " + memory.hostBytes()
                    + " bytes; it takes up to " + most + " bytes, which is " + MOST_PERCENT
                    + " % of the memory there is"
                    + (domainBytes == 0 ? "" : " without the " + domainBytes + " bytes of the domains"));
        }
        return memory;
    }

    private static NetworkConfig network(Settings from, NetworkConfig otherwise) {
        TransportKind transport =
                from.get("network.transport", otherwise.transport(), text -> Values.choice(TransportKind.class, text));
        int loops = from.get("network.loops", otherwise.loops(), Values.integer(1, NetworkConfig.MOST_LOOPS));
        return from.checked(otherwise, () -> new NetworkConfig(transport, loops));
    }

    private static NetLimits limits(Settings from, NetLimits otherwise) {
        int connections =
                from.get("limits.connections", otherwise.connections(), Values.integer(1, NetLimits.MOST_CONNECTIONS));
        Duration idle = from.get("limits.idle", otherwise.idle(), Values::duration);
        Duration stall = from.get("limits.stall", otherwise.stall(), Values::duration);
        Duration authenticate = from.get("limits.authenticate", otherwise.authenticate(), Values::duration);
        return from.checked(otherwise, () -> new NetLimits(connections, idle, stall, authenticate));
    }

    private static ValueConfig values(Settings from, ValueConfig otherwise, long hostBytes) {
        long keyBytes = from.get("limits.key_bytes", otherwise.keyBytes(), Values::bytes);
        long valueBytes = from.get("limits.value_bytes", otherwise.valueBytes(), Values::bytes);
        long inFlight = from.get("limits.in_flight", otherwise.inFlightBytes(), Values::bytes);
        long sending = from.get("limits.sending", otherwise.sendingBytes(), Values::bytes);
        return from.checked(otherwise, () -> new ValueConfig(keyBytes, valueBytes, inFlight, sending).in(hostBytes));
    }

    private static PromiseConfig promise(Settings from, PromiseConfig otherwise) {
        Duration time = from.get("promise.time", otherwise.time(), Values::duration);
        int percent = from.get("promise.percent", otherwise.percent(), Values.integer(0, 90));
        return from.checked(otherwise, () -> new PromiseConfig(time, percent));
    }
}
