package io.kvcache.transport.peer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.ForwardingKvCache;
import io.kvcache.core.KvCache;
import io.kvcache.core.LocalKvCache;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.check.BlockContent;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.ByteRange;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.transport.client.RemoteKvCache;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.function.IntPredicate;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// Embedded stores over a cluster of three servers, over TCP.
@Timeout(300)
@Tag("slow")
final class NearKvCacheTest {

    private static final Namespace SPACE = Namespace.of("near", BlockShape.kv(1, 1, 1024, 16, Dtype.BF16));
    private static final int BLOCKS = 200; // four groups
    private static final Duration WAIT = Duration.ofSeconds(60);
    private static final Duration MISS_TTL = Duration.ofMillis(1);
    private static final long LOOK_NANOS = TimeUnit.MICROSECONDS.toNanos(200);

    private final TestCluster cluster = new TestCluster();
    private final List<NearKvCache> opened = new ArrayList<>();

    private static TieredKvCache store() {
        return TieredKvCache.builder()
                .hostBytes(64 << 20)
                .checkSegments(true)
                .failOnLeak(true)
                .prefaultInBackground(false)
                .build();
    }

    @BeforeEach
    void serve() throws IOException {
        for (int i = 0; i < 3; i++) {
            cluster.add(store());
        }
        cluster.show(cluster.servers());
    }

    @AfterEach
    void close() throws IOException {
        opened.forEach(NearKvCache::close);
        for (TestCluster.Server server : cluster.servers()) {
            server.stop();
            assertThat(server.store.stats().openTables()).isZero();
            server.store.validate();
        }
        cluster.close();
    }

    private NearKvCache open() {
        return open(MISS_TTL, true);
    }

    private NearKvCache open(Duration missTtl, boolean replicates) {
        return open(
                ClusteredKvCache.connect(
                        List.of(cluster.addresses().getFirst()),
                        address -> RemoteKvCache.builder(address)
                                .requestTimeout(Duration.ofSeconds(60))
                                .memoryBytes(64 << 20)
                                .strict(true)
                                .connect()),
                missTtl,
                replicates);
    }

    private NearKvCache open(KvCache below, Duration missTtl, boolean replicates) {
        NearKvCache cache = NearKvCache.over(
                store(),
                below,
                new NearKvCache.Dependencies(
                        Executors.newFixedThreadPool(BlockFetcher.THREADS),
                        replicates ? task -> new Thread(task).start() : null,
                        PeerClock.MACHINE,
                        missTtl));
        cache.register(SPACE);
        opened.add(cache);
        return cache;
    }

    private static void await(String what, BooleanSupplier holds) {
        long start = System.nanoTime();
        while (!holds.getAsBoolean()) {
            assertThat(System.nanoTime() - start).as(what).isLessThan(TimeUnit.SECONDS.toNanos(60));
            LockSupport.parkNanos(LOOK_NANOS);
        }
    }

    private static BlockChain chain(int seed, int blocks) {
        return BlockChain.of(
                SPACE,
                IntStream.range(0, 16 * blocks).map(i -> seed * 1_000_000 + i).toArray());
    }

    private static BlockChain put(KvCache cache, BlockChain chain) {
        for (int index = 0; index < chain.length(); index++) {
            try (BlockWriter writer = cache.put(chain, index, 0, KvCache.NO_WAIT)) {
                assertThat(writer.outcome()).isEqualTo(PutOutcome.RESERVED);
                BlockContent.of(chain.key(index)).fill(writer.segment());
                writer.seal();
            }
        }
        return chain;
    }

    private static int acquired(KvCache cache, BlockChain chain, Duration timeout) {
        try (BlockTable table = cache.acquire(chain, 0, timeout)) {
            int ready = table.await(chain.length(), timeout);
            for (int index = 0; index < ready; index++) {
                BlockContent.of(chain.key(index)).requireEqual(table.segment(index));
            }
            return ready;
        }
    }

    @Test
    void givenBlocksOfAnotherStore_whenAcquiredWithATimeout_thenTheyComeFromTheCluster() {
        NearKvCache first = open();
        NearKvCache second = open();
        BlockChain chain = put(first, chain(1, BLOCKS));
        first.awaitReplication();
        assertThat(cluster.servers().stream()
                        .mapToLong(server -> server.store.stats().records().live())
                        .sum())
                .isEqualTo(BLOCKS);

        assertThat(second.match(chain).blocks()).as("the store alone is asked").isZero();
        assertThat(acquired(second, chain, KvCache.NO_WAIT)).isZero();
        assertThat(acquired(second, chain, WAIT)).isEqualTo(BLOCKS);
        assertThat(second.match(chain).blocks()).as("now they are here").isEqualTo(BLOCKS);
        assertThat(second.fetchedCount()).isEqualTo(BLOCKS);
    }

