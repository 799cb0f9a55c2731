package io.kvcache.server;

import static io.kvcache.server.BusClusterServers.CHAINS;
import static io.kvcache.server.BusClusterServers.await;
import static io.kvcache.server.BusClusterServers.found;
import static io.kvcache.server.BusClusterServers.putAll;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.contract.FreePorts;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.server.config.ConfigReader;
import io.kvcache.server.config.HostResources;
import io.kvcache.server.config.ServerConfig;
import io.kvcache.transport.cluster.NodeState;
import io.kvcache.transport.peer.ClusteredKvCache;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.JsonNode;

/// An operator drains a server over HTTP, and it goes on running.
final class ClusterDrainTest {

    private static final String PATH = "/v1/cluster/drain";

    /// A shape with blocks of 64 KiB.
    private static final BlockShape SHAPE = BlockShape.kv(1, 8, 128, 16, Dtype.BF16);

    private BusClusterServers servers;

    @BeforeEach
    void open(@TempDir Path folder) {
        servers = new BusClusterServers(folder);
    }

    @AfterEach
    void close() {
        servers.close();
    }

    private static HttpTestClient client(CacheServer server) {
        return new HttpTestClient(server.address().getPort());
    }

    private static HttpResponse<byte[]> undo(HttpTestClient client) throws Exception {
        return client.send(client.request(PATH).DELETE());
    }

    private static String text(HttpResponse<byte[]> reply) {
        return reply.statusCode() + " " + new String(reply.body(), UTF_8);
    }

    @Test
    void givenTwoServers_whenOneIsAskedForTheirLoad_thenItAsksTheOther() throws Exception {
        CacheServer asked = servers.start("a", false);
        CacheServer other = servers.start("b", false);
        EngineBlocks blocks = EngineBlocks.register(other, "default", "m", SHAPE);
        for (int block = 0; block < 20; block++) {
            assertThat(blocks.put("%04x".formatted(block), "")).isTrue();
        }
        try (HttpTestClient client = client(asked)) {
            JsonNode loads = HttpTestClient.json(client.get("/v1/cluster/load")).get("servers");
            assertThat(loads.findValuesAsString("name")).containsExactly("a", "b");
            assertThat(loads.get(0).get("heldBytes").longValue()).isZero();
            assertThat(loads.get(1).get("reachable").booleanValue()).isTrue();
            assertThat(loads.get(1).get("stored").longValue()).isEqualTo(20);
            assertThat(loads.get(1).get("heldBytes").longValue()).isGreaterThanOrEqualTo(20 * (64 << 10));
            assertThat(loads.get(1).get("heldOverMean").doubleValue()).isEqualTo(2);
        }
    }

    @Test
    void givenAListenerThatAnyoneReaches_whenAskedToChangeSomething_thenItShowsPagesAndRefuses() throws Exception {
        String yaml = """
                listeners:
                  - { name: health, address: 0.0.0.0, port: 0, protocols: [pages] }
                  - { name: own, port: 0 }
                allow_unauthenticated: [health]
                memory: { host_bytes: 64MiB }
                transport: { listen: "off" }
                """;
        ServerConfig config = new ConfigReader(new HostResources(1L << 30, 2), Map.of())
                .read(new ConfigReader.Source("f", yaml), Map.of());
        try (CacheServer server = CacheServer.start(config);
                HttpTestClient open =
                        new HttpTestClient(server.addresses().getFirst().getPort());
                HttpTestClient own =
                        new HttpTestClient(server.addresses().get(1).getPort())) {
            assertThat(text(open.post(PATH, ""))).startsWith("403 ").contains("listeners.0", "takes GET and HEAD only");
            assertThat(text(open.post("/v1/disks/0/reopen", ""))).startsWith("403 ");
            assertThat(text(open.get("/v1/disks"))).startsWith("200 ");
            assertThat(text(own.post(PATH, ""))).startsWith("404 ").contains("in no cluster");
        }
    }

    private static JsonNode progress(HttpTestClient client) {
        try {
            return HttpTestClient.json(client.get(PATH));
        } catch (IOException failed) {
            throw new UncheckedIOException(failed);
        } catch (InterruptedException stopped) {
            throw new IllegalStateException(stopped);
        }
    }

    private static void awaitHandover(HttpTestClient client) throws InterruptedException {
        await(() -> !progress(client).at("/handover/running").booleanValue());
    }

    private static NodeState state(ClusteredKvCache cache) {
        return Objects.requireNonNull(cache.view().node("kv-0")).state();
    }

    @Test
    void givenAServerWithBlocks_whenItIsDrained_thenTheOtherOneHasThemAndItGoesOnRunning() throws Exception {
        CacheServer drained = servers.start("kv-0", false);
        servers.start("kv-1", false);
        try (ClusteredKvCache cache = servers.client(servers.address("kv-1"));
                HttpTestClient client = client(drained)) {
            putAll(cache);
            int had = servers.foundAt("kv-0");
            assertThat(had).isBetween(1, CHAINS - 1);

            HttpResponse<byte[]> reply = client.post(PATH, "");

            assertThat(reply.statusCode()).isEqualTo(202);
            assertThat(HttpTestClient.json(reply).get("state").stringValue()).isEqualTo("draining");
            awaitHandover(client);
            JsonNode over = progress(client);
            assertThat(over.get("othersServing").intValue()).isEqualTo(1);
            assertThat(over.at("/handover/blocks").intValue()).isEqualTo(had);
            assertThat(over.at("/handover/chains").intValue()).isPositive();
            assertThat(over.at("/handover/left").intValue()).isZero();
            assertThat(text(client.get("/health/ready"))).isEqualTo("503 draining\n");
            assertThat(text(client.get("/health/live"))).startsWith("200");
            await(() -> state(cache) == NodeState.DRAINING);
            assertThat(servers.foundAt("kv-1")).isEqualTo(CHAINS);
            assertThat(found(cache)).isEqualTo(CHAINS);
        }
    }

