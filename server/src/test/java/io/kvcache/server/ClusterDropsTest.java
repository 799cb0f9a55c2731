package io.kvcache.server;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.Namespace;
import io.kvcache.server.cluster.ClusterMember;
import io.kvcache.server.config.ConfigReader;
import io.kvcache.server.config.HostResources;
import io.kvcache.server.config.ServerConfig;
import io.kvcache.transport.client.RemoteKvCache;
import io.kvcache.transport.cluster.BlockGroup;
import io.kvcache.transport.peer.ClusteredKvCache;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// What was dropped while a server was away stays dropped when that one is back.
final class ClusterDropsTest {

    private static final List<String> NODES = List.of("kv-0", "kv-1", "kv-2");
    private static final int CHAINS = 40;

    @TempDir
    private Path folder;

    private final MembershipBus bus = new MembershipBus();
    private final Map<String, CacheServer> servers = new HashMap<>();
    private final Map<String, Integer> ports = new HashMap<>();

    @AfterEach
    void close() {
        servers.values().forEach(CacheServer::close);
    }

    private CacheServer start(String node, boolean disk) throws Exception {
        Integer port = ports.get(node);
        if (port == null) {
            try (ServerSocket free = new ServerSocket(0, 1, InetAddress.getByName("127.0.0.2"))) {
                port = free.getLocalPort();
            }
            ports.put(node, port);
        }
        String yaml = """
                listen: { port: 0 }
                memory: { host_bytes: 64MiB }
                transport: { listen: "127.0.0.2:%d", shared_memory: "off" }
                cluster: { name: test, node: %s, listen: 127.0.0.1:1, weight: 1 }
                """.formatted(port, node);
        if (disk) {
            yaml += "disks: [ { directory: %s, bytes: 256MiB } ]\n".formatted(folder.resolve(node));
        }
        ServerConfig config = new ConfigReader(new HostResources(1L << 30, 2), Map.of())
                .read(new ConfigReader.Source("f", yaml), Map.of());
        CacheServer server = CacheServer.start(config, cluster -> new ClusterMember(cluster, bus.member()));
        servers.put(node, server);
        return server;
    }

    private void startAll(boolean disk) throws Exception {
        for (String node : NODES) {
            start(node, disk);
        }
    }

    private void stop(String node) {
        CacheServer server = Objects.requireNonNull(servers.remove(node));
        assertThat(server.stop(Duration.ofSeconds(20)).valuesFlushed()).isTrue();
        server.close();
    }

    private String address(String node) {
        return "127.0.0.2:" + ports.get(node);
    }

    private ClusteredKvCache client(String... seeds) {
        ClusteredKvCache cache = ClusteredKvCache.connect(
                List.of(seeds),
                address -> RemoteTestBlocks.clientBuilder(address)
                        .requestTimeout(Duration.ofSeconds(5))
                        .connect());
        cache.register(RemoteTestBlocks.SPACE);
        return cache;
    }

    private static List<BlockChain> chains() {
        List<BlockChain> chains = new ArrayList<>();
        for (int i = 0; i < CHAINS; i++) {
            int[] tokens = new int[16];
            tokens[0] = 1000 + i;
            chains.add(BlockChain.of(RemoteTestBlocks.SPACE, tokens));
        }
        return chains;
    }

    private static void putAll(ClusteredKvCache cache) {
        chains().forEach(chain -> RemoteTestBlocks.put(cache, chain));
    }

    private static int found(ClusteredKvCache cache) {
        return chains().stream()
                .mapToInt(chain -> RemoteTestBlocks.verifiedBlocks(cache, chain))
                .sum();
    }

    /// What a server has of the groups, its own or not.
    private int foundAt(String node) {
        Namespace groups = BlockGroup.namespace(RemoteTestBlocks.SPACE);
        try (RemoteKvCache server =
                RemoteTestBlocks.clientBuilder(address(node)).localOnly(true).connect()) {
            server.register(groups);
            return chains().stream()
                    .mapToInt(chain -> RemoteTestBlocks.storedBlocks(
                            server, BlockGroup.of(chain, 0).chain(), Duration.ofSeconds(5)))
                    .sum();
        }
    }

    private static void await(BooleanSupplier condition) throws InterruptedException {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(30);
        while (!condition.getAsBoolean()) {
            assertThat(System.nanoTime()).as("in time").isLessThan(deadline);
            TimeUnit.MILLISECONDS.sleep(20);
        }
    }

