package io.kvcache.server.resp;

import static io.kvcache.server.keyspace.SettableViews.server;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.server.keyspace.SettableViews;
import io.kvcache.transport.cluster.HashSlots;
import io.kvcache.transport.cluster.NodeState;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/// The listener for clients that find the owners of keys themselves.
final class RedisClusterTest {

    private static final Pattern RANGE =
            Pattern.compile("\\*3\r\n:(\\d+)\r\n:(\\d+)\r\n\\*4\r\n\\$\\d+\r\n([^\r]+)\r\n");

    private final SettableViews views = new SettableViews();
    private final EmbeddedRespServer resp = new EmbeddedRespServer(views);

    @BeforeEach
    void twoServersServe() {
        views.tell(server("kv-0", NodeState.SERVING), server("kv-1", NodeState.SERVING));
        settle();
    }

    @AfterEach
    void close() {
        resp.close();
    }

    private void settle() {
        resp.test().time().advance(Duration.ofSeconds(1));
    }

    private String ask(String line) {
        return resp.ask(line.split(" ", -1));
    }

    private int slot(String key) {
        return HashSlots.of(key.getBytes(StandardCharsets.UTF_8));
    }

    private boolean isOwn(String key) {
        HashSlots slots = new HashSlots(Objects.requireNonNull(views.view().placement()));
        return views.view().serving().get(slots.owner(slot(key))).name().equals("kv-0");
    }

    private String key(boolean own) {
        return IntStream.range(0, 1000)
                .mapToObj(number -> "key" + number)
                .filter(key -> isOwn(key) == own)
                .findFirst()
                .orElseThrow();
    }

    private String moved(String key) {
        return "-MOVED " + slot(key) + " kv-1.example:7379\r\n";
    }

    @Test
    void givenAKeyOfAnotherServer_whenUsed_thenTheClientIsSentThere() {
        String own = key(true);
        String other = key(false);

        assertThat(ask("SET " + own + " v")).isEqualTo("+OK\r\n");
        assertThat(ask("GET " + own)).isEqualTo("$1\r\nv\r\n");
        for (String command : List.of("GET", "TTL", "STRLEN", "DEL", "EXISTS", "INCR", "GETDEL", "TYPE")) {
            assertThat(ask(command + " " + other)).as(command).isEqualTo(moved(other));
        }
        assertThat(ask("MEMORY USAGE " + other)).isEqualTo(moved(other));
        assertThat(ask("KV.PREFIX 0 " + other)).isEqualTo(moved(other));
        assertThat(ask("DBSIZE")).isEqualTo(":1\r\n");
    }

    @Test
    void givenAValueForAnotherServer_whenUploaded_thenItIsTakenOffTheWireAndNotKept() {
        String other = key(false);
        String large = "x".repeat(200_000);

        assertThat(resp.ask("SET", other, large)).isEqualTo(moved(other));
        assertThat(resp.ask("SETEX", other, "10", large)).isEqualTo(moved(other));
        assertThat(resp.ask("MSET", other, large)).isEqualTo(moved(other));
        assertThat(ask("PING")).isEqualTo("+PONG\r\n");
        assertThat(resp.test().keyspace().count()).isZero();
    }

    @Test
    void givenKeysOfSeveralSlots_whenUsedTogether_thenThatIsRefused() {
        String crossed = "-CROSSSLOT Keys in request don't hash to the same slot\r\n";

        assertThat(ask("MGET a b")).isEqualTo(crossed);
        assertThat(ask("MSET a 1 b 2")).isEqualTo(crossed);
        assertThat(ask("DEL a b")).isEqualTo(crossed);
        String own = key(true);
        assertThat(ask("MSET {" + own + "}1 a {" + own + "}2 b")).isEqualTo("+OK\r\n");
        assertThat(ask("MGET {" + own + "}1 {" + own + "}2")).isEqualTo("*2\r\n$1\r\na\r\n$1\r\nb\r\n");
    }

    @Test
    void givenATransaction_whenAKeyIsElsewhere_thenNothingOfItRuns() {
        String own = key(true);
        String other = key(false);

        assertThat(ask("MULTI")).isEqualTo("+OK\r\n");
        assertThat(ask("SET " + own + " v")).isEqualTo("+QUEUED\r\n");
        assertThat(ask("SET " + other + " v")).isEqualTo(moved(other));
        assertThat(ask("EXEC")).startsWith("-EXECABORT");

        ask("MULTI");
        ask("SET {" + own + "}1 v");
        ask("SET {" + own + "}2 v");
        assertThat(ask("EXEC")).isEqualTo("*2\r\n+OK\r\n+OK\r\n");
    }

    @Test
    void givenATransaction_whenItsKeysAreOfSeveralSlotsOrMove_thenExecSaysSo() {
        String own = key(true);
        String second = IntStream.range(0, 1000)
                .mapToObj(number -> "second" + number)
                .filter(this::isOwn)
                .findFirst()
                .orElseThrow();
        ask("MULTI");
        ask("SET " + own + " v");
        ask("SET " + second + " v");
        assertThat(ask("EXEC")).startsWith("-CROSSSLOT");

        ask("MULTI");
        ask("SET " + own + " v");
        views.tell(server("kv-0", NodeState.DRAINING), server("kv-1", NodeState.SERVING));
        assertThat(ask("EXEC")).isEqualTo(moved(own));
        settle();
        assertThat(ask("GET " + own)).isEqualTo(moved(own));
    }

