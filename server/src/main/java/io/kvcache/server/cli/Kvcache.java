package io.kvcache.server.cli;

import io.kvcache.server.cli.CommandLineBuilder.LongRunningCommand;
import io.kvcache.server.cli.FsckCommand.InspectCommand;
import io.kvcache.server.cli.Version.VersionCommand;
import io.kvcache.server.client.ClientConfig;
import io.kvcache.server.client.HttpApiClient;
import io.kvcache.server.client.RespClient;
import io.kvcache.server.config.Units;
import java.io.IOException;
import java.io.PrintWriter;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.StreamSupport;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.ParentCommand;
import picocli.CommandLine.Spec;
import tools.jackson.databind.JsonNode;

/// The main class of the command line that ships: the server, its clients, and what looks at its disks.
@Command(
        name = "kvcache",
        description = "An LLM-serving KV-cache store: run it, use it, plan with it, check it.",
        mixinStandardHelpOptions = true,
        versionProvider = Version.class)
public final class Kvcache implements Runnable {

    @Spec
    private CommandSpec spec = CommandSpec.create();

    /// Runs a command and exits: 0 done, 1 it failed, 2 the command was not understood.
    public static void main(String... arguments) {
        System.exit(commands().run(arguments));
    }

    /// The commands of the server. A larger command line adds its own to them.
    public static CommandLineBuilder commands() {
        CommandLineBuilder commands = new CommandLineBuilder()
                .add(CommandGroup.RUN, new ServeCommand())
                .add(CommandGroup.CHECK, new DoctorCommand())
                .add(CommandGroup.CHECK, new FsckCommand())
                .add(CommandGroup.CHECK, new InspectCommand())
                .add(CommandGroup.CHECK, new ConfigCommand());
        ClientCommands.commands().forEach(command -> commands.add(CommandGroup.USE, command));
        return commands.add(CommandGroup.USE, new TopCommand())
                .add(CommandGroup.USE, new EventsCommand())
                .add(CommandGroup.USE, new DiskCommand())
                .add(CommandGroup.USE, new GpuCommand())
                .add(CommandGroup.USE, new ClusterCommand())
                .add(CommandGroup.USE, new VersionCommand())
                .add(CommandGroup.USE, new HelpCommand())
                .add(CommandGroup.DEVELOP, new RehearseCommand());
    }

    /// The server's command line; its writers can be replaced.
    public static CommandLine commandLine() {
        return commands().build();
    }

    /// Without a command there is nothing to do.
    @Override
    public void run() {
        throw new ParameterException(spec.commandLine(), "kvcache: which command?");
    }

    /// `kvcache help [COMMAND...]`: how a command is used, at any depth. Picocli's own takes one name and ignores
    /// what follows it.
    @Command(name = "help", description = "Show how a command is used: help lab tiers, for one.")
    static final class HelpCommand implements Runnable {

        @Spec
        private CommandSpec spec = CommandSpec.create();

        @Option(
                names = {"-h", "--help"},
                usageHelp = true,
                description = "Show this help message and exit.")
        @SuppressWarnings("unused") // picocli asks the option, not the field
        private boolean helpRequested;

        @Parameters(
                paramLabel = "COMMAND",
                arity = "0..*",
                description = "The command, and its subcommand if it has some. Default: all commands are listed.")
        private List<String> names = new ArrayList<>();

        @Override
        public void run() {
            CommandLine command = spec.root().commandLine();
            for (String name : names) {
                CommandLine subcommand = command.getSubcommands().get(name);
                if (subcommand == null) {
                    throw new ParameterException(command, describeUnknown(command, name), null, name);
                }
                command = subcommand;
            }
            command.usage(spec.commandLine().getOut());
            spec.commandLine().getOut().flush();
        }

        private static String describeUnknown(CommandLine command, String name) {
            return command.getSubcommands().isEmpty()
                    ? command.getCommandSpec().qualifiedName() + " has no subcommands, so none is '" + name + "'"
                    : "Unknown command '" + name + "'.";
        }
    }

