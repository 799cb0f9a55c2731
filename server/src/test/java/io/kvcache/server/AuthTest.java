package io.kvcache.server;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.server.access.PasswordHash;
import io.kvcache.server.config.AccessConfig;
import io.kvcache.server.config.ListenerConfig;
import io.kvcache.server.config.ListenerConfig.ListenProtocol;
import io.kvcache.server.config.ListenerConfig.ListenerAuthConfig;
import io.kvcache.server.config.TenantConfig;
import java.io.IOException;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.security.SecureRandom;
import java.util.Base64;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.RedisProtocol;
import redis.clients.jedis.exceptions.JedisDataException;

/// A listener that requires authentication.
@Tag("slow")
final class AuthTest {

    private final TestServer server = TestServer.start(new AccessConfig(
            List.of(
                    listener("auth", Set.of(ListenProtocol.RESP, ListenProtocol.HTTP), entry(null, true)),
                    listener("blue", Set.of(ListenProtocol.RESP), entry("blue", true)),
                    listener("pages", Set.of(ListenProtocol.PAGES), entry(null, false)),
                    listener("open", Set.of(ListenProtocol.RESP), entry(null, false))),
            List.of(tenant("blue", "sky"), tenant("green", "grass"), TenantConfig.defaultTenant())));

    private static ListenerConfig listener(String name, Set<ListenProtocol> protocols, ListenerAuthConfig entry) {
        return new ListenerConfig(name, name, "127.0.0.1", 0, protocols, entry);
    }

    private static ListenerAuthConfig entry(@Nullable String tenant, boolean auth) {
        return new ListenerAuthConfig(tenant, auth, false, List.of(), List.of());
    }

    private static TenantConfig tenant(String name, String password) {
        String hash = PasswordHash.of(password, 1000, new SecureRandom()).toString();
        return new TenantConfig(name, name, name, hash, null, 0);
    }

    @AfterEach
    void stop() {
        server.close();
    }

