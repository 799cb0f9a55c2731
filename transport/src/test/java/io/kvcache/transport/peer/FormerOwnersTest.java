package io.kvcache.transport.peer;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.BlockTable;
import io.kvcache.core.Hint;
import io.kvcache.core.KvCache;
import io.kvcache.core.check.BlockContent;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.transport.client.RemoteKvCache;
import io.kvcache.transport.cluster.BlockGroup;
import io.kvcache.transport.cluster.ClusterNode;
import io.kvcache.transport.cluster.ClusterView;
import io.kvcache.transport.cluster.NodeInfo;
import io.kvcache.transport.cluster.NodeState;
import io.kvcache.transport.cluster.ReplicaPolicy;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// What a fourth server asks the other three for.
@Timeout(300)
@Tag("slow")
final class FormerOwnersTest {

    private static final Namespace GROUPS =
            BlockGroup.namespace(Namespace.of("copied", BlockShape.kv(1, 1, 8, 16, Dtype.BF16)));
    private static final int BLOCKS = 8;
    private static final Duration WAIT = Duration.ofSeconds(60);
    private static final Duration SOON = Duration.ofSeconds(20);

    private final SettableView view = new SettableView();
    private final AtomicInteger forgotten = new AtomicInteger();
    private final AtomicLong drops = new AtomicLong();
    private final AtomicBoolean corrupting = new AtomicBoolean();

    @SuppressWarnings("NullAway.Init") // opened by each test
    private TestCluster cluster;

    @SuppressWarnings("NullAway.Init")
    private PeeredKvCache fourth;

    @SuppressWarnings("NullAway.Init")
    FormerOwnersTest() {}

    private void open(ReplicaPolicy replicas) throws IOException {
        cluster = new TestCluster(replicas);
        for (int i = 0; i < 3; i++) {
            cluster.add(store());
        }
        cluster.show(cluster.servers());
        List<NodeInfo> nodes = new ArrayList<>(
                cluster.servers().stream().map(server -> server.info).toList());
        nodes.add(new NodeInfo(
                ClusterNode.named("kv-3"), 1, NodeState.SERVING, "127.0.0.2:1", "", "test", replicas.features()));
        view.set(new ClusterView("test", 7, nodes));
        fourth = PeeredKvCache.ofCluster(
                store(),
                new PeeredKvCache.Handover("kv-3", view, Duration.ofMinutes(1), drops::get),
                new PeeredKvCache.Dependencies(
                        address -> watched(new ClusterConnection.Remote(
                                RemoteKvCache.builder(address).localOnly(true).connect())),
                        Executors.newFixedThreadPool(2),
                        Executors.newCachedThreadPool(),
                        PeerClock.MACHINE));
        fourth.register(GROUPS);
        cluster.servers().forEach(server -> server.store.register(GROUPS));
    }

    private static TieredKvCache store() {
        return TieredKvCache.builder()
                .hostBytes(32 << 20)
                .failOnLeak(true)
                .prefaultInBackground(false)
                .build();
    }

    @AfterEach
    void close() throws IOException {
        fourth.close();
        cluster.close();
    }

    private static BlockChain chain(int seed) {
        return BlockChain.of(
                GROUPS,
                IntStream.range(0, 16 * BLOCKS).map(i -> i + seed * 1_000_000).toArray());
    }

    private String owner(BlockChain chain) {
        int owner = Objects.requireNonNull(view.view().placement()).owner(chain.key(0));
        return view.view().serving().get(owner).name();
    }

    /// A group of the fourth server, or one of another, which has it.
    private BlockChain anyChain(boolean own) {
        return IntStream.iterate(1, seed -> seed + 1)
                .mapToObj(FormerOwnersTest::chain)
                .filter(chain -> owner(chain).equals("kv-3") == own)
                .findFirst()
                .orElseThrow();
    }

    private void putAt(KvCache store, BlockChain chain) {
        try (Arena arena = Arena.ofConfined()) {
            List<MemorySegment> blocks = IntStream.range(0, chain.length())
                    .mapToObj(index -> {
                        MemorySegment block = arena.allocate(GROUPS.blockBytes());
                        BlockContent.of(chain.key(index)).fill(block);
                        return block;
                    })
                    .toList();
            assertThat(store.putAll(chain, 0, blocks, KvCache.NO_WAIT).stored()).isEqualTo(BLOCKS);
        }
    }

    private void putAtOwner(BlockChain chain) {
        cluster.servers().stream()
                .filter(server -> server.info.name().equals(owner(chain)))
                .forEach(server -> putAt(server.store, chain));
    }

    private int read(BlockChain chain) {
        try (BlockTable table = fourth.acquire(chain, 0, WAIT)) {
            return table.await(BLOCKS, WAIT);
        }
    }

