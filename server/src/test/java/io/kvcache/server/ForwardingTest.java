package io.kvcache.server;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.core.check.BlockContent;
import io.kvcache.server.lm.LmTestClient;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.net.InetAddress;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.RedisProtocol;
import redis.clients.jedis.Transaction;
import redis.clients.jedis.exceptions.JedisDataException;
import redis.clients.jedis.params.SetParams;

/// Clients that know one server of three and find the values of all.
@Timeout(240)
final class ForwardingTest {

    private static final int KEYS = 60;
    private static final int MIB = 1 << 20;

    private static RedisClusterServers servers = new RedisClusterServers(Path.of(""));

    @BeforeAll
    static void start(@TempDir Path folder) throws Exception {
        servers = new RedisClusterServers(folder);
        for (int number = 0; number < RedisClusterServers.COUNT; number++) {
            servers.start(number);
        }
    }

    @AfterAll
    static void stop() {
        servers.close();
    }

    private Jedis jedis(int server, RedisProtocol protocol) {
        return new Jedis(
                new HostAndPort("127.0.0.1", servers.anyPort(server)),
                DefaultJedisClientConfig.builder()
                        .protocol(protocol)
                        .socketTimeoutMillis(20_000)
                        .build());
    }

    private static List<String> keys() {
        return IntStream.range(0, KEYS).mapToObj(number -> "key" + number).toList();
    }

    private static byte[] bytes(int seed, int length) {
        byte[] bytes = new byte[length];
        BlockContent.of(0, seed).fill(MemorySegment.ofArray(bytes));
        return bytes;
    }

    @ParameterizedTest
    @ValueSource(strings = {"RESP2", "RESP3"})
    void givenValuesWrittenAtOneServer_whenReadAtAnother_thenTheyAreThere(String version) {
        RedisProtocol protocol = RedisProtocol.valueOf(version);
        try (Jedis writer = jedis(0, protocol);
                Jedis reader = jedis(1, protocol)) {
            for (String key : keys()) {
                assertThat(writer.set(key, "value of " + key)).isEqualTo("OK");
            }
            assertThat(servers.keyCounts()).as("each server has its own").allMatch(count -> count > 5);
            for (String key : keys()) {
                assertThat(reader.get(key)).isEqualTo("value of " + key);
                assertThat(reader.strlen(key)).isEqualTo(("value of " + key).length());
            }
            assertThat(reader.get("none-of-them")).isNull();
            assertThat(reader.mget(keys().toArray(String[]::new)))
                    .containsExactlyElementsOf(
                            keys().stream().map(key -> "value of " + key).toList());
            assertThat(reader.mget("key1", "none", "key2")).containsExactly("value of key1", null, "value of key2");
            assertThat(reader.exists(keys().toArray(String[]::new))).isEqualTo(KEYS);
            assertThat(reader.del("key1", "key2", "key3", "none")).isEqualTo(3);
            assertThat(writer.get("key1")).isNull();
        }
    }

    @Test
    void givenCommandsThatChangeAValue_whenSaidToAnyServer_thenTheyChangeTheSameOne() {
        try (Jedis one = jedis(0, RedisProtocol.RESP2);
                Jedis other = jedis(2, RedisProtocol.RESP2)) {
            for (int i = 0; i < 12; i++) {
                String key = "counter" + i;
                assertThat(one.incr(key)).isEqualTo(1);
                assertThat(other.incrBy(key, 5)).isEqualTo(6);
                assertThat(one.set(key, "no", SetParams.setParams().nx())).isNull();
                assertThat(other.expire(key, 100)).isEqualTo(1);
                assertThat(one.ttl(key)).isBetween(90L, 100L);
                assertThat(one.getDel(key)).isEqualTo("6");
                assertThat(other.get(key)).isNull();
            }
            assertThat(one.mset("a", "1", "b", "2", "c", "3", "d", "4")).isEqualTo("OK");
            assertThat(other.mget("a", "b", "c", "d")).containsExactly("1", "2", "3", "4");
        }
        try (Jedis one = jedis(0, RedisProtocol.RESP2)) {
            for (String key : keys()) {
                one.set(key, "text");
                assertThatThrownBy(() -> one.incr(key))
                        .isInstanceOf(JedisDataException.class)
                        .hasMessageContaining("not an integer");
            }
        }
    }

