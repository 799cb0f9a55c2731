package io.kvcache.server;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.contract.Pause;
import io.kvcache.server.SseTestClient.Event;
import io.kvcache.server.config.AccessConfig;
import io.kvcache.server.config.ListenerConfig;
import io.kvcache.server.config.ListenerConfig.ListenProtocol;
import io.kvcache.server.config.ListenerConfig.ListenerAuthConfig;
import io.kvcache.server.config.TenantConfig;
import io.kvcache.server.config.TenantConfig.KeyOwnershipConfig;
import io.kvcache.server.config.TenantConfig.ValueKind;
import java.io.IOException;
import java.net.http.HttpRequest;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.params.ScanParams;

/// Tenants named by keys, one of which tries to read another's values. All clients are unauthenticated.
@Timeout(300)
@Tag("slow")
final class KeyOwnershipIsolationTest {

    private static final String RED = "salt-of-red";
    private static final int VALUE = 1 << 20;

    @TempDir
    Path folder;

    private TestServer server;
    private Jedis all;
    private Jedis bound;
    private HttpTestClient httpTestClient;

    @BeforeEach
    void start() throws IOException {
        Path salts = Files.writeString(folder.resolve("salts"), "the-salt-of-pink\n");
        server = TestServer.start(new AccessConfig(
                List.of(
                        ListenerConfig.onLoopback(0),
                        new ListenerConfig(
                                "bound",
                                "bound",
                                "127.0.0.1",
                                0,
                                Set.of(ListenProtocol.RESP, ListenProtocol.HTTP),
                                new ListenerAuthConfig("green", false, false, List.of(), List.of()))),
                List.of(
                        tenant("blue", 0, new KeyOwnershipConfig(List.of("blue:"), List.of(), null)),
                        tenant("small", 4L << 20, new KeyOwnershipConfig(List.of("small:"), List.of(), null)),
                        tenant("red", 0, new KeyOwnershipConfig(List.of(), List.of(RED), null)),
                        tenant("pink", 0, new KeyOwnershipConfig(List.of(), List.of(), salts.toString())),
                        tenant("green", 0, KeyOwnershipConfig.NONE),
                        TenantConfig.defaultTenant())));
        all = new Jedis("127.0.0.1", server.port(0), 60_000);
        bound = new Jedis("127.0.0.1", server.port(1), 60_000);
        httpTestClient = new HttpTestClient(server.port(0));
    }

    private static TenantConfig tenant(String name, long quotaBytes, KeyOwnershipConfig labels) {
        return new TenantConfig(name, name, name, null, null, quotaBytes, 1, null, labels, ValueKind.MUTABLE, false);
    }

    @AfterEach
    void stop() {
        all.close();
        bound.close();
        httpTestClient.close();
        server.close();
    }

    private long keysOf(String tenant) throws Exception {
        return HttpTestClient.json(httpTestClient.get("/v1/stats"))
                .at("/tenants/" + tenant + "/keys")
                .longValue();
    }

    private HttpRequest.Builder salted(String path, String salt) {
        return httpTestClient.request(path).header("KVCache-Salt", salt);
    }

    @Test
    void givenKeysThatNameTenants_whenStored_thenEachTenantHasItsOwn() throws Exception {
        all.mset("blue:a", "1", "m@1@0@ab@" + RED, "2", "plain", "3");
        all.set("m@1@0@ab@" + RED + "metadata", "4");
        all.set("m@1@0@ab@" + RED + "kv_bytes", "5");
        httpTestClient.put("/v1/objects/blue:b", "6");

        assertThat(all.mget("blue:a", "m@1@0@ab@" + RED, "plain", "blue:b")).containsExactly("1", "2", "3", "6");
        assertThat(keysOf("blue")).isEqualTo(2);
        assertThat(keysOf("red")).isEqualTo(3);
        assertThat(keysOf("default")).isEqualTo(1);
        assertThat(all.del("blue:a", "plain")).isEqualTo(2);
        assertThat(all.expire("blue:b", 10_000)).isEqualTo(1);
        assertThat(all.ttl("blue:b")).isBetween(1L, 10_000L);
        assertThat(all.strlen("blue:b")).isEqualTo(1);
        assertThat(all.setGet("blue:b", "7")).isEqualTo("6");
    }

