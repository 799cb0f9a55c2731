package io.kvcache.server.cli;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.BlockWriter;
import io.kvcache.core.KvCache;
import io.kvcache.core.contract.FreePorts;
import io.kvcache.core.contract.Pause;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.server.CacheServer;
import io.kvcache.server.cli.TopCommand.TopTable;
import io.kvcache.server.config.ConfigReader;
import io.kvcache.server.config.HostResources;
import io.kvcache.server.zmq.ZmqPublisher;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.node.ObjectNode;

/// `kvcache top`, `events` and `disk` with a server.
@Timeout(300)
@Tag("slow")
final class MonitoringCommandsTest {

    private static final JsonNode NO_SAMPLES = JsonMapper.shared().createArrayNode();

    /// More than any of the tables has.
    private static final int ROWS = 200;

    @TempDir
    private Path folder = Path.of("");

    private static CacheServer server(Map<String, String> more) throws Exception {
        Map<String, ConfigReader.Option> options = new HashMap<>();
        options.put("listen.port", new ConfigReader.Option("--port", "0"));
        options.put("memory.host_bytes", new ConfigReader.Option("--host-bytes", "96MiB"));
        more.forEach((path, text) -> options.put(path, new ConfigReader.Option(path, text)));
        return CacheServer.start(
                new ConfigReader(HostResources.detect(), Map.of()).read(ConfigReader.Source.NONE, options));
    }

    private static String run(int expected, String... arguments) {
        StringWriter said = new StringWriter();
        CommandLine line = Kvcache.commandLine();
        line.setOut(new PrintWriter(said));
        line.setErr(new PrintWriter(said));
        assertThat(line.execute(arguments)).as("%s", said).isEqualTo(expected);
        return said.toString();
    }

    @Test
    void givenAServer_whenWatched_thenWhatItDidIsShown() throws Exception {
        Path file = Files.write(folder.resolve("value"), new byte[1000]);
        try (CacheServer server = server(Map.of())) {
            String port = "--port=" + server.address().getPort();
            run(0, "put", port, "k", file.toString());
            run(0, "get", port, "k", folder.resolve("copy").toString());
            run(0, "del", port, "k");

            assertThat(run(0, "top", "--once", port))
                    .contains(" at 127.0.0.1:" + server.address().getPort(), "of 96 MiB")
                    .containsPattern("resp get +1 ")
                    .contains("memory x     0.5: 50 %  1: 50 %  2: 50 %  4: 50 %  of finds and puts, by LRU")
                    .containsPattern("default +0 +1 +100.0 +1 ")
                    .containsPattern("objects \\(default\\) +0 ");
            String events = run(0, "events", port, "--from-oldest", "--count=2");
            assertThat(events.lines()).hasSize(2);
            assertThat(events).containsPattern("^\\w+-0 stored \\{").containsPattern("\\w+-1 removed \\{.*dropped");
            String first = events.substring(0, events.indexOf(' '));
            assertThat(run(0, "events", port, "--after=" + first, "--count=1")).contains("-1 removed");
            assertThat(run(1, "events", port, "--after=nonsense")).contains("the server says 400: Last-Event-ID");
            assertThat(run(1, "disk", "reopen", port, "0")).contains("404: there is no disk 0; there are none");
        }
    }

    private static void putBlock(CacheServer server, int number) {
        Namespace model = Namespace.of("m", BlockShape.kv(1, 1, 8, 4, Dtype.BF16)).toBuilder()
                .tenant("default")
                .build();
        server.cache().register(model);
        BlockChain chain = BlockChain.of(model, new int[] {number, 1, 2, 3});
        try (BlockWriter writer = server.cache().put(chain, 0, 0, KvCache.NO_WAIT)) {
            writer.seal();
        }
    }

    @Test
    void givenAPublisher_whenFollowedOverZeroMq_thenWhatIsStoredIsShown() throws Exception {
        Map<String, String> events =
                Map.of("events.publish", "tcp://127.0.0.1:*", "events.replay", "tcp://127.0.0.1:*");
        try (CacheServer server = server(events)) {
            ZmqPublisher publisher = Objects.requireNonNull(server.publisher());
            String from = "--zmq=" + publisher.publishEndpoint();
            String replay = "--replay=" + publisher.replayEndpoint();
            putBlock(server, 1);
            while (publisher.publishedCount() == 0) {
                Pause.briefly(); // until it was told
            }
            assertThat(run(0, "events", from, replay, "--from-oldest", "--count=1"))
                    .containsPattern("^0 BlockStored \\{.*\"block_hashes\":\\[\\d+].*\"medium\":\"CPU\"");
            assertThat(run(0, "events", from, replay, "--snapshot", "--count=2").lines())
                    .satisfiesExactly(
                            line -> assertThat(line).startsWith("1 AllBlocksCleared "),
                            line -> assertThat(line).startsWith("1 BlockStored "));
            CompletableFuture<String> live =
                    CompletableFuture.supplyAsync(() -> run(0, "events", from, replay, "--after=0", "--count=2"));
            for (int number = 2; !live.isDone(); number++) {
                long before = publisher.publishedCount();
                putBlock(server, number);
                while (publisher.publishedCount() == before && !live.isDone()) {
                    Pause.briefly(); // so that they do not come faster than they can be published
                }
            }
            assertThat(live.get().lines())
                    .satisfiesExactly(
                            line -> assertThat(line).startsWith("1 BlockStored "),
                            line -> assertThat(line).startsWith("2 BlockStored "));
            assertThat(run(2, "events", from, "--snapshot")).contains("take --replay beside --zmq");
            assertThat(run(2, "events", replay)).contains("--replay is for --zmq");
            assertThat(run(2, "events", from, replay, "--after=x")).contains("takes the number of a message");
            assertThat(run(1, "events", "--zmq=nowhere")).contains("nowhere is not a ZeroMQ endpoint");
        }
    }

