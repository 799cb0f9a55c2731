package io.kvcache.transport.peer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.core.BlockTable;
import io.kvcache.core.KvCache;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.PutSummary;
import io.kvcache.core.check.BlockContent;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.ByteRange;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.identity.PromptTree;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.transport.client.RemoteKvCache;
import io.kvcache.transport.cluster.ClusterView;
import io.kvcache.transport.cluster.DropMark;
import io.kvcache.transport.cluster.NodeInfo;
import io.kvcache.transport.cluster.NodeState;
import io.kvcache.transport.cluster.ReplicaPolicy;
import io.kvcache.transport.endpoint.EndpointOptions;
import io.kvcache.transport.endpoint.TcpEndpoint;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// A client of five servers in one view, over TCP.
@Timeout(300)
@Tag("slow")
final class ClusteredKvCacheTest {

    private static final Namespace SPACE = Namespace.of("clustered", BlockShape.kv(1, 1, 128, 16, Dtype.BF16));
    private static final int BLOCKS = 700; // of 16 tokens: six groups
    private static final Duration WAIT = Duration.ofSeconds(60);
    private static final long LOOK_NANOS = TimeUnit.MICROSECONDS.toNanos(200);

    private final TestCluster cluster = new TestCluster();

    @SuppressWarnings("NullAway.Init") // opened before each test
    private ClusteredKvCache cache;

    @SuppressWarnings("NullAway.Init")
    ClusteredKvCacheTest() {}

    @BeforeEach
    void open() throws IOException {
        for (int i = 0; i < 5; i++) {
            cluster.add(store());
        }
        cluster.show(cluster.servers());
        cache = ClusteredKvCache.connect(
                List.of(cluster.addresses().getFirst()),
                address -> RemoteKvCache.builder(address).strict(true).connect());
        cache.register(SPACE);
    }

    private static TieredKvCache store() {
        return TieredKvCache.builder()
                .hostBytes(64 << 20)
                .checkSegments(true)
                .failOnLeak(true)
                .prefaultInBackground(false)
                .build();
    }

    @AfterEach
    void close() throws IOException {
        cache.close();
        cluster.close();
    }

    private static BlockChain chain(int seed) {
        return BlockChain.of(
                SPACE,
                IntStream.range(0, 16 * BLOCKS).map(i -> i + seed * 1_000_000).toArray());
    }

    private static List<MemorySegment> contents(BlockChain chain, Arena arena) {
        return IntStream.range(0, chain.length())
                .mapToObj(index -> {
                    MemorySegment block = arena.allocate(SPACE.blockBytes());
                    BlockContent.of(chain.key(index)).fill(block);
                    return block;
                })
                .toList();
    }

    private PutSummary putAll(BlockChain chain) {
        try (Arena arena = Arena.ofConfined()) {
            return cache.putAll(chain, 0, contents(chain, arena), KvCache.NO_WAIT);
        }
    }

