package io.kvcache.server;

import static io.kvcache.server.BusClusterServers.await;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.check.BlockContent;
import io.kvcache.core.identity.Namespace;
import io.kvcache.server.config.TenantConfig;
import io.kvcache.server.lm.LmTestClient;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.params.SetParams;
import tools.jackson.databind.JsonNode;

/// Values that never change go to the servers that own their slots; those that may change stay.
@Timeout(120)
final class ValueHandoverTest {

    private static final String DRAIN = "/v1/cluster/drain";
    private static final Namespace VALUES = TenantKeyspaces.namespaceOf(TenantConfig.DEFAULT);
    private static final int KEYS = 40;
    private static final int LARGE = 2_500_000;

    private BusClusterServers servers;

    @BeforeEach
    void open(@TempDir Path folder) {
        servers = new BusClusterServers(folder);
    }

    @AfterEach
    void close() {
        servers.close();
    }

    private static int port(CacheServer server) {
        return server.address().getPort();
    }

    private static Jedis jedis(CacheServer server) {
        return new Jedis("127.0.0.1", port(server), 20_000);
    }

    private static List<String> content() {
        return chunks("model");
    }

    private static List<String> chunks(String model) {
        return IntStream.range(0, KEYS)
                .mapToObj(number -> model + "@1@0@%016x".formatted(0x1234567890L * (number + 1)))
                .toList();
    }

    private static List<String> halves() {
        return chunks("halves").stream()
                .flatMap(chunk -> Stream.of(chunk + "metadata", chunk + "kv_bytes"))
                .toList();
    }

    private static List<String> mutable() {
        return IntStream.range(0, KEYS).mapToObj(number -> "key" + number).toList();
    }

    private static void write(CacheServer server, List<String> keys) {
        try (Jedis jedis = jedis(server)) {
            keys.forEach(key -> jedis.set(key, "value of " + key));
        }
    }

    /// Waits, as a read misses while the owner does not answer, which may be on a busy machine.
    private static void assertFound(CacheServer server, List<String> keys) throws InterruptedException {
        try (Jedis jedis = jedis(server)) {
            for (String key : keys) {
                await(() -> ("value of " + key).equals(jedis.get(key)));
            }
        }
    }

    /// What a server has, its own or not.
    private static List<String> at(CacheServer server, List<String> keys) {
        return keys.stream()
                .filter(key -> server.cache().containsObject(VALUES, key.getBytes(UTF_8)))
                .toList();
    }

    private static byte[] large() {
        byte[] bytes = new byte[LARGE];
        BlockContent.of(0, 1).fill(MemorySegment.ofArray(bytes));
        return bytes;
    }

    private static JsonNode drain(CacheServer server) throws Exception {
        try (HttpTestClient client = new HttpTestClient(port(server))) {
            assertThat(client.post(DRAIN, "").statusCode()).isEqualTo(202);
            await(() -> !handover(client).get("running").booleanValue());
            return handover(client);
        }
    }

    private static JsonNode handover(HttpTestClient client) {
        try {
            return HttpTestClient.json(client.get(DRAIN)).get("handover");
        } catch (IOException failed) {
            throw new UncheckedIOException(failed);
        } catch (InterruptedException stopped) {
            throw new IllegalStateException(stopped);
        }
    }

    @Test
    void givenValuesThatNeverChange_whenTheirServerIsDrained_thenTheOthersHaveThem() throws Exception {
        CacheServer drained = servers.start("kv-0", false);
        CacheServer other = servers.start("kv-1", false);
        List<String> all = Stream.concat(content().stream(), halves().stream()).toList();
        write(drained, all);
        write(drained, mutable());
        int had = at(drained, all).size();
        List<String> mutableElsewhere = at(other, mutable());
        assertThat(had).isBetween(1, all.size() - 1);
        assertThat(mutableElsewhere).hasSizeBetween(1, KEYS - 1);

        JsonNode handover = drain(drained);

        assertThat(handover.get("values").intValue()).isEqualTo(had);
        assertThat(handover.get("valuesLeft").intValue()).isZero();
        assertThat(at(other, all)).isEqualTo(all);
        assertThat(at(other, mutable())).isEqualTo(mutableElsewhere);
        assertFound(drained, all);
        servers.stop("kv-0");
        assertFound(other, all);
    }

