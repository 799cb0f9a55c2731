package io.kvcache.transport.peer;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.BlockTable;
import io.kvcache.core.KvCache;
import io.kvcache.core.check.BlockContent;
import io.kvcache.core.contract.Repetitions;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.transport.client.RemoteKvCache;
import io.kvcache.transport.cluster.BlockGroup;
import io.kvcache.transport.cluster.ReplicaPolicy;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.SplittableRandom;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// Copies of groups at five servers, over TCP.
@Timeout(300)
@Tag("slow")
final class ClusterCopiesTest {

    private static final Namespace SPACE = Namespace.of("copied", BlockShape.kv(1, 1, 8, 16, Dtype.BF16));
    private static final int GROUP = 8; // blocks of the first group
    private static final int PREFIX = 64; // blocks of 16 tokens: three groups
    private static final Duration WAIT = Duration.ofSeconds(60);
    private static final long LOOK_NANOS = TimeUnit.MILLISECONDS.toNanos(1);

    private final List<ClusteredKvCache> clients = new ArrayList<>();

    @SuppressWarnings("NullAway.Init") // opened by each test
    private TestCluster cluster;

    @SuppressWarnings("NullAway.Init")
    ClusterCopiesTest() {}

    private void open(ReplicaPolicy replicas, int clientCount) throws IOException {
        cluster = new TestCluster(replicas);
        for (int i = 0; i < 5; i++) {
            cluster.add(TieredKvCache.builder()
                    .hostBytes(32 << 20)
                    .failOnLeak(true)
                    .prefaultInBackground(false)
                    .build());
        }
        cluster.show(cluster.servers());
        IntStream.range(0, clientCount).forEach(i -> clients.add(client(i)));
        await(
                "all are connected",
                () -> clients.stream()
                        .allMatch(client -> client.connectedServers().size() == 5));
    }

    private ClusteredKvCache client(int seed) {
        ClusteredKvCache client = ClusteredKvCache.connect(
                cluster.addresses(),
                new ClusteredKvCache.Dependencies(
                        address -> new ClusterConnection.Remote(RemoteKvCache.builder(address)
                                .requestTimeout(WAIT)
                                .connect()),
                        Executors.newVirtualThreadPerTaskExecutor(),
                        Executors.newVirtualThreadPerTaskExecutor(),
                        PeerClock.MACHINE,
                        new GroupCopies.Options(GroupHeat.MIN_READS, new SplittableRandom(seed)::nextInt)));
        client.register(SPACE);
        return client;
    }

    @AfterEach
    void close() throws IOException {
        clients.forEach(ClusteredKvCache::close);
        cluster.close();
    }

    private static BlockChain chain(int seed, int blocks) {
        return BlockChain.of(
                SPACE,
                IntStream.range(0, 16 * blocks).map(i -> i + seed * 1_000_000).toArray());
    }

    private static List<MemorySegment> blocks(BlockChain chain, Arena arena) {
        return IntStream.range(0, chain.length())
                .mapToObj(index -> {
                    MemorySegment block = arena.allocate(SPACE.blockBytes());
                    BlockContent.of(chain.key(index)).fill(block);
                    return block;
                })
                .toList();
    }

    private void put(BlockChain chain) {
        try (Arena arena = Arena.ofShared()) {
            assertThat(clients.getFirst()
                            .putAll(chain, 0, blocks(chain, arena), KvCache.NO_WAIT)
                            .accepted())
                    .isEqualTo(chain.length());
        }
    }

    private static int read(KvCache cache, BlockChain chain) {
        try (BlockTable table = cache.acquire(chain, 0, KvCache.NO_WAIT)) {
            for (int index = 0; index < table.readyEnd(); index++) {
                BlockContent.of(chain.key(index)).requireEqual(table.segment(index));
            }
            return table.readyEnd();
        }
    }

    private static void await(String what, BooleanSupplier condition) {
        long start = System.nanoTime();
        while (!condition.getAsBoolean()) {
            assertThat(System.nanoTime() - start).as(what).isLessThan(WAIT.toNanos());
            LockSupport.parkNanos(LOOK_NANOS);
        }
    }

    private long missing() {
        return clients.stream().mapToLong(each -> each.copyStats().missing()).sum();
    }

    private long records() {
        return cluster.servers().stream()
                .mapToLong(server -> server.store.stats().records().live())
                .sum();
    }

