package io.kvcache.server;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.kvcache.core.contract.Pause;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.server.access.PasswordHash;
import io.kvcache.server.config.ConfigReader;
import io.kvcache.server.config.HostResources;
import java.io.File;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.params.SetParams;
import tools.jackson.databind.JsonNode;

/// The console in a browser, over a server with a life behind it: two tenants, evictions by room and by quota, expired
/// and deleted values, a disk that lost bytes, failed and is reopened, and a cluster of three of which one has gone;
/// also over TLS and behind a proxy's path prefix.
///
/// Needs `npm`, Chromium (`apt-get install chromium`) and `prlimit` of util-linux. Screenshots of every page, in both
/// themes and three widths,
/// lie under `target/console` afterwards.
@Tag("nightly")
@Timeout(900)
final class ConsoleBrowserTest {

    private static final Path DRIVER = Path.of("src/test/browser");
    private static final Path WORK = Path.of("target/browser");
    private static final BlockShape SHAPE = BlockShape.kv(2, 8, 128, 16, Dtype.BF16);
    private static final Duration DISK_TIMEOUT = Duration.ofSeconds(5);
    private static final int PROMPTS = 120;
    private static final String TENANT_PAGES = "overview,prefixes,misses,requests,events";

    @TempDir
    private Path folder;

    private static boolean isOnPath(String program) {
        return Stream.of(System.getenv("PATH").split(File.pathSeparator))
                .anyMatch(each -> Files.isExecutable(Path.of(each, program)));
    }

    private static String run(Path where, List<String> command) throws IOException, InterruptedException {
        Process process = new ProcessBuilder(command)
                .directory(where.toFile())
                .redirectErrorStream(true)
                .start();
        String said = new String(process.getInputStream().readAllBytes(), UTF_8);
        assertThat(process.waitFor())
                .as(String.join(" ", command) + "\n" + said)
                .isZero();
        return said;
    }

    private static void installDriver() throws IOException, InterruptedException {
        Files.createDirectories(WORK);
        for (String file : List.of("package.json", "package-lock.json", "console.mjs")) {
            Files.write(WORK.resolve(file), Files.readAllBytes(DRIVER.resolve(file)));
        }
        if (!Files.isDirectory(WORK.resolve("node_modules"))) {
            run(WORK, List.of("npm", "ci", "--ignore-scripts", "--no-fund", "--no-audit"));
        }
    }

    private static void drive(String server, String pages, String out, List<String> more) throws Exception {
        List<String> command = new ArrayList<>(List.of(
                "node",
                "console.mjs",
                server,
                "--out",
                Path.of("target", out).toAbsolutePath().toString()));
        if (!pages.isEmpty()) {
            command.addAll(List.of("--pages", pages));
        }
        command.addAll(more);
        run(WORK, command);
    }

    private static List<String> with(List<String> arguments, String... more) {
        return Stream.concat(arguments.stream(), Stream.of(more)).toList();
    }

    private String settings(Path disk) {
        return """
                listeners:
                  - { name: open, address: 127.0.0.1, port: 0 }
                  - { name: passwords, address: 127.0.0.1, port: 0, auth: true, protocols: [pages, http, resp] }
                  - name: tls
                    address: 127.0.0.1
                    port: 0
                    auth: true
                    protocols: [pages, http]
                    tls: { keystore: %s, password_file: %s }
                tenants:
                  - { name: blue, password_hash: "%s", quota: 24MiB }
                  - { name: green, password_hash: "%s" }
                disks: [ { directory: %s, bytes: 256MiB } ]
                admission: always
                log: { slow: 1ms }
                """.formatted(
                folder.resolve("server.p12"), folder.resolve("password"), hash("bluepass"), hash("greenpass"), disk);
    }

    private static String hash(String password) {
        return PasswordHash.of(password, 1000, new SecureRandom()).toString();
    }

    /// A client of one tenant.
    private static final class Tenant implements AutoCloseable {

        private final CacheServer server;
        private final String name;
        private final Jedis redis;
        private final Random random = new Random(7);

        Tenant(CacheServer server, String name, String password) {
            this.server = server;
            this.name = name;
            redis = new Jedis("127.0.0.1", server.addresses().get(1).getPort(), 60_000);
            redis.auth(name, password);
            redis.clientSetname("worker-" + name);
        }

        /// Prompts of which many share a beginning: each is read until something is missing, and the rest is put.
        void usePrompts(String model) {
            EngineBlocks blocks = EngineBlocks.register(server, name, model, SHAPE);
            for (int prompt = 0; prompt < PROMPTS; prompt++) {
                int system = (int) Math.floor(Math.pow(random.nextDouble(), 2) * 4);
                int user = random.nextInt(30);
                List<String> keys = new ArrayList<>();
                for (int depth = 0; depth < 6; depth++) {
                    keys.add(
                            depth < 3
                                    ? "%02x%02x".formatted(system, depth)
                                    : "%02x%02x%02x".formatted(system, user, depth));
                }
                for (int index = blocks.read(keys, DISK_TIMEOUT); index < keys.size(); index++) {
                    blocks.put(keys.get(index), index == 0 ? "" : keys.get(index - 1));
                }
            }
        }

