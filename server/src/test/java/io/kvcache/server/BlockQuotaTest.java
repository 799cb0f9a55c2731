package io.kvcache.server;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.contract.Pause;
import io.kvcache.server.config.AccessConfig;
import io.kvcache.server.config.ListenerConfig;
import io.kvcache.server.config.ListenerConfig.ListenProtocol;
import io.kvcache.server.config.ListenerConfig.ListenerAuthConfig;
import io.kvcache.server.config.TenantConfig;
import java.net.http.HttpResponse;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.JsonNode;

/// A tenant with a quota stores blocks over HTTP.
@Timeout(300)
@Tag("slow")
final class BlockQuotaTest {

    private static final String SHAPE =
            "{\"shape\":{\"layers\":1,\"kvHeads\":1,\"headDim\":8,\"blockTokens\":4,\"dtype\":\"bf16\"}}";
    private static final byte[] BLOCK = new byte[128];
    private static final int MAX_NAMESPACES = 8;
    private static final long PAGE = 4096;

    private static final AccessConfig ACCESS = new AccessConfig(
            List.of(
                    listener("small", Set.of(ListenProtocol.HTTP)),
                    listener("blue", Set.of(ListenProtocol.HTTP)),
                    new ListenerConfig(
                            "ops",
                            "ops",
                            "127.0.0.1",
                            0,
                            Set.of(ListenProtocol.PAGES),
                            ListenerAuthConfig.UNRESTRICTED)),
            List.of(
                    new TenantConfig("tenants.0", "small", "small", null, null, MAX_NAMESPACES * PAGE),
                    new TenantConfig("tenants.1", "blue", "blue", null, null, 0),
                    TenantConfig.defaultTenant()));

    private static ListenerConfig listener(String tenant, Set<ListenProtocol> protocols) {
        return new ListenerConfig(
                tenant,
                tenant,
                "127.0.0.1",
                0,
                protocols,
                new ListenerAuthConfig(tenant, false, false, List.of(), List.of()));
    }

    /// The tenants of one server.
    private record Clients(TestServer server, HttpTestClient small, HttpTestClient blue, HttpTestClient operator)
            implements AutoCloseable {

        static Clients start() throws Exception {
            TestServer server = TestServer.start(ACCESS);
            Clients clients = new Clients(
                    server,
                    new HttpTestClient(server.port(0)),
                    new HttpTestClient(server.port(1)),
                    new HttpTestClient(server.port(2)));
            clients.small.put("/v1/namespaces/m", SHAPE);
            clients.blue.put("/v1/namespaces/m", SHAPE);
            return clients;
        }

        JsonNode blocks() throws Exception {
            return HttpTestClient.json(operator.get("/v1/stats")).at("/blocks/small");
        }

        long used() throws Exception {
            return HttpTestClient.json(operator.get("/v1/stats"))
                    .at("/tenants/small/usage/usedBytes")
                    .longValue();
        }

        @Override
        public void close() {
            List.of(small, blue, operator).forEach(HttpTestClient::close);
            server.close();
        }
    }

    private static String path(String chain, int number) {
        return "/v1/blocks/m/" + key(chain, number);
    }

    private static String key(String chain, int number) {
        return chain + String.format("%02x", number);
    }

    private static HttpResponse<byte[]> put(HttpTestClient to, String chain, int number) throws Exception {
        return to.put(path(chain, number) + (number == 0 ? "" : "?parent=" + key(chain, number - 1)), BLOCK);
    }

    private static void chain(HttpTestClient to, String chain, int blocks) throws Exception {
        for (int number = 0; number < blocks; number++) {
            assertThat(put(to, chain, number).statusCode()).isEqualTo(201);
        }
    }

    private static int here(HttpTestClient of, String chain, int blocks) throws Exception {
        int here = 0;
        while (here < blocks && of.get(path(chain, here)).statusCode() == 200) {
            here++;
        }
        return here;
    }

    @Test
    void givenATenantOverItsQuota_whenItPutsBlocks_thenItsOwnGoAndItIsCounted() throws Exception {
        try (Clients clients = Clients.start()) {
            chain(clients.blue(), "aa", MAX_NAMESPACES);
            chain(clients.small(), "aa", MAX_NAMESPACES);
            chain(clients.small(), "bb", 3);

            assertThat(here(clients.small(), "aa", MAX_NAMESPACES)).isEqualTo(MAX_NAMESPACES - 3);
            assertThat(here(clients.small(), "bb", 3)).isEqualTo(3);
            assertThat(here(clients.blue(), "aa", MAX_NAMESPACES)).isEqualTo(MAX_NAMESPACES);
            assertThat(clients.blocks().get("blocks").intValue()).isEqualTo(MAX_NAMESPACES);
            assertThat(clients.blocks().get("usedBytes").longValue()).isEqualTo(MAX_NAMESPACES * PAGE);
            assertThat(clients.blocks().get("evicted").intValue()).isEqualTo(3);
            assertThat(clients.used()).isEqualTo(MAX_NAMESPACES * PAGE);
            assertThat(new String(clients.operator().get("/metrics").body(), UTF_8))
                    .contains("kv_blocks{tenant=\"small\"} 8.0")
                    .contains("kv_blocks_used_bytes{tenant=\"small\"} 32768.0")
                    .contains("kv_blocks_evicted_total{tenant=\"small\"} 3.0")
                    .contains("kv_blocks_refused_total{tenant=\"small\"} 0.0")
                    .doesNotContain("kv_blocks{tenant=\"blue\"}");
        }
    }