    @Test
    void givenATransactionOverKeysOfAllServers_whenRun_thenEachReplyIsInItsPlace() {
        try (Jedis one = jedis(0, RedisProtocol.RESP2);
                Jedis other = jedis(1, RedisProtocol.RESP2)) {
            Transaction transaction = one.multi();
            for (int i = 0; i < 10; i++) {
                transaction.set("t" + i, "v" + i);
                transaction.get("t" + i);
            }
            List<Object> replies = transaction.exec();
            for (int i = 0; i < 10; i++) {
                assertThat(replies.get(2 * i)).isEqualTo("OK");
                assertThat(replies.get(2 * i + 1)).isEqualTo("v" + i);
                assertThat(other.get("t" + i)).isEqualTo("v" + i);
            }
        }
    }

    @Test
    void givenHalvesOfValuesOfLmcache_whenWrittenAndCounted_thenBothLieOnOneServer() {
        try (Jedis one = jedis(0, RedisProtocol.RESP2);
                Jedis other = jedis(1, RedisProtocol.RESP2)) {
            List<String> keys = new ArrayList<>();
            for (int i = 0; i < 40; i++) {
                String chunk = "halves@1@0@%016x".formatted(0x7654321L * (i + 1));
                one.set(chunk + "metadata", "m" + i);
                one.set(chunk + "kv_bytes", "b" + i);
                keys.add(chunk + "metadata");
            }
            assertThat(countPrefix(other, keys)).isEqualTo(40);
            one.del(keys.get(30));
            assertThat(other.get(keys.get(30).replace("metadata", "kv_bytes")))
                    .as("the other half goes with it")
                    .isNull();
            assertThat(countPrefix(other, keys)).isEqualTo(30);
        }
    }

    private static long countPrefix(Jedis jedis, List<String> keys) {
        List<String> words = new ArrayList<>(List.of("0"));
        words.addAll(keys);
        return (long) jedis.sendCommand(() -> "KV.PREFIX".getBytes(UTF_8), words.toArray(String[]::new));
    }

    @Test
    void givenLargeValues_whenPassedOn_thenNoByteIsWrong() {
        try (Jedis one = jedis(0, RedisProtocol.RESP2);
                Jedis other = jedis(1, RedisProtocol.RESP2)) {
            for (int i = 0; i < 9; i++) {
                byte[] key = ("large" + i).getBytes(UTF_8);
                byte[] value = bytes(i, MIB + i);
                assertThat(one.set(key, value)).isEqualTo("OK");
                assertThat(Arrays.equals(other.get(key), value)).isTrue();
                assertThat(other.getrange(key, 100, 199)).isEqualTo(Arrays.copyOfRange(value, 100, 200));
            }
        }
    }

    @Test
    void givenValuesOfLmcache_whenWrittenAtOneServer_thenAnotherHasThemWithTheirMetadata() throws IOException {
        LmTestClient client = new LmTestClient();
        for (int i = 0; i < 12; i++) {
            String key = "model@1@0@%016x".formatted(0x1234567890L * (i + 1));
            byte[] value = bytes(i, 100_000);
            try (Socket one = new Socket(InetAddress.getLoopbackAddress(), servers.anyPort(0));
                    Socket other = new Socket(InetAddress.getLoopbackAddress(), servers.anyPort(1))) {
                assertThat(ask(one, client.ask(LmTestClient.EXIST, key), client.fail().length))
                        .isEqualTo(client.fail());
                one.getOutputStream().write(client.put(key, LmTestClient.META, value));
                assertThat(ask(one, client.ask(LmTestClient.EXIST, key), client.success().length))
                        .as("after the PUT on the same connection")
                        .isEqualTo(client.success());
                byte[] expected = client.reply(200, LmTestClient.META, value);
                assertThat(Arrays.equals(ask(other, client.ask(LmTestClient.GET, key), expected.length), expected))
                        .isTrue();
                assertThat(ask(other, client.ask(LmTestClient.GET, key + "0"), client.fail().length))
                        .isEqualTo(client.fail());
            }
        }
    }