    /// Reads until all copies are there that the clients would ask.
    private void warmUp(Runnable reads) {
        reads.run();
        await("the copies are there", () -> {
            long before = missing();
            LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(150));
            reads.run();
            return missing() == before;
        });
    }

    private void readTimes(BlockChain chain, int times) {
        for (ClusteredKvCache client : clients) {
            for (int i = 0; i < times; i++) {
                assertThat(read(client, chain)).isEqualTo(chain.length());
            }
        }
    }

    /// Nine requests in ten have the prefix, the others one of 40 prompts.
    private void readMix(BlockChain hot, List<BlockChain> others, int times, SplittableRandom random) {
        for (int i = 0; i < times; i++) {
            BlockChain chain = random.nextInt(10) > 0 ? hot : others.get(random.nextInt(others.size()));
            assertThat(read(clients.get(i % clients.size()), chain)).isEqualTo(chain.length());
        }
    }

    /// Returns the blocks that the busiest of five servers has served, over their mean, after 1,000 requests.
    private double imbalance(ReplicaPolicy replicas) throws IOException {
        open(replicas, 4);
        BlockChain hot = chain(0, PREFIX);
        put(hot);
        List<BlockChain> others =
                IntStream.range(1, 41).mapToObj(seed -> chain(seed, PREFIX)).toList();
        others.forEach(this::put);
        SplittableRandom random = new SplittableRandom(20261127);
        warmUp(() -> readMix(hot, others, 400, random));
        cluster.servers().forEach(server -> server.blocksRead.reset());
        readMix(hot, others, 1000, random);
        long[] served = cluster.servers().stream()
                .mapToLong(server -> server.blocksRead.sum())
                .toArray();
        double imbalance = Arrays.stream(served).max().orElseThrow()
                / Arrays.stream(served).average().orElseThrow();
        System.out.printf("%s: %s, busiest over mean %.2f%n", replicas, Arrays.toString(served), imbalance);
        return imbalance;
    }

    @Test
    void givenAHotPrefix_whenItHasCopies_thenServersShareTheReads() throws IOException {
        assertThat(imbalance(ReplicaPolicy.HEAT)).isLessThanOrEqualTo(1.3);
        assertThat(clients)
                .allSatisfy(client -> assertThat(client.copyStats().reads()).isPositive());
    }

    @Test
    void givenAHotPrefix_whenItHasNoCopies_thenOneServerIsBusy() throws IOException {
        assertThat(imbalance(ReplicaPolicy.NONE)).isGreaterThan(2);
        assertThat(clients.getFirst().copyStats()).isEqualTo(new ClusteredKvCache.CopyStats(0, 0, 0));
    }

    @Test
    void givenAClientWithFewReads_whenItReads_thenItMakesNoCopies() throws IOException {
        open(ReplicaPolicy.HEAT, 1);
        BlockChain chain = chain(1, GROUP);
        put(chain);
        readTimes(chain, 20);
        assertThat(clients.getFirst().copyStats()).isEqualTo(new ClusteredKvCache.CopyStats(0, 0, 0));
        assertThat(records()).isEqualTo(GROUP);
    }

    @Test
    void givenCopiesOfAPart_whenTheOwnerGetsMore_thenAllOfItIsFound() throws IOException {
        open(ReplicaPolicy.HEAT, 1);
        ClusteredKvCache client = clients.getFirst();
        BlockChain chain = chain(2, 30);
        put(chain.prefix(20)); // the second group has 24 blocks, of which 12 are there
        warmUp(() -> readTimes(chain.prefix(20), 60));
        assertThat(records()).isGreaterThan(20);
        long before = missing();
        put(chain);
        try (Arena arena = Arena.ofShared()) {
            List<MemorySegment> into = IntStream.range(0, chain.length())
                    .mapToObj(_ -> arena.allocate(SPACE.blockBytes()))
                    .toList();
            for (int i = 0; i < 50; i++) {
                assertThat(client.match(chain).blocks()).isEqualTo(chain.length());
                assertThat(client.match(chain, WAIT).blocks()).isEqualTo(chain.length());
                assertThat(read(client, chain)).isEqualTo(chain.length());
                into.forEach(block -> block.fill((byte) 0));
                assertThat(client.getAll(chain, 0, into)).isEqualTo(chain.length());
                for (int index = 0; index < chain.length(); index++) {
                    BlockContent.of(chain.key(index)).requireEqual(into.get(index));
                }
            }
        }
        assertThat(missing()).as("some were read at a copy that lacked them").isGreaterThan(before);
    }

    @Test
    void givenCopies_whenTheChainIsDropped_thenNoServerHasIt() throws IOException {
        open(ReplicaPolicy.HEAT, 2);
        BlockChain chain = chain(3, PREFIX);
        put(chain);
        warmUp(() -> readTimes(chain, 60));
        assertThat(records()).isGreaterThan(PREFIX);
        clients.getFirst().drop(chain, 10);
        for (int i = 0; i < 50; i++) {
            assertThat(clients.getLast().match(chain).blocks()).isEqualTo(10);
            assertThat(read(clients.getLast(), chain)).isEqualTo(10);
        }
        clients.getFirst().drop(SPACE);
        assertThat(clients.getLast().match(chain).blocks()).isZero();
        await("no server has it once no table pins it", () -> records() == 0);
        assertThat(read(clients.getLast(), chain)).isZero();
    }

    @Test
    void givenCopiesThatAreBeingMade_whenTheChainIsDropped_thenNoneIsLeft() throws IOException {
        open(ReplicaPolicy.REUSED, 2);
        for (int round = 0; round < 10; round++) {
            BlockChain chain = chain(100 + round, PREFIX);
            put(chain);
            AtomicBoolean over = new AtomicBoolean();
            Thread reader = Thread.ofPlatform().start(() -> {
                while (!over.get()) {
                    var _ = read(clients.getLast(), chain);
                }
            });
            await("some are made", () -> records() > PREFIX);
            clients.getFirst().drop(chain, 0);
            over.set(true);
            join(reader);
            await("no server has it once no table pins it", () -> records() == 0);
        }
    }

    private static void join(Thread thread) {
        try {
            thread.join();
        } catch (InterruptedException stopped) {
            throw new AssertionError(stopped);
        }
    }

    @Test
    void givenCopies_whenTheOwnerDies_thenTheGroupIsStillRead() throws IOException {
        open(ReplicaPolicy.HEAT, 2);
        BlockChain chain = chain(4, GROUP);
        put(chain);
        warmUp(() -> readTimes(chain, 60));
        assertThat(records()).as("all have it").isEqualTo(5 * GROUP);
        TestCluster.Server owner = owner(chain);
        owner.stop();
        clients.forEach(client -> await("its end is noticed", () -> read(client, chain) == GROUP));
        readTimes(chain, 50);
        cluster.show(cluster.servers().stream().filter(each -> each != owner).toList());
        await(
                "the clients learn",
                () -> clients.stream().allMatch(client -> client.view().nodes().size() == 4));
        readTimes(chain, 50);
    }

    /// The server that owns a chain's first group.
    private TestCluster.Server owner(BlockChain chain) {
        var view = clients.getFirst().view();
        int owner = Objects.requireNonNull(view.placement())
                .owner(BlockGroup.of(chain, 0).key());
        String name = view.serving().get(owner).name();
        return cluster.servers().stream()
                .filter(server -> server.info.name().equals(name))
                .findFirst()
                .orElseThrow();
    }

    /// Reads some chains, then one server dies. Returns the share of their blocks that is found after that.
    private double foundAfterACrash(ReplicaPolicy replicas, int victim) throws IOException {
        open(replicas, 1);
        ClusteredKvCache client = clients.getFirst();
        List<BlockChain> chains =
                IntStream.range(10, 30).mapToObj(seed -> chain(seed, PREFIX)).toList();
        chains.forEach(this::put);
        chains.forEach(chain -> assertThat(read(client, chain)).isEqualTo(PREFIX));
        long all = (long) chains.size() * PREFIX;
        if (replicas == ReplicaPolicy.REUSED) {
            await("second copies", () -> {
                chains.forEach(chain -> assertThat(read(client, chain)).isEqualTo(PREFIX));
                return records() == 2 * all;
            });
            assertThat(client.copyStats().requested())
                    .as("one for each group")
                    .isBetween(3L * chains.size(), 4L * chains.size());
        }
        TestCluster.Server dead = cluster.servers().get(victim);
        dead.stop();
        cluster.show(cluster.servers().stream().filter(each -> each != dead).toList());
        await("the client learns", () -> client.view().nodes().size() == 4);
        return chains.stream().mapToInt(chain -> read(client, chain)).sum() / (double) all;
    }

    /// Places of the server that dies: by day two of five.
    static IntStream victims() {
        return IntStream.range(0, Repetitions.usualOrFull(2, 5));
    }

    @ParameterizedTest
    @MethodSource("victims")
    void givenSecondCopiesOfWhatWasRead_whenAServerDies_thenNothingIsLost(int victim) throws IOException {
        assertThat(foundAfterACrash(ReplicaPolicy.REUSED, victim)).isEqualTo(1);
    }

    @Test
    void givenNoCopies_whenAServerDies_thenItsShareIsLost() throws IOException {
        assertThat(foundAfterACrash(ReplicaPolicy.NONE, 0)).isBetween(0.3, 0.9);
    }
}
