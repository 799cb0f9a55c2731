package io.kvcache.server;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.contract.Pause;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.server.access.PasswordHash;
import io.kvcache.server.config.AccessConfig;
import io.kvcache.server.config.ConfigReader.SettingInForce;
import io.kvcache.server.config.ListenerConfig;
import io.kvcache.server.config.ListenerConfig.ListenProtocol;
import io.kvcache.server.config.ListenerConfig.ListenerAuthConfig;
import io.kvcache.server.config.TenantConfig;
import io.kvcache.server.config.TenantConfig.KeyOwnershipConfig;
import io.kvcache.server.config.TenantConfig.ValueKind;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.params.SetParams;
import tools.jackson.databind.JsonNode;

/// The endpoints behind the console, and who sees what of them.
@Timeout(120)
@Tag("slow")
final class ConsoleEndpointTest {

    private static final BlockShape SHAPE = BlockShape.kv(1, 1, 8, 4, Dtype.BF16);
    private static final int OPEN = 0;
    private static final int AUTHENTICATED = 1;
    private static final int OF_BLUE = 2;
    private static final String ADMIN = "root:rootpass";
    private static final String BLUE = "blue:bluepass";

    private final TestServer server = TestServer.start(new AccessConfig(
            List.of(
                    listener("open", ListenerAuthConfig.UNRESTRICTED),
                    listener("auth", new ListenerAuthConfig(null, true, false, List.of(), List.of())),
                    listener("blue", new ListenerAuthConfig("blue", false, false, List.of(), List.of()))),
            List.of(
                    tenant("root", "rootpass", 0, true),
                    tenant("blue", "bluepass", 1 << 20, false),
                    TenantConfig.defaultTenant())));

    private final List<HttpTestClient> clients = new ArrayList<>();

    private static ListenerConfig listener(String name, ListenerAuthConfig auth) {
        return new ListenerConfig(
                name,
                name,
                "127.0.0.1",
                0,
                Set.of(ListenProtocol.PAGES, ListenProtocol.HTTP, ListenProtocol.RESP),
                auth);
    }

    private static TenantConfig tenant(String name, String password, long quota, boolean admin) {
        String hash = PasswordHash.of(password, 1000, new SecureRandom()).toString();
        return new TenantConfig(
                name, name, name, hash, null, quota, 1, null, KeyOwnershipConfig.NONE, ValueKind.MUTABLE, admin);
    }

    @AfterEach
    void stop() {
        clients.forEach(HttpTestClient::close);
        server.close();
    }

    private HttpResponse<byte[]> send(int listener, String user, String method, String path) throws Exception {
        HttpTestClient client = new HttpTestClient(server.port(listener));
        clients.add(client);
        HttpRequest.Builder request = client.request(path).method(method, HttpRequest.BodyPublishers.noBody());
        return client.send(
                user.isEmpty()
                        ? request
                        : request.header(
                                "Authorization", "Basic " + Base64.getEncoder().encodeToString(user.getBytes(UTF_8))));
    }

    private JsonNode get(int listener, String user, String path) throws Exception {
        HttpResponse<byte[]> reply = send(listener, user, "GET", path);
        assertThat(reply.statusCode()).as(new String(reply.body(), UTF_8)).isEqualTo(200);
        return HttpTestClient.json(reply);
    }

    private JsonNode get(String path) throws Exception {
        return get(OPEN, "", path);
    }

    private int status(int listener, String user, String path) throws Exception {
        return send(listener, user, "GET", path).statusCode();
    }

    private EngineBlocks putBlocks(int listener, String model, int count) {
        EngineBlocks blocks =
                EngineBlocks.register(server.server(), listener == OF_BLUE ? "blue" : "default", model, SHAPE);
        for (int block = 0; block < count; block++) {
            assertThat(blocks.put("%04x".formatted(block), block == 0 ? "" : "%04x".formatted(block - 1)))
                    .isTrue();
        }
        return blocks;
    }

    @ParameterizedTest
    @ValueSource(strings = {"/metrics", "/v1/disks", "/v1/cluster", "/v1/whatif", "/v1/settings"})
    void givenATenantThatIsNoAdministrator_whenItAsksForPagesOfAllTenants_thenForbidden(String path) throws Exception {
        HttpResponse<byte[]> refused = send(AUTHENTICATED, BLUE, "GET", path);
        assertThat(refused.statusCode()).isEqualTo(403);
        assertThat(HttpTestClient.json(refused).get("type").stringValue())
                .isEqualTo("urn:kvcache:problem:administrators-only");
        assertThat(HttpTestClient.json(refused).get("detail").stringValue()).contains("tenant blue", "admin: true");
        assertThat(status(AUTHENTICATED, ADMIN, path)).isIn(200, 404);
        assertThat(status(AUTHENTICATED, "", path)).isEqualTo(401);
        assertThat(status(OPEN, "", path)).isIn(200, 404);
    }