    @Test
    void givenNoPublisherYet_whenFollowedOverZeroMq_thenItWaitsAndSaysSoOnce() throws Exception {
        int port = FreePorts.take();
        String endpoint = "tcp://127.0.0.1:" + port;
        String waits = "waiting for a publisher at " + endpoint;
        StringWriter said = new StringWriter();
        CommandLine line = Kvcache.commandLine();
        line.setOut(new PrintWriter(said));
        line.setErr(new PrintWriter(said));
        CompletableFuture<Integer> following =
                CompletableFuture.supplyAsync(() -> line.execute("events", "--zmq=" + endpoint, "--count=1"));
        while (!said.toString().contains(waits)) {
            assertThat(following).isNotDone();
            Pause.briefly();
        }
        try (CacheServer server = server(Map.of("events.publish", endpoint))) {
            for (int number = 1; !following.isDone(); number++) {
                putBlock(server, number);
                Pause.briefly();
            }
        }
        assertThat(following.get()).isZero();
        assertThat(said.toString().lines())
                .satisfiesExactly(
                        first -> assertThat(first).isEqualTo(waits),
                        then -> assertThat(then)
                                .contains("BlockStored")
                                .contains("\"group_idx\":0,\"locality\":\"LOCAL\",\"ownership\":\"kvcache\""));
    }

    @Test
    void givenNoReplayEndpoint_whenAReplayIsAskedFor_thenThatIsSaid() throws Exception {
        int port = FreePorts.take();
        try (CacheServer server = server(Map.of("events.publish", "tcp://127.0.0.1:*"))) {
            String from = "--zmq=" + Objects.requireNonNull(server.publisher()).publishEndpoint();
            assertThat(run(1, "events", from, "--replay=tcp://127.0.0.1:" + port, "--snapshot"))
                    .contains("no ZeroMQ server at tcp://127.0.0.1:" + port);
        }
    }

    @Test
    void givenWhatIsStored_whenEventsBeginWithASnapshot_thenItComesFirst() throws Exception {
        try (CacheServer server = server(Map.of())) {
            putBlock(server, 1);
            assertThat(run(0, "events", "--port=" + server.address().getPort(), "--snapshot", "--count=3")
                            .lines())
                    .satisfiesExactly(
                            line -> assertThat(line).startsWith("- snapshot {\"entries\":1}"),
                            line -> assertThat(line).startsWith("- stored {"),
                            line -> assertThat(line).contains(" live {"));
        }
    }

    @Test
    void givenADisk_whenListedAndReopened_thenItsStateIsSaid() throws Exception {
        String disk = folder.resolve("disk").toString();
        try (CacheServer server = server(Map.of("disks.0", disk + ":256MiB"))) {
            String port = "--port=" + server.address().getPort();
            assertThat(run(0, "disk", "list", port)).isEqualTo("0 disk " + disk + " is serving\n");
            assertThat(run(0, "disk", "reopen", port, disk)).isEqualTo("0 disk " + disk + " is serving\n");
            assertThat(run(0, "top", "--once", port)).contains("disk " + disk).contains("serving");
            assertThat(run(2, "disk")).contains("list or reopen");
        }
    }

    @Test
    void givenNoServer_whenWatched_thenThatIsSaid() throws Exception {
        try (UnresponsivePort deaf = new UnresponsivePort()) {
            assertThat(run(1, "top", "--once", "--port=" + deaf.number()))
                    .startsWith("kvcache: no server at 127.0.0.1:" + deaf.number());
        }
    }

    @Test
    void givenTwoReadings_whenShown_thenRatesAreOfTheTimeBetween() {
        JsonNode before = stats(100);
        JsonNode now = stats(160);
        String text = new TopTable("here:1", before, now, NO_SAMPLES, 2).format(ROWS);
        assertThat(text)
                .contains("kvcache v at here:1", "the first sample comes 10 s after the start")
                .containsPattern("resp get +160 +30/s +20 +500");
        assertThat(new TopTable("here:1", null, now, NO_SAMPLES, 2).format(ROWS))
                .containsPattern("resp get +160 +- ");
    }

