package io.kvcache.server.config;

import io.kvcache.server.config.ServerConfig.ExistsPinConfig;
import io.kvcache.server.config.ServerConfig.LogConfig;
import io.kvcache.server.config.ServerConfig.NetworkConfig;
import io.kvcache.server.config.ServerConfig.ShutdownConfig;
import io.kvcache.server.config.ServerConfig.TraceConfig;
import io.kvcache.server.config.Settings.SettingValue;
import io.kvcache.server.net.NetLimits;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;
import org.snakeyaml.engine.v2.api.LoadSettings;
import org.snakeyaml.engine.v2.api.lowlevel.Compose;
import org.snakeyaml.engine.v2.exceptions.MarkedYamlEngineException;
import org.snakeyaml.engine.v2.exceptions.YamlEngineException;
import org.snakeyaml.engine.v2.nodes.CollectionNode;
import org.snakeyaml.engine.v2.nodes.MappingNode;
import org.snakeyaml.engine.v2.nodes.Node;
import org.snakeyaml.engine.v2.nodes.NodeTuple;
import org.snakeyaml.engine.v2.nodes.ScalarNode;
import org.snakeyaml.engine.v2.nodes.SequenceNode;

/// Makes a configuration of a file, the environment and the command line, the later before the earlier, over the
/// defaults. Everything is looked at before anything is said.
public final class ConfigReader {

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
        for (String list : List.of(DiskTierConfig.LIST, GpuConfig.LIST)) { // `--disk` and `--gpu` give whole lists
            if (typed.keySet().stream().anyMatch(path -> path.matches(list + "\\.\\d+"))) {
                settings.clear(list);
            }
        }
        settings.add(typed);
        LogConfig log = LogConfig.read(settings, LogConfig.defaults());
        ServerConfig config = readAll(settings, log);
        settings.reportUnknown();
        EnvironmentSettings.reportMisspelt(environment, settings.known(), problems);
        if (!problems.isEmpty()) {
            throw new ConfigException(problems, log, config);
        }
        return config;
    }

    /// Returns a problem that was found after reading, with the place where its setting was set if that is known.
    ///
    /// @param problem begins with the setting's name
    public String withOrigin(String problem) {
        return last == null ? problem : last.withOrigin(problem);
    }

    /// Returns what the last [#read] found for each setting, and where. Secrets are left out.
    public List<SettingInForce> settingsInForce() {
        return last == null ? List.of() : last.inForce();
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
        AccessConfig access = AccessConfig.read(from, defaultValue.access());
        MemoryConfig memory =
                MemoryConfig.read(from, defaultValue.memory(), hostResources.memoryBytes(), access.domainBytes());
        NetworkConfig network = NetworkConfig.read(from, defaultValue.network());
        NetLimits limits = readLimits(from, defaultValue.limits());
        ExistsPinConfig promise = ExistsPinConfig.read(from, defaultValue.existsPin());
        DiskTierConfig disks = DiskTierConfig.read(from, defaultValue.disks());
        EventsConfig events = EventsConfig.read(from, defaultValue.events());
        TraceConfig trace = TraceConfig.read(from, defaultValue.trace());
        TransportConfig transport = TransportConfig.read(from, defaultValue.transport());
        RequestLimits values = RequestLimits.read(from, memory.hostBytes());
        ShutdownConfig shutdown = ShutdownConfig.read(from, defaultValue.shutdown());
        ClusterConfig cluster = ClusterConfig.read(from);
        return from.getValid(
                defaultValue,
                () -> new ServerConfig(
                        access, memory, network, limits, promise, disks, events, trace, transport, values, log,
                        shutdown, cluster));
    }

    private static NetLimits readLimits(Settings from, NetLimits usual) {
        return from.getValid(
                usual,
                () -> new NetLimits(
                        from.integer("limits.connections", usual.connections(), 1, NetLimits.MAX_CONNECTIONS),
                        from.duration("limits.idle", usual.idleTimeout()),
                        from.duration("limits.stall", usual.stallTimeout(), "1s and up"),
                        from.duration("limits.authenticate", usual.authTimeout(), "1s to 10m")));
    }

    /// Reads `KVCACHE__SECTION__KEY` from the environment.
    ///
    /// With two underscores, so that what Kubernetes adds for a service named kvcache — `KVCACHE_PORT`,
    /// `KVCACHE_SERVICE_HOST` — is not taken for a setting.
    private static final class EnvironmentSettings {

        private static final String PREFIX = "KVCACHE__";
        private static final String SHORT_PREFIX = "KVCACHE_";

        /// Variables that do not set anything in the server: those of the launcher, of clients and of tests.
        private static final Set<String> OTHERS = Set.of(
                "KVCACHE_JAVA_OPTS",
                "KVCACHE_CLASSPATH",
                "KVCACHE_PASSWORD",
                "KVCACHE_DISK_BYTES",
                "KVCACHE_TRACES",
                "KVCACHE_JDK_SEARCH",
                "KVCACHE_BUILDING");

        /// More wrong letters than this are another word, perhaps not for us.
        private static final int MAX_WRONG = 2;

        private EnvironmentSettings() {}

        /// Settings by path, in order of their names.
        static Map<String, SettingValue> read(Map<String, String> environment) {
            Map<String, SettingValue> settings = new LinkedHashMap<>();
            new TreeMap<>(environment).forEach((name, text) -> {
                if (name.startsWith(PREFIX)) {
                    settings.put(path(name, PREFIX), new SettingValue(text, name));
                }
            });
            return settings;
        }

        /// Says which variables set nothing, for want of an underscore or by a letter or two.
        static void reportMisspelt(Map<String, String> environment, Set<String> known, List<String> problems) {
            Map<String, String> meant = new HashMap<>();
            OTHERS.forEach(name -> meant.put(name.substring(SHORT_PREFIX.length()), name));
            for (String list : List.of(DiskTierConfig.LIST, GpuConfig.LIST)) {
                String name = list.toUpperCase(Locale.ROOT);
                meant.put(name, PREFIX + name + "__0");
            }
            for (String path : known) {
                String name = path.toUpperCase(Locale.ROOT).replace(".", "__");
                meant.put(name.replace("__", "_"), PREFIX + name);
            }
            for (String name : new TreeSet<>(environment.keySet())) {
                if (name.startsWith(SHORT_PREFIX) && !name.startsWith(PREFIX) && !OTHERS.contains(name)) {
                    String typed = name.substring(SHORT_PREFIX.length()).replace("__", "_");
                    DidYouMean.findNearest(typed, meant.keySet(), Math.min(MAX_WRONG, typed.length() / 4))
                            .ifPresent(
                                    nearest -> problems.add(name + " sets nothing; is it " + meant.get(nearest) + "?"));
                }
            }
        }

        private static String path(String name, String prefix) {
            return name.substring(prefix.length()).toLowerCase(Locale.ROOT).replace("__", ".");
        }
    }

    /// Reads a YAML file and remembers the line of each value. Items of lists are named by their place, from 0.
    static final class YamlSettings {

        /// Settings are three levels deep. A deeper file has a list within lists, or an alias that contains
        /// itself.
        private static final int MAX_DEPTH = 8;

        private final String file;
        private final Map<String, SettingValue> settings = new LinkedHashMap<>();
        private final List<String> problems;

        private YamlSettings(String file, List<String> problems) {
            this.file = file;
            this.problems = problems;
        }

        /// Settings by path, `section.key`.
        ///
        /// @param file name for messages
        /// @param problems what is wrong is added here
        static Map<String, SettingValue> read(String file, String text, List<String> problems) {
            YamlSettings reader = new YamlSettings(file, problems);
            try {
                new Compose(LoadSettings.builder().setLabel(file).build())
                        .composeString(text)
                        .ifPresent(root -> reader.mapping("", root, 0));
            } catch (MarkedYamlEngineException malformed) {
                int line = malformed
                        .getProblemMark()
                        .map(mark -> mark.getLine() + 1)
                        .orElse(0);
                problems.add(file + ":" + line + ": " + malformed.getProblem());
            } catch (YamlEngineException malformed) {
                problems.add(file + ": " + malformed.getMessage());
            }
            return reader.settings;
        }

        private void mapping(String prefix, Node node, int depth) {
            if (!(node instanceof MappingNode mapping)) {
                problems.add(
                        lineOf(node) + ": " + (prefix.isEmpty() ? "the file" : prefix) + " takes `key: value` lines");
                return;
            }
            for (NodeTuple entry : mapping.getValue()) {
                if (entry.getKeyNode() instanceof ScalarNode key) {
                    String path = prefix.isEmpty() ? key.getValue() : prefix + "." + key.getValue();
                    entry(path, entry.getValueNode(), depth + 1);
                } else {
                    problems.add(lineOf(entry.getKeyNode()) + ": a name of a setting is expected here");
                }
            }
        }

        private void entry(String path, Node value, int depth) {
            if (depth > MAX_DEPTH) {
                problems.add(
                        lineOf(value) + ": " + path + " is " + depth + " levels deep; there are up to " + MAX_DEPTH);
            } else if (value instanceof ScalarNode scalar) {
                put(path, scalar.getValue(), value);
            } else if (isEmpty(value)) {
                put(path, "", value);
            } else if (value instanceof SequenceNode list) {
                for (int i = 0; i < list.getValue().size(); i++) {
                    entry(path + "." + i, list.getValue().get(i), depth + 1);
                }
            } else {
                mapping(path, value, depth);
            }
        }

        private void put(String path, String text, Node value) {
            SettingValue older = settings.put(path, new SettingValue(text, lineOf(value)));
            if (older != null) {
                problems.add(lineOf(value) + ": " + path + " is set already, at " + older.origin());
            }
        }

        /// A list or a section with nothing in it, which is as good as no value.
        private static boolean isEmpty(Node value) {
            return value instanceof CollectionNode<?> all && all.getValue().isEmpty();
        }

        private String lineOf(Node node) {
            return file + ":"
                    + Optional.ofNullable(node.getStartMark())
                            .flatMap(mark -> mark)
                            .map(mark -> mark.getLine() + 1)
                            .orElse(0);
        }
    }

    /// A setting as it counts for a running server.
    ///
    /// @param name as in the file, `memory.host_bytes`
    /// @param value as it was given, or the default; never a secret
    /// @param source where it was given, `kvcache.yaml:12`, `KVCACHE__LISTEN__PORT` or `--port`; `default` when
    ///     it was not
    public record SettingInForce(String name, String value, String source) {}
}