    @Test
    void givenTenants_whenTheyLook_thenEachSeesItsOwnAndAnAdministratorAll() throws Exception {
        putBlocks(OF_BLUE, "m", 3);
        putBlocks(OPEN, "n", 2);
        for (String user : List.of(ADMIN, BLUE)) {
            boolean admin = user.equals(ADMIN);
            JsonNode console = get(AUTHENTICATED, user, "/v1/console");
            assertThat(console.get("administrator").booleanValue()).isEqualTo(admin);
            assertThat(console.get("tenants").size()).isEqualTo(admin ? 3 : 1);
            JsonNode prefixes = get(AUTHENTICATED, user, "/v1/prefixes");
            assertThat(prefixes.get("blocks").intValue()).isEqualTo(admin ? 5 : 3);
            assertThat(prefixes.get("namespaces").findValuesAsString("tenant").contains("default"))
                    .isEqualTo(admin);
        }
        JsonNode own = get(AUTHENTICATED, BLUE, "/v1/stats");
        assertThat(own.get("tenants").propertyNames()).containsExactly("blue");
        assertThat(own.get("namespaces").findValuesAsString("tenant"))
                .isNotEmpty()
                .containsOnly("blue");
        assertThat(own.has("host")).isFalse();
        assertThat(get(AUTHENTICATED, ADMIN, "/v1/stats").get("tenants").size()).isEqualTo(3);
        assertThat(status(AUTHENTICATED, BLUE, "/v1/prefixes?tenant=default")).isEqualTo(403);
        assertThat(status(AUTHENTICATED, BLUE, "/v1/history?tenant=root")).isEqualTo(403);
        assertThat(status(AUTHENTICATED, BLUE, "/v1/live?tenant=root")).isEqualTo(403);
        assertThat(status(AUTHENTICATED, BLUE, "/v1/misses?tenant=root")).isEqualTo(403);
        assertThat(get(AUTHENTICATED, ADMIN, "/v1/prefixes?tenant=blue")
                        .get("blocks")
                        .intValue())
                .isEqualTo(3);
        assertThat(get(OF_BLUE, "", "/v1/console").get("administrator").booleanValue())
                .as("of a listener that speaks for one tenant")
                .isFalse();
        assertThat(status(OF_BLUE, "", "/v1/objects/none")).isEqualTo(404);
        JsonNode connections = get(AUTHENTICATED, BLUE, "/v1/requests").get("connections");
        assertThat(connections.findValuesAsString("tenant")).isNotEmpty().containsOnly("blue");
    }

    @Test
    void givenBlocksOfAnotherTenant_whenDropped_thenNotFoundAndTheyStay() throws Exception {
        putBlocks(OF_BLUE, "m", 3);
        putBlocks(OPEN, "n", 2);
        JsonNode nodes = get("/v1/prefixes").get("nodes");
        assertThat(nodes.size()).isEqualTo(2);
        int first = nodes.get(0).get("blocks").intValue() == 3 ? 0 : 1;
        JsonNode blue = nodes.get(first);
        JsonNode other = nodes.get(1 - first);
        assertThat(send(AUTHENTICATED, BLUE, "DELETE", path(other)).statusCode())
                .isEqualTo(404);
        assertThat(get("/v1/prefixes").get("blocks").intValue()).isEqualTo(5);

        HttpResponse<byte[]> dropped = send(AUTHENTICATED, BLUE, "DELETE", path(blue));
        assertThat(HttpTestClient.json(dropped).get("dropped").intValue()).isEqualTo(3);
        assertThat(HttpTestClient.json(send(AUTHENTICATED, ADMIN, "DELETE", path(other)))
                        .get("dropped")
                        .intValue())
                .isEqualTo(2);
        assertThat(get("/v1/prefixes").get("nodes").size()).isZero();
    }

    private static String path(JsonNode node) {
        return "/v1/prefixes/" + node.get("namespace").intValue() + "/"
                + node.get("key").stringValue();
    }