    private static void await(String what, BooleanSupplier condition) {
        long start = System.nanoTime();
        while (!condition.getAsBoolean()) {
            assertThat(System.nanoTime() - start).as(what).isLessThan(WAIT.toNanos());
            LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(1));
        }
    }

    @ParameterizedTest
    @EnumSource(
            value = ReplicaPolicy.class,
            names = {"HEAT", "REUSED"})
    void givenAGroupOfAnotherServer_whenRead_thenItIsCopiedAndTheOwnerKeepsIt(ReplicaPolicy replicas)
            throws IOException {
        open(replicas);
        BlockChain chain = anyChain(false);
        putAtOwner(chain);
        await("the owner is connected", () -> read(chain) == BLOCKS);
        assertThat(fourth.copiedCount()).isEqualTo(BLOCKS);
        assertThat(fourth.match(chain).hostBlocks()).isEqualTo(BLOCKS);
        assertThat(forgotten).hasValue(0);
    }

    @Test
    void givenAGroupOfAnotherServer_whenExpected_thenItIsCopiedInTheBackground() throws IOException {
        open(ReplicaPolicy.HEAT);
        BlockChain chain = anyChain(false);
        putAtOwner(chain);
        Hint expect = new Hint.Expect(chain, Duration.ZERO);
        // A hint is lost while the owner is being connected.
        await("it is copied", () -> fourth.hint(expect) && fourth.match(chain).blocks() == BLOCKS);
        assertThat(fourth.hint(expect)).as("it is here").isTrue();
        assertThat(forgotten).hasValue(0);
    }

    @ParameterizedTest
    @EnumSource(ReplicaPolicy.class)
    void givenAGroupOfItsOwn_whenRead_thenTheFormerOwnerForgetsItUnlessItHasTheSecondCopy(ReplicaPolicy replicas)
            throws IOException {
        open(replicas);
        BlockChain chain = anyChain(true);
        int former = Objects.requireNonNull(view.view().placement()).order(chain.key(0))[1];
        putAt(cluster.servers().get(former).store, chain);
        await("the former owner is connected", () -> read(chain) == BLOCKS);
        assertThat(fourth.copiedCount()).isZero();
        assertThat(fourth.fetchedCount()).isEqualTo(BLOCKS);
        await("it is told", () -> forgotten.get() == (replicas == ReplicaPolicy.REUSED ? 0 : 1));
    }

    @Test
    void givenNoCopies_whenAGroupOfAnotherServerIsRead_thenItIsNotAskedFor() throws IOException {
        open(ReplicaPolicy.NONE);
        BlockChain own = anyChain(true);
        int former = Objects.requireNonNull(view.view().placement()).order(own.key(0))[1];
        putAt(cluster.servers().get(former).store, own);
        await("servers are connected", () -> read(own) == BLOCKS);
        BlockChain chain = anyChain(false);
        putAtOwner(chain);
        assertThat(read(chain)).isZero();
    }

    @Test
    void givenAnOwnerThatHasNotAppliedTheSameDrops_whenRead_thenItIsNotAsked() throws IOException {
        open(ReplicaPolicy.HEAT);
        BlockChain chain = anyChain(false);
        putAtOwner(chain);
        await("the owner is connected", () -> fourth.match(chain, WAIT).blocks() == BLOCKS);
        drops.set(5);
        assertThat(read(chain)).isZero();
        drops.set(0);
        assertThat(read(chain)).isEqualTo(BLOCKS);
    }

    @Test
    void givenAnOwnerThatHasDied_whenRead_thenNoCallerWaitsForIt() throws IOException {
        open(ReplicaPolicy.HEAT);
        BlockChain chain = anyChain(false);
        putAtOwner(chain);
        await("the owner is connected", () -> fourth.match(chain, WAIT).blocks() == BLOCKS);
        for (TestCluster.Server server : cluster.servers()) {
            server.stop();
        }
        long start = System.nanoTime();
        assertThat(read(chain)).isZero();
        assertThat(System.nanoTime() - start).isLessThan(SOON.toNanos());
    }

    @Test
    void givenAnOwnerWhoseBlocksAreCorrupt_whenRead_thenTheyAreMissesUntilItIsAskedAgain() throws IOException {
        open(ReplicaPolicy.HEAT);
        BlockChain chain = anyChain(false);
        putAtOwner(chain);
        await("the owner is connected", () -> fourth.match(chain, WAIT).blocks() == BLOCKS);
        corrupting.set(true);
        assertThat(read(chain)).isZero();
        assertThat(fourth.corruptCount()).isEqualTo(1);
        assertThat(fourth.match(chain).blocks()).isZero();
        corrupting.set(false);
        await("it is asked again", () -> read(chain) == BLOCKS);
    }

    /// A connection that counts what it is told to forget, and corrupts blocks when a test wants it.
    private ClusterConnection watched(ClusterConnection connection) {
        KvCache cache = connection.cache();
        KvCache watched = proxy(KvCache.class, (method, arguments) -> {
            if (method.getName().equals("hint") && arguments[0] instanceof Hint.Forget) {
                forgotten.incrementAndGet();
            }
            Object result = method.invoke(cache, arguments);
            return result instanceof BlockTable table ? new CorruptingTable(table, _ -> corrupting.get()) : result;
        });
        return proxy(
                ClusterConnection.class,
                (method, arguments) ->
                        method.getName().equals("cache") ? watched : method.invoke(connection, arguments));
    }

    /// Does a call.
    private interface Call {
        Object of(Method method, Object[] arguments) throws ReflectiveOperationException;
    }

    private static <T> T proxy(Class<T> type, Call call) {
        return type.cast(Proxy.newProxyInstance(
                type.getClassLoader(), new Class<?>[] {type}, (_, method, arguments) -> {
                    try {
                        return call.of(method, arguments);
                    } catch (InvocationTargetException thrown) {
                        throw thrown.getCause();
                    }
                }));
    }
}