    @Test
    void givenDeclinedPutsAndAPolicyThatFollowsLru_whenShown_thenBothAreSaid() {
        String stats = stats(1).toString();
        String declining = stats.replace("\"noRoom\":0", "\"noRoom\":3,\"declined\":7")
                .replace(
                        "\"tenants\":{}",
                        "\"tenants\":{\"blue\":{\"keys\":1,\"reads\":{\"hits\":2},\"writes\":{\"stored\":4,\"refused\":5,"
                                + "\"declined\":6}}},\"policy\":{\"followsLru\":true,\"switches\":2,\"uses\":900,\"usesAsLru\":80,"
                                + "\"sampledUses\":200,\"hits\":50,\"lruHits\":60}");
        String text = new TopTable("here:1", null, JsonMapper.shared().readTree(declining), NO_SAMPLES, 2).format(ROWS);
        assertThat(text)
                .contains("refused for room 3, declined 7")
                .contains("policy       last use: in a sample importance finds 17 % less than LRU")
                .containsPattern("blue +1 +2 +100.0 +4 +5 +6\n");
        assertThat(new TopTable("here:1", null, stats(1), NO_SAMPLES, 2).format(ROWS))
                .doesNotContain("policy");
    }

    @Test
    void givenSamplesOfAMinute_whenShown_thenFoundSavedAndSlowestComeFirst() {
        JsonNode minute = JsonMapper.shared().readTree("""
                [{"memoryHits":880,"diskHits":50,"deviceHits":20,"misses":40,"tokensSaved":1500000,"requests":10,"p99Micros":800},
                 {"memoryHits":0,"diskHits":0,"deviceHits":0,"misses":10,"tokensSaved":0,"requests":2,"p99Micros":1250}]
                """);

        String text = new TopTable("here:1", null, stats(1), minute, 2).format(ROWS);

        assertThat(text.lines().skip(1))
                .first()
                .isEqualTo("last minute  found 95.0 % of 1,000   saved 1.5 M tokens   p99 1.25 ms");
    }

    @Test
    void givenMoreThanATerminalHolds_whenShown_thenEachTableKeepsRowsWithin80By23() {
        JsonMapper json = JsonMapper.shared();
        ObjectNode full = (ObjectNode) stats(1);
        full.set("policy", json.readTree("""
                {"followsLru":true,"switches":12,"uses":900000,"sampledUses":200,"hits":50,"lruHits":60}"""));
        full.set("memoryCurve", json.readTree("""
                {"uses":9,"sizes":[{"factor":0.5,"lruHitRatio":0.1},{"factor":1.0,"lruHitRatio":1},{"factor":2.0,
                "lruHitRatio":1},{"factor":4.0,"lruHitRatio":1}]}"""));
        for (int i = 0; i < 30; i++) {
            full.withObject("/latency").set("http blocks get " + i, json.readTree("""
                    {"count":123456789012,"p50Micros":20000,"p99Micros":500000}"""));
            full.withObject("/tenants").set("a tenant of a long name " + i, json.readTree("""
                    {"keys":123456789,"reads":{"hits":123456789012},"writes":{"stored":1,"refused":2,"declined":3}}"""));
            full.withArray("/namespaces").add(json.readTree("""
                    {"name":"meta-llama/Llama-3-70B-Instruct","tenant":"default","live":1234567890,
                    "liveBytes":9123456789012,"blocksAsked":123456789012,"blocksFound":1,"blocksArrived":1}"""));
            full.withArray("/disks").add(json.readTree("""
                    {"name":"disk /mnt/nvme%d/kvcache","state":"SERVING","loadedBytes":1,"readFailures":0}""".formatted(i)));
        }

        String text = new TopTable("here:1", null, full, NO_SAMPLES, 2).format(23);

        assertThat(text.lines())
                .hasSizeLessThanOrEqualTo(23)
                .allSatisfy(line -> assertThat(line).hasSizeLessThanOrEqualTo(80));
        assertThat(text)
                .containsPattern("REQUEST, \\d of 31 ")
                .containsPattern("TENANT, \\d of 30 ")
                .containsPattern("NAMESPACE, \\d of 30 ")
                .containsPattern("DISK, \\d of 30\n")
                .contains("disk /mnt/nvme0/kvcache");
    }

    private static JsonNode stats(int count) {
        return JsonMapper.shared().readTree("""
                {"version":"v","host":{"heldBytes":1,"capacityBytes":2},"records":{"live":1,"capacity":2},
                "connections":{"open":1},"openViews":0,"removals":{"evicted":0,"dropped":0,"replaced":0,"quota":0},
                "puts":{"noRoom":0},"latency":{"resp get":{"count":%d,"p50Micros":20,"p99Micros":500}},
                "tenants":{},"namespaces":[],"disks":[]}
                """.formatted(count));
    }
}