        /// Values that leave in each way, so many that the server that is looked at owns some of each.
        void useValues() {
            for (int i = 0; i < 12; i++) {
                redis.set("expires-" + i, "v", SetParams.setParams().px(20));
                redis.set("deleted-" + i * 7919, "v");
                redis.del("deleted-" + i * 7919);
                redis.set("<script>alert('key')</script>" + i, "v");
                redis.get("=never(\"seen\")" + i);
                redis.get("deleted-" + i * 7919);
            }
            for (int i = 0; i < 12; i++) {
                while (redis.exists("expires-" + i)) {
                    Pause.briefly();
                }
            }
            for (int i = 0; i < 60; i++) {
                redis.set("value-" + i, "x".repeat(800_000));
            }
            readValues();
        }

        /// As LMCache does: looks chunks up until one is missing, and writes the rest. What it found is not read, as
        /// that counts as tokens saved.
        void useChunks() {
            for (int prompt = 0; prompt < PROMPTS; prompt++) {
                int system = random.nextInt(3);
                int user = random.nextInt(20);
                boolean goesOn = true;
                for (int i = 0; i < 12; i++) {
                    String digest = i < 6 ? "aa%02x%02x".formatted(system, i) : "bb%02x%02x".formatted(user, i);
                    String key =
                            "meta-llama/Llama-3.1-8B-Instruct@2@" + user % 2 + "@" + digest.repeat(4) + "@bfloat16";
                    goesOn = goesOn && redis.exists(key + "metadata");
                    if (!goesOn) {
                        redis.set(key + "kv_bytes", "x".repeat(2000));
                        redis.set(key + "metadata", "m");
                    }
                }
            }
        }

        void readValues() {
            for (int i = 0; i < 60; i++) {
                redis.get("value-" + i);
            }
        }

        @Override
        public void close() {
            redis.close();
        }
    }

    private static JsonNode get(HttpTestClient client, String path) throws Exception {
        return HttpTestClient.json(client.get(path));
    }

    /// Cuts the disk's file short, reads what lay there, and gives the file its length back without the bytes.
    private static void loseBytes(HttpTestClient operator, Tenant tenant, Path disk) throws Exception {
        List<Path> files;
        try (Stream<Path> all = Files.walk(disk)) {
            files = all.filter(Files::isRegularFile)
                    .filter(each -> each.toFile().length() > 1 << 20)
                    .toList();
        }
        for (Path file : files) {
            try (RandomAccessFile cut = new RandomAccessFile(file.toFile(), "rw")) {
                long length = cut.length();
                cut.setLength(1 << 20);
                tenant.usePrompts("llama-3-8b");
                tenant.readValues();
                cut.setLength(length);
            }
        }
        assertThat(get(operator, "/v1/stats").at("/disks/0/readFailures").longValue())
                .isPositive();
    }

    /// Lets this process write no file beyond a size, as a disk that is full or broken would.
    private static void limitFiles(String bytes) throws Exception {
        run(
                WORK,
                List.of(
                        "prlimit",
                        "--pid",
                        Long.toString(ProcessHandle.current().pid()),
                        "--fsize=" + bytes + ":"));
    }

    /// Has the disk refuse writes until the server gives it up.
    private static void failDisk(HttpTestClient operator, Tenant tenant) throws Exception {
        limitFiles("1048576");
        try {
            for (int i = 0;
                    i < 600
                            && get(operator, "/v1/disks")
                                    .at("/disks/0/state")
                                    .stringValue()
                                    .equals("serving");
                    i++) {
                tenant.redis.set("refused-" + i, "x".repeat(800_000));
            }
        } finally {
            limitFiles("unlimited");
        }
        assertThat(get(operator, "/v1/disks").at("/disks/0/cause").stringValue())
                .isNotEmpty();
    }

    private static long sum(JsonNode objects, String path) {
        long sum = 0;
        for (JsonNode each : objects) {
            sum += each.at(path).longValue();
        }
        return sum;
    }

