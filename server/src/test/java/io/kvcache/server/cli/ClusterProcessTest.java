package io.kvcache.server.cli;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.sun.tools.attach.VirtualMachine;
import io.kvcache.core.contract.FreePorts;
import io.kvcache.server.cli.CliRunner.CliResult;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import javax.management.ObjectName;
import javax.management.remote.JMXConnector;
import javax.management.remote.JMXConnectorFactory;
import javax.management.remote.JMXServiceURL;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/// Servers in processes of their own that form a cluster, and one that is in none.
@Tag("slow")
@Timeout(300)
final class ClusterProcessTest {

    @TempDir
    private Path folder = Path.of("");

    private CompletableFuture<ServeCommandProcess> start(int number, List<Integer> ports, String... more) {
        List<String> seeds = ports.stream().map(port -> "127.0.0.1:" + port).toList();
        List<String> settings = new ArrayList<>(List.of(more));
        settings.addAll(List.of(
                "--transport",
                "127.0.0.1:0",
                "--set",
                "cluster.name=test",
                "--set",
                "cluster.node=kv-" + number,
                "--set",
                "cluster.listen=127.0.0.1:" + ports.get(number),
                "--set",
                "cluster.seeds=" + String.join(",", seeds)));
        return CompletableFuture.supplyAsync(() -> {
            try {
                return new ServeCommandProcess(
                        folder.resolve("errors-" + number), List.of("-Duser.home=" + folder), settings);
            } catch (IOException failed) {
                throw new UncheckedIOException(failed);
            }
        });
    }

    private static CliResult status(ServeCommandProcess server, String... more) {
        return run("status", server, more);
    }

    private static CliResult run(String command, ServeCommandProcess server, String... more) {
        List<String> arguments = new ArrayList<>(List.of("cluster", command, "--port=" + server.port()));
        arguments.addAll(List.of(more));
        return CliRunner.run(arguments.toArray(String[]::new));
    }

    /// Waits until all of these see the same, and all of them as serving.
    private static void awaitOneView(List<ServeCommandProcess> servers) throws InterruptedException {
        Set<String> views = new HashSet<>();
        do {
            TimeUnit.MILLISECONDS.sleep(100); // a look takes the processor that servers need to start
            views.clear();
            servers.forEach(server -> views.add(summary(server)));
        } while (views.size() > 1 || !views.iterator().next().startsWith(servers.size() + " serving "));
    }

    private static String summary(ServeCommandProcess server) {
        JsonNode page = JsonMapper.shared().readTree(status(server, "--json").out());
        long serving = IntStream.range(0, page.get("nodes").size())
                .filter(node ->
                        page.get("nodes").get(node).get("state").stringValue().equals("serving"))
                .count();
        return serving + " serving of " + page.get("nodes").size() + " "
                + page.get("digest").stringValue();
    }

    /// Starts a server at each port, all at once, and waits until they have one view.
    ///
    /// @param started is added to, so that its owner can end them
    private void startAll(List<Integer> ports, List<ServeCommandProcess> started) throws Exception {
        List<CompletableFuture<ServeCommandProcess>> starting = IntStream.range(0, ports.size())
                .mapToObj(number -> start(number, ports))
                .toList();
        for (CompletableFuture<ServeCommandProcess> each : starting) {
            started.add(each.join());
        }
        awaitOneView(started);
    }

    @Test
    void givenThreeServers_whenStartedAndOneStopped_thenStatusShowsOneView() throws Exception {
        List<Integer> ports = FreePorts.take(3);
        List<ServeCommandProcess> servers = new ArrayList<>();
        try {
            startAll(ports, servers);

            CliResult shown = status(servers.getFirst());
            assertThat(shown.exitCode()).isZero();
            assertThat(shown.out())
                    .startsWith("cluster test: 3 servers in view ")
                    .contains(" of kv-0, digest ")
                    .containsPattern("kv-0 +serving +33\\.3 % +0\\.0625 .* 127\\.0\\.0\\.1:\\d+ +- +- +\\S+ +\\S+\n")
                    .containsPattern("kv-1 +serving +33\\.3 %")
                    .containsPattern("kv-2 +serving +33\\.3 %");

            try (ServeCommandProcess last = servers.removeLast()) {
                last.terminate();
                last.awaitExit();
            }
            awaitOneView(servers);
            assertThat(status(servers.getFirst()).out())
                    .startsWith("cluster test: 2 servers in view ")
                    .containsPattern("(?m)^kv-2 left \\d+ s ago$")
                    .doesNotContain("kv-2  ");
            assertThat(Files.getPosixFilePermissions(folder.resolve(".kvcache/cluster.secret")))
                    .as("made by the first one")
                    .isEqualTo(PosixFilePermissions.fromString("rw-------"));
            assertThat(folder.resolve("errors-0")).content().doesNotContain("Exception", "SEVERE", "level=error");
            assertThatThrownBy(() -> readByJmx(servers.getFirst())).hasStackTraceContaining("REJECTED");
        } finally {
            for (ServeCommandProcess each : servers) {
                each.close();
            }
        }
    }