    @Test
    void givenATenantThatFollowsAsOftenAsItMay_whenAnAdministratorFollows_thenThereIsRoom() throws Exception {
        List<SseTestClient> followers = new ArrayList<>();
        HttpTestClient blue = new HttpTestClient(server.port(OF_BLUE));
        clients.add(blue);
        for (int i = 0; i < 10; i++) {
            followers.add(new SseTestClient(blue, blue.request("/v1/live")));
        }
        assertThat(status(OF_BLUE, "", "/v1/live")).isEqualTo(503);
        HttpTestClient administrator = new HttpTestClient(server.port(OPEN));
        clients.add(administrator);
        followers.add(new SseTestClient(administrator, administrator.request("/v1/live")));
        for (SseTestClient each : followers) {
            each.close();
        }
    }

    @Test
    void givenAListenerThatSpeaksForATenant_whenPagesOfAllTenantsAreAskedFor_thenForbidden() throws Exception {
        for (String path : List.of("/metrics", "/v1/disks", "/v1/cluster", "/v1/settings")) {
            assertThat(status(OF_BLUE, "", path)).as(path).isEqualTo(403);
        }
        assertThat(get(OF_BLUE, "", "/v1/stats").get("tenants").propertyNames()).containsExactly("blue");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "/v1/history?minutes=0",
                "/v1/history?minutes=241",
                "/v1/history?minutes=x",
                "/v1/misses?limit=1001",
                "/v1/misses?reason=nonsense",
                "/v1/prefixes?under=xyz",
                "/v1/prefixes?limit=1001",
                "/v1/prefixes?namespace=-1",
                "/v1/prefixes?namespace=99",
                "/v1/history?tenant=nobody"
            })
    void givenAWrongParameter_whenAsked_thenTheAnswerNamesItItsValueAndTheRange(String path) throws Exception {
        HttpResponse<byte[]> refused = send(OPEN, "", "GET", path);
        assertThat(refused.statusCode()).isEqualTo(400);
        String name = path.replaceAll(".*[?](.*)=.*", "$1");
        String value = path.replaceAll(".*=", "");
        assertThat(HttpTestClient.json(refused).get("detail").stringValue())
                .startsWith(name + " is '" + value + "'; it takes ");
    }

    @Test
    void givenLookUpsThatMissInEachWay_whenAsked_thenEachHasItsReason() throws Exception {
        try (Jedis blue = new Jedis("127.0.0.1", server.port(OF_BLUE), 60_000)) {
            blue.get("never");
            blue.set("deleted", "v");
            blue.del("deleted");
            blue.get("deleted");
            blue.set("expired", "v", SetParams.setParams().px(20));
            while (blue.exists("expired")) {
                Pause.briefly();
            }
            for (int i = 0; i < 20; i++) {
                blue.set("quota-" + i, "x".repeat(100_000)); // a quota of 1 MiB
            }
            blue.get("quota-0");
        }
        JsonNode misses = get(AUTHENTICATED, BLUE, "/v1/misses");
        assertThat(misses.get("recent").findValuesAsString("reason"))
                .containsExactly("quota", "expired", "deleted", "never_seen");
        assertThat(misses.get("recent").findValuesAsString("key"))
                .containsExactly("quota-0", "expired", "deleted", "never");
        assertThat(misses.at("/reasons/quota").intValue()).isEqualTo(1);
        assertThat(misses.at("/reasons/never_seen").intValue()).isEqualTo(1);
        assertThat(get("/v1/misses?tenant=default").get("recent").size()).isZero();
        assertThat(get("/v1/misses?reason=deleted").get("recent").size()).isEqualTo(1);
        JsonNode stats = get("/v1/stats").at("/tenants/blue/reads");
        assertThat(misses.at("/reasons/expired").intValue())
                .isEqualTo(stats.at("/missed/expired").intValue());
    }

    /// As LMCache's connector for Redis does: looks chunks up until one is missing, reads those, and writes the
    /// rest.
    private static void useChunks(Jedis redis, String model, String... digests) {
        int found = 0;
        while (found < digests.length && redis.exists(chunk(model, digests[found]) + "metadata")) {
            found++;
        }
        for (int i = 0; i < digests.length; i++) {
            for (String half : List.of("kv_bytes", "metadata")) {
                if (i < found) {
                    redis.get(chunk(model, digests[i]) + half);
                } else {
                    redis.set(chunk(model, digests[i]) + half, "v");
                }
            }
        }
    }

    private static String chunk(String model, String digest) {
        return model.replace("*", digest.repeat(4));
    }

    @Test
    void givenLmcachesChunks_whenPrefixesAreAskedFor_thenATreeByModelAndRank() throws Exception {
        String first = "meta/llama@2@0@*@bfloat16";
        try (Jedis redis = new Jedis("127.0.0.1", server.port(OPEN), 60_000)) {
            useChunks(redis, first, "aaaa", "bbbb", "cccc", "dddd");
            useChunks(redis, first, "aaaa", "bbbb", "eeee");
            useChunks(redis, "meta/llama@2@1@*@bfloat16", "aaaa", "bbbb");
            redis.set("session:1", "v");
            redis.set("meta/llama@2@0@" + "9999".repeat(4) + "@bfloat16", "v"); // after a key that is no chunk's
        }
        JsonNode chunks = get("/v1/prefixes").get("chunks");
        assertThat(chunks.get("otherValues").intValue()).isEqualTo(1);
        assertThat(chunks.get("models").findValuesAsString("model"))
                .containsExactly("meta/llama bfloat16", "meta/llama bfloat16");
        assertThat(chunks.get("models").findValuesAsString("worker")).containsExactly("2@0", "2@1");
        assertThat(chunks.at("/models/0/chunks").intValue()).isEqualTo(6);
        assertThat(chunks.at("/models/0/memoryChunks").intValue()).isEqualTo(6);
        assertThat(chunks.at("/models/1/placed").intValue()).isEqualTo(2);
        assertThat(chunks.at("/models/0/stem").stringValue()).isEqualTo(first);

        String of = "/v1/prefixes?namespace=" + chunks.at("/models/0/namespace").intValue() + "&chunks=" + first;
        JsonNode begin = get(of).get("nodes");
        assertThat(begin.get(0).get("key").stringValue()).isEqualTo("aaaa".repeat(4));
        assertThat(begin.get(0).get("run").intValue()).isEqualTo(2);
        assertThat(begin.get(0).get("blocks").intValue()).isEqualTo(5);
        assertThat(begin.get(0).get("branches").intValue()).isEqualTo(2);
        JsonNode behind = get(of + "&under=" + "aaaa".repeat(4)).get("nodes");
        assertThat(behind.findValuesAsString("key")).containsExactly("cccc".repeat(4), "eeee".repeat(4));
        assertThat(behind.get(0).get("depth").intValue()).isEqualTo(2);
        assertThat(behind.get(0).get("run").intValue()).isEqualTo(2);
        assertThat(status(OPEN, "", of + "&under=x")).isEqualTo(400);
        assertThat(get(AUTHENTICATED, BLUE, "/v1/prefixes").at("/chunks/models").size())
                .as("of another tenant")
                .isZero();
    }

    @Test
    void givenASequenceOfChunks_whenItsLookupEnds_thenTheMissSaysHowFarItWasFound() throws Exception {
        String model = "meta/llama@2@0@*@bfloat16";
        try (Jedis redis = new Jedis("127.0.0.1", server.port(OPEN), 60_000)) {
            useChunks(redis, model, "aaaa", "bbbb", "cccc");
            useChunks(redis, model, "aaaa", "bbbb", "cccc", "dddd");
            redis.get("session:1");
        }
        JsonNode recent = get("/v1/misses").get("recent");
        assertThat(recent.get(0).get("chunksFound").isNull())
                .as("of another key")
                .isTrue();
        assertThat(recent.get(1).get("key").stringValue()).isEqualTo(chunk(model, "dddd") + "metadata");
        assertThat(recent.get(1).get("chunksFound").intValue()).isEqualTo(3);
        assertThat(recent.get(2).get("chunksFound").intValue()).isZero();
    }

    @Test
    void givenAConsoleAndAClient_whenRequestsAreAskedFor_thenTheConsolesOwnAreLeftOut() throws Exception {
        HttpTestClient console = new HttpTestClient(server.port(OPEN));
        clients.add(console);
        try (Jedis redis = new Jedis("127.0.0.1", server.port(OPEN), 60_000);
                SseTestClient _ = new SseTestClient(console, console.request("/v1/live"))) {
            redis.set("k", "v");
            get("/v1/stats");
            JsonNode requests = get("/v1/requests");
            assertThat(requests.get("connections").findValuesAsString("request"))
                    .containsExactly("set");
            assertThat(requests.get("operators").intValue()).isPositive();
            assertThat(requests.get("open").intValue())
                    .isEqualTo(requests.get("operators").intValue() + 1);
            assertThat(requests.get("latency").propertyNames())
                    .contains("resp set")
                    .allMatch(name -> name.startsWith("resp "));
        }
    }

    @Test
    void givenABrowser_whenThePasswordIsWrong_thenAPageSaysSo() throws Exception {
        HttpTestClient browser = new HttpTestClient(server.port(AUTHENTICATED));
        clients.add(browser);
        HttpResponse<byte[]> page = browser.send(browser.request("/console/")
                .header("Accept", "text/html,*/*;q=0.8")
                .header("Authorization", "Basic " + Base64.getEncoder().encodeToString("blue:wrong".getBytes(UTF_8))));
        String text = new String(page.body(), UTF_8);
        assertThat(page.statusCode()).isEqualTo(401);
        assertThat(page.headers().firstValue("WWW-Authenticate")).isPresent();
        assertThat(page.headers().firstValue("Content-Type")).contains("text/html; charset=utf-8");
        assertThat(page.headers().firstValue("Content-Security-Policy").orElseThrow())
                .contains("style-src 'self'");
        assertThat(text).contains("Wrong name or password", "\"console.css\"").doesNotContain("style=", "{");
        for (String style : List.of("console.css", "theme.js", "lib/bootstrap.min.css")) {
            assertThat(status(AUTHENTICATED, "", "/console/" + style)).as(style).isEqualTo(200);
        }
        assertThat(status(AUTHENTICATED, "", "/console/console.js")).isEqualTo(401);
        assertThat(send(AUTHENTICATED, "blue:wrong", "GET", "/console/")
                        .headers()
                        .firstValue("Content-Type"))
                .as("of a program")
                .contains("application/problem+json");
    }

    @Test
    void givenSettingsInForce_whenAsked_thenTheyAreShownWithTheirSource() throws Exception {
        server.server().showSettings(List.of(new SettingInForce("memory.host_bytes", "4GiB", "--host-bytes")));
        assertThat(get("/v1/settings").at("/settings/0/source").stringValue()).isEqualTo("--host-bytes");
    }

    @Test
    void givenAFollower_whenTheLoadGoesOn_thenItGetsSamplesOfIt() throws Exception {
        HttpTestClient client = new HttpTestClient(server.port(OPEN));
        clients.add(client);
        try (SseTestClient live = new SseTestClient(client, client.request("/v1/live"));
                Jedis jedis = new Jedis("127.0.0.1", server.port(OPEN), 60_000)) {
            jedis.set("k", "v");
            long hits = 0;
            while (hits == 0) {
                jedis.get("k");
                SseTestClient.Event event = Objects.requireNonNull(live.next());
                assertThat(event.name()).isEqualTo("sample");
                hits = event.data().get("memoryHits").longValue();
            }
        }
    }

    @Test
    void givenABlockLookUp_whenItEndsEarly_thenItIsOneMissThatNamesTheFirstThatLacks() throws Exception {
        EngineBlocks blocks = putBlocks(OPEN, "n", 2);
        assertThat(blocks.read(List.of("0000", "0001", "0099"), Duration.ZERO)).isEqualTo(2);
        assertThat(blocks.read(List.of("0098", "0099"), Duration.ZERO)).isZero();
        JsonNode misses = get("/v1/misses");
        assertThat(misses.get("recent").size()).isEqualTo(2);
        assertThat(misses.at("/reasons/never_seen").intValue()).isEqualTo(2);
        JsonNode miss = misses.get("recent").get(0);
        assertThat(miss.get("kind").stringValue()).isEqualTo("blocks");
        assertThat(miss.get("namespace").stringValue()).isEqualTo("n");
        assertThat(miss.get("reason").stringValue()).isEqualTo("never_seen");
        assertThat(miss.get("key").stringValue()).matches("[0-9a-f]{32}");
    }

    @Test
    void givenANamespaceThatWasRegisteredAnew_whenListed_thenItIsThereOnce() throws Exception {
        EngineBlocks blocks = putBlocks(OPEN, "n", 1);
        blocks.drop("0000");
        server.server()
                .cache()
                .register(blocks.namespace().toBuilder().revision("2").build());
        assertThat(get("/v1/prefixes").get("namespaces").findValuesAsString("name"))
                .containsOnlyOnce("n");
    }
}