    /// History, statistics and metrics agree, at the latest with the next sample after the last request.
    private static void awaitEqualFigures(HttpTestClient operator) throws Exception {
        List<Long> fromHistory = List.of();
        List<Long> fromStats = List.of(0L);
        for (int i = 0; !fromHistory.equals(fromStats) && i < 60; i++) {
            TimeUnit.MILLISECONDS.sleep(500);
            JsonNode samples = get(operator, "/v1/history?minutes=240").get("samples");
            JsonNode stats = get(operator, "/v1/stats");
            JsonNode tenants = stats.get("tenants");
            JsonNode namespaces = stats.get("namespaces");
            fromHistory = List.of(
                    sum(samples, "/memoryHits") + sum(samples, "/diskHits"),
                    sum(samples, "/diskHits"),
                    sum(samples, "/evicted"),
                    sum(samples, "/tokensSaved"));
            fromStats = List.of(
                    sum(tenants, "/reads/hits") + sum(namespaces, "/blocksFound"),
                    sum(tenants, "/fromDisk") + sum(namespaces, "/blocksArrived"),
                    stats.at("/removals/evicted").longValue()
                            + stats.at("/removals/quota").longValue(),
                    16 * sum(namespaces, "/blocksFound"));
            if (fromHistory.equals(fromStats)) {
                assertThat(metric(operator, "kv_reads_total", "result=\"hit\"")).isEqualTo(sum(tenants, "/reads/hits"));
                assertThat(samples.get(samples.size() - 1).get("memoryBytes")).isEqualTo(stats.at("/host/heldBytes"));
            }
        }
        assertThat(fromHistory).isEqualTo(fromStats);
    }

    /// The sum of a metric's values with a label.
    private static long metric(HttpTestClient operator, String name, String label) throws Exception {
        return new String(operator.get("/metrics").body(), UTF_8)
                .lines()
                .filter(line -> line.startsWith(name + "{") && line.contains(label))
                .mapToLong(line -> (long) Double.parseDouble(line.substring(line.lastIndexOf(' '))))
                .sum();
    }

    @Test
    void givenAServerWithALifeBehindIt_whenABrowserGoesThroughEveryPage_thenNothingIsWrong() throws Exception {
        assumeTrue(isOnPath("npm"), "no npm on the PATH");
        assumeTrue(isOnPath("chromium"), "no Chromium on the PATH; Debian has it as the package chromium");
        assumeTrue(isOnPath("prlimit"), "no prlimit on the PATH; it is in the package util-linux");
        installDriver();
        TlsTest.makeKeystore("server", folder.resolve("server.p12"));
        Files.writeString(folder.resolve("password"), TlsTest.PASSWORD);
        Path disk = folder.resolve("a");
        String yaml = settings(disk);
        try (BusClusterServers cluster = new BusClusterServers(folder)) {
            CacheServer server = cluster.start("a", yaml);
            cluster.start("b", settings(folder.resolve("b")));
            cluster.start("c", settings(folder.resolve("c")));
            ConfigReader reader = new ConfigReader(new HostResources(1L << 30, 2), Map.of());
            reader.read(new ConfigReader.Source("kvcache.yaml", yaml), Map.of());
            server.showSettings(reader.settingsInForce());
            int open = server.addresses().getFirst().getPort();
            int passwords = server.addresses().get(1).getPort();
            try (Tenant blue = new Tenant(server, "blue", "bluepass");
                    Tenant green = new Tenant(server, "green", "greenpass");
                    HttpTestClient operator = new HttpTestClient(open)) {
                blue.usePrompts("llama-3-8b");
                green.usePrompts("<b>qwen</b>");
                blue.useValues();
                green.useValues();
                green.useChunks();
                cluster.stop("c");
                loseBytes(operator, blue, disk);
                JsonNode reasons = get(operator, "/v1/misses").get("reasons");
                for (String reason : List.of("never_seen", "expired", "deleted", "quota")) {
                    assertThat(reasons.get(reason).intValue())
                            .as("%s of %s", reason, reasons)
                            .isPositive();
                }
                awaitEqualFigures(operator);
                assertThat(get(operator, "/v1/prefixes").at("/chunks/models").size())
                        .isPositive();
                assertThat(sum(get(operator, "/v1/history?minutes=240").get("samples"), "/diskWrites"))
                        .isPositive();
                failDisk(operator, green); // just before it is looked at, as the store tries a failed disk again
                drive("http://127.0.0.1:" + open, "", "console", List.of("--reopen"));
                awaitEqualFigures(operator);
                List<String> asBlue = List.of("--user", "blue", "--password", "bluepass", "--widths", "1440");
                drive("http://127.0.0.1:" + passwords, TENANT_PAGES, "console-tenant", asBlue);
                int tls = server.addresses().get(2).getPort();
                drive("https://127.0.0.1:" + tls, TENANT_PAGES, "console-tls", with(asBlue, "--insecure"));
                drive(
                        "http://127.0.0.1:" + passwords,
                        TENANT_PAGES,
                        "console-prefix",
                        with(asBlue, "--behind", "/cache/one"));
            }
        }
    }
}
