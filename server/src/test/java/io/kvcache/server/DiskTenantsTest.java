package io.kvcache.server;

import static io.kvcache.server.DiskTestServer.VALUES;
import static io.kvcache.server.DiskTestServer.value;
import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.contract.Pause;
import io.kvcache.server.config.AccessConfig;
import io.kvcache.server.config.ListenerConfig;
import io.kvcache.server.config.ListenerConfig.ListenProtocol;
import io.kvcache.server.config.ListenerConfig.ListenerAuthConfig;
import io.kvcache.server.config.TenantConfig;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.params.ScanParams;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/// One tenant's values are on disk alone, and another tries to get at them; then all of it after a restart.
@Tag("slow")
final class DiskTenantsTest {

    private static final int BLUE = 0;
    private static final int GREEN = 1;
    private static final int OPERATOR = 2;

    /// The bytes charged for one value: the value, 48 bytes, and its key, in pages.
    private static final long CHARGED = (value(0).length + 48 + 4 + 4095L) / 4096 * 4096;

    @TempDir
    private Path folder = Path.of("");

    private DiskTestServer start(long quotaBytes) {
        return new DiskTestServer(
                folder,
                new AccessConfig(
                        List.of(
                                listener("blue", Set.of(ListenProtocol.RESP, ListenProtocol.HTTP)),
                                listener("green", Set.of(ListenProtocol.RESP, ListenProtocol.HTTP)),
                                listener("default", Set.of(ListenProtocol.PAGES, ListenProtocol.RESP))),
                        List.of(
                                new TenantConfig("tenants.0", "blue", "blue", null, null, quotaBytes),
                                new TenantConfig("tenants.1", "green", "green", null, null, 0),
                                TenantConfig.defaultTenant())));
    }

    private static ListenerConfig listener(String tenant, Set<ListenProtocol> protocols) {
        return new ListenerConfig(
                tenant,
                tenant,
                "127.0.0.1",
                0,
                protocols,
                new ListenerAuthConfig(tenant, false, false, List.of(), List.of()));
    }

    private static Jedis jedis(DiskTestServer server, int listener) {
        return new Jedis("127.0.0.1", server.port(listener), 60_000);
    }

    private static int status(DiskTestServer server, String method, String key) throws Exception {
        try (HttpClient client =
                HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build()) {
            return client.send(
                            HttpRequest.newBuilder(
                                            URI.create("http://127.0.0.1:" + server.port(GREEN) + "/v1/objects/" + key))
                                    .method(method, HttpRequest.BodyPublishers.noBody())
                                    .build(),
                            BodyHandlers.discarding())
                    .statusCode();
        }
    }

    private static JsonNode usage(DiskTestServer server) throws IOException, InterruptedException {
        try (HttpClient client =
                HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build()) {
            String stats = client.send(
                            HttpRequest.newBuilder(
                                            URI.create("http://127.0.0.1:" + server.port(OPERATOR) + "/v1/stats"))
                                    .build(),
                            BodyHandlers.ofString())
                    .body();
            return JsonMapper.builder()
                    .build()
                    .readTree(stats)
                    .path("tenants")
                    .path("blue")
                    .path("usage");
        }
    }

    @Test
    void givenAnothersValuesOnDiskAlone_whenEverythingIsTried_thenTheyAreNotThereAndStay() throws Exception {
        try (DiskTestServer server = start(0)) {
            server.fill();
            long before = server.loaded();
            try (Jedis green = jedis(server, GREEN)) {
                for (int number = 0; number < VALUES; number++) {
                    String key = "v" + number;
                    assertThat(green.get(key)).isNull();
                    assertThat(green.exists(key)).isFalse();
                    assertThat(green.strlen(key)).isZero();
                    assertThat(green.ttl(key)).isEqualTo(-2);
                    assertThat(green.touch(key)).isZero();
                    assertThat(green.expire(key, 1)).isZero();
                    assertThat(green.del(key)).isZero();
                }
                for (String method : List.of("GET", "HEAD", "DELETE")) {
                    assertThat(status(server, method, "v0")).isEqualTo(404);
                }
                assertThat(green.keys("*")).isEmpty();
                assertThat(green.scan("0", new ScanParams().count(1000)).getResult())
                        .isEmpty();
                assertThat(green.dbSize()).isZero();
                green.set("v0", "green's");
                assertThat(green.flushDB()).isEqualTo("OK");
            }
            assertThat(server.loaded())
                    .as("values read for a tenant that may not have them")
                    .isEqualTo(before);
            try (Jedis blue = jedis(server, BLUE)) {
                for (int number = 0; number < VALUES; number++) {
                    assertThat(blue.get(("v" + number).getBytes(US_ASCII))).isEqualTo(value(number));
                }
            }
            assertThat(server.loaded()).isGreaterThan(before);
        }
    }

    @Test
    void givenATenantsValuesOnDisk_whenRestarted_thenTheyAreItsOwnAndCountForItsQuota() throws Exception {
        try (DiskTestServer server = start(0);
                Jedis green = jedis(server, GREEN);
                Jedis operator = jedis(server, OPERATOR)) {
            server.fill();
            green.set("own", "green's");
            assertThat(usage(server).path("usedBytes").longValue()).isEqualTo(VALUES * CHARGED);
            assertThat(operator.save()).isEqualTo("OK");
        }
        int most = VALUES / 2;
        try (DiskTestServer server = start(most * CHARGED);
                Jedis blue = jedis(server, BLUE);
                Jedis green = jedis(server, GREEN)) {
            while (usage(server).path("usedBytes").longValue() < VALUES * CHARGED) {
                Pause.briefly(); // until the disk has told all, one by one
            }
            assertThat(usage(server).path("usedBytes").longValue()).isEqualTo(VALUES * CHARGED);
            assertThat(green.exists("v1")).isFalse();

            assertThat(blue.get("v1".getBytes(US_ASCII))).isEqualTo(value(1));
            assertThat(usage(server).path("usedBytes").longValue()).isEqualTo(VALUES * CHARGED);

            blue.set("v999".getBytes(US_ASCII), value(999));

            assertThat(usage(server).path("usedBytes").longValue()).isEqualTo(most * CHARGED);
            assertThat(usage(server).path("evicted").longValue()).isEqualTo(VALUES + 1 - most);
            assertThat(blue.get("v999".getBytes(US_ASCII))).isEqualTo(value(999));
            assertThat(blue.get("v1".getBytes(US_ASCII)))
                    .as("used since the restart")
                    .isEqualTo(value(1));
            int left = 0;
            for (int number = 0; number < VALUES; number++) {
                left += blue.exists("v" + number) ? 1 : 0;
            }
            assertThat(left).isEqualTo(most - 1);
            assertThat(green.get("own")).isEqualTo("green's");
        }
    }
}
