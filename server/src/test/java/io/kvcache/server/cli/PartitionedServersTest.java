package io.kvcache.server.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.kvcache.cluster.TestAuthority;
import io.kvcache.cluster.TestNamespaces;
import io.kvcache.core.contract.TestJvm;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/// Five servers with certificates, each in its network namespace, a cut between three and two of them, and a client at
/// each side. Prints how long things took.
@Tag("nightly")
@Timeout(600)
final class PartitionedServersTest {

    private static final int SERVERS = 5;
    private static final int LEFT = 3;
    private static final String SECRET = "a secret of clients";
    private static final Duration CUT = Duration.ofSeconds(30);

    @TempDir
    private Path folder = Path.of("");

    /// A process of [PartitionClient].
    private record Client(Process process, BufferedReader out, Writer in) implements AutoCloseable {

        static Client start(TestNamespaces namespaces, int number, ServeCommandProcess server, Path errors)
                throws IOException {
            List<String> command = Stream.of(
                            namespaces.prefix(number),
                            List.of(TestJvm.program(), "--enable-native-access=ALL-UNNAMED"),
                            TestJvm.FLAGS,
                            List.of(
                                    "-cp",
                                    System.getProperty("java.class.path"),
                                    PartitionClient.class.getName(),
                                    "side" + number + "-",
                                    TestNamespaces.address(number) + ":7420",
                                    SECRET,
                                    String.valueOf(server.port())))
                    .flatMap(List::stream)
                    .toList();
            Process process =
                    new ProcessBuilder(command).redirectError(errors.toFile()).start();
            return new Client(process, process.inputReader(StandardCharsets.UTF_8), process.outputWriter());
        }

        synchronized String ask(String line) throws IOException {
            in.write(line + "\n");
            in.flush();
            return Objects.requireNonNull(out.readLine(), "the client has ended");
        }

        PartitionClient.Sums sums() throws IOException {
            return PartitionClient.Sums.parse(ask("sums"));
        }

        /// Waits until it sees so many servers, all of which serve.
        double awaitServers(int count) throws IOException, InterruptedException {
            long start = System.nanoTime();
            while (!ask("view").equals(count + " " + count)) {
                Thread.sleep(Duration.ofMillis(20));
            }
            return (System.nanoTime() - start) / 1e9;
        }

        @Override
        public void close() {
            process.destroyForcibly();
        }
    }

    private ServeCommandProcess serve(TestNamespaces namespaces, TestAuthority authority, int number) throws Exception {
        String name = "kv-" + number;
        var _ = authority.issue(name, name);
        Path secret = folder.resolve("secret");
        if (!Files.exists(secret)) {
            Files.createFile(
                    secret, PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")));
            Files.writeString(secret, SECRET);
        }
        List<String> seeds = IntStream.range(0, LEFT)
                .mapToObj(i -> TestNamespaces.address(i) + ":7421")
                .toList();
        Map<String, String> settings = new HashMap<>();
        settings.put("transport.secret_file", secret.toString());
        settings.put("cluster.name", "test");
        settings.put("cluster.node", name);
        settings.put("cluster.listen", TestNamespaces.address(number) + ":7421");
        settings.put("cluster.seeds", String.join(",", seeds));
        settings.put("cluster.tls.certificate", authority.file(name + ".pem").toString());
        settings.put("cluster.tls.key", authority.file(name + ".key").toString());
        settings.put("cluster.tls.authority", authority.file("authority").toString());
        List<String> options = new ArrayList<>(List.of("--transport", TestNamespaces.address(number) + ":7420"));
        settings.forEach((setting, value) -> options.addAll(List.of("--set", setting + "=" + value)));
        return new ServeCommandProcess(
                folder.resolve("errors-" + number), namespaces.prefix(number), List.of(), options);
    }

    @Test
    void givenClientsAtBothSides_whenTheCutIsMended_thenNothingHasFailedAndNoOldValueIsFound() throws Exception {
        assumeTrue(TestNamespaces.areAllowed(), "network namespaces need root and the command ip");
        List<AutoCloseable> open = new ArrayList<>();
        try (TestNamespaces namespaces = TestNamespaces.make(SERVERS, LEFT)) {
            try {
                TestAuthority authority = new TestAuthority(folder, "own");
                List<ServeCommandProcess> servers = new ArrayList<>();
                for (int i = 0; i < SERVERS; i++) {
                    servers.add(serve(namespaces, authority, i));
                    open.add(servers.getLast());
                }
                Client left = Client.start(namespaces, 0, servers.getFirst(), folder.resolve("left"));
                open.add(left);
                Client right = Client.start(namespaces, SERVERS - 1, servers.getLast(), folder.resolve("right"));
                open.add(right);
                run(namespaces, left, right);
            } finally {
                for (AutoCloseable each : open) {
                    each.close();
                }
            }
        }
    }

    private static void run(TestNamespaces namespaces, Client left, Client right)
            throws IOException, InterruptedException {
        var _ = left.awaitServers(SERVERS);
        var _ = right.awaitServers(SERVERS);
        Thread.sleep(Duration.ofSeconds(10));
        print("before", left, right);

        namespaces.cut();
        double leftAgrees = left.awaitServers(LEFT);
        double rightAgrees = leftAgrees + right.awaitServers(SERVERS - LEFT);
        System.out.printf("cut: sides agree after %.1f and %.1f s%n", leftAgrees, rightAgrees);
        Thread.sleep(CUT);
        print("cut", left, right);
        Map<String, String> newest = newest(left.ask("pause"), right.ask("pause"));
        assertThat(newest).hasSizeGreaterThan(50);

        namespaces.join();
        double mended = left.awaitServers(SERVERS);
        mended += right.awaitServers(SERVERS);
        System.out.printf("mended: one view after %.1f s%n", mended);
        for (Client each : List.of(left, right)) {
            values(each.ask("read"))
                    .forEach((key, value) -> assertThat(value).as(key).isEqualTo(newest.get(key)));
        }

        var _ = left.ask("go");
        var _ = right.ask("go");
        Thread.sleep(Duration.ofSeconds(10));
        print("after", left, right);
        for (Client each : List.of(left, right)) {
            PartitionClient.Sums sums = each.sums();
            assertThat(sums.errors()).as(each.ask("error")).isZero();
            assertThat(sums.wrong()).as(each.ask("error")).isZero();
        }
        assertThat(mended).isLessThan(20);
    }

    private static void print(String when, Client left, Client right) throws IOException {
        System.out.printf("%s: %s and %s%n", when, left.sums(), right.sums());
    }

    /// The value of each key that was acknowledged last at any side.
    private static Map<String, String> newest(String... lists) {
        Map<String, String> values = new HashMap<>();
        Map<String, Long> moments = new HashMap<>();
        for (String list : lists) {
            values(list).forEach((key, text) -> {
                long nanos = Long.parseLong(text.substring(text.indexOf('@') + 1));
                if (nanos - moments.getOrDefault(key, Long.MIN_VALUE / 2) > 0) {
                    moments.put(key, nanos);
                    values.put(key, text.substring(0, text.indexOf('@')));
                }
            });
        }
        return values;
    }

    private static Map<String, String> values(String list) {
        Map<String, String> values = new HashMap<>();
        for (String entry : list.isEmpty() ? new String[0] : list.split(" ", -1)) {
            int at = entry.indexOf('=');
            values.put(entry.substring(0, at), entry.substring(at + 1));
        }
        return values;
    }
}
