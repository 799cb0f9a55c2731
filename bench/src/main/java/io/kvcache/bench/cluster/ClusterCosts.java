package io.kvcache.bench.cluster;

import io.kvcache.bench.figure.Figure;
import io.kvcache.bench.server.RespConnection;
import io.kvcache.core.KvCache;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.planner.Median;
import io.kvcache.transport.client.RemoteKvCache;
import io.kvcache.transport.client.SharedMemoryMode;
import io.kvcache.transport.cluster.ClusterView;
import io.kvcache.transport.cluster.HashSlots;
import io.kvcache.transport.cluster.ReplicaPolicy;
import io.kvcache.transport.peer.ClusteredKvCache;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.function.Consumer;
import java.util.stream.IntStream;

/// What a cluster on one host costs a client that nothing happens to: a get of blocks through a client of the
/// cluster beside one from a single server, and a value that a server passes on beside one that it has. Taken in
/// turn.
///
/// @param rounds pairs of samples
/// @param progress is told what begins
public record ClusterCosts(int rounds, Consumer<String> progress) {

    private static final Duration START = Duration.ofMinutes(2);
    private static final int SERVERS = 3;
    private static final long HOST_BYTES = 512L << 20;

    /// 64 KiB for 16 tokens.
    private static final Namespace SPACE = Namespace.of("costs", BlockShape.kv(4, 4, 128, 16, Dtype.BF16));

    private static final int TOKENS = 12_288;
    private static final int BLOCK_TOKENS = 16;

    /// Gets in one sample.
    private static final int GETS = 20;

    private static final int VALUE_BYTES = 1 << 20;
    private static final int KEYS = 32;

    /// Reads of all keys, until servers run compiled code.
    private static final int WARM_UPS = 150;

    /// Measures.
    public List<Figure> run() throws IOException, InterruptedException {
        List<Figure> results = new ArrayList<>();
        progress.accept("one server, and a cluster of " + SERVERS);
        try (LocalCluster single = LocalCluster.start(settings("single", 1), START);
                LocalCluster cluster = LocalCluster.start(settings("costs", SERVERS), START)) {
            results.add(blocks(single, cluster, true));
            results.add(blocks(single, cluster, false));
            results.add(values(cluster));
        }
        return results;
    }

    private static LocalCluster.Settings settings(String name, int servers) {
        return new LocalCluster.Settings(
                name,
                servers,
                0,
                HOST_BYTES,
                0,
                Duration.ZERO,
                ClientTransport.SHARED_MEMORY,
                ReplicaPolicy.HEAT,
                List.of());
    }

    /// @param mapped whether clients read the memory of servers in place
    private Figure blocks(LocalCluster single, LocalCluster cluster, boolean mapped) {
        progress.accept("gets of " + TOKENS + " tokens" + (mapped ? " in shared memory" : " over loopback"));
        BlockChain chain = BlockChain.of(SPACE, IntStream.range(0, TOKENS).toArray());
        double[] clustered = new double[rounds];
        double[] alone = new double[rounds];
        try (Arena arena = Arena.ofShared();
                RemoteKvCache one = connect(single.addresses().getFirst(), mapped);
                ClusteredKvCache all =
                        ClusteredKvCache.connect(cluster.addresses(), address -> connect(address, mapped))) {
            long blockBytes = SPACE.blockBytes();
            List<MemorySegment> blocks = IntStream.range(0, TOKENS / BLOCK_TOKENS)
                    .mapToObj(i -> arena.allocate(blockBytes, Long.BYTES))
                    .toList();
            for (KvCache cache : List.of(one, all)) {
                cache.register(SPACE);
                var _ = cache.putAll(chain, 0, blocks, Duration.ofSeconds(10));
                require(cache, chain, blocks);
                sample(cache, chain, blocks);
            }
            for (int round = 0; round < rounds; round++) {
                alone[round] = sample(one, chain, blocks);
                clustered[round] = sample(all, chain, blocks);
            }
        }
        String name = mapped ? "get-shared" : "get-loopback";
        return Figure.of(name, "ms", clustered, "one server", alone);
    }

    private static RemoteKvCache connect(String address, boolean mapped) {
        return RemoteKvCache.builder((mapped ? "shm:" : "") + address)
                .sharedMemory(mapped ? SharedMemoryMode.REQUIRED : SharedMemoryMode.OFF)
                .connect();
    }

    private static void require(KvCache cache, BlockChain chain, List<MemorySegment> into) {
        int found = cache.getAll(chain, 0, into);
        if (found < chain.length()) {
            throw new IllegalStateException(found + " of " + chain.length() + " blocks are there");
        }
    }

    /// Returns milliseconds of one get.
    private static double sample(KvCache cache, BlockChain chain, List<MemorySegment> into) {
        List<Double> millis = new ArrayList<>();
        for (int i = 0; i < GETS; i++) {
            long start = System.nanoTime();
            require(cache, chain, into);
            millis.add((System.nanoTime() - start) / 1e6);
        }
        return Median.of(millis);
    }

    private Figure values(LocalCluster cluster) throws IOException {
        progress.accept("values of 1 MiB");
        ClusterView view;
        try (RemoteKvCache any = RemoteKvCache.connect(cluster.addresses().getFirst())) {
            view = Objects.requireNonNull(any.view(0, Duration.ZERO));
        }
        HashSlots slots = new HashSlots(Objects.requireNonNull(view.placement()));
        double[] direct = new double[rounds];
        double[] forwarded = new double[rounds];
        try (RespConnection owner = connection(cluster, 0);
                RespConnection other = connection(cluster, 1)) {
            List<String> keys = IntStream.range(0, KEYS * SERVERS * 2)
                    .mapToObj(number -> "value" + number)
                    .filter(key -> view.serving()
                            .get(slots.owner(HashSlots.of(key.getBytes(StandardCharsets.US_ASCII))))
                            .name()
                            .equals(cluster.node(0).name()))
                    .limit(KEYS)
                    .toList();
            for (String key : keys) {
                owner.set(key, VALUE_BYTES);
            }
            for (int i = 0; i < WARM_UPS; i++) {
                sample(owner, keys);
                sample(other, keys);
            }
            for (int round = 0; round < rounds; round++) {
                direct[round] = sample(owner, keys);
                forwarded[round] = sample(other, keys);
            }
        }
        return Figure.of("get-forwarded", "gets/s", forwarded, "its own", direct);
    }

    private static RespConnection connection(LocalCluster cluster, int node) throws IOException {
        return new RespConnection(cluster.node(node).httpPort(), VALUE_BYTES);
    }

    /// Returns values a second.
    private static double sample(RespConnection connection, List<String> keys) throws IOException {
        long start = System.nanoTime();
        for (String key : keys) {
            connection.get(key, VALUE_BYTES);
        }
        return keys.size() * 1e9 / (System.nanoTime() - start);
    }
}
