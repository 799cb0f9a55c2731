package io.kvcache.server;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.core.contract.Pause;
import io.kvcache.server.config.AccessConfig;
import io.kvcache.server.config.ListenerConfig;
import io.kvcache.server.config.ListenerConfig.ListenProtocol;
import io.kvcache.server.config.ListenerConfig.ListenerAuthConfig;
import io.kvcache.server.config.TenantConfig;
import io.kvcache.server.net.Connection.CloseReason;
import java.io.IOException;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.exceptions.JedisConnectionException;
import redis.clients.jedis.params.ClientKillParams;
import redis.clients.jedis.params.ScanParams;

/// One tenant tries to get at another's values.
@Tag("slow")
final class TenantIsolationTest {

    private static final int VALUE = 1 << 20;
    private static final long QUOTA = 16L << 20;

    private final TestServer server = TestServer.start(new AccessConfig(
            List.of(
                    listener("blue", "blue", List.of()),
                    listener("green", "green", List.of()),
                    listener("elsewhere", "blue", List.of("10.0.0.0/8"))),
            List.of(tenant("blue", QUOTA), tenant("green", 0), TenantConfig.defaultTenant())));

    private final Jedis blue = new Jedis("127.0.0.1", server.port(0), 60_000);
    private final Jedis green = new Jedis("127.0.0.1", server.port(1), 60_000);

    private static ListenerConfig listener(String name, String tenant, List<String> cidrs) {
        Set<ListenProtocol> protocols = Set.of(ListenProtocol.RESP, ListenProtocol.LM, ListenProtocol.HTTP);
        return new ListenerConfig(
                name, name, "127.0.0.1", 0, protocols, new ListenerAuthConfig(tenant, false, false, cidrs, List.of()));
    }

    private static TenantConfig tenant(String name, long quotaBytes) {
        return new TenantConfig(name, name, name, null, null, quotaBytes);
    }

    @BeforeEach
    void store() {
        green.set("k", "secret");
        green.set("only", "green's");
    }

    @AfterEach
    void stop() {
        blue.close();
        green.close();
        server.close();
    }