    @Test
    void givenSomeBlocksHere_whenARangeIsRead_thenTheClusterHasTheRest() {
        NearKvCache first = open();
        NearKvCache second = open(MISS_TTL, false);
        BlockChain chain = put(first, chain(1, BLOCKS));
        first.awaitReplication();
        put(second, chain.prefix(20));
        ByteRange range = new ByteRange(1000, 3000);
        List<MemorySegment> into = Stream.generate(() -> MemorySegment.ofArray(new byte[3000]))
                .limit(BLOCKS)
                .toList();
        assertThat(second.getRange(chain, 5, range, into, KvCache.NO_WAIT)).isEqualTo(15);
        assertThat(second.getRange(chain, 5, range, into, WAIT)).isEqualTo(BLOCKS - 5);
        for (int index = 5; index < BLOCKS; index++) {
            MemorySegment block = BlockContent.of(chain.key(index)).toHeapSegment(64 << 10);
            assertThat(into.get(index - 5).mismatch(block.asSlice(1000, 3000)))
                    .as("block %d", index)
                    .isEqualTo(-1);
        }
    }

    @Test
    void givenSomeBlocksHere_whenAcquired_thenOnlyTheRestIsAsked() {
        NearKvCache first = open();
        NearKvCache second = open(MISS_TTL, false);
        BlockChain chain = put(first, chain(1, 100));
        first.awaitReplication();
        put(second, chain(1, 70));
        assertThat(acquired(second, chain, WAIT)).isEqualTo(100);
        assertThat(second.fetchedCount()).isEqualTo(30);
    }

    @Test
    void givenDeadServers_whenAcquired_thenAShorterPrefixInTimeAndAllOfItWhenTheyAreBack() throws IOException {
        NearKvCache first = open();
        NearKvCache second = open();
        BlockChain chain = put(first, chain(1, BLOCKS));
        first.awaitReplication();
        for (TestCluster.Server server : cluster.servers()) {
            server.stop();
        }
        assertThat(acquired(second, chain, WAIT)).isZero();
        for (TestCluster.Server server : cluster.servers()) {
            server.restart();
        }
        await("the servers are back", () -> acquired(second, chain, WAIT) == BLOCKS);
    }

    @Test
    void givenServersThatDie_whenUsed_thenItIsAStoreAsAnyOther() throws IOException {
        NearKvCache alone = open();
        for (TestCluster.Server server : cluster.servers()) {
            server.stop();
        }
        BlockChain chain = put(alone, chain(1, 10));
        alone.awaitReplication();
        assertThat(alone.notReplicatedCount()).isPositive();
        assertThat(acquired(alone, chain, WAIT)).isEqualTo(10);
        assertThat(acquired(alone, chain(1, 20), WAIT)).isEqualTo(10);
        assertThatThrownBy(() -> alone.drop(chain, 5))
                .isInstanceOf(UncheckedIOException.class)
                .hasMessageContaining(cluster.addresses().getFirst());
        assertThat(alone.match(chain).blocks()).isEqualTo(5);
    }

    @Test
    void givenANamespaceOfTheStoreAlone_whenUsed_thenTheClusterKnowsNothingOfIt() {
        TieredKvCache store = store();
        store.register(SPACE);
        NearKvCache cache = NearKvCache.over(
                store, ClusteredKvCache.connect(cluster.addresses().getFirst()));
        opened.add(cache);
        BlockChain chain = put(cache, chain(1, 10));
        cache.awaitReplication();
        assertThat(acquired(cache, chain(1, 20), WAIT)).isEqualTo(10);
        assertThat(cache.drop(chain, 5)).isEqualTo(5);
        assertThat(cache.drop(SPACE)).isEqualTo(5);
        assertThat(cluster.servers())
                .allSatisfy(server ->
                        assertThat(server.store.stats().records().live()).isZero());
    }

    @Test
    void givenADrop_whenAcquiredElsewhere_thenItIsGoneThereToo() {
        NearKvCache first = open();
        NearKvCache second = open();
        BlockChain chain = put(first, chain(1, BLOCKS));
        first.awaitReplication();
        assertThat(first.drop(chain, 70)).isEqualTo(BLOCKS - 70);
        assertThat(acquired(second, chain, WAIT)).isEqualTo(70);
        assertThat(first.drop(SPACE)).isEqualTo(70);
        assertThat(acquired(open(), chain, WAIT)).isZero();
    }