    /// Sends serialized objects, as JMX does.
    @SuppressWarnings("BanJNDI") // what is read is this test's own process
    private static void readByJmx(ServeCommandProcess server) throws Exception {
        VirtualMachine machine = VirtualMachine.attach(Long.toString(server.pid()));
        try (JMXConnector connector =
                JMXConnectorFactory.connect(new JMXServiceURL(machine.startLocalManagementAgent()))) {
            var _ = connector
                    .getMBeanServerConnection()
                    .getAttribute(ObjectName.getInstance("java.lang:type=Runtime"), "Name");
        } finally {
            machine.detach();
        }
    }

    @Test
    void givenASecretThatOthersMayRead_whenAServerStarts_thenItIsRefusedWithTheReason() throws Exception {
        Path secret = folder.resolve(".kvcache/cluster.secret");
        Files.createDirectory(secret.getParent());
        Files.writeString(secret, "0123456789abcdef0123456789abcdef");
        Files.setPosixFilePermissions(secret, PosixFilePermissions.fromString("rw-r--r--"));

        assertThatThrownBy(() -> start(0, FreePorts.take(1)).join().close()).isNotNull();

        assertThat(folder.resolve("errors-0"))
                .content()
                .contains("cluster.tls is not set, and the secret", secret + " has mode rw-r--r--");
    }

    @Test
    void givenTwoServers_whenOneIsDrained_thenItRunsOnUntilItIsStopped() throws Exception {
        List<Integer> ports = FreePorts.take(2);
        CompletableFuture<ServeCommandProcess> starting = start(0, ports);
        try (ServeCommandProcess drained = starting.join()) {
            CliResult refused = run("drain", drained);
            assertThat(refused.exitCode()).isEqualTo(1);
            assertThat(refused.err()).contains("the server says 409: this is the only server", "--force");

            try (ServeCommandProcess other = start(1, ports).join()) {
                awaitOneView(List.of(drained, other));

                CliResult done = run("drain", drained, "--wait");
                assertThat(done.exitCode()).as(done.err()).isZero();
                assertThat(done.out()).isEqualTo("""
                        kv-0 drains: it owns nothing any more, and hands over its blocks in memory and its values that \
                        never change.
                        Values that may change are lost to clients from now on; --undo does not bring them back.
                        handed over 0 chains, 0 blocks, 0 values; none are left
                        Next: stop the server by SIGTERM, or let it serve again by `kvcache cluster drain --port %d --undo`
                        """.formatted(drained.port()));
                assertThat(status(drained).out()).containsPattern("kv-0 +draining +0\\.0 %");
                assertThat(run("drain", drained, "--undo").out()).isEqualTo("kv-0 serves again\n");
                awaitOneView(List.of(drained, other));

                String hint = "kvcache cluster drain --port " + drained.port();
                assertThat(run("drain", drained).out()).contains("kv-0 drains", hint + " --wait`", hint + " --undo`");
                drained.terminate();
                drained.awaitExit();
                awaitOneView(List.of(other));
            }
        }
    }

