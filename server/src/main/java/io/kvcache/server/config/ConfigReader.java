package io.kvcache.server.config;

import io.kvcache.core.policy.EvictionPolicyFactory;
import io.kvcache.server.net.NetLimits;
import io.kvcache.server.net.NettyTransport.TransportKind;
import io.kvcache.tiers.memory.SharedMemorySource.StagingLimits;
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
    private static final int MAX_MEMORY_PERCENT = 90;

    private final HostResources hostResources;
    private final Map<String, String> environment;
    private @Nullable Settings last;

    public ConfigReader(HostResources hostResources, Map<String, String> environment) {
        this.hostResources = hostResources;
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
        Map<String, SettingValue> typed = new LinkedHashMap<>();
        options.forEach((path, option) -> typed.put(path, new SettingValue(option.text(), option.name())));
        if (typed.keySet().stream().anyMatch(path -> path.matches(DiskTierConfigReader.LIST + "\\.\\d+"))) {
            settings.clear(DiskTierConfigReader.LIST); // `--disk` gives the whole list
        }
        settings.add(typed);
        LogConfig log = LogConfig.read(settings, LogConfig.defaults());
        ServerConfig config = readAll(settings, log);
        settings.reportUnknown();
        EnvironmentSettings.reportMissingUnderscore(environment, settings::isKnown, problems);
        if (!problems.isEmpty()) {
            throw new ConfigException(problems, log);
        }
        return config;
    }

    /// What was found wrong later about a setting that was read last, with the place where it was set if that is
    /// known.
    ///
    /// @param problem begins with the setting's name
    public String withOrigin(String problem) {
        return last == null ? problem : last.withOrigin(problem);
    }

    /// The settings that were asked for by the last [#read], whether it found mistakes or not.
    List<Settings.Definition> definitions() {
        return last == null ? List.of() : last.definitions();
    }

    /// An option of the command line.
    ///
    /// @param name as typed, `--port`
    public record Option(String name, String text) {}

    private ServerConfig readAll(Settings from, LogConfig log) {
        ServerConfig defaultValue = ServerConfig.defaults(hostResources);
        AccessConfig access = new AccessConfigReader(from).read(defaultValue.access());
        MemoryConfig memory = memory(from, defaultValue.memory(), access.domainBytes());
        NetworkConfig network = network(from, defaultValue.network());
        NetLimits limits = limits(from, defaultValue.limits());
        ExistsPinConfig promise = existsPin(from, defaultValue.existsPin());
        DiskTierConfig disks = DiskTierConfigReader.read(from, defaultValue.disks());
        EventsConfig events = EventsConfigReader.read(from, defaultValue.events());
        LeaseConfig lease = LeaseConfig.read(from, defaultValue.lease());
        TraceConfig trace = TraceConfig.read(from, defaultValue.trace());
        TransportConfig transport = TransportConfig.read(from, defaultValue.transport());
        RequestLimits values = requestLimits(from, RequestLimits.defaults(memory.hostBytes()), memory.hostBytes());
        ShutdownConfig shutdown = ShutdownConfig.read(from, defaultValue.shutdown());
        return from.getValid(
                defaultValue,
                () -> new ServerConfig(
                        access, memory, network, limits, promise, disks, events, lease, trace, transport, values, log,
                        shutdown));
    }

    private MemoryConfig memory(Settings from, MemoryConfig defaultValue, long domainBytes) {
        long hostBytes = from.get("memory.host_bytes", defaultValue.hostBytes(), SettingParsers::parseBytes);
        EvictionPolicyFactory policy = from.get("memory.policy", defaultValue.policy(), SettingParsers::parsePolicy);
        PrefaultMode prefaultMode = from.get(
                "memory.prefault",
                defaultValue.prefaultMode(),
                text -> SettingParsers.parseEnum(PrefaultMode.class, text));
        StagingLimits staging = staging(from, defaultValue.staging());
        return from.getValid(
                defaultValue,
                () -> requireFit(new MemoryConfig(hostBytes, policy, prefaultMode, staging), domainBytes));
    }

    private static StagingLimits staging(Settings from, StagingLimits defaultValue) {
        long total = from.get("memory.staging", defaultValue.totalBytes(), SettingParsers::parseBytes);
        long client = from.get(
                "memory.client_staging", Math.min(defaultValue.clientBytes(), total), SettingParsers::parseBytes);
        return from.getValid(defaultValue, () -> limits(client, total));
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

    private MemoryConfig requireFit(MemoryConfig memory, long domainBytes) {
        long most = hostResources.memoryBytes() / 100 * MAX_MEMORY_PERCENT - domainBytes;
        if (memory.hostBytes() > most) {
            throw new IllegalArgumentException("memory.host_bytes is " + memory.hostBytes()
                    + " bytes; it takes up to " + most + " bytes, which is " + MAX_MEMORY_PERCENT
                    + " % of the memory there is"
                    + (domainBytes == 0 ? "" : " without the " + domainBytes + " bytes of the domains"));
        }
        return memory;
    }

    private static NetworkConfig network(Settings from, NetworkConfig defaultValue) {
        TransportKind transport = from.get(
                "network.transport",
                defaultValue.transport(),
                text -> SettingParsers.parseEnum(TransportKind.class, text));
        int loops = from.get(
                "network.loops", defaultValue.loops(), SettingParsers.integerParser(1, NetworkConfig.MAX_LOOPS));
        return from.getValid(defaultValue, () -> new NetworkConfig(transport, loops));
    }

    private static NetLimits limits(Settings from, NetLimits defaultValue) {
        int connections = from.get(
                "limits.connections",
                defaultValue.connections(),
                SettingParsers.integerParser(1, NetLimits.MAX_CONNECTIONS));
        Duration idle = from.get("limits.idle", defaultValue.idleTimeout(), SettingParsers::parseDuration);
        Duration stall = from.get("limits.stall", defaultValue.stallTimeout(), SettingParsers::parseDuration);
        Duration authenticate =
                from.get("limits.authenticate", defaultValue.authTimeout(), SettingParsers::parseDuration);
        return from.getValid(defaultValue, () -> new NetLimits(connections, idle, stall, authenticate));
    }

    private static RequestLimits requestLimits(Settings from, RequestLimits defaultValue, long hostBytes) {
        long keyBytes = from.get("limits.key_bytes", defaultValue.keyBytes(), SettingParsers::parseBytes);
        long valueBytes = from.get("limits.value_bytes", defaultValue.valueBytes(), SettingParsers::parseBytes);
        long inFlight = from.get("limits.in_flight", defaultValue.inFlightBytes(), SettingParsers::parseBytes);
        long sending = from.get("limits.sending", defaultValue.sendingBytes(), SettingParsers::parseBytes);
        return from.getValid(
                defaultValue, () -> new RequestLimits(keyBytes, valueBytes, inFlight, sending).limitedTo(hostBytes));
    }

    private static ExistsPinConfig existsPin(Settings from, ExistsPinConfig defaultValue) {
        Duration time = from.get("promise.time", defaultValue.duration(), SettingParsers::parseDuration);
        int percent = from.get("promise.percent", defaultValue.percent(), SettingParsers.integerParser(0, 90));
        return from.getValid(defaultValue, () -> new ExistsPinConfig(time, percent));
    }
}