    private static byte[] ask(Socket socket, byte[] request, int replyBytes) throws IOException {
        socket.setSoTimeout(20_000);
        socket.getOutputStream().write(request);
        return socket.getInputStream().readNBytes(replyBytes);
    }

    @Test
    void givenObjectsOverHttp_whenAskedOfAnyServer_thenItAnswers() throws Exception {
        try (HttpClient client = HttpClient.newHttpClient()) {
            for (int i = 0; i < 9; i++) {
                byte[] value = bytes(i, 200_000 + i);
                String path = "/v1/objects/http%2F" + i;
                assertThat(send(client, 0, path, HttpRequest.newBuilder().GET()).statusCode())
                        .isEqualTo(404);
                assertThat(send(client, 0, path, HttpRequest.newBuilder().PUT(BodyPublishers.ofByteArray(value)))
                                .statusCode())
                        .isEqualTo(204);
                HttpResponse<byte[]> got =
                        send(client, 1, path, HttpRequest.newBuilder().GET());
                assertThat(got.statusCode()).isEqualTo(200);
                assertThat(Arrays.equals(got.body(), value)).isTrue();
                HttpResponse<byte[]> part =
                        send(client, 2, path, HttpRequest.newBuilder().GET().header("Range", "bytes=10-19"));
                assertThat(part.statusCode()).isEqualTo(206);
                assertThat(part.body()).isEqualTo(Arrays.copyOfRange(value, 10, 20));
                HttpResponse<byte[]> head =
                        send(client, 2, path, HttpRequest.newBuilder().HEAD());
                assertThat(head.statusCode()).isEqualTo(200);
                assertThat(head.headers().firstValueAsLong("content-length")).hasValue(value.length);
                assertThat(send(client, 2, path, HttpRequest.newBuilder().DELETE())
                                .statusCode())
                        .isEqualTo(204);
                assertThat(send(client, 1, path, HttpRequest.newBuilder().DELETE())
                                .statusCode())
                        .isEqualTo(404);
                assertThat(send(client, 1, path, HttpRequest.newBuilder().HEAD())
                                .statusCode())
                        .isEqualTo(404);
            }
        }
    }

    @Test
    void givenConditionsOverHttp_whenSaidToAnyServer_thenTheyHoldAlike() throws Exception {
        try (HttpClient client = HttpClient.newHttpClient()) {
            for (int i = 0; i < 9; i++) {
                String path = "/v1/objects/conditions%2F" + i;
                assertThat(status(client, 0, path, put("one"), "If-Match", "*")).isEqualTo(412);
                assertThat(status(client, 1, path, put("one"), "If-None-Match", "*"))
                        .isEqualTo(204);
                assertThat(status(client, 2, path, put("two"), "If-None-Match", "*"))
                        .isEqualTo(412);
                List<String> tags = new ArrayList<>();
                for (int server = 0; server < RedisClusterServers.COUNT; server++) {
                    HttpResponse<byte[]> got =
                            send(client, server, path, HttpRequest.newBuilder().GET());
                    assertThat(got.body()).isEqualTo("one".getBytes(UTF_8));
                    tags.add(got.headers().firstValue("etag").orElseThrow());
                    tags.add(send(client, server, path, HttpRequest.newBuilder().HEAD())
                            .headers()
                            .firstValue("etag")
                            .orElseThrow());
                }
                assertThat(tags).containsOnly(tags.getFirst());
                String etag = tags.getFirst();
                assertThat(status(client, 1, path, HttpRequest.newBuilder().GET(), "If-None-Match", etag))
                        .isEqualTo(304);
                assertThat(status(client, 2, path, HttpRequest.newBuilder().GET(), "Range", "bytes=9-"))
                        .isEqualTo(416);
                assertThat(status(client, 0, path, put(""), "If-Match", etag)).isEqualTo(204);
                assertThat(status(client, 1, path, put("three"), "If-Match", etag))
                        .isEqualTo(412);
                assertThat(send(client, 2, path, HttpRequest.newBuilder().GET()).body())
                        .isEmpty();
                assertThat(status(client, 1, path, put("three"), "Content-Range", "bytes 0-2/3"))
                        .isEqualTo(400);
                assertThat(status(client, 0, path, HttpRequest.newBuilder().DELETE(), "If-Match", etag))
                        .isEqualTo(412);
                assertThat(status(client, 1, path, HttpRequest.newBuilder().DELETE(), "If-Match", "*"))
                        .isEqualTo(204);
            }
        }
    }

