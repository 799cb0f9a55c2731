package io.kvcache.server.cli;

import io.kvcache.server.client.RespClient;
import io.kvcache.server.client.RespClient.RespReply;
import java.io.IOException;
import java.io.PrintStream;
import java.lang.reflect.Method;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Parameters;

/// Small clients: `kvcache ping`, `put`, `get`, `del` and `stat`, each one request to a server that runs.
final class ClientCommands {

    private static final String STANDARD_STREAM = "-";

    private ClientCommands() {}

    static List<Method> commands() {
        return Stream.of("ping", "put", "get", "del", "stat")
                .map(name -> CommandLine.getCommandMethods(ClientCommands.class, name)
                        .getFirst())
                .toList();
    }

    @Command(name = "ping", description = "Check that a server answers.", mixinStandardHelpOptions = true)
    static int ping(@Mixin ConnectionOptions server) throws IOException {
        try (RespClient client = server.respClient()) {
            return server.print(true, client.call("PING").asText());
        }
    }

    @Command(name = "put", description = "Store a file as a value.", mixinStandardHelpOptions = true)
    static int put(
            @Mixin ConnectionOptions server,
            @Parameters(index = "0", paramLabel = "KEY") String key,
            @Parameters(
                            index = "1",
                            arity = "0..1",
                            paramLabel = "FILE",
                            defaultValue = STANDARD_STREAM,
                            description = "Default: standard input.")
                    String file)
            throws IOException {
        byte[] value = file.equals(STANDARD_STREAM) ? System.in.readAllBytes() : Files.readAllBytes(Path.of(file));
        try (RespClient client = server.respClient()) {
            client.call("PING"); // the server does not tell a connection that only sets when there is no room
            client.set(key, value);
            return server.print(true, "stored " + value.length + " bytes");
        }
    }

    @Command(name = "get", description = "Write a value to a file.", mixinStandardHelpOptions = true)
    static int get(
            @Mixin ConnectionOptions server,
            @Parameters(index = "0", paramLabel = "KEY") String key,
            @Parameters(
                            index = "1",
                            arity = "0..1",
                            paramLabel = "FILE",
                            defaultValue = STANDARD_STREAM,
                            description = "Default: standard output.")
                    String file)
            throws IOException {
        try (RespClient client = server.respClient()) {
            RespReply reply = client.call("GET", key);
            if (!reply.isPresent()) {
                return server.print(false, "kvcache get: no such key: " + key);
            }
            if (file.equals(STANDARD_STREAM)) {
                PrintStream out = System.out;
                out.writeBytes(reply.bytes());
                out.flush();
            } else {
                write(Path.of(file), reply.bytes());
            }
            return 0;
        }
    }

    private static void write(Path file, byte[] value) throws IOException {
        try {
            Files.write(file, value);
        } catch (NoSuchFileException noFolder) {
            throw new IOException(file + " cannot be written: there is no such folder", noFolder);
        }
    }

    @Command(name = "del", description = "Forget a key.", mixinStandardHelpOptions = true)
    static int del(@Mixin ConnectionOptions server, @Parameters(paramLabel = "KEY") String key) throws IOException {
        try (RespClient client = server.respClient()) {
            boolean was = client.call("DEL", key).asLong() > 0;
            return server.print(was, was ? "deleted" : "kvcache del: no such key: " + key);
        }
    }

    @Command(name = "stat", description = "Show a server's state and statistics.", mixinStandardHelpOptions = true)
    static int stat(@Mixin ConnectionOptions server) throws IOException {
        try (RespClient client = server.respClient()) {
            return server.print(
                    true, client.call("INFO").asText().replace("\r", "").strip());
        }
    }
}
