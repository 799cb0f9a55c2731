package io.kvcache.server.cli;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.server.CacheServer;
import io.kvcache.server.config.ConfigReader;
import io.kvcache.server.config.HostResources;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;

final class ClientCommandsTest {

    @TempDir
    private Path folder = Path.of("");

    private static CacheServer server() throws Exception {
        return CacheServer.start(new ConfigReader(HostResources.detect(), Map.of())
                .read(
                        ConfigReader.Source.NONE,
                        Map.of(
                                "listen.port", new ConfigReader.Option("--port", "0"),
                                "memory.host_bytes", new ConfigReader.Option("--host-bytes", "64MiB"))));
    }

    private static String run(int expected, String... arguments) {
        StringWriter said = new StringWriter();
        CommandLine line = Kvcache.commandLine();
        line.setOut(new PrintWriter(said));
        line.setErr(new PrintWriter(said));
        assertThat(line.execute(arguments)).isEqualTo(expected);
        return said.toString();
    }

    @Test
    void givenAServer_whenUsedFromTheCommandLine_thenValuesComeBack() throws Exception {
        byte[] value = new byte[3_000_001];
        new Random(1).nextBytes(value);
        String file = Files.write(folder.resolve("value"), value).toString();
        Path copy = folder.resolve("copy");
        try (CacheServer server = server()) {
            String port = "--port=" + server.address().getPort();

            assertThat(run(0, "ping", port)).isEqualTo("PONG\n");
            assertThat(run(0, "put", port, "some key", file)).isEqualTo("stored 3000001 bytes\n");
            assertThat(run(0, "get", port, "some key", copy.toString())).isEmpty();
            assertThat(Files.readAllBytes(copy)).isEqualTo(value);
            assertThat(run(0, "stat", port)).contains("kvcache_version:", "values_stored:1");
            assertThat(run(0, "del", port, "some key")).isEqualTo("deleted\n");
            assertThat(run(1, "get", port, "some key")).isEqualTo("kvcache get: no such key: some key\n");
            assertThat(run(1, "del", port, "some key")).isEqualTo("kvcache del: no such key: some key\n");
        }
    }

    @Test
    void givenPutAndGet_whenAskedForHelp_thenTheFileMayBeLeftOut() {
        assertThat(CliRunner.run("put", "--help").out()).contains(" KEY [FILE]\n");
        assertThat(CliRunner.run("get", "--help").out()).contains(" KEY [FILE]\n");
    }

    @Test
    void givenAServerWithoutAGpu_whenAskedForOne_thenThatIsSaid() throws Exception {
        try (CacheServer server = server()) {
            String port = "--port=" + server.address().getPort();

            assertThat(run(0, "gpu", port)).isEqualTo("the server keeps no blocks on a GPU\n");
            assertThat(run(1, "gpu", "resize", port, "0", "1GiB")).contains("the server keeps no blocks on GPU 0");
            assertThat(run(2, "gpu", port, "resize", "0", "1GiB")).contains("options come behind resize");
            assertThat(run(2, "gpu", "resize", port, "0", "much")).contains("BYTES is 'much'; it takes a number with");
            assertThat(run(2, "gpu", "resize", port, "0", "1GiB", "--timeout", "601"))
                    .contains("--timeout is 601; it takes seconds, 0 to 600");
        }
    }

    @Test
    void givenNoServer_whenAsked_thenThatIsSaid() throws Exception {
        try (UnresponsivePort deaf = new UnresponsivePort()) {
            assertThat(run(1, "ping", "--port=" + deaf.number()))
                    .startsWith("kvcache: no server at 127.0.0.1:" + deaf.number() + ": ");
        }
    }

    /// Every command that asks a server, as it is typed.
    private static List<String> clientCommands(String prefix, CommandLine commands) {
        List<String> found = new ArrayList<>();
        commands.getSubcommands().forEach((name, command) -> {
            found.addAll(clientCommands(prefix + name + " ", command));
            if (command.getCommandSpec().findOption("--host") != null) {
                found.add(prefix + name);
            }
        });
        return found;
    }

    @Test
    void givenAServerThatStandsStill_whenAsked_thenEachCommandEndsAndSaysSo() throws Exception {
        Map<String, List<String>> arguments = Map.of(
                "put",
                        List.of(
                                "key",
                                Files.write(folder.resolve("value"), new byte[10])
                                        .toString()),
                "get", List.of("key"),
                "del", List.of("key"),
                "top", List.of("--once"),
                "disk reopen", List.of("0"),
                "gpu resize", List.of("0", "1GiB"));
        List<String> commands = clientCommands("", Kvcache.commandLine());
        assertThat(commands)
                .contains(
                        "ping",
                        "put",
                        "get",
                        "del",
                        "stat",
                        "top",
                        "events",
                        "disk list",
                        "gpu",
                        "gpu resize",
                        "cluster drain");
        // The system accepts connections to a process that stands still.
        try (ServerSocket still = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
                ExecutorService atOnce = Executors.newVirtualThreadPerTaskExecutor()) {
            Map<String, Future<CliRunner.CliResult>> results = new HashMap<>();
            for (String command : commands) {
                List<String> words = new ArrayList<>(List.of(command.split(" ")));
                words.add("--port=" + still.getLocalPort());
                words.addAll(arguments.getOrDefault(command, List.of()));
                results.put(command, atOnce.submit(() -> CliRunner.run(words.toArray(String[]::new))));
            }
            for (String command : commands) {
                CliRunner.CliResult result =
                        Objects.requireNonNull(results.get(command)).get(30, TimeUnit.SECONDS);
                assertThat(result.exitCode()).as(command).isEqualTo(1);
                assertThat(result.err())
                        .as(command)
                        .isEqualTo("kvcache: 127.0.0.1:" + still.getLocalPort() + " does not answer within 10 s; its"
                                + " process may stand still (SIGSTOP, swapping) or be overloaded, or the host is not"
                                + " reachable\n");
            }
        }
    }
}
