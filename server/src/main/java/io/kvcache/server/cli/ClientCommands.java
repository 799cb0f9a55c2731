package io.kvcache.server.cli;

import io.kvcache.server.client.RespClient;
import io.kvcache.server.client.RespReply;
import java.io.IOException;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/// Small clients: `kvcache ping`, `put`, `get`, `del` and `stat`, each one request to a server that runs.
final class ClientCommands {

    private static final String STANDARD_STREAM = "-";

    private ClientCommands() {}

    static List<Object> commands() {
        return List.of(new Ping(), new Put(), new Get(), new Del(), new Stat());
    }

    private static int printResult(CommandSpec spec, boolean done, String text) {
        PrintWriter to = done ? spec.commandLine().getOut() : spec.commandLine().getErr();
        to.println(text);
        to.flush();
        return done ? 0 : 1;
    }

    /// `kvcache ping`.
    @Command(name = "ping", description = "Ask a server whether it answers.", mixinStandardHelpOptions = true)
    static final class Ping implements Callable<Integer> {

        @Spec
        private CommandSpec spec = CommandSpec.create();

        @Mixin
        private ConnectionOptions server = new ConnectionOptions();

        @Override
        public Integer call() throws IOException {
            try (RespClient client = server.respClient()) {
                return printResult(spec, true, client.call("PING").asText());
            }
        }
    }

    /// `kvcache put`.
    @Command(name = "put", description = "Store a file as a value.", mixinStandardHelpOptions = true)
    static final class Put implements Callable<Integer> {

        @Spec
        private CommandSpec spec = CommandSpec.create();

        @Mixin
        private ConnectionOptions server = new ConnectionOptions();

        @Parameters(index = "0", paramLabel = "KEY")
        private String key = "";

        @Parameters(
                index = "1",
                arity = "0..1",
                paramLabel = "FILE",
                defaultValue = STANDARD_STREAM,
                description = "Default: standard input.")
        private String file = STANDARD_STREAM;

        @Override
        public Integer call() throws IOException {
            byte[] value = file.equals(STANDARD_STREAM) ? System.in.readAllBytes() : Files.readAllBytes(Path.of(file));
            try (RespClient client = server.respClient()) {
                client.call("PING"); // a connection that only sets is not told when there is no room
                client.set(key, value);
                return printResult(spec, true, "stored " + value.length + " bytes");
            }
        }
    }

    /// `kvcache get`.
    @Command(name = "get", description = "Write a value to a file.", mixinStandardHelpOptions = true)
    static final class Get implements Callable<Integer> {

        @Spec
        private CommandSpec spec = CommandSpec.create();

        @Mixin
        private ConnectionOptions server = new ConnectionOptions();

        @Parameters(index = "0", paramLabel = "KEY")
        private String key = "";

        @Parameters(
                index = "1",
                arity = "0..1",
                paramLabel = "FILE",
                defaultValue = STANDARD_STREAM,
                description = "Default: standard output.")
        private String file = STANDARD_STREAM;

        @Override
        public Integer call() throws IOException {
            try (RespClient client = server.respClient()) {
                RespReply reply = client.call("GET", key);
                if (!reply.isPresent()) {
                    return printResult(spec, false, "kvcache get: there is no " + key);
                }
                if (file.equals(STANDARD_STREAM)) {
                    PrintStream out = System.out;
                    out.writeBytes(reply.bytes());
                    out.flush();
                } else {
                    Files.write(Path.of(file), reply.bytes());
                }
                return 0;
            }
        }
    }

    /// `kvcache del`.
    @Command(name = "del", description = "Forget a key.", mixinStandardHelpOptions = true)
    static final class Del implements Callable<Integer> {

        @Spec
        private CommandSpec spec = CommandSpec.create();

        @Mixin
        private ConnectionOptions server = new ConnectionOptions();

        @Parameters(paramLabel = "KEY")
        private String key = "";

        @Override
        public Integer call() throws IOException {
            try (RespClient client = server.respClient()) {
                boolean was = client.call("DEL", key).asLong() > 0;
                return printResult(spec, was, was ? "deleted" : "kvcache del: there is no " + key);
            }
        }
    }

    /// `kvcache stat`.
    @Command(name = "stat", description = "What a server says of itself.", mixinStandardHelpOptions = true)
    static final class Stat implements Callable<Integer> {

        @Spec
        private CommandSpec spec = CommandSpec.create();

        @Mixin
        private ConnectionOptions server = new ConnectionOptions();

        @Override
        public Integer call() throws IOException {
            try (RespClient client = server.respClient()) {
                return printResult(
                        spec,
                        true,
                        client.call("INFO").asText().replace("\r", "").strip());
            }
        }
    }
}
