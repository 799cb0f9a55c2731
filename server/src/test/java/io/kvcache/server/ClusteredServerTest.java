package io.kvcache.server;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.core.contract.FreePorts;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.server.cluster.ClusterMember;
import io.kvcache.server.config.ConfigException;
import io.kvcache.server.config.ConfigReader;
import io.kvcache.server.config.HostResources;
import io.kvcache.server.config.ServerConfig;
import io.kvcache.transport.cluster.ClusterNode;
import io.kvcache.transport.cluster.NodeInfo;
import io.kvcache.transport.cluster.NodeState;
import io.kvcache.transport.peer.ClusteredKvCache;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Supplier;
import org.junit.jupiter.api.Test;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.exceptions.JedisDataException;
import tools.jackson.databind.JsonNode;

/// What a server tells of its cluster, and when it joins, drains and leaves.
final class ClusteredServerTest {

    private static final NodeInfo OTHER = new NodeInfo(
            new ClusterNode("kv-1", 3, "rack-2", "host-1"), 1_000, NodeState.SERVING, "10.0.0.6:7420", "", "0.1.0", 0);

    private static ServerConfig config(int port, String more) throws ConfigException {
        String yaml = "listen: { port: " + port + " }\nmemory: { host_bytes: 64MiB }\n" + more;
        return new ConfigReader(new HostResources(1L << 30, 2), Map.of())
                .read(new ConfigReader.Source("f", yaml), Map.of());
    }

    private static ServerConfig clustered(int port) throws ConfigException {
        return config(port, """
                transport: { listen: 127.0.0.1:0 }
                cluster: { name: prod-kv, node: kv-0, listen: 127.0.0.1:1, weight: 1, zone: rack-1 }
                """);
    }

    private static CacheServer start(ServerConfig config, TestMembership membership) throws IOException {
        return CacheServer.start(config, cluster -> new ClusterMember(cluster, membership, null));
    }

    private static String text(HttpResponse<byte[]> reply) {
        return new String(reply.body(), UTF_8);
    }

    @Test
    void givenAServerInACluster_whenAsked_thenItTellsItsView() throws Exception {
        try (CacheServer server = start(clustered(0), new TestMembership(() -> {}, OTHER));
                HttpTestClient client = new HttpTestClient(server.address().getPort())) {
            JsonNode page = HttpTestClient.json(client.get("/v1/cluster"));

            assertThat(page.get("cluster").stringValue()).isEqualTo("prod-kv");
            assertThat(page.get("node").stringValue()).isEqualTo("kv-0");
            assertThat(page.get("epoch").longValue()).isEqualTo(2);
            assertThat(page.get("digest").stringValue()).matches("[0-9a-f]{16}");
            JsonNode own = page.get("nodes").get(0);
            assertThat(own.get("name").stringValue()).isEqualTo("kv-0");
            assertThat(own.get("state").stringValue()).isEqualTo("serving");
            assertThat(own.get("address").stringValue()).matches("127\\.0\\.0\\.1:\\d+");
            assertThat(own.get("sharePercent").doubleValue()).isEqualTo(25);
            assertThat(own.get("zone").stringValue()).isEqualTo("rack-1");
            assertThat(own.get("version").stringValue()).isNotEmpty();
            JsonNode other = page.get("nodes").get(1);
            assertThat(other.get("incarnation").stringValue()).isEqualTo("1970-01-01T00:00:01Z");
            assertThat(other.get("weight").doubleValue()).isEqualTo(3);
            assertThat(other.get("sharePercent").doubleValue()).isEqualTo(75);
            assertThat(other.get("host").stringValue()).isEqualTo("host-1");
            assertThat(client.post("/v1/cluster", "").statusCode()).isEqualTo(405);
        }
    }

    @Test
    void givenAServerInACluster_whenAClientOfItConnects_thenItLearnsTheView() throws Exception {
        try (CacheServer server = start(clustered(0), new TestMembership(() -> {}))) {
            int port = Objects.requireNonNull(server.remoteAddress()).getPort();
            try (ClusteredKvCache cache = ClusteredKvCache.connect(
                    List.of("127.0.0.1:" + port),
                    address -> RemoteTestBlocks.clientBuilder(address).connect())) {
                cache.register(RemoteTestBlocks.SPACE);
                BlockChain chain = RemoteTestBlocks.chain(RemoteTestBlocks.SPACE, 3);
                RemoteTestBlocks.put(cache, chain);

                assertThat(RemoteTestBlocks.verifiedBlocks(cache, chain)).isEqualTo(3);
                assertThat(cache.view().nodes()).extracting(NodeInfo::name).containsExactly("kv-0");
            }
        }
    }