    /// Asks for a key over RESP; the first line of the reply.
    private static String command(ServeCommandProcess server, String... words) throws IOException {
        StringBuilder request = new StringBuilder("*" + words.length + "\r\n");
        for (String word : words) {
            request.append('$')
                    .append(word.length())
                    .append("\r\n")
                    .append(word)
                    .append("\r\n");
        }
        try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), server.port())) {
            socket.getOutputStream().write(request.toString().getBytes(UTF_8));
            return String.valueOf(new BufferedReader(new InputStreamReader(socket.getInputStream(), UTF_8)).readLine());
        }
    }

    private static void signal(ServeCommandProcess server, String name) throws Exception {
        assertThat(new ProcessBuilder("kill", "-" + name, Long.toString(server.pid()))
                        .start()
                        .waitFor())
                .isZero();
    }

    /// A miss would say that the value has gone, and the client would go without.
    @Test
    void givenAnOwnerThatStandsStill_whenItsKeysAreRead_thenTheyAreNeverMissing() throws Exception {
        String[] patient = {"--set", "cluster.failure_after=60s"}; // the view stays as it is
        List<Integer> ports = FreePorts.take(2);
        List<CompletableFuture<ServeCommandProcess>> starting = IntStream.range(0, 2)
                .mapToObj(number -> start(number, ports, patient))
                .toList();
        try (ServeCommandProcess asked = starting.getFirst().join();
                ServeCommandProcess stopped = starting.getLast().join()) {
            awaitOneView(List.of(asked, stopped));
            for (int i = 0; i < 20; i++) {
                assertThat(command(asked, "SET", "key" + i, "v")).isEqualTo("+OK");
            }
            signal(stopped, "STOP");
            Set<String> replies = new HashSet<>();
            while (replies.stream().noneMatch(reply -> reply.startsWith("-TRYAGAIN kv-1 does not answer"))) {
                for (int i = 0; i < 20; i++) {
                    replies.add(command(asked, "GET", "key" + i));
                }
            }
            assertThat(command(asked, "MGET", "key0", "key1", "key2", "key3", "key4", "key5", "key6", "key7"))
                    .startsWith("-TRYAGAIN kv-1 does not answer");
            signal(stopped, "CONT");
            int found = 0;
            while (found < 20) {
                String reply = command(asked, "GET", "key" + found);
                replies.add(reply);
                found += reply.equals("$1") ? 1 : 0;
            }
            assertThat(replies).allMatch(reply -> reply.equals("$1") || reply.startsWith("-TRYAGAIN "));
        } finally {
            for (CompletableFuture<ServeCommandProcess> each : starting) {
                each.join().close();
            }
        }
    }

    /// The others go on connecting to it, and the system accepts that.
    @Test
    @Tag("nightly")
    void givenAServerThatStandsStillForLong_whenItIsOut_thenTheOthersStayTogether() throws Exception {
        List<Integer> ports = FreePorts.take(3);
        List<ServeCommandProcess> servers = new ArrayList<>();
        try {
            startAll(ports, servers);
            ServeCommandProcess stopped = servers.get(1);
            List<ServeCommandProcess> others = List.of(servers.getFirst(), servers.getLast());
            signal(stopped, "STOP");
            awaitOneView(others);
            long epoch = epoch(others.getFirst());
            for (int i = 0; i < 20; i++) {
                assertThat(command(others.get(i % 2), "SET", "key" + i, "v")).isEqualTo("+OK");
            }

            long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(90);
            while (System.nanoTime() - end < 0) {
                for (int i = 0; i < 20; i++) {
                    assertThat(command(others.get((i + 1) % 2), "GET", "key" + i))
                            .isEqualTo("$1");
                }
                TimeUnit.SECONDS.sleep(1);
            }
            assertThat(epoch(others.getFirst())).isEqualTo(epoch);

            signal(stopped, "CONT");
            awaitOneView(servers);
        } finally {
            for (ServeCommandProcess each : servers) {
                each.close();
            }
        }
    }

    private static long epoch(ServeCommandProcess server) {
        return JsonMapper.shared()
                .readTree(status(server, "--json").out())
                .get("epoch")
                .longValue();
    }

    @Test
    void givenAServerInNoCluster_whenRun_thenNoClassOfClustersIsLoaded() throws Exception {
        Path loaded = folder.resolve("loaded");
        try (ServeCommandProcess server = new ServeCommandProcess(
                folder.resolve("errors"), List.of("-Xlog:class+load:file=" + loaded), List.of())) {
            CliResult refused = status(server);
            assertThat(refused.exitCode()).isEqualTo(1);
            assertThat(refused.err()).contains("the server says 404: this server is in no cluster; cluster.name");
            server.terminate();
            server.awaitExit();
        }
        assertThat(Files.readString(loaded))
                .contains("io.kvcache.server.CacheServer ")
                .doesNotContain("org.jgroups.", "io.kvcache.cluster.");
    }
}
