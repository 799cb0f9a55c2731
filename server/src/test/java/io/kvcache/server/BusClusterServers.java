package io.kvcache.server;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.contract.FreePorts;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.Namespace;
import io.kvcache.server.cluster.ClusterMember;
import io.kvcache.server.config.ConfigReader;
import io.kvcache.server.config.HostResources;
import io.kvcache.server.config.ServerConfig;
import io.kvcache.transport.client.RemoteKvCache;
import io.kvcache.transport.cluster.BlockGroup;
import io.kvcache.transport.peer.ClusteredKvCache;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;

/// Servers of one cluster in this process, by their names, and the chains that tests put there.
///
/// **Threads.** One at a time.
final class BusClusterServers implements AutoCloseable {

    static final int CHAINS = 40;

    private final Path folder;
    private final MembershipBus bus = new MembershipBus();
    private final Map<String, CacheServer> servers = new HashMap<>();
    private final Map<String, Integer> ports = new HashMap<>();

    /// @param folder of the disks
    BusClusterServers(Path folder) {
        this.folder = folder;
    }

    MembershipBus bus() {
        return bus;
    }

    CacheServer server(String node) {
        return Objects.requireNonNull(servers.get(node));
    }

    CacheServer start(String node, boolean disk) throws Exception {
        return start(node, disk ? "disks: [ { directory: %s, bytes: 256MiB } ]\n".formatted(folder.resolve(node)) : "");
    }

    /// @param more settings
    CacheServer start(String node, String more) throws Exception {
        int port = ports.computeIfAbsent(node, _ -> FreePorts.take());
        String yaml = """
                memory: { host_bytes: 64MiB }
                transport: { listen: "127.0.0.2:%d", shared_memory: "off" }
                cluster: { name: test, node: %s, listen: 127.0.0.1:1, weight: 1 }
                """.formatted(port, node);
        ServerConfig config = new ConfigReader(new HostResources(1L << 30, 2), Map.of())
                .read(
                        new ConfigReader.Source(
                                "f", (more.contains("listeners:") ? "" : "listen: { port: 0 }\n") + yaml + more),
                        Map.of());
        CacheServer server = CacheServer.start(config, cluster -> new ClusterMember(cluster, bus.member(), null));
        servers.put(node, server);
        return server;
    }

    void stop(String node) {
        CacheServer server = Objects.requireNonNull(servers.remove(node));
        assertThat(server.stop(Duration.ofSeconds(20)).valuesFlushed()).isTrue();
        server.close();
    }

    String address(String node) {
        return "127.0.0.2:" + ports.get(node);
    }

    ClusteredKvCache client(String... seeds) {
        ClusteredKvCache cache = ClusteredKvCache.connect(
                List.of(seeds),
                address -> RemoteTestBlocks.clientBuilder(address)
                        .requestTimeout(Duration.ofSeconds(5))
                        .connect());
        cache.register(RemoteTestBlocks.SPACE);
        return cache;
    }

    static List<BlockChain> chains() {
        List<BlockChain> chains = new ArrayList<>();
        for (int i = 0; i < CHAINS; i++) {
            int[] tokens = new int[16];
            tokens[0] = 1000 + i;
            chains.add(BlockChain.of(RemoteTestBlocks.SPACE, tokens));
        }
        return chains;
    }

    static void putAll(ClusteredKvCache cache) {
        chains().forEach(chain -> RemoteTestBlocks.put(cache, chain));
    }

    static int found(ClusteredKvCache cache) {
        return chains().stream()
                .mapToInt(chain -> RemoteTestBlocks.verifiedBlocks(cache, chain))
                .sum();
    }

    /// What a server has of the groups, its own or not.
    int foundAt(String node) {
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

    static void await(BooleanSupplier condition) throws InterruptedException {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(30);
        while (!condition.getAsBoolean()) {
            assertThat(System.nanoTime()).as("in time").isLessThan(deadline);
            TimeUnit.MILLISECONDS.sleep(20);
        }
    }

    @Override
    public void close() {
        servers.values().forEach(CacheServer::close);
    }
}