    @Test
    void givenADrainedServer_whenItStops_thenNothingIsGivenTwice() throws Exception {
        CacheServer drained = servers.start("kv-0", false);
        servers.start("kv-1", false);
        try (ClusteredKvCache cache = servers.client(servers.address("kv-1"));
                HttpTestClient client = client(drained)) {
            putAll(cache);
            client.post(PATH, "");
            awaitHandover(client);
            JsonNode over = progress(client);

            drained.handOver(Duration.ofSeconds(10));

            assertThat(progress(client)).isEqualTo(over);
            assertThat(text(client.get("/health/ready"))).isEqualTo("503 leaving\n");
            assertThat(text(undo(client))).startsWith("409").contains("this server stops already");
            assertThat(text(client.post(PATH, ""))).startsWith("409").contains("this server stops already");
        }
    }

    @Test
    void givenADrainedServer_whenTheDrainIsUndone_thenItServesAndADrainGivesWhatCameSince() throws Exception {
        CacheServer drained = servers.start("kv-0", false);
        servers.start("kv-1", false);
        try (ClusteredKvCache cache = servers.client(servers.address("kv-1"));
                HttpTestClient client = client(drained)) {
            client.post(PATH, "");
            awaitHandover(client);
            assertThat(progress(client).at("/handover/blocks").intValue()).isZero();

            assertThat(undo(client).statusCode()).isEqualTo(200);
            assertThat(text(client.get("/health/ready"))).isEqualTo("200 ready\n");
            await(() -> state(cache) == NodeState.SERVING);
            putAll(cache);
            int has = servers.foundAt("kv-0");
            assertThat(has).isPositive();
            assertThat(undo(client).statusCode()).as("a second time").isEqualTo(200);
            drained.handOver(Duration.ofSeconds(10));

            assertThat(progress(client).at("/handover/chains").intValue()).isPositive();
            assertThat(servers.foundAt("kv-1")).isEqualTo(CHAINS);
        }
    }

    @Test
    void givenTheOnlyServer_whenItIsDrained_thenItRefusesUnlessForced() throws Exception {
        try (HttpTestClient client = client(servers.start("kv-0", false))) {
            assertThat(text(client.post(PATH, "")))
                    .startsWith("409")
                    .contains("urn:kvcache:problem:only-server", "no server would own anything");
            assertThat(text(client.get("/health/ready"))).isEqualTo("200 ready\n");

            assertThat(client.post(PATH + "?force=true", "").statusCode()).isEqualTo(202);
            awaitHandover(client);
            assertThat(progress(client).get("othersServing").intValue()).isZero();
            assertThat(progress(client).at("/handover/chains").intValue()).isZero();
            assertThat(undo(client).statusCode()).isEqualTo(200);
        }
    }

    @Test
    void givenAPageOfAnotherSite_whenItAsksForADrain_thenItIsRefused() throws Exception {
        CacheServer server = servers.start("kv-0", false);
        servers.start("kv-1", false);
        try (HttpTestClient client = client(server)) {
            HttpResponse<byte[]> reply = client.send(client.request(PATH)
                    .header("Origin", "http://elsewhere.example")
                    .POST(BodyPublishers.noBody()));

            assertThat(reply.statusCode()).isEqualTo(403);
            assertThat(text(client.get("/health/ready"))).isEqualTo("200 ready\n");
        }
    }

    @Test
    void givenAServerThatJoins_whenItIsDrained_thenItRefuses() throws Exception {
        int port = FreePorts.take();
        List<String> meanwhile = new ArrayList<>();
        TestMembership membership = new TestMembership(() -> {
            try (HttpTestClient client = new HttpTestClient(port)) {
                meanwhile.add(text(client.post(PATH, "")));
                meanwhile.add(text(undo(client)));
            } catch (Exception failed) {
                throw new IllegalStateException(failed);
            }
        });
        try (CacheServer server = membership.serve(port);
                HttpTestClient client = client(server)) {
            assertThat(meanwhile)
                    .hasSize(2)
                    .allSatisfy(reply -> assertThat(reply).startsWith("409").contains("still joins the cluster"));
            assertThat(text(client.put(PATH, ""))).startsWith("405");
        }
    }

    @Test
    void givenAServerInNoCluster_whenItIsDrained_thenThatIsSaid() throws Exception {
        ServerConfig config = new ConfigReader(new HostResources(1L << 30, 2), Map.of())
                .read(new ConfigReader.Source("f", "listen: { port: 0 }\nmemory: { host_bytes: 64MiB }\n"), Map.of());
        try (CacheServer server = CacheServer.start(config);
                HttpTestClient client = client(server)) {
            assertThat(text(client.post(PATH, ""))).startsWith("404").contains("this server is in no cluster");
        }
    }
}