    @Test
    void givenBytesWhoseMetadataIsMissing_whenTheirServerIsDrained_thenTheOthersHaveThem() throws Exception {
        CacheServer drained = servers.start("kv-0", false);
        CacheServer other = servers.start("kv-1", false);
        List<String> bytes =
                halves().stream().filter(key -> key.endsWith("kv_bytes")).toList();
        write(drained, bytes);

        assertThat(drain(drained).get("valuesLeft").intValue()).isZero();

        assertThat(at(other, bytes)).isEqualTo(bytes);
    }

    @Test
    void givenServersThatAllLeave_whenTheyHandOver_thenNoneWaitsForAnother() throws Exception {
        CacheServer one = servers.start("kv-0", false);
        CacheServer other = servers.start("kv-1", false);
        write(one, content());
        one.announceShutdown(Duration.ZERO);
        other.announceShutdown(Duration.ZERO);

        assertThat(one.handOver(Duration.ofMinutes(1)))
                .isEqualTo("Nothing is handed over, as no other server of the cluster serves");
    }

    @Test
    void givenWhatAValueHasBesideItsBytes_whenItIsHandedOver_thenItKeepsThat() throws Exception {
        CacheServer drained = servers.start("kv-0", false);
        LmTestClient lm = new LmTestClient();
        try (Jedis jedis = jedis(drained);
                Socket socket = new Socket(InetAddress.getLoopbackAddress(), port(drained))) {
            jedis.set(
                    content().getFirst().getBytes(UTF_8),
                    large(),
                    SetParams.setParams().ex(1000));
            for (String key : chunks("lm")) {
                socket.getOutputStream().write(lm.put(key, LmTestClient.META, key.getBytes(UTF_8)));
            }
            assertThat(ask(socket, lm.ask(LmTestClient.HEALTH, "key"), lm.success().length))
                    .isEqualTo(lm.success());
            jedis.expire(chunks("lm").getFirst(), 1000);
        }
        CacheServer other = servers.start("kv-1", false);

        drain(drained);
        servers.stop("kv-0");

        try (Jedis jedis = jedis(other);
                Socket socket = new Socket(InetAddress.getLoopbackAddress(), port(other))) {
            assertThat(jedis.get(content().getFirst().getBytes(UTF_8))).isEqualTo(large());
            assertThat(jedis.ttl(content().getFirst())).isBetween(900L, 1000L);
            assertThat(jedis.ttl(chunks("lm").getFirst())).isBetween(900L, 1000L);
            assertThat(jedis.ttl(chunks("lm").getLast())).isEqualTo(-1);
            for (String key : chunks("lm")) {
                byte[] expected = lm.reply(200, LmTestClient.META, key.getBytes(UTF_8));
                assertThat(ask(socket, lm.ask(LmTestClient.GET, key), expected.length))
                        .isEqualTo(expected);
            }
        }
    }

    private static byte[] ask(Socket socket, byte[] request, int replyBytes) throws IOException {
        socket.setSoTimeout(20_000);
        socket.getOutputStream().write(request);
        return socket.getInputStream().readNBytes(replyBytes);
    }

    @Test
    void givenAServerThatStops_whenItHandsOverTwice_thenEachValueIsGivenOnce() throws Exception {
        CacheServer drained = servers.start("kv-0", false);
        CacheServer other = servers.start("kv-1", false);
        write(drained, content());

        int had = at(drained, content()).size();

        drained.handOver(Duration.ofSeconds(10));
        drained.handOver(Duration.ofSeconds(10));

        assertThat(at(other, content())).isEqualTo(content());
        try (HttpTestClient client = new HttpTestClient(port(drained))) {
            assertThat(new String(client.get("/metrics").body(), UTF_8))
                    .contains("\nkv_cluster_given_values_total " + had + ".0\n");
        }
    }

    @Test
    void givenValues_whenAServerJoins_thenItGetsThoseOfItsSlots() throws Exception {
        CacheServer first = servers.start("kv-0", false);
        write(first, content());
        write(first, mutable());

        CacheServer joined = servers.start("kv-1", false);

        await(() -> !at(joined, content()).isEmpty());
        assertFound(joined, content());
        assertFound(first, content());
        assertThat(at(joined, content())).hasSizeLessThan(KEYS);
        assertThat(at(joined, mutable())).isEmpty();
    }

    @Test
    void givenValuesOfBothSidesOfAPartition_whenTheyMeet_thenAllAreFoundEverywhere() throws Exception {
        CacheServer one = servers.start("kv-0", false);
        CacheServer other = servers.start("kv-1", false);
        servers.bus().part("kv-1");
        write(one, content());
        write(other, halves());
        assertThat(at(other, content())).isEmpty();

        servers.bus().heal();

        assertFound(other, content());
        assertFound(one, halves());
    }
}