    @Test
    void givenAServerInACluster_whenScraped_thenItsViewIsCounted() throws Exception {
        try (CacheServer server = start(clustered(0), new TestMembership(() -> {}, OTHER));
                HttpTestClient client = new HttpTestClient(server.address().getPort())) {
            assertThat(text(client.get("/metrics")))
                    .contains(
                            "\nkv_cluster_members 2.0\n",
                            "\nkv_cluster_epoch 2.0\n",
                            "\nkv_cluster_view_changes_total 2.0\n",
                            "\nkv_cluster_merges_total 1.0\n",
                            "\nkv_cluster_flaps_total 0.0\n",
                            "\nkv_cluster_unreadable_messages_total 0.0\n",
                            "\nkv_cluster_handover_blocks_total 0.0\n",
                            "\nkv_cluster_copied_blocks_total 0.0\n",
                            "\nkv_cluster_given_values_total 0.0\n");
        }
    }

    @Test
    void givenAServerInNoCluster_whenAsked_thenThatIsSaidAndNothingIsCounted() throws Exception {
        try (CacheServer server = CacheServer.start(config(0, ""));
                HttpTestClient client = new HttpTestClient(server.address().getPort())) {
            HttpResponse<byte[]> reply = client.get("/v1/cluster");

            assertThat(reply.statusCode()).isEqualTo(404);
            assertThat(text(reply)).contains("this server is in no cluster; cluster.name and cluster.listen");
            assertThat(text(client.get("/metrics"))).doesNotContain("kv_cluster");
            assertThat(text(client.get("/health/ready"))).isEqualTo("ready\n");
        }
    }

    @Test
    void givenAServerThatJoins_whenAsked_thenItIsNotReadyUntilItServes() throws Exception {
        int port = FreePorts.take();
        List<String> meanwhile = new ArrayList<>();
        TestMembership membership = new TestMembership(() -> meanwhile.add(readiness(port)));

        try (CacheServer server = start(clustered(port), membership)) {
            assertThat(meanwhile).containsExactly("503 joining: the cluster does not know this server yet\n");
            assertThat(readiness(server.address().getPort())).isEqualTo("200 ready\n");
            assertThat(membership.told()).containsExactly("JOINING", "SERVING");
        }
    }

    @Test
    void givenAServerThatJoins_whenClientsReadAndWrite_thenTheyHearThatItJoins() throws Exception {
        int port = FreePorts.take();
        List<String> meanwhile = new ArrayList<>();
        TestMembership membership = new TestMembership(() -> {
            try (Jedis client = new Jedis("127.0.0.1", port, 20_000)) {
                meanwhile.add(error(() -> client.get("key")));
                meanwhile.add(error(() -> client.set("key", "value")));
            }
        });

        try (CacheServer server = start(clustered(port), membership);
                Jedis client = new Jedis("127.0.0.1", server.address().getPort())) {
            assertThat(meanwhile)
                    .hasSize(2)
                    .containsOnly("TRYAGAIN kv-0 is joining the cluster and knows no server that serves yet");
            assertThat(client.set("key", "value")).isEqualTo("OK");
        }
    }

    private static String error(Supplier<String> command) {
        try {
            return command.get();
        } catch (JedisDataException refused) {
            return String.valueOf(refused.getMessage());
        }
    }

    private static String readiness(int port) {
        try (HttpTestClient client = new HttpTestClient(port)) {
            HttpResponse<byte[]> reply = client.get("/health/ready");
            return reply.statusCode() + " " + text(reply);
        } catch (IOException failed) {
            throw new UncheckedIOException(failed);
        } catch (InterruptedException stopped) {
            throw new IllegalStateException(stopped);
        }
    }

    @Test
    void givenAServerThatStops_whenItsStatesAreHeard_thenItDrainsFirstAndLeavesLast() throws Exception {
        TestMembership membership = new TestMembership(() -> {});
        CacheServer server = start(clustered(0), membership);

        server.announceShutdown(Duration.ZERO);
        assertThat(readiness(server.address().getPort())).isEqualTo("503 leaving\n");
        server.stop(Duration.ofSeconds(10));
        assertThat(membership.told()).containsExactly("JOINING", "SERVING", "DRAINING");
        server.close();

        assertThat(membership.told()).containsExactly("JOINING", "SERVING", "DRAINING", "left");
    }

    @Test
    void givenAClusterThatRefusesTheServer_whenStarted_thenItEndsWithTheReason() throws Exception {
        TestMembership membership = new TestMembership(() -> {
            throw new IllegalStateException("another live server has this name");
        });

        assertThatThrownBy(() -> start(clustered(0), membership))
                .hasMessage("another live server has this name (cluster.node is kv-0, cluster.listen is 127.0.0.1:1)");

        assertThat(membership.told()).containsExactly("left");
    }
}