    @Test
    void givenAServerThatIsDown_whenANamespaceIsDropped_thenItAnswersNothingOfItWhenItIsBackWithItsDisk()
            throws Exception {
        startAll(true);
        try (ClusteredKvCache cache = client(address("kv-0"))) {
            putAll(cache);
            assertThat(foundAt("kv-2")).isPositive();
            stop("kv-2");
            await(() -> cache.view().nodes().size() == 2);

            cache.drop(RemoteTestBlocks.SPACE);
            start("kv-2", true);

            await(() -> cache.view().nodes().size() == 3);
            assertThat(found(cache)).isZero();
            assertThat(foundAt("kv-2")).isZero();
            putAll(cache);
            TimeUnit.SECONDS.sleep(2);
            assertThat(found(cache)).as("put since").isEqualTo(CHAINS);
        }
    }

    @Test
    void givenAServerThatIsDown_whenChainsAreDropped_thenItKeepsTheOthers() throws Exception {
        startAll(true);
        try (ClusteredKvCache cache = client(address("kv-0"))) {
            putAll(cache);
            int before = foundAt("kv-2");
            stop("kv-2");
            await(() -> cache.view().nodes().size() == 2);

            List<BlockChain> dropped = chains().subList(0, CHAINS / 2);
            dropped.forEach(chain -> cache.drop(chain, 0));
            start("kv-2", true);

            await(() -> cache.view().serving().size() == 3);
            assertThat(dropped)
                    .allSatisfy(chain -> assertThat(RemoteTestBlocks.verifiedBlocks(cache, chain))
                            .isZero());
            assertThat(foundAt("kv-2")).isBetween(1, before - 1);
        }
    }

    @Test
    void givenAServerOfWhichTheFileIsDamaged_whenItIsBack_thenItHasNothing() throws Exception {
        startAll(true);
        try (ClusteredKvCache cache = client(address("kv-0"))) {
            putAll(cache);
            stop("kv-2");
            Files.write(folder.resolve("kv-2/cluster.drops"), new byte[100], StandardOpenOption.APPEND);
            start("kv-2", true);

            assertThat(foundAt("kv-2")).isZero();
            assertThat(foundAt("kv-0") + foundAt("kv-1")).isPositive();
        }
    }

    @Test
    void givenAServerThatIsCutOff_whenANamespaceIsDropped_thenItHearsOfItAfterTheMerge() throws Exception {
        startAll(false);
        try (ClusteredKvCache cache = client(address("kv-0"));
                ClusteredKvCache other = client(address("kv-2"))) {
            putAll(cache);
            assertThat(foundAt("kv-2")).isPositive();
            bus.part("kv-2");
            await(() -> cache.view().nodes().size() == 2);

            cache.drop(RemoteTestBlocks.SPACE);
            assertThat(foundAt("kv-2")).isPositive();
            bus.heal();
            await(() -> foundAt("kv-2") == 0);

            assertThat(found(other)).isZero();
            assertThat(found(cache)).isZero();
        }
    }

    @Test
    void givenAServerThatDoesNotAnswer_whenANamespaceIsDropped_thenItIsNamedAndTheOthersDropAll() throws Exception {
        startAll(false);
        try (ClusteredKvCache cache = client(address("kv-0"))) {
            putAll(cache);
            CacheServer gone = Objects.requireNonNull(servers.get("kv-2"));
            gone.drain(Duration.ZERO);

            assertThatThrownBy(() -> {
                        cache.drop(RemoteTestBlocks.SPACE);
                    })
                    .isInstanceOf(UncheckedIOException.class)
                    .hasMessageContaining(address("kv-2"));
            assertThat(foundAt("kv-0") + foundAt("kv-1")).isZero();
        }
    }

    @Test
    void givenDrops_whenAsked_thenThePagesTellOfThem() throws Exception {
        CacheServer server = start("kv-0", true);
        start("kv-1", true);
        try (ClusteredKvCache cache = client(address("kv-0"));
                HttpTestClient client = new HttpTestClient(server.address().getPort())) {
            cache.drop(RemoteTestBlocks.SPACE);

            assertThat(new String(client.get("/metrics").body(), UTF_8))
                    .contains("\nkv_cluster_drops 1.0\n", "\nkv_cluster_drops_applied_total 0.0\n");
            assertThat(HttpTestClient.json(client.get("/v1/cluster")).get("nodes"))
                    .allSatisfy(node ->
                            assertThat(node.get("dropsAgree").isBoolean()).isTrue());
        }
    }
}
