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
import io.kvcache.transport.cluster.BlockGroup;
import io.kvcache.transport.cluster.ClusterNode;
import io.kvcache.transport.cluster.Placement;
import io.kvcache.transport.endpoint.EndpointOptions;
import io.kvcache.transport.endpoint.TcpEndpoint;
import io.kvcache.transport.peer.PeeredKvCache.PeerThreads;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.net.InetAddress;
import java.net.InetSocketAddress;
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
import java.util.function.Function;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// Embedded stores over three servers, over TCP.
@Timeout(300)
@Tag("slow")
final class PeeredKvCacheTest {

    private static final Namespace SPACE = Namespace.of("peered", BlockShape.kv(1, 1, 1024, 16, Dtype.BF16));
    private static final int BLOCKS = 200; // four groups
    private static final Duration WAIT = Duration.ofSeconds(60);
    private static final long LOOK_NANOS = TimeUnit.MICROSECONDS.toNanos(200);
    private static final PeerOptions OPTIONS = PeerOptions.DEFAULTS.withMissTtl(Duration.ofMillis(1));

    private final List<Server> servers = new ArrayList<>();
    private final List<PeeredKvCache> opened = new ArrayList<>();

    /// A server and its store.
    private static final class Server {
        final TieredKvCache store = store();
        TcpEndpoint endpoint;
        final InetSocketAddress address;

        Server() throws IOException {
            // Not where clients come from: one that connects again could get the very port that it looks for.
            endpoint = open(new InetSocketAddress(InetAddress.getByName("127.0.0.2"), 0));
            address = endpoint.address();
        }

        private TcpEndpoint open(InetSocketAddress at) throws IOException {
            return TcpEndpoint.open(store, at, EndpointOptions.DEFAULTS);
        }

        void stop() throws IOException {
            endpoint.close();
        }

        void restart() throws IOException {
            endpoint = open(address);
        }