    private int readAll(BlockChain chain, int from) {
        try (BlockTable table = cache.acquire(chain, from, KvCache.NO_WAIT)) {
            for (int index = from; index < table.readyEnd(); index++) {
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

    private long holders() {
        return cluster.servers().stream()
                .filter(server -> server.store.stats().records().live() > 0)
                .count();
    }

    @Test
    void givenALongChain_whenPut_thenItsGroupsLieOnSeveralServersAndComeBackWhole() {
        BlockChain chain = chain(1);
        assertThat(putAll(chain).stored()).isEqualTo(BLOCKS);
        assertThat(holders()).isGreaterThan(1);
        assertThat(cache.match(chain).blocks()).isEqualTo(BLOCKS);
        assertThat(readAll(chain, 0)).isEqualTo(BLOCKS);
        assertThat(readAll(chain, 300)).isEqualTo(BLOCKS);
        assertThat(putAll(chain)).isEqualTo(new PutSummary(0, BLOCKS, PutOutcome.PRESENT));
    }

    @Test
    void givenAPromptThatGoesOn_whenItsChainIsAsked_thenAClientHashesNewTokensOnly() {
        int[] prompt = IntStream.range(0, 320).toArray();
        try (RemoteKvCache one = RemoteKvCache.connect(cluster.addresses().getFirst())) {
            for (KvCache client : List.of(cache, one)) {
                var _ = client.chain(SPACE, Arrays.copyOf(prompt, 160));
                assertThat(client.chain(SPACE, prompt))
                        .hasToString(BlockChain.of(SPACE, prompt).toString());
            }
            assertThat(List.of(cache.promptTokens(), one.promptTokens()))
                    .containsOnly(new PromptTree.TokenCounts(160, 320));
        }
    }

    @Test
    void givenAChain_whenCopiedOut_thenEachBlockIsItsOwn() {
        BlockChain chain = chain(2);
        putAll(chain.prefix(600));
        try (Arena arena = Arena.ofConfined()) {
            List<MemorySegment> into = IntStream.range(0, 650)
                    .mapToObj(_ -> arena.allocate(SPACE.blockBytes()))
                    .toList();
            assertThat(cache.getAll(chain, 40, into)).isEqualTo(560);
            for (int i = 0; i < 560; i++) {
                BlockContent.of(chain.key(40 + i)).requireEqual(into.get(i));
            }
        }
    }

    @Test
    void givenAChain_whenARangeIsCopiedOut_thenItIsThatOfEachBlock() {
        BlockChain chain = chain(2);
        putAll(chain.prefix(600));
        ByteRange range = new ByteRange(100, 1000);
        try (Arena arena = Arena.ofConfined()) {
            List<MemorySegment> into = IntStream.range(0, 650)
                    .mapToObj(_ -> arena.allocate(range.bytes()))
                    .toList();
            for (Duration timeout : List.of(KvCache.NO_WAIT, Duration.ofSeconds(30))) {
                assertThat(cache.getRange(chain, 40, range, into, timeout)).isEqualTo(560);
                for (int i = 0; i < 560; i++) {
                    BlockContent.of(chain.key(40 + i)).requireEqual(range.offset(), into.get(i));
                    into.get(i).fill((byte) 0);
                }
            }
        }
    }

    @Test
    void givenASecondClient_whenItReads_thenItFindsWhatTheFirstPut() {
        BlockChain chain = chain(3);
        putAll(chain);
        try (ClusteredKvCache other =
                ClusteredKvCache.connect(cluster.addresses().toArray(String[]::new))) {
            other.register(SPACE);
            assertThat(other.match(chain).blocks()).isEqualTo(BLOCKS);
        }
    }

    @Test
    void givenAServerThatStops_whenUsed_thenItsGroupsGoToTheNextServersAndNoCallFails() throws IOException {
        List<BlockChain> chains =
                IntStream.range(10, 14).mapToObj(ClusteredKvCacheTest::chain).toList();
        chains.forEach(this::putAll);
        cluster.servers().get(2).stop();
        for (BlockChain chain : chains) {
            await("all of it is put again elsewhere", () -> {
                putAll(chain);
                return readAll(chain, 0) == BLOCKS;
            });
        }
        cluster.show(cluster.servers().stream()
                .filter(each -> each != cluster.servers().get(2))
                .toList());
        await("the client learns", () -> cache.view().nodes().size() == 4);
        for (BlockChain chain : chains) {
            assertThat(readAll(chain, 0)).as("the stand-ins are the owners now").isEqualTo(BLOCKS);
        }
    }

    @Test
    void givenAServerThatStops_whenAskedForConnections_thenTheOthersAreConnected() throws IOException {
        List<String> all = cluster.addresses().stream().sorted().toList();
        await("all are connected", () -> cache.connectedServers().equals(all));
        String stopped = cluster.addresses().get(2);
        cluster.servers().get(2).stop();
        await("one is not", () -> cache.connectedServers().size() == 4);
        assertThat(cache.connectedServers()).doesNotContain(stopped).isSubsetOf(all);
    }

    @Test
    void givenAServerThatJoins_whenTheViewChanges_thenTheClientUsesIt() throws IOException {
        TestCluster.Server sixth = cluster.add(store());
        cluster.show(cluster.servers());
        await("the client learns", () -> cache.view().nodes().size() == 6);
        for (int seed = 20; seed < 26; seed++) {
            assertThat(putAll(chain(seed)).accepted()).isEqualTo(BLOCKS);
        }
        assertThat(sixth.store.stats().records().live()).isPositive();
    }

    @Test
    void givenAServerThatJoins_whenItMissesAGroup_thenItAsksTheFormerOwner() throws IOException {
        List<BlockChain> chains =
                IntStream.range(30, 36).mapToObj(ClusteredKvCacheTest::chain).toList();
        chains.forEach(this::putAll);
        TestCluster.Server sixth = cluster.add(store());
        cluster.show(cluster.servers());
        await("the client learns", () -> cache.view().nodes().size() == 6);
        for (BlockChain chain : chains) {
            assertThat(cache.match(chain, WAIT).blocks()).isEqualTo(BLOCKS);
            try (BlockTable table = cache.acquire(chain, 0, WAIT)) {
                assertThat(table.await(BLOCKS, WAIT)).isEqualTo(BLOCKS);
                for (int index = 0; index < BLOCKS; index++) {
                    BlockContent.of(chain.key(index)).requireEqual(table.segment(index));
                }
            }
        }
        assertThat(sixth.store.stats().records().live()).as("it keeps them").isPositive();
        assertThat(sixth.served.fetchedCount())
                .isEqualTo(sixth.store.stats().records().live());
    }

    @Test
    void givenAServerThatDrains_whenItsGroupsAreWanted_thenTheNewOwnersFetchThem() {
        List<BlockChain> chains =
                IntStream.range(40, 45).mapToObj(ClusteredKvCacheTest::chain).toList();
        chains.forEach(this::putAll);
        NodeInfo leaving = cluster.servers().get(3).info;
        assertThat(cluster.servers().get(3).store.stats().records().live()).isPositive();
        cluster.tell(cluster.servers().stream()
                .map(server -> server.info.equals(leaving) ? leaving.withState(NodeState.DRAINING) : server.info)
                .toList());
        await("the client learns", () -> cache.view().serving().size() == 4);
        for (BlockChain chain : chains) {
            try (BlockTable table = cache.acquire(chain, 0, WAIT)) {
                assertThat(table.await(BLOCKS, WAIT)).isEqualTo(BLOCKS);
            }
        }
        cluster.tell(cluster.servers().stream()
                .map(server -> server.info)
                .filter(info -> !info.equals(leaving))
                .toList());
        await("the client learns", () -> cache.view().nodes().size() == 4);
        for (BlockChain chain : chains) {
            assertThat(readAll(chain, 0)).as("all of it has moved").isEqualTo(BLOCKS);
        }
    }

    @Test
    void givenAServerThatDrains_whenItHandsOver_thenNothingIsMissingAfterItHasLeft() throws IOException {
        List<BlockChain> chains =
                IntStream.range(50, 54).mapToObj(ClusteredKvCacheTest::chain).toList();
        chains.forEach(this::putAll);
        TestCluster.Server server = cluster.servers().get(3);
        long had = server.store.stats().records().live();
        assertThat(had).isPositive();
        cluster.tell(cluster.servers().stream()
                .map(each -> each == server ? each.info.withState(NodeState.DRAINING) : each.info)
                .toList());
        PeeredKvCache.HandedOver handedOver = server.served.handOver(WAIT);
        assertThat(handedOver.chains()).isPositive();
        assertThat(handedOver.left()).isZero();
        server.stop();
        cluster.show(cluster.servers().stream().filter(each -> each != server).toList());
        await("the client learns", () -> cache.view().nodes().size() == 4);
        for (BlockChain chain : chains) {
            await("all of it is there", () -> readAll(chain, 0) == BLOCKS);
        }
    }

    @Test
    void givenAServerThatWasCutOff_whenItTellsAViewOfItselfAlone_thenTheLargerViewCounts() {
        TestCluster.Server first = cluster.servers().getFirst();
        first.view.set(new ClusterView("test", 99, List.of(first.info)));
        LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(500));
        assertThat(cache.view().nodes()).hasSize(5);
    }

    @Test
    void givenAServerThatKeepsItsConnectionsAndAnswersNothing_whenItIsAskedForChanges_thenAnotherOneTellsThem()
            throws IOException {
        AtomicReference<@Nullable String> mute = new AtomicReference<>();
        ClusteredKvCache.Dependencies dependencies = new ClusteredKvCache.Dependencies(
                address ->
                        new MuteConnection(new ClusterConnection.Remote(RemoteKvCache.connect(address)), address, mute),
                Executors.newVirtualThreadPerTaskExecutor(),
                Executors.newVirtualThreadPerTaskExecutor(),
                PeerClock.MACHINE,
                GroupCopies.Options.DEFAULTS);
        try (ClusteredKvCache other = ClusteredKvCache.connect(cluster.addresses(), dependencies)) {
            await("one server is asked", () -> mute.get() != null);
            cluster.add(store());
            cluster.show(cluster.servers());
            await("another one tells the view", () -> other.view().nodes().size() == 6);
        }
    }

    /// A connection to a server that stands still from the moment when it is the first to be asked for changes.
    private record MuteConnection(ClusterConnection server, String address, AtomicReference<@Nullable String> mute)
            implements ClusterConnection {

        @Override
        public @Nullable ClusterView view(long knownDigest, Duration timeout) {
            if (timeout.isPositive()) {
                mute.compareAndSet(null, address);
            }
            if (address.equals(mute.get())) {
                throw new UncheckedIOException(new IOException(address + " does not answer"));
            }
            return server.view(knownDigest, timeout);
        }

        @Override
        public void register(Namespace namespace) {
            server.register(namespace);
        }

        @Override
        public KvCache cache() {
            return server.cache();
        }

        @Override
        public int drop(BlockChain chain, int from, DropMark mark) {
            return server.drop(chain, from, mark);
        }

        @Override
        public long drop(Namespace namespace, DropMark mark) {
            return server.drop(namespace, mark);
        }

        @Override
        public boolean isMemoryMapped() {
            return server.isMemoryMapped();
        }

        @Override
        public int openHandles() {
            return server.openHandles();
        }

        @Override
        public boolean isConnected() {
            return server.isConnected();
        }

        @Override
        public long lifeSigns() {
            return server.lifeSigns();
        }

        @Override
        public void requestLifeSign() {
            server.requestLifeSign();
        }

        @Override
        public long failureCount() {
            return server.failureCount();
        }

        @Override
        public void close() {
            server.close();
        }
    }

    /// A server of a later version, which lacks a feature of the others and has one that they do not know.
    @Test
    void givenAServerOfALaterVersion_whenUsed_thenBlocksGoBothWays() throws IOException {
        List<NodeInfo> mixed = new ArrayList<>();
        for (TestCluster.Server server : cluster.servers()) {
            NodeInfo info = server.info;
            boolean later = server == cluster.servers().get(1);
            mixed.add(new NodeInfo(
                    info.node(),
                    info.incarnation(),
                    info.state(),
                    info.address(),
                    info.valueAddress(),
                    later ? "99.0" : info.version(),
                    later ? 1L << 40 : ReplicaPolicy.REUSED.features()));
        }
        cluster.tell(mixed);
        await("the client learns", () -> cache.view().nodes().equals(mixed));
        assertThat(cache.view().replicas()).as("what all servers have").isEqualTo(ReplicaPolicy.NONE);
        List<BlockChain> chains =
                IntStream.range(60, 64).mapToObj(ClusteredKvCacheTest::chain).toList();
        for (BlockChain chain : chains) {
            assertThat(putAll(chain).stored()).isEqualTo(BLOCKS);
            assertThat(readAll(chain, 0)).isEqualTo(BLOCKS);
        }
        TestCluster.Server laterServer = cluster.servers().get(1);
        assertThat(laterServer.store.stats().records().live()).isPositive();

        cluster.tell(mixed.stream()
                .map(info -> info.version().equals("99.0") ? info.withState(NodeState.DRAINING) : info)
                .toList());
        assertThat(laterServer.served.handOver(WAIT).left()).isZero();
        laterServer.stop();
        cluster.tell(
                mixed.stream().filter(info -> !info.version().equals("99.0")).toList());
        await("the client learns", () -> cache.view().nodes().size() == 4);
        for (BlockChain chain : chains) {
            await("all of it is there", () -> readAll(chain, 0) == BLOCKS);
        }
    }

    @Test
    void givenAChain_whenDropped_thenNoServerHasIt() throws IOException {
        BlockChain chain = chain(4);
        putAll(chain);
        assertThat(cache.drop(chain, 100)).isEqualTo(BLOCKS - 100);
        assertThat(cache.match(chain).blocks()).isEqualTo(100);
        assertThat(cache.drop(SPACE)).isEqualTo(100);
        assertThat(holders()).isZero();
        cluster.servers().get(1).stop();
        assertThatThrownBy(() -> cache.drop(SPACE))
                .isInstanceOf(UncheckedIOException.class)
                .hasMessageContaining(cluster.servers().get(1).info.address());
    }

    @Test
    void givenAServerInNoCluster_whenConnected_thenThatIsSaid() throws IOException {
        try (TieredKvCache alone = store();
                TcpEndpoint endpoint = TcpEndpoint.open(
                        alone, new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), EndpointOptions.DEFAULTS)) {
            String address = "127.0.0.1:" + endpoint.address().getPort();
            assertThatThrownBy(() -> ClusteredKvCache.connect(address))
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessage(address + ": this server is in no cluster");
        }
    }
}
