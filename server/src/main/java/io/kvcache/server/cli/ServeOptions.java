package io.kvcache.server.cli;

import io.kvcache.server.cli.CommandLineBuilder.OptionsElsewhere;
import io.kvcache.server.config.ConfigException;
import io.kvcache.server.config.ConfigReader;
import io.kvcache.server.config.ConfigReader.SettingInForce;
import io.kvcache.server.config.HostResources;
import io.kvcache.server.config.ServerConfig;
import java.io.IOException;
import java.nio.charset.CharacterCodingException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/// The options of a server: a file, and what goes before it.
final class ServeOptions implements OptionsElsewhere {

    @Option(names = "--config", paramLabel = "FILE", description = "Settings in YAML. Default: none.")
    private @Nullable Path file;

    @Option(names = "--address", paramLabel = "ADDRESS", description = "listen.address. Default: 127.0.0.1.")
    private @Nullable String address;

    @Option(names = "--port", paramLabel = "PORT", description = "listen.port. Default: 7379.")
    private @Nullable String port;

    @Option(
            names = "--transport",
            paramLabel = "HOST:PORT",
            description = "transport.listen: address for RemoteKvCache of other JVMs, for example 127.0.0.1:7420."
                    + " Default: auto, there if it is free and all clients are of this machine and see the same; off"
                    + " for nowhere.")
    private @Nullable String transport;

    @Option(
            names = "--aeron",
            paramLabel = "ADDRESS",
            description = "transport.aeron: their address over Aeron, aeron:ipc or"
                    + " aeron:udp?endpoint=HOST:PORT. Default: nowhere.")
    private @Nullable String aeron;

    @Option(
            names = "--host-bytes",
            paramLabel = "SIZE",
            description = "memory.host_bytes, for example 8GiB. Default: an eighth of the machine's memory.")
    private @Nullable String hostBytes;

    @Option(
            names = "--disk",
            paramLabel = "DIR:SIZE",
            description = "A disk below host memory, for example /mnt/nvme0/kvcache:1TiB. May be given again; replaces"
                    + " the disks of the file. Default: none.")
    private List<String> disks = new ArrayList<>();

    @Option(
            names = "--gpu",
            paramLabel = "DEVICE[:SIZE[:MAX]]",
            description = "A GPU that engines of this host may connect to, and how much of its memory holds blocks in"
                    + " front of the disks, for example 0:40GiB. With MAX, as 0:8GiB:40GiB, gpu resize changes it."
                    + " May be given again; replaces the GPUs of the file."
                    + " Default: none.")
    private List<String> gpus = new ArrayList<>();

    @Option(
            names = "--trace-out",
            paramLabel = "FILE",
            description = "trace.out: file for a trace of all accesses, with keys as salted hashes. Default: none.")
    private @Nullable String traceOut;

    @Option(
            names = "--set",
            paramLabel = "SETTING=VALUE",
            description = "Any setting, for example memory.policy=lru (default: importance) or limits.connections=100;"
                    + " config settings lists all. May be given again.")
    private Map<String, String> more = new LinkedHashMap<>();

    @Spec(Spec.Target.MIXEE)
    private CommandSpec command = CommandSpec.create();

    private final ConfigReader reader = new ConfigReader(HostResources.detect(), System.getenv());

    @Override
    public Map<String, String> optionsElsewhere() {
        return Map.of("--policy", "--set memory.policy=lru");
    }

    /// Reads file, environment and options.
    ServerConfig read() throws IOException, ConfigException {
        Map<String, ConfigReader.Option> options = new LinkedHashMap<>();
        more.forEach((path, text) -> options.put(path, new ConfigReader.Option("--set " + path, text)));
        put(options, "listen.address", "--address", address);
        put(options, "listen.port", "--port", port);
        put(options, "transport.listen", "--transport", transport);
        put(options, "transport.aeron", "--aeron", aeron);
        put(options, "memory.host_bytes", "--host-bytes", hostBytes);
        put(options, "trace.out", "--trace-out", traceOut);
        for (int number = 0; number < disks.size(); number++) {
            put(options, "disks." + number, "--disk", disks.get(number));
        }
        for (int number = 0; number < gpus.size(); number++) {
            put(options, "gpu." + number, "--gpu", gpus.get(number));
        }
        ConfigReader.Source source =
                file == null ? ConfigReader.Source.NONE : new ConfigReader.Source(file.toString(), text(file));
        return reader.read(source, options);
    }

    /// What the last [#read] found for each setting, and where.
    List<SettingInForce> inForce() {
        return reader.settingsInForce();
    }

    /// A problem with the place before it where its setting was set, if that is known.
    String withOrigin(String problem) {
        return reader.withOrigin(problem);
    }

    private String text(Path file) throws IOException {
        if (Files.isDirectory(file)) {
            throw usageError("--config " + file + " is a directory; it takes a file of YAML");
        }
        try {
            return Files.readString(file);
        } catch (NoSuchFileException none) {
            throw usageError("--config " + file + ": there is no such file");
        } catch (CharacterCodingException binary) {
            throw usageError("--config " + file + " is not UTF-8 text; it takes a file of YAML");
        }
    }

    private ParameterException usageError(String text) {
        return new ParameterException(command.commandLine(), command.qualifiedName() + ": " + text);
    }

    private static void put(Map<String, ConfigReader.Option> options, String path, String name, @Nullable String text) {
        if (text != null) {
            options.put(path, new ConfigReader.Option(name, text));
        }
    }
}