    private static HttpRequest.Builder put(String value) {
        return HttpRequest.newBuilder().PUT(BodyPublishers.ofString(value));
    }

    private int status(HttpClient client, int server, String path, HttpRequest.Builder request, String... header)
            throws IOException, InterruptedException {
        return send(client, server, path, request.headers(header)).statusCode();
    }

    private HttpResponse<byte[]> send(HttpClient client, int server, String path, HttpRequest.Builder request)
            throws IOException, InterruptedException {
        URI uri = URI.create("http://127.0.0.1:" + servers.anyPort(server) + path);
        return client.send(request.uri(uri).build(), BodyHandlers.ofByteArray());
    }

    private static @Nullable String getOrError(Jedis jedis, String key) {
        try {
            return jedis.get(key);
        } catch (JedisDataException error) {
            return String.valueOf(error.getMessage()).split(" ", 2)[0];
        }
    }

    @Test
    void givenAnOwnerThatIsKilled_whenItsKeysAreAskedFor_thenReadsFailAndWritesWaitForTheNextOwner() throws Exception {
        try (Jedis one = jedis(0, RedisProtocol.RESP2)) {
            keys().forEach(key -> one.set(key, "before"));
            servers.kill(2);
            for (String key : keys()) { // until the view names the next owner, which has none of them
                assertThat(getOrError(one, key)).isIn("before", "TRYAGAIN", null);
            }
            for (int i = 0; i < 20; i++) {
                String content = "model@1@0@%016x".formatted(0x987654321L * (i + 1));
                assertThat(one.set(content, "content")).isEqualTo("OK");
            }
            for (String key : keys()) {
                assertThat(one.set(key, "after")).as("a write that waited").isEqualTo("OK");
            }
            try (Jedis other = jedis(1, RedisProtocol.RESP2)) {
                for (String key : keys()) {
                    assertThat(other.get(key)).isEqualTo("after");
                }
            }
        }
        servers.start(2);
    }

    @Test
    void givenAServerThatDrainsAndReturns_whenClientsOfTheOthersGoOn_thenTheySeeNoErrorAndNoOldValue()
            throws Exception {
        try (Jedis one = jedis(0, RedisProtocol.RESP2)) {
            keys().forEach(key -> one.set(key, "first"));
            servers.drain(2);
            keys().forEach(key -> assertThat(one.set(key, "second")).isEqualTo("OK"));
            servers.start(2);
            for (String key : keys()) {
                assertThat(one.get(key)).isIn("second", null);
            }
            keys().forEach(key -> assertThat(one.set(key, "third")).isEqualTo("OK"));
            try (Jedis returned = jedis(2, RedisProtocol.RESP2)) {
                keys().forEach(key -> assertThat(returned.get(key)).isEqualTo("third"));
            }
        }
    }
}