    @Test
    void givenAChainBeyondTheQuota_whenPut_thenItIsRefusedWhereTheQuotaEnds() throws Exception {
        try (Clients clients = Clients.start()) {
            chain(clients.small(), "aa", MAX_NAMESPACES);
            HttpResponse<byte[]> refused = put(clients.small(), "aa", MAX_NAMESPACES);
            assertThat(refused.statusCode()).isEqualTo(507);
            assertThat(HttpTestClient.json(refused).get("type").stringValue()).endsWith(":quota");
            assertThat(HttpTestClient.json(refused).get("detail").stringValue()).contains("tenant small");
            assertThat(here(clients.small(), "aa", MAX_NAMESPACES)).isEqualTo(MAX_NAMESPACES);
        }
    }

    @Test
    void givenAChainBeyondTheQuota_whenPutInOneRequest_thenItIsStoredUpToTheQuota() throws Exception {
        try (Clients clients = Clients.start()) {
            String keys = IntStream.range(0, MAX_NAMESPACES + 2)
                    .mapToObj(number -> "\"" + key("aa", number) + "\"")
                    .collect(Collectors.joining(","));
            String line = "{\"namespace\":\"m\",\"keys\":[" + keys + "]}\n";
            String body = line + "x".repeat((MAX_NAMESPACES + 2) * BLOCK.length);
            HttpResponse<byte[]> reply = clients.small().post("/v1/blocks/put", body);
            assertThat(reply.statusCode()).isEqualTo(507);
            assertThat(HttpTestClient.json(reply).get("type").stringValue()).endsWith(":quota");
            assertThat(HttpTestClient.json(reply).get("blocks").intValue()).isEqualTo(MAX_NAMESPACES);
            assertThat(clients.used()).isEqualTo(MAX_NAMESPACES * PAGE);
            assertThat(clients.small().post("/v1/blocks/get", line).headers().firstValueAsLong("kvcache-blocks"))
                    .hasValue(MAX_NAMESPACES);
            assertThat(clients.blue().post("/v1/blocks/get", line).headers().firstValueAsLong("kvcache-blocks"))
                    .hasValue(0);
            assertThat(clients.blue().post("/v1/blocks/put", body).statusCode()).isEqualTo(200);
        }
    }

    @Test
    void givenBlocksAndObjects_whenTheyShareAQuota_thenWhatWasUnusedForLongestGoes() throws Exception {
        try (Clients clients = Clients.start()) {
            for (int i = 0; i < MAX_NAMESPACES / 2; i++) {
                clients.small().put("/v1/objects/k" + i, "value");
            }
            chain(clients.small(), "aa", MAX_NAMESPACES / 2);
            clients.small().get("/v1/objects/k0");
            chain(clients.small(), "bb", 2);
            assertThat(clients.small().get("/v1/objects/k0").statusCode()).isEqualTo(200);
            assertThat(clients.small().get("/v1/objects/k1").statusCode()).isEqualTo(404);
            assertThat(clients.small().get("/v1/objects/k2").statusCode()).isEqualTo(404);
            for (int i = 4; i < 4 + MAX_NAMESPACES / 2; i++) {
                clients.small().put("/v1/objects/k" + i, "value");
            }
            assertThat(here(clients.small(), "aa", MAX_NAMESPACES / 2)).isLessThan(MAX_NAMESPACES / 2);
            assertThat(clients.used()).isEqualTo(MAX_NAMESPACES * PAGE);
        }
    }

    @Test
    void givenBlocks_whenDeleted_thenTheQuotaHasRoomAgain() throws Exception {
        try (Clients clients = Clients.start()) {
            chain(clients.small(), "aa", MAX_NAMESPACES);
            HttpResponse<byte[]> deleted =
                    clients.small().send(clients.small().request(path("aa", 2)).DELETE());
            assertThat(HttpTestClient.json(deleted).get("deleted").intValue()).isEqualTo(MAX_NAMESPACES - 2);
            while (clients.used() > 2 * PAGE) { // until the events were heard
                Pause.briefly();
            }
            chain(clients.small(), "bb", MAX_NAMESPACES - 2);
            assertThat(here(clients.small(), "aa", MAX_NAMESPACES)).isEqualTo(2);
            assertThat(clients.blocks().get("evicted").intValue()).isZero();
        }
    }

    @Test
    void givenATenantsBlocksOnDisk_whenRestarted_thenTheyCountForItsQuota(@TempDir Path folder) throws Exception {
        try (DiskTestServer server = new DiskTestServer(folder, ACCESS);
                HttpTestClient small = new HttpTestClient(server.port(0))) {
            small.put("/v1/namespaces/m", SHAPE);
            chain(small, "aa", MAX_NAMESPACES);
            assertThat(server.server().cache().flush(Duration.ofSeconds(60))).isTrue();
        }
        try (DiskTestServer server = new DiskTestServer(folder, ACCESS);
                HttpTestClient small = new HttpTestClient(server.port(0));
                HttpTestClient operator = new HttpTestClient(server.port(2))) {
            small.put("/v1/namespaces/m", SHAPE);
            while (HttpTestClient.json(operator.get("/v1/stats"))
                            .at("/blocks/small/blocks")
                            .intValue()
                    < MAX_NAMESPACES) {
                Pause.briefly(); // until the disk has told all
            }
            chain(small, "bb", 3);
            assertThat(here(small, "aa", MAX_NAMESPACES)).isEqualTo(MAX_NAMESPACES - 3);
            assertThat(here(small, "bb", 3)).isEqualTo(3);
        }
    }
}
