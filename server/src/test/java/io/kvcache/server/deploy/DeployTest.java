package io.kvcache.server.deploy;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.kvcache.core.contract.TestJvm;
import io.kvcache.server.cli.Kvcache;
import io.kvcache.server.config.ConfigReader;
import io.kvcache.server.config.ConfigReader.Option;
import io.kvcache.server.config.ConfigReader.Source;
import io.kvcache.server.config.HostResources;
import io.kvcache.server.config.ListenerConfig;
import io.kvcache.server.config.ServerConfig;
import io.kvcache.server.image.ImageEntry;
import io.kvcache.server.lm.LmTestClient;
import java.io.BufferedReader;
import java.io.IOException;
import java.net.InetAddress;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.snakeyaml.engine.v2.api.Load;
import org.snakeyaml.engine.v2.api.LoadSettings;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/// The files of `deploy/`: what can be tried without the programs that read them.
@Tag("slow")
final class DeployTest {

    private static final Path DEPLOY = Path.of("..", "deploy").toAbsolutePath().normalize();
    private static final Pattern SERVES = Pattern.compile("KVCache \\S+ serves at 127\\.0\\.0\\.1:(\\d+).*");
    private static final Pattern METRIC = Pattern.compile("\\b(?:kv|cache|jvm|process)_[a-z0-9_]+");

    @TempDir
    private Path folder = Path.of("");

    private String protocol = "auto";

    private interface Use {
        void of(int port) throws Exception;
    }

    /// The systemd unit's command.
    private static ProcessBuilder entry(String... arguments) {
        List<String> command = new ArrayList<>(List.of(DEPLOY.resolve("entry").toString()));
        command.addAll(List.of(arguments));
        ProcessBuilder builder = new ProcessBuilder(command);
        builder.environment().put("KVCACHE_CLASSPATH", System.getProperty("java.class.path"));
        return builder;
    }