    /// `kvcache rehearse`: starts a server and asks it for a value, so that a JVM that watches knows what a server
    /// loads and links.
    ///
    /// The launcher runs this once a build with `-XX:AOTCacheOutput`, and the image once when it is made. A start
    /// with what came of it takes half of the processor time, which matters most where the machine is busy.
    @Command(
            name = "rehearse",
            description = "Serve one value and exit, for java -XX:AOTCacheOutput=FILE.",
            hidden = true,
            mixinStandardHelpOptions = true)
    static final class RehearseCommand implements Callable<Integer>, LongRunningCommand {

        private static final long TIMEOUT_NANOS = TimeUnit.SECONDS.toNanos(60);
        private static final long RETRY_MILLIS = 20;

        @Override
        public Integer call() throws IOException, InterruptedException {
            int port = freePort();
            Thread.ofPlatform()
                    .daemon()
                    .start(() -> Kvcache.commandLine()
                            .execute("serve", "--port", Integer.toString(port), "--host-bytes", "128MiB"));
            try (RespClient client = connect(port)) {
                client.set("key", new byte[100_000]);
                client.call("EXISTS", "key");
                client.call("GET", "key");
            }
            return 0;
        }

        private static int freePort() throws IOException {
            try (ServerSocket any = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
                return any.getLocalPort();
            }
        }

        private static RespClient connect(int port) throws IOException, InterruptedException {
            long end = System.nanoTime() + TIMEOUT_NANOS;
            while (true) {
                try {
                    return new RespClient(ClientConfig.open("127.0.0.1", port));
                } catch (IOException notYet) {
                    if (System.nanoTime() > end) {
                        throw notYet;
                    }
                    Thread.sleep(RETRY_MILLIS);
                }
            }
        }
    }

    /// `kvcache disk list` and `kvcache disk reopen`.
    @Command(name = "disk", description = "Show a server's disks, or open one again.", mixinStandardHelpOptions = true)
    static final class DiskCommand implements Runnable {

        @Spec
        private CommandSpec spec = CommandSpec.create();

        @Override
        public void run() {
            throw new ParameterException(spec.commandLine(), "kvcache disk takes a subcommand: list or reopen");
        }

        @Command(name = "list", description = "Show the disks of a server.", mixinStandardHelpOptions = true)
        int list(@Mixin ConnectionOptions server) throws IOException {
            PrintWriter out = spec.commandLine().getOut();
            try (HttpApiClient client = server.httpClient()) {
                for (JsonNode disk : client.get("/v1/disks").get("disks")) {
                    out.println(formatDisk(disk));
                }
            }
            out.flush();
            return 0;
        }

        /// How long a disk is waited for: a full one of a TiB is open within a tenth of a second.
        private static final long REOPEN_NANOS = TimeUnit.SECONDS.toNanos(10);

        private static final long LOOK_MILLIS = 50;

        @Command(
                name = "reopen",
                description = "Reopen a disk that was taken out, or that has become read-only. Waits for it for 10 s.",
                mixinStandardHelpOptions = true)
        int reopen(
                @Mixin ConnectionOptions server,
                @Parameters(paramLabel = "DISK", description = "The disk's number or directory.") String disk)
                throws IOException, InterruptedException {
            try (HttpApiClient client = server.httpClient()) {
                String name = URLEncoder.encode(disk, StandardCharsets.UTF_8).replace("+", "%20");
                JsonNode state = client.post("/v1/disks/" + name + "/reopen");
                int number = state.get("number").intValue();
                long end = System.nanoTime() + REOPEN_NANOS;
                while (!serves(state) && System.nanoTime() < end) {
                    Thread.sleep(LOOK_MILLIS);
                    state = client.get("/v1/disks").get("disks").get(number);
                }
                PrintWriter out = spec.commandLine().getOut();
                out.println(formatDisk(state));
                out.flush();
                return serves(state) ? 0 : 1;
            }
        }

        private static boolean serves(JsonNode disk) {
            return disk.get("state").stringValue().equals("serving");
        }

        private static String formatDisk(JsonNode disk) {
            String cause = disk.get("cause").stringValue();
            return disk.get("number").intValue() + " " + disk.get("name").stringValue() + " is "
                    + disk.get("state").stringValue().replace('_', ' ')
                    + (cause.isEmpty() ? "" : ": " + cause);
        }
    }