    @Test
    void givenManyWhoWantTheSame_whenAcquired_thenItComesOnce() throws Exception {
        NearKvCache first = open();
        NearKvCache second = open();
        BlockChain chain = put(first, chain(1, BLOCKS));
        first.awaitReplication();
        try (ExecutorService threads = Executors.newFixedThreadPool(4)) {
            List<CompletableFuture<Integer>> all = IntStream.range(0, 4)
                    .mapToObj(i -> CompletableFuture.supplyAsync(() -> acquired(second, chain, WAIT), threads))
                    .toList();
            for (CompletableFuture<Integer> each : all) {
                assertThat(each.get()).isEqualTo(BLOCKS);
            }
        }
        assertThat(second.fetchedCount()).isEqualTo(BLOCKS);
    }

    @Test
    void givenATableThatWaits_whenBlocksCome_thenWhoeverWaitsIsTold() throws Exception {
        NearKvCache first = open();
        NearKvCache second = open();
        BlockChain chain = put(first, chain(1, BLOCKS));
        first.awaitReplication();
        put(second, chain(1, 10));
        try (BlockTable table = second.acquire(chain, 5, WAIT)) {
            assertThat(table.firstBlock()).isEqualTo(5);
            assertThat(table.readyBlocks()).isGreaterThanOrEqualTo(5);
            int all = table.onReady(BLOCKS, Runnable::run).toCompletableFuture().get(60, TimeUnit.SECONDS);
            assertThat(all).isEqualTo(BLOCKS);
            assertThat(table.endBlock()).isEqualTo(BLOCKS);
            BlockContent.of(chain.key(199)).requireEqual(table.segment(199));
            assertThat(table.checksum(199)).isEqualTo(io.kvcache.core.memory.ChunkedCrc.of(table.segment(199)));
        }
    }

    @Test
    void givenTablesThatWait_whenTheCacheIsClosed_thenTheyEndAndNothingIsHeld() throws Exception {
        NearKvCache first = open();
        put(first, chain(1, BLOCKS));
        first.awaitReplication();
        NearKvCache second = NearKvCache.over(
                store(), ClusteredKvCache.connect(cluster.addresses().getFirst()));
        second.register(SPACE);
        List<CompletableFuture<Integer>> waiting = new ArrayList<>();
        for (int i = 0; i < 20; i++) {
            BlockTable table = second.acquire(chain(1 + i, BLOCKS), 0, WAIT);
            waiting.add(table.onReady(BLOCKS, Runnable::run)
                    .whenComplete((ready, failed) -> table.close())
                    .toCompletableFuture());
        }
        second.close();
        for (CompletableFuture<Integer> each : waiting) {
            assertThat(each.get(120, TimeUnit.SECONDS)).isLessThanOrEqualTo(BLOCKS);
        }
    }

    @Test
    void givenATableThatIsClosedAtOnce_whenBlocksCome_thenNothingIsHeld() {
        NearKvCache first = open();
        NearKvCache second = open();
        BlockChain chain = put(first, chain(1, BLOCKS));
        first.awaitReplication();
        for (int i = 0; i < 20; i++) {
            second.acquire(chain, 0, WAIT).close();
            second.drop(SPACE);
        }
        await("nothing is held", () -> second.stats().openTables() == 0);
    }

    /// The connections are in order, so that only the check at the store can find the fault.
    @Test
    void givenBytesThatAreNotThoseThatWereSealed_whenAcquired_thenTheyAreThrownAwayAndThePrefixIsShorter() {
        TieredKvCache shared = store();
        AtomicBoolean corrupting = new AtomicBoolean(true);
        NearKvCache cache =
                open(new CorruptingKvCache(shared, index -> corrupting.get() && index == 28), MISS_TTL, false);
        BlockChain chain = put(shared, chain(1, 100));

        assertThat(acquired(cache, chain, WAIT)).isEqualTo(28);
        assertThat(cache.corruptCount()).isPositive();
        assertThat(cache.match(chain).blocks()).isEqualTo(28);
        assertThat(cache.stats().puts().abandoned()).isEqualTo(cache.corruptCount());
        long corrupt = cache.corruptCount();
        corrupting.set(false);
        await("all of it", () -> acquired(cache, chain, WAIT) == 100);
        assertThat(cache.corruptCount()).isEqualTo(corrupt);
    }

    /// Hands out blocks whose bytes do not match their checksum.
    private static final class CorruptingKvCache extends ForwardingKvCache {

        private final IntPredicate isCorrupt;

        CorruptingKvCache(LocalKvCache delegate, IntPredicate isCorrupt) {
            super(delegate);
            this.isCorrupt = isCorrupt;
        }

        @Override
        public BlockTable acquire(BlockChain chain, int from, Duration timeout) {
            return new CorruptingTable(super.acquire(chain, from, timeout), isCorrupt);
        }
    }
}