    /// The image's entry, as the kernel starts it.
    ///
    /// @param called the path by which it is called
    private ProcessBuilder image(String called, String... arguments) {
        List<String> command = new ArrayList<>(List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-Xmx32m",
                "-XX:+UseSerialGC",
                "--enable-native-access=ALL-UNNAMED",
                "-cp",
                System.getProperty("java.class.path"),
                ImageEntry.class.getName(),
                called));
        command.addAll(List.of(arguments));
        ProcessBuilder builder = new ProcessBuilder(command);
        builder.environment().remove("KVCACHE_CLASSPATH");
        builder.environment()
                .putAll(Map.of(
                        "KVCACHE_JAVA_OPTS",
                        "-Xmx512m -XX:MaxDirectMemorySize=512m " + String.join(" ", TestJvm.FLAGS),
                        "KVCACHE__MEMORY__HOST_BYTES",
                        "64MiB",
                        "KVCACHE_DISK_BYTES",
                        "64MiB"));
        if (!protocol.isEmpty()) {
            builder.environment().put("KVCACHE_PROTOCOL", protocol);
        }
        return builder;
    }

    /// Runs what the image would run, uses it, and stops it as a container is stopped.
    private String served(Use use, String called, String... arguments) throws Exception {
        Process process = image(called, arguments)
                .redirectError(folder.resolve("errors").toFile())
                .start();
        try (BufferedReader said = process.inputReader(UTF_8)) {
            Matcher serves = SERVES.matcher(String.valueOf(said.readLine()));
            assertThat(serves.matches()).as(() -> errors()).isTrue();
            use.of(Integer.parseInt(serves.group(1)));
            assertThat(process.toHandle().destroy()).isTrue();
            assertThat(process.waitFor(120, TimeUnit.SECONDS)).isTrue();
            assertThat(process.exitValue()).isZero();
            return said.readAllAsString();
        } finally {
            process.destroyForcibly();
        }
    }

    private String errors() {
        try {
            return Files.readString(folder.resolve("errors"));
        } catch (IOException none) {
            return "nothing was said";
        }
    }

    private static String page(int port, String path) throws IOException, InterruptedException {
        try (HttpClient client =
                HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build()) {
            return client.send(
                            HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + path))
                                    .build(),
                            BodyHandlers.ofString())
                    .body();
        }
    }

    private static void probeThenStore(int port) throws Exception {
        probeAndStore(port);
        requireNoErrors(port);
    }

    private static void probeAndStore(int port) throws Exception {
        for (int i = 0; i < 5; i++) {
            new Socket(InetAddress.getLoopbackAddress(), port).close();
        }
        byte[] value = "value".getBytes(US_ASCII);
        try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), port)) {
            socket.getOutputStream().write(new LmTestClient().put("k", LmTestClient.META, value));
            socket.getOutputStream().write(new LmTestClient().ask(LmTestClient.GET, "k"));
            ByteBuffer head =
                    ByteBuffer.wrap(socket.getInputStream().readNBytes(36)).order(ByteOrder.LITTLE_ENDIAN);
            assertThat(head.getInt()).isEqualTo(200);
            assertThat(socket.getInputStream().readNBytes(head.getInt())).isEqualTo(value);
        }
    }

    private static void requireNoErrors(int port) throws Exception {
        String metrics = page(port, "/metrics");
        assertThat(metrics)
                .contains(
                        "kv_connections_closed_total{reason=\"bug\"} 0.0",
                        "kv_connections_closed_total{reason=\"io_error\"} 0.0",
                        "kv_connections_closed_total{reason=\"unknown_protocol\"} 0.0",
                        "kv_connections_closed_total{reason=\"protocol_error\"} 0.0");
    }

    @Test
    void givenLmcachesCommand_whenRun_thenItServesLmAndProbesAreNoErrors() throws Exception {
        String said = served(DeployTest::probeThenStore, "/usr/local/bin/lmcache_server", "127.0.0.1", "0", "cpu");

        assertThat(said).endsWith("KVCache stopped\n").doesNotContain("disk ");
        assertThat(errors()).doesNotContain("SEVERE", "Exception");
    }

    @Test
    @Tag("nightly")
    void givenLmcachesCommandWithADirectory_whenRun_thenItIsADisk() throws Exception {
        String said = served(
                DeployTest::probeThenStore,
                "/usr/local/bin/kvcache",
                "python3",
                "-m",
                "lmcache.v1.server",
                "127.0.0.1",
                "0",
                folder.resolve("disk").toString());

        assertThat(said).contains("  disk " + folder.resolve("disk") + ": 64 MiB, ");
    }

    @Test
    @Tag("nightly")
    void givenTheNamesOfLmcachesChart_whenRun_thenTheyServeAndItsProbeAnswers() throws Exception {
        protocol = "";

        String said = served(
                port -> {
                    assertThat(probed(port)).isZero();
                    probeAndStore(port);
                },
                "/opt/venv/bin/lmcache_server",
                "127.0.0.1",
                "0",
                "cpu");

        assertThat(said).endsWith("KVCache stopped\n");
        assertThat(probed(1)).as("a port without a listener").isEqualTo(2);
    }

    private int probed(int port) throws Exception {
        return image("/opt/venv/bin/python3", "/examples/health_probe.py", "127.0.0.1", port + "")
                .start()
                .waitFor();
    }

    @Test
    void givenLmcachesCommandMisspelt_whenRun_thenItIsRefused() throws Exception {
        for (List<String> wrong : List.of(
                List.of("lmcache_server", "127.0.0.1"),
                List.of("lmcache_server", "127.0.0.1", "0", "gpu"),
                List.of("python3", "-c", "print()"))) {
            Process process = image("/usr/local/bin/kvcache", wrong.toArray(String[]::new))
                    .start();
            assertThat(new String(process.getErrorStream().readAllBytes(), UTF_8))
                    .startsWith("kvcache: ");
            assertThat(process.waitFor()).isEqualTo(2);
        }
    }

    @Test
    void givenAnOldJvmOrNone_whenRun_thenItSaysWhatToSet() throws Exception {
        Path old = Files.createDirectories(folder.resolve("jdk/bin"));
        Path java = Files.writeString(old.resolve("java"), "");
        assertThat(java.toFile().setExecutable(true)).isTrue();
        Files.writeString(folder.resolve("jdk/release"), "JAVA_VERSION=\"17.0.1\"\n");
        assertThat(refused(folder.resolve("jdk"))).contains(java + " is of version 17: set JAVA_HOME");
        assertThat(refused(folder.resolve("nowhere"))).contains("there is no JVM at", "nowhere/bin/java");
    }

    private String refused(Path home) throws Exception {
        ProcessBuilder builder = entry("help");
        builder.environment().put("JAVA_HOME", home.toString());
        Process process = builder.start();
        String errors = new String(process.getErrorStream().readAllBytes(), UTF_8);
        assertThat(process.waitFor()).isEqualTo(2);
        return errors;
    }

    @Test
    void givenTheImagesSettings_whenRead_thenNothingIsWrongAndDataAsksForPasswords() throws Exception {
        String text = Files.readString(DEPLOY.resolve("kvcache.yaml"));
        ServerConfig config = new ConfigReader(new HostResources(8L << 30, 4), Map.of())
                .read(
                        new Source("kvcache.yaml", text),
                        Map.of("disks.0", new Option("--disk", "/var/lib/kvcache:32GiB")));

        ListenerConfig data = config.access().listeners().getFirst();
        assertThat(data.auth().auth()).isTrue();
        assertThat(config.disks().disks()).hasSize(1);
    }

    @Test
    void givenTheClustersSettings_whenRead_thenNothingIsWrongAndOnlyAnAddressIsMissing() throws Exception {
        String text = Files.readString(DEPLOY.resolve("kubernetes/overlays/three/kvcache.yaml"));
        ServerConfig config = new ConfigReader(
                        new HostResources(8L << 30, 4),
                        Map.of("KVCACHE__CLUSTER__LISTEN", "10.0.0.5:7421", "KVCACHE__CLUSTER__DNS", "nodes:7421"))
                .read(new Source("kvcache.yaml", text), Map.of());

        assertThat(config.cluster())
                .isNotNull()
                .satisfies(cluster -> assertThat(cluster.tls()).isNotNull());
        assertThat(config.transport().requiresSecret(config.access().tenants())).isTrue();
        assertThat(Files.readString(DEPLOY.resolve("cluster-compose.yaml")))
                .contains(
                        "KVCACHE__CLUSTER__LISTEN",
                        "[serve, --config, /etc/kvcache/kvcache.yaml",
                        "- ./kubernetes/overlays/three/kvcache.yaml:/etc/kvcache/kvcache.yaml:ro");
    }

    @Test
    void givenYamlFiles_whenRead_thenTheyAreWellFormed() throws IOException {
        try (var files = Files.walk(DEPLOY)) {
            List<Path> yaml = files.filter(file ->
                            file.toString().endsWith(".yaml") || file.toString().endsWith(".yml"))
                    .toList();
            assertThat(yaml).hasSizeGreaterThanOrEqualTo(9);
            for (Path file : yaml) {
                Load load = new Load(
                        LoadSettings.builder().setLabel(file.toString()).build());
                assertThat(load.loadAllFromString(Files.readString(file)))
                        .as(file.toString())
                        .isNotEmpty()
                        .doesNotContainNull();
            }
        }
    }

    @Test
    void givenDashboardAndAlerts_whenTheirMetricsAreLookedUp_thenTheServerHasEachOfThem() throws Exception {
        Set<String> named = new TreeSet<>();
        JsonNode dashboard = JsonMapper.builder()
                .build()
                .readTree(Files.readString(DEPLOY.resolve("grafana").resolve("kvcache.json")));
        List<JsonNode> expressions = dashboard.findValues("expr");
        assertThat(expressions).hasSizeGreaterThan(20);
        expressions.forEach(each -> addMetrics(named, each.stringValue()));
        assertThat(named).hasSizeGreaterThan(20);
        addMetrics(named, dashboard.path("templating").toString());
        Files.readAllLines(DEPLOY.resolve("prometheus").resolve("alerts.yml")).stream()
                .filter(line -> line.strip().startsWith("expr:"))
                .forEach(line -> addMetrics(named, line));

        assertThat(named)
                .contains(
                        "kv_request_seconds_bucket",
                        "kv_memory_lru_hit_ratio",
                        "kv_reads_from_disk_total",
                        "kv_disk_latency_seconds_bucket",
                        "kv_disk_budget_ratio",
                        "kv_tls_certificate_expiry_seconds");
        served(
                port -> {
                    page(port, "/health/live"); // so that there is a request whose time is known
                    Set<String> there = page(port, "/metrics")
                            .lines()
                            .filter(line -> !line.startsWith("#"))
                            .map(line -> line.split("[{ ]", 2)[0])
                            .collect(Collectors.toSet());
                    assertThat(there).containsAll(named);
                },
                "serve",
                "--config",
                withTls().toString(),
                "--disk",
                folder.resolve("disk") + ":64MiB");
    }

    /// Settings with a listener that speaks TLS beside one that has the metrics.
    private Path withTls() throws Exception {
        Path store = folder.resolve("server.p12");
        String arguments = "-genkeypair -alias server -keyalg EC -groupname secp256r1 -dname CN=here"
                + " -ext SAN=IP:127.0.0.1 -storetype PKCS12 -storepass changeit -validity 2 -keystore";
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "keytool").toString());
        command.addAll(List.of(arguments.split(" ", -1)));
        command.add(store.toString());
        Process keytool = new ProcessBuilder(command).redirectErrorStream(true).start();
        String said = new String(keytool.getInputStream().readAllBytes(), UTF_8);
        assertThat(keytool.waitFor()).as(said).isZero();
        Path secret = Files.writeString(folder.resolve("secret"), "changeit\n");
        assertThat(secret.toFile().setReadable(false, false)).isTrue();
        assertThat(secret.toFile().setReadable(true, true)).isTrue();
        return Files.writeString(
                folder.resolve("tls.yaml"),
                "listeners:\n  - { name: plain, port: 0 }\n  - { name: tls, port: 0, tls: { keystore: " + store
                        + ", password_file: " + secret + " } }\n");
    }

    @Test
    void givenTheAlerts_whenPromtoolIsThere_thenItFindsNothingWrong() throws Exception {
        Path promtool = Path.of("/usr/bin/promtool");
        assumeTrue(Files.isExecutable(promtool), "promtool is not installed");
        Process check = new ProcessBuilder(
                        promtool.toString(),
                        "check",
                        "rules",
                        DEPLOY.resolve("prometheus").resolve("alerts.yml").toString())
                .redirectErrorStream(true)
                .start();
        String said = new String(check.getInputStream().readAllBytes(), UTF_8);
        assertThat(check.waitFor()).as(said).isZero();
    }

    @Test
    void givenTheDashboard_whenItsPanelsAreLookedAt_thenNoneLiesOnAnother() throws Exception {
        JsonNode panels = JsonMapper.builder()
                .build()
                .readTree(Files.readString(DEPLOY.resolve("grafana").resolve("kvcache.json")))
                .path("panels");
        Set<String> taken = new TreeSet<>();
        Set<Integer> ids = new TreeSet<>();
        for (JsonNode panel : panels) {
            JsonNode at = panel.path("gridPos");
            assertThat(ids.add(panel.path("id").intValue()))
                    .as(panel.path("title").stringValue())
                    .isTrue();
            assertThat(at.path("x").intValue() + at.path("w").intValue()).isLessThanOrEqualTo(24);
            for (int y = at.path("y").intValue();
                    y < at.path("y").intValue() + at.path("h").intValue();
                    y++) {
                for (int x = at.path("x").intValue();
                        x < at.path("x").intValue() + at.path("w").intValue();
                        x++) {
                    assertThat(taken.add(x + " " + y))
                            .as(panel.path("title").stringValue())
                            .isTrue();
                }
            }
        }
        assertThat(ids).hasSizeGreaterThan(30);
    }

    private static void addMetrics(Set<String> to, String text) {
        Matcher metrics = METRIC.matcher(text);
        while (metrics.find()) {
            to.add(metrics.group());
        }
    }

    @Test
    void givenTheUnit_whenRead_thenItStartsWhatThereIsAndWaitsLongerThanTheServerDrains() throws IOException {
        String unit = Files.readString(DEPLOY.resolve("kvcache.service"));
        Matcher stop = Pattern.compile("TimeoutStopSec=(\\d+)").matcher(unit);
        assertThat(stop.find()).isTrue();
        assertThat(Long.parseLong(stop.group(1)))
                .isGreaterThan(ServerConfig.defaults(new HostResources(8L << 30, 4))
                        .shutdown()
                        .drain()
                        .toSeconds());
        assertThat(Kvcache.commandLine().getSubcommands()).containsKey("serve");
        assertThat(unit).contains("kvcache serve --config ");
    }
}