        String name() {
            return "127.0.0.2:" + address.getPort();
        }
    }

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
            servers.add(new Server());
        }
    }

    @AfterEach
    void close() throws IOException {
        opened.forEach(PeeredKvCache::close);
        for (Server server : servers) {
            server.stop();
            assertThat(server.store.stats().openTables()).isZero();
            server.store.validate();
            server.store.close();
        }
    }

    private PeeredKvCache open(PeerOptions options) {
        PeeredKvCache cache = PeeredKvCache.over(
                store(),
                servers.stream().map(Server::name).toList(),
                options,
                name -> RemoteKvCache.builder(name)
                        .requestTimeout(Duration.ofSeconds(60))
                        .memoryBytes(64 << 20)
                        .strict(true)
                        .connect());
        cache.register(SPACE);
        opened.add(cache);
        await("all peers serve", () -> cache.peerStats().stream().allMatch(PeerStats::reachable));
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
    void givenBlocksOfAnotherStore_whenAcquiredWithATimeout_thenTheyComeFromThePeersThatKeepTheirGroups() {
        PeeredKvCache first = open(OPTIONS);
        PeeredKvCache second = open(OPTIONS);
        BlockChain chain = put(first, chain(1, BLOCKS));
        first.awaitReplication();
        Placement placement = new Placement(
                "",
                servers.stream().map(server -> ClusterNode.named(server.name())).toList());
        for (int at = 0; at < BLOCKS; at = BlockGroup.end(chain, at)) {
            BlockGroup group = BlockGroup.of(chain, at);
            Server owner = servers.get(placement.owner(group.key()));
            assertThat(owner.store.match(group.chain()).blocks())
                    .as("group from block " + at)
                    .isEqualTo(group.chain().length());
        }
        assertThat(servers.stream()
                        .mapToLong(server -> server.store.stats().records().live())
                        .sum())
                .isEqualTo(BLOCKS);

        assertThat(second.match(chain).blocks()).as("nobody is asked").isZero();
        assertThat(acquired(second, chain, KvCache.NO_WAIT)).isZero();
        assertThat(acquired(second, chain, WAIT)).isEqualTo(BLOCKS);
        assertThat(second.match(chain).blocks()).as("now they are here").isEqualTo(BLOCKS);
        assertThat(second.peerStats().stream().mapToLong(PeerStats::found).sum())
                .isEqualTo(BLOCKS);
    }

    @Test
    void givenSomeBlocksHere_whenARangeIsRead_thenThePeersHaveTheRest() {
        PeeredKvCache first = open(OPTIONS);
        PeeredKvCache second = open(OPTIONS.withReplicate(false));
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
        PeeredKvCache first = open(OPTIONS);
        PeeredKvCache second = open(OPTIONS.withReplicate(false));
        BlockChain chain = put(first, chain(1, 100));
        first.awaitReplication();
        put(second, chain(1, 70));
        assertThat(acquired(second, chain, WAIT)).isEqualTo(100);
        assertThat(second.peerStats().stream().mapToLong(PeerStats::found).sum())
                .isEqualTo(30);
    }

    @Test
    void givenADeadPeer_whenAcquired_thenAShorterPrefixInTimeAndAllOfItWhenItIsBack() throws IOException {
        PeeredKvCache first = open(OPTIONS);
        PeeredKvCache second = open(OPTIONS);
        BlockChain chain = put(first, chain(1, BLOCKS));
        first.awaitReplication();
        for (Server server : servers) {
            server.stop();
        }
        assertThat(acquired(second, chain, WAIT)).isZero();
        assertThat(second.peerStats())
                .anyMatch(peer -> !peer.reachable()); // who was not asked may not be known to be dead
        for (Server server : servers) {
            server.restart();
        }
        await("the peers are back", () -> acquired(second, chain, WAIT) == BLOCKS);
        assertThat(second.peerStats()).anyMatch(PeerStats::reachable);
    }

    @Test
    void givenTwoKeepers_whenOneIsDead_thenTheOtherHasIt() throws IOException {
        PeeredKvCache first = open(OPTIONS.withReplicas(2));
        PeeredKvCache second = open(OPTIONS.withReplicas(2));
        BlockChain chain = put(first, chain(1, BLOCKS));
        first.awaitReplication();
        servers.getFirst().stop();
        await("the others have all of it", () -> acquired(second, chain, WAIT) == BLOCKS);
    }

    @Test
    void givenPeersThatNeverWere_whenUsed_thenItIsAStoreAsAnyOther() {
        PeeredKvCache alone = PeeredKvCache.over(store(), List.of("127.0.0.1:1"), OPTIONS);
        opened.add(alone);
        alone.register(SPACE);
        BlockChain chain = put(alone, chain(1, 10));
        alone.awaitReplication();
        assertThat(alone.notReplicatedCount()).isPositive();
        assertThat(acquired(alone, chain, WAIT)).isEqualTo(10);
        assertThat(acquired(alone, chain(1, 20), WAIT)).isEqualTo(10);
        assertThatThrownBy(() -> alone.drop(chain, 5))
                .isInstanceOf(UncheckedIOException.class)
                .hasMessageContaining("127.0.0.1:1");
        assertThat(alone.match(chain).blocks()).isEqualTo(5);
    }

    @Test
    void givenADrop_whenAcquiredElsewhere_thenItIsGoneThereToo() {
        PeeredKvCache first = open(OPTIONS);
        PeeredKvCache second = open(OPTIONS);
        BlockChain chain = put(first, chain(1, BLOCKS));
        first.awaitReplication();
        assertThat(first.drop(chain, 70)).isEqualTo(BLOCKS - 70);
        assertThat(acquired(second, chain, WAIT)).isEqualTo(70);
        assertThat(first.drop(SPACE)).isEqualTo(70);
        assertThat(acquired(open(OPTIONS), chain, WAIT)).isZero();
    }

    @Test
    void givenManyWhoWantTheSame_whenAcquired_thenItComesOnce() throws Exception {
        PeeredKvCache first = open(OPTIONS);
        PeeredKvCache second = open(OPTIONS);
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
        assertThat(second.peerStats().stream().mapToLong(PeerStats::found).sum())
                .isEqualTo(BLOCKS);
    }

    @Test
    void givenNobodyHasIt_whenAskedAgainAtOnce_thenNobodyIsAsked() {
        PeeredKvCache cache = open(OPTIONS.withMissTtl(Duration.ofMinutes(10)));
        assertThat(acquired(cache, chain(9, 10), WAIT)).isZero();
        long asked = cache.peerStats().stream().mapToLong(PeerStats::missed).sum();
        assertThat(asked).isEqualTo(1);
        assertThat(acquired(cache, chain(9, 10), WAIT)).isZero();
        assertThat(cache.peerStats().stream().mapToLong(PeerStats::missed).sum())
                .isEqualTo(1);
    }

    @Test
    void givenATableThatWaits_whenBlocksCome_thenWhoeverWaitsIsTold() throws Exception {
        PeeredKvCache first = open(OPTIONS);
        PeeredKvCache second = open(OPTIONS);
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
        PeeredKvCache first = open(OPTIONS);
        put(first, chain(1, BLOCKS));
        first.awaitReplication();
        TieredKvCache store = store();
        PeeredKvCache second =
                PeeredKvCache.over(store, servers.stream().map(Server::name).toList(), OPTIONS, RemoteKvCache::connect);
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
        PeeredKvCache first = open(OPTIONS);
        PeeredKvCache second = open(OPTIONS);
        BlockChain chain = put(first, chain(1, BLOCKS));
        first.awaitReplication();
        for (int i = 0; i < 20; i++) {
            second.acquire(chain, 0, WAIT).close();
            second.drop(SPACE);
        }
        await("nothing is held", () -> second.stats().openTables() == 0);
    }

    @Test
    void givenAPeerWhoseBytesAreNotThoseThatWereSealed_whenAcquired_thenTheyAreThrownAwayAndThePrefixIsShorter() {
        PeeredKvCache first = open(OPTIONS);
        BlockChain chain = put(first, chain(1, 100));
        first.awaitReplication();
        AtomicBoolean turned = new AtomicBoolean(true);
        PeeredKvCache second = open(name -> new CorruptingPeerCache(
                remote(name), index -> turned.get() && index == 20)); // block 28: the second group begins at 8

        assertThat(acquired(second, chain, WAIT)).isEqualTo(28);
        assertThat(second.corruptCount()).isPositive();
        assertThat(second.match(chain).blocks()).isEqualTo(28);
        assertThat(second.stats().puts().abandoned()).isEqualTo(second.corruptCount());
        long corrupt = second.corruptCount();
        turned.set(false);
        await("all of it", () -> acquired(second, chain, WAIT) == 100);
        assertThat(second.corruptCount()).isEqualTo(corrupt);
    }

    /// The peer's connection is in order, so that only the check at the store can find the fault.
    @Test
    void givenPeersWithCorruptBlocks_whenAcquired_thenTheyBackOff() {
        PeeredKvCache first = open(OPTIONS);
        BlockChain chain = put(first, chain(1, 10));
        first.awaitReplication();
        PeeredKvCache second = open(name -> new CorruptingPeerCache(remote(name), index -> true));

        assertThat(acquired(second, chain, WAIT)).isZero();
        assertThat(second.corruptCount()).isPositive();
        assertThat(failures(second)).isEqualTo(second.corruptCount());
    }

    /// The client finds the fault on arrival and hands out nothing.
    @Test
    void givenAPeerThatSendsCorruptBlocks_whenAcquired_thenItBacksOff() throws IOException {
        TieredKvCache there = store();
        there.register(SPACE);
        BlockChain chain = chain(1, 10);
        BlockChain group = BlockGroup.of(chain, 0).chain();
        there.register(group.namespace());
        for (int index = 0; index < group.length(); index++) {
            try (BlockWriter writer = there.put(group, index, 0, KvCache.NO_WAIT)) {
                writer.seal();
            }
        }
        InetSocketAddress any = new InetSocketAddress(InetAddress.getByName("127.0.0.2"), 0);
        try (TcpEndpoint endpoint = TcpEndpoint.open(new CorruptingKvCache(there), any, EndpointOptions.DEFAULTS)) {
            PeeredKvCache cache = PeeredKvCache.over(
                    store(),
                    List.of("127.0.0.2:" + endpoint.address().getPort()),
                    OPTIONS,
                    new PeeredKvCache.Dependencies(PeeredKvCacheTest::remote, PeerThreads.start(OPTIONS)));
            opened.add(cache);
            cache.register(SPACE);
            await("the peer serves", () -> cache.peerStats().getFirst().reachable());

            assertThat(acquired(cache, chain, WAIT)).isZero();
            assertThat(failures(cache)).isPositive();
        }
        there.close();
    }

    private static long failures(PeeredKvCache cache) {
        return cache.peerStats().stream().mapToLong(PeerStats::failures).sum();
    }

    private static PeerCache remote(String name) {
        return new PeerCache.Remote(RemoteKvCache.builder(name)
                .requestTimeout(Duration.ofSeconds(60))
                .connect());
    }

    private PeeredKvCache open(Function<String, PeerCache> connector) {
        PeeredKvCache cache = PeeredKvCache.over(
                store(),
                servers.stream().map(Server::name).toList(),
                OPTIONS,
                new PeeredKvCache.Dependencies(connector, PeerThreads.start(OPTIONS)));
        cache.register(SPACE);
        opened.add(cache);
        await("all peers serve", () -> cache.peerStats().stream().allMatch(PeerStats::reachable));
        return cache;
    }

    /// Hands out blocks whose bytes do not match their checksum.
    private static final class CorruptingKvCache extends ForwardingKvCache {

        CorruptingKvCache(LocalKvCache delegate) {
            super(delegate);
        }

        @Override
        public BlockTable acquire(BlockChain chain, int from, Duration timeout) {
            return new CorruptingPeerCache.CorruptingTable(super.acquire(chain, from, timeout), index -> true);
        }
    }
}