    @Test
    void givenAViewChange_whenASlotIsLost_thenTheFirstRedirectionWaits() {
        String own = key(true);
        views.tell(server("kv-0", NodeState.DRAINING), server("kv-1", NodeState.SERVING));

        assertThat(ask("GET " + own)).isEmpty();
        settle();
        resp.embeddedConnection().channel().advanceTimeBy(100, TimeUnit.MILLISECONDS);
        resp.embeddedConnection().channel().runPendingTasks();

        assertThat(resp.embeddedConnection().text()).isEqualTo(moved(own));
        assertThat(ask("GET " + own)).isEqualTo(moved(own));
    }

    @Test
    void givenTwoServers_whenSlotsAreAsked_thenAllAreToldOnceInRangesOfOneOwner() {
        List<MatchResult> ranges = RANGE.matcher(ask("CLUSTER SLOTS")).results().toList();

        int next = 0;
        String before = "";
        for (MatchResult range : ranges) {
            assertThat(Integer.parseInt(range.group(1))).isEqualTo(next);
            assertThat(range.group(3)).isNotEqualTo(before);
            next = Integer.parseInt(range.group(2)) + 1;
            before = range.group(3);
        }
        assertThat(next).isEqualTo(HashSlots.COUNT);
    }

    @Test
    void givenTwoServers_whenTopologyIsAsked_thenItIsToldInEachForm() {
        String id0 = ClusterCommands.nodeId("kv-0");
        String id1 = ClusterCommands.nodeId("kv-1");
        assertThat(id0).matches("[0-9a-f]{40}").isNotEqualTo(id1);

        assertThat(ask("CLUSTER MYID")).isEqualTo("$40\r\n" + id0 + "\r\n");
        assertThat(ask("CLUSTER MYSHARDID")).contains(id0);
        assertThat(ask("CLUSTER KEYSLOT foo")).isEqualTo(":12182\r\n");
        assertThat(ask("CLUSTER NODES"))
                .contains(id0 + " kv-0.example:7379@0 myself,master - 0 0 1 connected ")
                .contains(id1 + " kv-1.example:7379@0 master - 0 0 1 connected ");
        assertThat(ask("cluster shards")).contains(id0, id1, "health", "online", "kv-1.example");
        assertThat(ask("CLUSTER INFO"))
                .contains("cluster_enabled:1\r\ncluster_state:ok\r\ncluster_slots_assigned:16384\r\n")
                .contains("cluster_known_nodes:2\r\n");
        assertThat(ask("INFO")).contains("cluster_enabled:1", "redis_mode:cluster");
        assertThat(ask("HELLO 3")).contains("$4\r\nmode\r\n$7\r\ncluster\r\n");
        assertThat(ask("READONLY") + ask("READWRITE") + ask("ASKING")).isEqualTo("+OK\r\n+OK\r\n+OK\r\n");
    }

    @Test
    void givenCommandsThatChangeTopology_whenAsked_thenTheyAreRefused() {
        for (String command : List.of("MEET 10.0.0.1 6379", "ADDSLOTS 1", "FAILOVER", "SETSLOT 1 NODE x", "RESET")) {
            assertThat(ask("CLUSTER " + command)).isEqualTo("-ERR topology is managed by the server\r\n");
        }
        assertThat(ask("CLUSTER COUNTKEYSINSLOT 1")).startsWith("-ERR unknown subcommand");
        assertThat(ask("CLUSTER KEYSLOT")).startsWith("-ERR wrong number of arguments");
    }

    @Test
    void givenNoServerThatServes_whenAKeyIsUsed_thenTheClusterIsDown() {
        views.tell(server("kv-0", NodeState.JOINING));
        settle();

        assertThat(ask("GET k")).startsWith("-CLUSTERDOWN ");
        assertThat(ask("CLUSTER SLOTS")).isEqualTo("*0\r\n");
        assertThat(ask("CLUSTER INFO")).contains("cluster_state:fail");
        assertThat(ask("PING")).isEqualTo("+PONG\r\n");
    }

    @Test
    void givenAServerWithoutSuchAListener_whenItsKeyIsUsed_thenTheErrorNamesIt() {
        views.tell(server("kv-0", NodeState.SERVING), server("kv-1", NodeState.SERVING, 1, ""));
        settle();
        String other = key(false);

        assertThat(ask("GET " + other))
                .isEqualTo("-CLUSTERDOWN slot " + slot(other)
                        + " belongs to node kv-1, which has no listener with resp-cluster\r\n");
        assertThat(ask("CLUSTER NODES")).doesNotContain(ClusterCommands.nodeId("kv-1"));
    }

    @Test
    void givenAnIpv6Address_whenRedirected_thenItIsWrittenAsRedisDoes() {
        views.tell(server("kv-0", NodeState.SERVING), server("kv-1", NodeState.SERVING, 1, "[fd00::1]:7379"));
        settle();
        String other = key(false);

        assertThat(ask("GET " + other)).isEqualTo("-MOVED " + slot(other) + " fd00::1:7379\r\n");
    }
}