    /// `kvcache gpu` and `kvcache gpu resize`.
    @Command(
            name = "gpu",
            subcommands = GpuCommand.Resize.class,
            description = "Show how much memory of its GPUs a server has, or give it another size.",
            mixinStandardHelpOptions = true)
    static final class GpuCommand implements Callable<Integer> {

        @Spec
        private CommandSpec spec = CommandSpec.create();

        @Mixin
        private ConnectionOptions options = new ConnectionOptions();

        @Override
        public Integer call() throws IOException {
            try (HttpApiClient client = options.httpClient()) {
                List<JsonNode> gpus = list(client);
                String lines =
                        gpus.stream().map(GpuCommand::format).collect(Collectors.joining(System.lineSeparator()));
                return options.print(true, gpus.isEmpty() ? "the server keeps no blocks on a GPU" : lines);
            }
        }

        private static String formatResized(JsonNode resized, String asked, String reason) {
            return resized.get("name").stringValue() + " has " + size(resized, "bytes") + " now, and had "
                    + size(resized, "bytesBefore")
                    + (reason.isEmpty() ? "" : ", not " + asked + ": " + reason);
        }

        @Command(
                name = "resize",
                description = {
                    "Have a server take more memory of a GPU for blocks, or give memory back to it.",
                    "Blocks leave as the server's policy says; those that engines hold are waited for.",
                    "The server's setting gpu has the most that it may have, as --gpu 0:8GiB:40GiB."
                },
                mixinStandardHelpOptions = true)
        static final class Resize implements Callable<Integer> {

            private static final int MAX_SECONDS = 600;

            @ParentCommand
            private GpuCommand parent = new GpuCommand();

            @Mixin
            private ConnectionOptions server = new ConnectionOptions();

            @Option(
                    names = "--timeout",
                    paramLabel = "SECONDS",
                    description = "How long to wait for blocks that are held. Default: ${DEFAULT-VALUE}.")
            private int timeout = 30;

            @Parameters(index = "0", paramLabel = "DEVICE", description = "The GPU's number.")
            private int device;

            @Parameters(index = "1", paramLabel = "BYTES", description = "The size from now on, as 8GiB.")
            private String size = "";

            @Override
            public Integer call() throws IOException {
                OptionalLong bytes = Units.bytes(size);
                if (bytes.isEmpty()) {
                    throw server.usageError("BYTES is '" + size + "'; it takes " + Units.SIZE_FORMATS);
                }
                if (!parent.spec.commandLine().getParseResult().matchedOptions().isEmpty()) {
                    throw server.usageError("options come behind resize");
                }
                if (timeout < 0 || timeout > MAX_SECONDS) {
                    throw server.usageError("--timeout is " + timeout + "; it takes seconds, 0 to " + MAX_SECONDS);
                }
                try (HttpApiClient client = server.httpClient();
                        HttpApiClient patient = server.httpClient(Duration.ofSeconds(timeout))) {
                    OptionalInt number = list(client).stream()
                            .filter(each -> each.get("device").intValue() == device)
                            .mapToInt(each -> each.get("number").intValue())
                            .findFirst();
                    if (number.isEmpty()) {
                        return server.print(
                                false,
                                "kvcache gpu resize: the server keeps no blocks on GPU " + device
                                        + "; kvcache gpu lists those where it does");
                    }
                    JsonNode resized = patient.post("/v1/disks/" + number.getAsInt() + "/resize?bytes="
                            + bytes.getAsLong() + "&timeout=" + timeout);
                    String reason = resized.get("reason").stringValue();
                    return server.print(reason.isEmpty(), formatResized(resized, size, reason));
                }
            }
        }

        private static List<JsonNode> list(HttpApiClient client) throws IOException {
            return StreamSupport.stream(client.get("/v1/disks").get("disks").spliterator(), false)
                    .filter(disk -> disk.has("device"))
                    .toList();
        }

        private static String format(JsonNode gpu) {
            return DiskCommand.formatDisk(gpu) + ", with " + size(gpu, "bytes") + " of up to " + size(gpu, "maxBytes");
        }

        private static String size(JsonNode gpu, String field) {
            long bytes = gpu.get(field).longValue();
            return bytes < 1 ? "no memory" : new ByteSizeText(bytes).toString();
        }
    }
}