    private String raw(int listener, String request) throws IOException {
        try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), server.port(listener))) {
            socket.setSoTimeout(60_000);
            socket.getOutputStream().write(request.getBytes(UTF_8));
            return new String(socket.getInputStream().readAllBytes(), UTF_8);
        }
    }

    private String http(int listener, String method, String path, String authorization) throws IOException {
        String header = authorization.isEmpty() ? "" : "Authorization: " + authorization + "\r\n";
        String body = method.equals("PUT") ? "hello" : "";
        return raw(
                listener,
                method + " " + path + " HTTP/1.1\r\nHost: name.example\r\nConnection: close\r\n" + header
                        + (body.isEmpty() ? "" : "Content-Length: " + body.length() + "\r\n") + "\r\n" + body);
    }

    private static String basic(String pair) {
        return "Basic " + Base64.getEncoder().encodeToString(pair.getBytes(StandardCharsets.UTF_8));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "GET k",
                "SET k v",
                "MGET k j",
                "EXISTS k",
                "SCAN 0",
                "KEYS *",
                "DBSIZE",
                "FLUSHDB",
                "DEL k",
                "PING",
                "MEMORY USAGE k",
                "INFO",
                "CONFIG GET *",
                "CLIENT ID",
                "COMMAND",
                "ECHO hi",
                "NONSENSE",
                "SELECT 0"
            })
    void givenNobody_whenAnythingIsAsked_thenItIsNoAuth(String command) throws IOException {
        assertThat(raw(0, command + "\r\nQUIT\r\n")).isEqualTo("-NOAUTH Authentication required.\r\n+OK\r\n");
    }

    @Test
    void givenNobody_whenAValueIsSent_thenNothingIsKeptOfIt() throws IOException {
        String value = "v".repeat(1_000_000);
        String set = "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$" + value.length() + "\r\n" + value + "\r\n";

        assertThat(raw(0, set + set + "QUIT\r\n"))
                .isEqualTo("-NOAUTH Authentication required.\r\n".repeat(2) + "+OK\r\n");
        assertThat(server.server().cache().stats().puts().reserved()).isZero();
    }

    @Test
    void givenCredentials_whenSaidToRedis_thenTheWordsAreRedis() throws IOException {
        String wrong = "-WRONGPASS invalid username-password pair or user is disabled.\r\n";
        assertThat(raw(0, "AUTH blue no\r\nAUTH green sky\r\nAUTH sky\r\nGET k\r\nAUTH blue sky\r\nGET k\r\nQUIT\r\n"))
                .isEqualTo(wrong.repeat(3) + "-NOAUTH Authentication required.\r\n+OK\r\n$-1\r\n+OK\r\n");
        assertThat(raw(1, "AUTH green grass\r\nAUTH sky\r\nGET k\r\nRESET\r\nGET k\r\nQUIT\r\n"))
                .isEqualTo(wrong + "+OK\r\n$-1\r\n+RESET\r\n-NOAUTH Authentication required.\r\n+OK\r\n");
        assertThat(raw(0, "HELLO 3\r\nQUIT\r\n")).startsWith("-NOAUTH HELLO must be called with the client already");
        assertThat(raw(0, "HELLO 3 AUTH blue no\r\nQUIT\r\n")).isEqualTo(wrong + "+OK\r\n");
        assertThat(raw(0, "HELLO 3 AUTH blue sky\r\nGET k\r\nQUIT\r\n"))
                .startsWith("%8\r\n")
                .endsWith("_\r\n+OK\r\n");
        assertThat(raw(3, "AUTH sky\r\nAUTH default any\r\nAUTH blue no\r\nAUTH blue sky\r\nQUIT\r\n"))
                .isEqualTo("-ERR AUTH <password> called without any password configured for the default user."
                        + " Are you sure your configuration is correct?\r\n+OK\r\n" + wrong + "+OK\r\n+OK\r\n");
    }

    @Test
    void givenJedis_whenItLogsIn_thenItsValuesAreItsTenants() {
        for (RedisProtocol protocol : RedisProtocol.values()) {
            try (Jedis blue = jedis("blue", "sky", protocol);
                    Jedis green = jedis("green", "grass", protocol)) {
                blue.set("k", "blue");
                assertThat(green.get("k")).isNull();
                assertThat(blue.get("k")).isEqualTo("blue");
            }
        }
        assertThatThrownBy(() -> jedis("green", "sky", RedisProtocol.RESP2).ping())
                .isInstanceOf(JedisDataException.class)
                .hasMessageStartingWith("WRONGPASS");
    }

    private Jedis jedis(String user, String password, RedisProtocol protocol) {
        return new Jedis(
                new HostAndPort("127.0.0.1", server.port()),
                DefaultJedisClientConfig.builder()
                        .user(user)
                        .password(password)
                        .protocol(protocol)
                        .timeoutMillis(60_000)
                        .build());
    }

    @Test
    void givenHttp_whenAskedWithAndWithoutCredentials_thenOnlyTheRightOnesSeeObjects() throws IOException {
        assertThat(http(0, "PUT", "/v1/objects/k", basic("blue:sky"))).startsWith("HTTP/1.1 204");
        assertThat(http(0, "GET", "/v1/objects/k", basic("blue:sky"))).endsWith("hello");
        assertThat(http(0, "GET", "/v1/objects/k", "Bearer blue:sky")).endsWith("hello");
        assertThat(http(0, "GET", "/v1/objects/k", basic("green:grass"))).startsWith("HTTP/1.1 404");
        for (String wrong :
                List.of("", "Basic", "Basic !!", basic("blue"), basic("blue:no"), "Bearer sky", "Digest x")) {
            assertThat(http(0, "GET", "/v1/objects/k", wrong))
                    .as(wrong)
                    .startsWith("HTTP/1.1 401")
                    .containsIgnoringCase("www-authenticate: Basic realm=\"kvcache\"");
            assertThat(http(0, "DELETE", "/v1/objects/k", wrong)).startsWith("HTTP/1.1 401");
        }
        assertThat(http(0, "GET", "/v1/objects/k", basic("blue:sky"))).endsWith("hello");
    }

    @Test
    void givenPages_whenAskedFor_thenHealthIsForAllAndTheRestWhereItWasAskedFor() throws IOException {
        assertThat(http(0, "GET", "/health/live", "")).endsWith("live\n");
        assertThat(http(0, "GET", "/metrics", "")).startsWith("HTTP/1.1 401");
        assertThat(http(0, "GET", "/metrics", basic("blue:sky"))).startsWith("HTTP/1.1 404");
        assertThat(http(0, "GET", "/v1/stats", basic("blue:sky"))).startsWith("HTTP/1.1 404");
        String own = "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n";
        assertThat(raw(2, own)).startsWith("HTTP/1.1 200").contains("tenant=\"green\"");
        assertThat(raw(2, own.replace("/metrics", "/v1/objects/k"))).startsWith("HTTP/1.1 404");
        assertThat(raw(2, own.replace("127.0.0.1", "evil.example"))).startsWith("HTTP/1.1 403");
    }

    @Test
    void givenABrowserThatPostsCommands_whenOnlyRedisIsSpoken_thenNoneRuns() throws IOException {
        assertThat(raw(3, "POST / HTTP/1.1\r\nHost: localhost\r\n\r\nSET k v\r\n"))
                .isEmpty();
        assertThat(raw(3, "GET k\r\nQUIT\r\n")).isEqualTo("$-1\r\n+OK\r\n");
    }

    @Test
    void givenWrongPasswords_whenThereWereTen_thenMoreAreNotLookedAt() throws IOException {
        assertThat(raw(0, "AUTH blue no\r\n".repeat(11) + "AUTH blue sky\r\nQUIT\r\n"))
                .endsWith("-ERR too many failed attempts, try again later\r\n".repeat(2) + "+OK\r\n");
        assertThat(http(0, "GET", "/v1/objects/k", basic("blue:sky")))
                .startsWith("HTTP/1.1 429")
                .containsIgnoringCase("retry-after: 60\r\n");
        assertThat(http(0, "GET", "/v1/objects/k", basic("green:grass"))).startsWith("HTTP/1.1 404");
    }

    @Test
    void givenWrongPasswords_whenAConnectionHasShownTheRightOneBefore_thenItGoesOn() throws Exception {
        String get = "GET /v1/objects/k HTTP/1.1\r\nHost: h\r\nAuthorization: " + basic("blue:sky") + "\r\n\r\n";
        try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), server.port(0))) {
            socket.setSoTimeout(60_000);
            socket.getOutputStream().write(get.getBytes(UTF_8));
            assertThat(new String(socket.getInputStream().readNBytes(12), UTF_8))
                    .isEqualTo("HTTP/1.1 404");
            raw(0, "AUTH blue no\r\n".repeat(11) + "QUIT\r\n");
            String last = get.replace("\r\nHost", "\r\nConnection: close\r\nHost");
            socket.getOutputStream().write(last.getBytes(UTF_8));
            assertThat(new String(socket.getInputStream().readAllBytes(), UTF_8))
                    .contains("HTTP/1.1 404")
                    .doesNotContain("HTTP/1.1 429");
        }
    }
}
