package io.kvcache.server;

import static io.kvcache.server.BusClusterServers.CHAINS;
import static io.kvcache.server.BusClusterServers.await;
import static io.kvcache.server.BusClusterServers.chains;
import static io.kvcache.server.BusClusterServers.found;
import static io.kvcache.server.BusClusterServers.putAll;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.cluster.DropRecord;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.transport.client.RemoteKvCache;
import io.kvcache.transport.cluster.BlockGroup;
import io.kvcache.transport.peer.ClusteredKvCache;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.JsonNode;

/// What was dropped while a server was away stays dropped when that one is back.
final class ClusterDropsTest {

    private static final List<String> NODES = List.of("kv-0", "kv-1", "kv-2");

    @TempDir
    private Path folder;

    private BusClusterServers servers;

    @BeforeEach
    void open() {
        servers = new BusClusterServers(folder);
    }

    @AfterEach
    void close() {
        servers.close();
    }

    private void startAll(boolean disk) throws Exception {
        for (String node : NODES) {
            servers.start(node, disk);
        }
    }

    @Test
    void givenAServerThatIsDown_whenANamespaceIsDropped_thenItAnswersNothingOfItWhenItIsBackWithItsDisk()
            throws Exception {
        startAll(true);
        try (ClusteredKvCache cache = servers.client(servers.address("kv-0"))) {
            putAll(cache);
            assertThat(servers.foundAt("kv-2")).isPositive();
            servers.stop("kv-2");
            await(() -> cache.view().nodes().size() == 2);

            cache.drop(RemoteTestBlocks.SPACE);
            servers.start("kv-2", true);

            await(() -> cache.view().nodes().size() == 3);
            assertThat(found(cache)).isZero();
            assertThat(servers.foundAt("kv-2")).isZero();
            putAll(cache);
            TimeUnit.SECONDS.sleep(2);
            assertThat(found(cache)).as("put since").isEqualTo(CHAINS);
        }
    }

    @Test
    void givenAServerThatIsDown_whenChainsAreDropped_thenItKeepsTheOthers() throws Exception {
        startAll(true);
        try (ClusteredKvCache cache = servers.client(servers.address("kv-0"))) {
            putAll(cache);
            int before = servers.foundAt("kv-2");
            servers.stop("kv-2");
            await(() -> cache.view().nodes().size() == 2);

            List<BlockChain> dropped = chains().subList(0, CHAINS / 2);
            dropped.forEach(chain -> cache.drop(chain, 0));
            servers.start("kv-2", true);

            await(() -> cache.view().serving().size() == 3);
            assertThat(dropped)
                    .allSatisfy(chain -> assertThat(RemoteTestBlocks.verifiedBlocks(cache, chain))
                            .isZero());
            assertThat(servers.foundAt("kv-2")).isBetween(1, before - 1);
        }
    }

    @Test
    void givenAServerOfWhichTheFileIsDamaged_whenItIsBack_thenItHasNothing() throws Exception {
        startAll(true);
        try (ClusteredKvCache cache = servers.client(servers.address("kv-0"))) {
            putAll(cache);
            servers.stop("kv-2");
            Files.write(folder.resolve("kv-2/cluster.drops"), new byte[100], StandardOpenOption.APPEND);
            servers.start("kv-2", true);

            assertThat(servers.foundAt("kv-2")).isZero();
            assertThat(servers.foundAt("kv-0") + servers.foundAt("kv-1")).isPositive();
        }
    }

    @Test
    void givenADropAndAPutThatIsSavedAfterIt_whenTheProcessIsKilled_thenAllOfItIsThere() throws Exception {
        CacheServer server = servers.start("kv-0", true);
        try (ClusteredKvCache cache = servers.client(servers.address("kv-0"))) {
            putAll(cache);
            cache.drop(RemoteTestBlocks.SPACE);
            putAll(cache);
            assertThat(server.flushToDisk(Duration.ofMinutes(1))).isTrue();
            String killed = copyDisk();
            servers.stop("kv-0");

            servers.start("kv-0", killed);
            await(() -> servers.foundAt("kv-0") == CHAINS);
        }
    }

    @Test
    void givenADropThatTheDisksHaveMadeDurable_whenTheProcessIsKilled_thenItIsNotAppliedAgain() throws Exception {
        CacheServer server = servers.start("kv-0", true);
        try (ClusteredKvCache cache = servers.client(servers.address("kv-0"))) {
            putAll(cache);
            assertThat(server.flushToDisk(Duration.ofMinutes(1))).isTrue();
            byte[] before = Files.readAllBytes(folder.resolve("kv-0/cluster.drops"));
            cache.drop(RemoteTestBlocks.SPACE);

            await(() -> size("kv-0") == before.length + 8 + DropRecord.BYTES + 8);
            String killed = copyDisk();
            servers.stop("kv-0");

            servers.start("kv-0", killed);
            assertThat(servers.foundAt("kv-0")).isZero();
        }
    }