    @Test
    void givenAnothersKeys_whenListedCountedOrFlushed_thenOnlyThoseThatAreNamedAreThere() {
        all.mset("blue:a", "1", "m@" + RED, "2", "plain", "3");

        assertThat(all.dbSize()).isEqualTo(1);
        assertThat(all.keys("*")).containsExactly("plain");
        assertThat(all.scan("0", new ScanParams().count(1000)).getResult()).containsExactly("plain");
        assertThat(all.keys("blue:*")).containsExactly("blue:a");
        assertThat(all.keys("*@" + RED)).containsExactly("m@" + RED);
        assertThat(all.keys("*@salt-of-re*")).isEmpty();
        assertThat(all.scan("0", new ScanParams().match("blue:?").count(1000)).getResult())
                .containsExactly("blue:a");
        assertThat(all.info("keyspace")).contains("keys=1,");
        all.flushDB();
        assertThat(all.mget("blue:a", "m@" + RED, "plain")).containsExactly("1", "2", null);
    }

    @Test
    void givenAClientThatIsATenant_whenItNamesAnother_thenTheKeysAreItsOwn() throws Exception {
        all.mset("blue:a", "1", "m@" + RED, "2");
        assertThat(bound.mget("blue:a", "m@" + RED)).containsOnlyNulls();
        bound.mset("blue:a", "green's", "m@" + RED, "green's");
        assertThat(bound.keys("*")).containsExactlyInAnyOrder("blue:a", "m@" + RED);
        bound.flushDB();
        assertThat(all.mget("blue:a", "m@" + RED)).containsExactly("1", "2");
        try (HttpTestClient green = new HttpTestClient(server.port(1))) {
            assertThat(green.send(green.request("/v1/objects/x").header("KVCache-Salt", RED))
                            .statusCode())
                    .isEqualTo(403);
        }
    }

    @Test
    void givenAPrefixOfSeveralTenantsKeys_whenCounted_thenEachIsLookedForWhereItBelongs() {
        all.mset("blue:a", "1", "plain", "2", "m@" + RED, "3");
        String[] words = {"60000", "blue:a", "plain", "m@" + RED, "blue:plain"};
        assertThat(all.sendCommand(() -> "KV.PREFIX".getBytes(US_ASCII), words)).isEqualTo(3L);
        assertThat(server.server().cache().hintStats().pins()).isEqualTo(3);
        assertThat(bound.sendCommand(() -> "KV.PREFIX".getBytes(US_ASCII), words))
                .isEqualTo(0L);
    }

    @Test
    void givenATenantOverItsQuota_whenItStoresMore_thenOnlyItsOwnGo() {
        all.set("blue:kept".getBytes(US_ASCII), new byte[VALUE]);
        all.set("kept".getBytes(US_ASCII), new byte[VALUE]);
        for (int i = 0; i < 10; i++) {
            assertThat(all.set(("small:" + i).getBytes(US_ASCII), new byte[VALUE]))
                    .isEqualTo("OK");
        }
        assertThat(all.exists("blue:kept", "kept", "small:9")).isEqualTo(3);
        assertThat(all.exists("small:0", "small:1", "small:5")).isZero();
    }

    @Test
    void givenEvents_whenFollowedWithASalt_thenTheyAreThatTenants() throws Exception {
        try (SseTestClient events = new SseTestClient(httpTestClient, salted("/v1/events?from=oldest", RED))) {
            all.set("plain", "1");
            all.set("m@" + RED, "2");
            Event first = Objects.requireNonNull(events.next());
            assertThat(first.data().get("sequence").intValue()).isEqualTo(1);
        }
    }

    @Test
    void givenAFileOfSalts_whenItChanges_thenItIsReadAgain() throws Exception {
        all.set("m@a-later-salt", "1");
        assertThat(keysOf("default")).isEqualTo(1);
        Files.writeString(folder.resolve("salts"), "the-salt-of-pink\na-later-salt\n", UTF_8);
        while (all.get("m@a-later-salt") != null) { // the test's time-out ends this
            Pause.briefly();
        }
        all.set("m@a-later-salt", "2");
        assertThat(keysOf("pink")).isEqualTo(1);
        assertThat(all.get("m@a-later-salt")).isEqualTo("2");
    }
}