    private byte[] raw(int listener, byte[] request, int replyBytes) throws IOException {
        try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), server.port(listener))) {
            socket.setSoTimeout(60_000);
            socket.getOutputStream().write(request);
            return replyBytes < 0
                    ? socket.getInputStream().readAllBytes()
                    : socket.getInputStream().readNBytes(replyBytes);
        }
    }

    private String http(String method) throws IOException {
        String request = method + " /v1/objects/k HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        return new String(raw(0, request.getBytes(US_ASCII), -1), UTF_8);
    }

    private static byte[] lm(int command) {
        return ByteBuffer.allocate(186)
                .order(ByteOrder.LITTLE_ENDIAN)
                .putInt(command)
                .put(new byte[32])
                .put(("k" + " ".repeat(149)).getBytes(US_ASCII))
                .array();
    }

    @Test
    void givenAnothersValues_whenInfoIsAsked_thenItTellsOfOnesOwnAlone() {
        green.set("large", "x".repeat(VALUE));
        blue.set("k", "v");
        assertThat(blue.info())
                .contains("used_memory:4096\r\n", "connected_clients:1\r\n", "maxmemory:" + QUOTA + "\r\n")
                .contains("maxmemory_policy:allkeys-lru\r\n", "kvcache_policy:lru\r\n")
                .contains("db0:keys=1,", "values_stored:1\r\n", "evicted_keys:0\r\n")
                .doesNotContain("total_", "records", "rejected", "protocol_errors", "values_dropped");
        assertThat(blue.configGet("maxmemory")).containsEntry("maxmemory", Long.toString(QUOTA));
        assertThat(green.info("keyspace")).contains("db0:keys=3,");
    }

    @Test
    void givenSeveralTenants_whenOneSaves_thenItIsRefusedAsThatWouldWriteWhatAllHave() {
        assertThatThrownBy(blue::save)
                .hasMessageStartingWith("NOPERM tenant blue may not run 'save'")
                .hasMessageEndingWith("is for tenant default");
    }

    private static String address(Jedis client) {
        return client.clientInfo().replaceAll("(?s).*? addr=(\\S+) .*", "$1");
    }

    @Test
    @Timeout(300)
    void givenAnothersConnections_whenListedAndKilled_thenTheyAreNotThere() {
        try (Jedis second = new Jedis("127.0.0.1", server.port(0), 60_000)) {
            second.clientSetname("second");
            assertThat(blue.clientList().lines())
                    .hasSize(2)
                    .allMatch(line -> line.contains(" user=blue "))
                    .anyMatch(line -> line.contains(" name=second "));
            assertThat(blue.clientList(green.clientId())).isEmpty();
            assertThat(blue.clientKill(ClientKillParams.clientKillParams().id(Long.toString(green.clientId()))))
                    .isZero();
            assertThatThrownBy(() -> blue.clientKill(address(green))).hasMessageContaining("No such client");
            assertThat(blue.clientKill(address(second))).isEqualTo("OK");
            while (server.server().closedCount(CloseReason.KILLED) == 0) {
                Pause.briefly(); // another thread ends it
            }
            assertThatThrownBy(second::ping).isInstanceOf(JedisConnectionException.class);
        }
        assertThat(green.ping()).isEqualTo("PONG");
        assertThat(server.server().closedCount(CloseReason.KILLED)).isEqualTo(1);
    }

    @Test
    void givenAnothersKeys_whenEveryCommandIsTried_thenTheyAreNotThere() {
        assertThat(blue.get("k")).isNull();
        assertThat(blue.mget("k", "only")).containsOnlyNulls();
        assertThat(blue.exists("k", "only")).isZero();
        assertThat(blue.sendCommand(() -> "KV.PREFIX".getBytes(US_ASCII), "60000", "k", "only"))
                .isEqualTo(0L);
        assertThat(server.server().cache().hintStats().pins()).isZero();
        assertThat(blue.keys("*")).isEmpty();
        assertThat(blue.scan("0", new ScanParams().count(1000)).getResult()).isEmpty();
        assertThat(blue.dbSize()).isZero();
        assertThat(blue.memoryUsage("k")).isNull();
        assertThat(blue.strlen("k")).isZero();
        assertThat(blue.getrange("k", 0, -1)).isEmpty();
        assertThat(blue.type("k")).isEqualTo("none");
        assertThat(blue.ttl("k")).isEqualTo(-2);
        assertThat(blue.touch("k")).isZero();
        assertThat(blue.expire("k", 1)).isZero();
        assertThat(blue.del("k")).isZero();
        assertThat(blue.unlink("only")).isZero();
        blue.set("k", "blue's");
        assertThat(blue.flushDB()).isEqualTo("OK");
        assertThat(green.mget("k", "only")).containsExactly("secret", "green's");
        assertThat(green.dbSize()).isEqualTo(2);
        assertThat(green.ttl("k")).isEqualTo(-1);
    }

    @Test
    void givenAnothersKeys_whenAskedForByHttpAndLm_thenTheyAreNotThere() throws IOException {
        for (String method : List.of("GET", "HEAD", "DELETE")) {
            assertThat(http(method)).startsWith("HTTP/1.1 404");
        }
        for (int command : new int[] {2, 3}) { // GET and EXIST
            byte[] reply = raw(0, lm(command), 8);
            assertThat(ByteBuffer.wrap(reply).order(ByteOrder.LITTLE_ENDIAN).getInt())
                    .isEqualTo(400);
        }
        byte[] list = raw(0, lm(4), 8);
        assertThat(ByteBuffer.wrap(list).order(ByteOrder.LITTLE_ENDIAN).getInt(4))
                .isZero();
        assertThat(green.get("k")).isEqualTo("secret");
    }

    @Test
    void givenATenantOverItsQuota_whenItGoesOn_thenItsOwnOldestGoAndNobodyElses() {
        byte[] value = new byte[VALUE];
        for (int i = 0; i < 200; i++) {
            Arrays.fill(value, (byte) i);
            blue.set(("b" + i).getBytes(US_ASCII), value);
        }
        assertThat(blue.dbSize()).isEqualTo(15); // each is a page more than 1 MiB
        assertThat(blue.get("b184")).isNull();
        assertThat(blue.get("b185".getBytes(US_ASCII))).hasSize(VALUE).containsOnly((byte) 185);
        assertThat(green.mget("k", "only")).containsExactly("secret", "green's");
        assertThat(server.server().cache().stats().removals().evicted()).isZero();
    }

    @Test
    void givenATenantWithoutAQuota_whenItStoresMoreThanThereIs_thenOthersKeepWhatIsWithinTheirShares() {
        byte[] value = new byte[VALUE];
        for (int i = 0; i < 12; i++) {
            blue.set(("b" + i).getBytes(US_ASCII), value);
        }
        for (int i = 0; i < 400; i++) {
            green.set(("g" + i).getBytes(US_ASCII), value);
            green.set(("h" + i).getBytes(US_ASCII), new byte[1 + i * 200]);
        }
        assertThat(server.server().cache().stats().removals().evicted()).isPositive();
        for (int i = 0; i < 12; i++) {
            assertThat(blue.exists("b" + i)).isTrue();
        }
        assertThat(blue.dbSize()).isEqualTo(12);
        server.server().cache().validate();
    }

    @Test
    void givenAClientOutsideTheNetworks_whenItConnects_thenItIsRefusedAndCounted() throws IOException {
        byte[] reply;
        try {
            reply = raw(2, "PING\r\n".getBytes(US_ASCII), -1);
        } catch (IOException reset) {
            reply = new byte[0];
        }
        assertThat(reply).isEmpty();
        assertThat(server.server().closedCount(CloseReason.FOREIGN_NETWORK)).isEqualTo(1);
    }
}