    private long size(String node) {
        try {
            return Files.size(folder.resolve(node + "/cluster.drops"));
        } catch (IOException gone) {
            throw new UncheckedIOException(gone);
        }
    }

    /// Copies the disk of kv-0 as it is, as a process that is killed leaves it; the settings for the copy.
    private String copyDisk() throws IOException {
        Path copy = Files.createDirectory(folder.resolve("killed"));
        try (Stream<Path> files = Files.list(folder.resolve("kv-0"))) {
            for (Path file : files.toList()) {
                Files.copy(file, copy.resolve(file.getFileName().toString()));
            }
        }
        return "disks: [ { directory: %s, bytes: 256MiB } ]\n".formatted(copy);
    }

    @Test
    void givenAServerThatIsCutOff_whenANamespaceIsDropped_thenItHearsOfItAfterTheMerge() throws Exception {
        startAll(false);
        try (ClusteredKvCache cache = servers.client(servers.address("kv-0"));
                ClusteredKvCache other = servers.client(servers.address("kv-2"))) {
            putAll(cache);
            assertThat(servers.foundAt("kv-2")).isPositive();
            servers.bus().part("kv-2");
            await(() -> cache.view().nodes().size() == 2);

            cache.drop(RemoteTestBlocks.SPACE);
            assertThat(servers.foundAt("kv-2")).isPositive();
            servers.bus().heal();
            await(() -> servers.foundAt("kv-2") == 0);

            assertThat(found(other)).isZero();
            assertThat(found(cache)).isZero();
        }
    }

    @Test
    void givenAServerThatDoesNotAnswer_whenANamespaceIsDropped_thenItIsNamedAndTheOthersDropAll() throws Exception {
        startAll(false);
        try (ClusteredKvCache cache = servers.client(servers.address("kv-0"))) {
            putAll(cache);
            CacheServer gone = servers.server("kv-2");
            gone.drain(Duration.ZERO);

            assertThatThrownBy(() -> {
                        cache.drop(RemoteTestBlocks.SPACE);
                    })
                    .isInstanceOf(UncheckedIOException.class)
                    .hasMessageContaining(servers.address("kv-2"));
            assertThat(servers.foundAt("kv-0") + servers.foundAt("kv-1")).isZero();
        }
    }

    /// As the button of the console's page Prefixes does.
    @Test
    void givenAPrefixAtAllServers_whenOneIsAskedToDropIt_thenNoneHasIt() throws Exception {
        startAll(true);
        try (ClusteredKvCache cache = servers.client(servers.address("kv-0"));
                HttpTestClient client =
                        new HttpTestClient(servers.server("kv-0").address().getPort())) {
            BlockChain group = BlockGroup.of(chains().getFirst(), 0).chain();
            for (String node : NODES) { // as copies have it
                try (RemoteKvCache server = RemoteTestBlocks.clientBuilder(servers.address(node))
                        .localOnly(true)
                        .connect()) {
                    server.register(group.namespace());
                    RemoteTestBlocks.put(server, group);
                    RemoteTestBlocks.put(
                            server, BlockGroup.of(chains().getLast(), 0).chain());
                }
            }
            int before = foundAtAll();

            JsonNode page = HttpTestClient.json(client.get("/v1/prefixes"));
            int namespace = page.get("namespaces").values().stream()
                    .filter(each -> each.get("groups").booleanValue())
                    .findFirst()
                    .orElseThrow()
                    .get("id")
                    .intValue();
            JsonNode dropped =
                    HttpTestClient.json(client.send(client.request("/v1/prefixes/" + namespace + "/" + group.key(0))
                            .DELETE()));

            assertThat(dropped.get("dropped").intValue()).isEqualTo(1);
            assertThat(dropped.get("cluster").booleanValue()).isTrue();
            await(() -> foundAtAll() == before - NODES.size());
            assertThat(RemoteTestBlocks.verifiedBlocks(cache, chains().getFirst()))
                    .isZero();
        }
    }

    private int foundAtAll() {
        return NODES.stream().mapToInt(servers::foundAt).sum();
    }

    @Test
    void givenDrops_whenAsked_thenThePagesTellOfThem() throws Exception {
        CacheServer server = servers.start("kv-0", true);
        servers.start("kv-1", true);
        try (ClusteredKvCache cache = servers.client(servers.address("kv-0"));
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
