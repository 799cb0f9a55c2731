package io.kvcache.transport.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.core.BlockTable;
import io.kvcache.core.KvCache;
import io.kvcache.core.Match;
import io.kvcache.core.ObjectView;
import io.kvcache.core.check.BlockContent;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.tiers.TieredKvCacheBuilder;
import io.kvcache.transport.endpoint.EndpointOptions;
import io.kvcache.transport.endpoint.TcpEndpoint;
import io.kvcache.transport.shm.ShmDirectory;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

/// When memory is shared and when not, what is read from it without asking, and what becomes of that when
/// one side dies or stops.
@EnabledOnOs(OS.LINUX)
@Tag("slow")
final class SharedMemoryTest {

    private final ShmDirectory folder = ShmDirectory.make();

    @AfterEach
    void removeFolder() {
        folder.close();
    }

    private static TieredKvCacheBuilder store() {
        return TieredKvCache.builder()
                .hostBytes(64 << 20)
                .prefaultInBackground(false)
                .failOnLeak(true)
                .closeWait(Duration.ofSeconds(10));
    }

    private static TcpEndpoint serve(KvCache store, EndpointOptions options) throws IOException {
        return TcpEndpoint.open(store, new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), options);
    }

    private static String address(TcpEndpoint endpoint) {
        return "127.0.0.1:" + endpoint.address().getPort();
    }

    private static RemoteKvCacheBuilder client(String address) {
        return RemoteKvCache.builder(address).requestTimeout(TestBlocks.PATIENCE);
    }

    private static List<MemorySegment> room(int blocks) {
        return Stream.generate(() -> MemorySegment.ofArray(new byte[TestBlocks.BLOCK_BYTES]))
                .limit(blocks)
                .toList();
    }

    @Test
    void givenAServerThatSharesItsMemory_whenReadFrom_thenNoByteOfABlockIsSent() throws IOException {
        Duration noRenewal = Duration.ofMinutes(10);
        try (TieredKvCache store = store().shareMemory(folder.path()).build();
                TcpEndpoint endpoint = serve(store, EndpointOptions.DEFAULTS.withMaxLease(noRenewal));
                RemoteKvCache cache = client(address(endpoint)).lease(noRenewal).connect()) {
            cache.register(TestBlocks.SPACE);
            BlockChain chain = TestBlocks.stored(cache, 1, 10);
            long asked = endpoint.stats().requests();
            assertThat(cache.match(chain)).isEqualTo(new Match(0, 10, 0));
            List<MemorySegment> into = room(10);
            assertThat(cache.getAll(chain, 0, into)).isEqualTo(10);
            for (int index = 0; index < 10; index++) {
                BlockContent.of(chain.key(index)).requireEqual(into.get(index));
            }
            assertThat(cache.remoteStats().copied()).isEqualTo(10);
            assertThat(cache.remoteStats().reported() + endpoint.stats().requests() - asked)
                    .as("nothing is asked, but a use may have been told of")
                    .isLessThanOrEqualTo(2);
            try (BlockTable table = cache.acquire(chain)) {
                assertThat(store.stats().openTables()).as("held there").isEqualTo(1);
                assertThat(TestBlocks.verify(table, chain)).isEqualTo(10);
                assertThat(table.isValid()).isTrue();
                assertThat(table.segment(3).isReadOnly()).isTrue();
            }
            assertThat(cache.remoteStats().mapped()).isEqualTo(10);
            assertThat(cache.remoteStats().memoryUsed()).isZero();
            assertThat(endpoint.stats().bytesOut()).isZero();
        }
        assertThat(folder.files()).as("what the store leaves").isEmpty();
    }

    @Test
    void givenKeysOfAnotherNamespace_whenLookedUpInPlace_thenTheyAreNotHereAsTheyAreNotThere() throws IOException {
        Namespace other = TestBlocks.SPACE.toBuilder().adapter("another").build();
        try (TieredKvCache store = store().shareMemory(folder.path()).build();
                TcpEndpoint endpoint = serve(store, EndpointOptions.DEFAULTS);
                RemoteKvCache cache = client(address(endpoint)).connect()) {
            cache.register(TestBlocks.SPACE);
            cache.register(other);
            BlockChain chain = TestBlocks.stored(cache, 1, 2);
            List<BlockKey> keys = List.of(chain.key(0), chain.key(1));
            BlockChain own = BlockChain.ofKeys(TestBlocks.SPACE, keys);
            BlockChain another = BlockChain.ofKeys(other, keys);

            assertThat(cache.match(own)).isEqualTo(new Match(0, 2, 0));
            assertThat(cache.match(another)).isEqualTo(Match.NOTHING);
            assertThat(cache.getAll(another, 0, room(2))).isZero();
            assertThat(cache.getAll(own, 0, room(2))).isEqualTo(2);
            assertThat(store.match(another)).isEqualTo(Match.NOTHING);
        }
    }

    @Test
    void givenAnObjectOfSeveralSlots_whenViewed_thenItIsSeenInPlaceAndItsGoingIsNoticed() throws IOException {
        Namespace space = Namespace.objects("objects", "tenant");
        byte[] key = {1, 2, 3};
        int bytes = (2 << 20) + (64 << 10) + 5000;
        BlockContent content = new BlockContent(7);
        try (TieredKvCache store = store().shareMemory(folder.path()).build();
                TcpEndpoint endpoint = serve(store, EndpointOptions.DEFAULTS);
                RemoteKvCache cache = client(address(endpoint)).connect()) {
            cache.register(space);
            TestBlocks.putObject(cache, space, key, content.toHeapSegment(bytes));
            ObjectView kept;
            try (ObjectView view = Objects.requireNonNull(cache.getObject(space, key))) {
                assertThat(view.segments()).hasSizeGreaterThan(2).allMatch(MemorySegment::isReadOnly);
                assertThat(view.bytes()).isEqualTo(bytes);
                MemorySegment copy = MemorySegment.ofArray(new byte[bytes]);
                view.copyTo(0, bytes, copy);
                content.requireEqual(copy);
                view.copyTo((1 << 20) - 10, 20, copy);
                content.requireEqual((1 << 20) - 10, copy.asSlice(0, 20));
                assertThat(view.isValid()).isTrue();
                assertThat(cache.remoteStats().mapped()).isEqualTo(1);
                kept = Objects.requireNonNull(cache.getObject(space, key, Duration.ofMillis(1)));
                assertThat(cache.remoteStats().mapped())
                        .as("with a time-out too")
                        .isEqualTo(2);
            }
            assertThat(cache.dropObject(space, key)).isTrue();
            assertThat(kept.isValid()).as("still held").isTrue();
            kept.close();
            assertThat(cache.getObject(space, key)).isNull();
            assertThat(endpoint.stats().bytesOut()).isZero();
        }
    }

    @Test
    void givenBlocksOnDiskThere_whenAcquiredWithTime_thenTheyArriveInPlaceAndInOrder(@TempDir Path disk)
            throws IOException {
        try (TieredKvCache store = store().shareMemory(folder.path())
                        .admission(AdmissionKind.ALWAYS)
                        .disk(disk.resolve("disk"), 300 << 20)
                        .build();
                TcpEndpoint endpoint = serve(store, EndpointOptions.DEFAULTS);
                RemoteKvCache cache = client(address(endpoint)).checked(true).connect()) {
            cache.register(TestBlocks.SPACE);
            for (int seed = 1; seed <= 3; seed++) {
                TestBlocks.stored(cache, seed, 40);
                assertThat(cache.flush(TestBlocks.PATIENCE)).isTrue();
            }
            BlockChain chain = TestBlocks.chain(1, 50);
            Match match = cache.match(chain);
            assertThat(match.blocks()).isEqualTo(40);
            assertThat(match.diskBlocks()).isPositive();
            int resident = cache.getAll(chain, 0, room(40));
            // The store may evict ahead of need between one question and the next, and brings nothing back by itself.
            assertThat(resident)
                    .as("what is resident")
                    .isBetween(cache.match(chain).hostBlocks(), match.hostBlocks());
            try (BlockTable table = cache.acquire(chain, 10, TestBlocks.PATIENCE)) {
                assertThat(table.await(40, TestBlocks.PATIENCE)).isEqualTo(40);
                assertThat(TestBlocks.verify(table, chain)).isEqualTo(30);
                assertThat(table.isValid()).isTrue();
                assertThat(cache.remoteStats().mapped()).isEqualTo(30);
            }
            TestBlocks.await("all is back", () -> store.stats().openTables() == 0);
            assertThat(endpoint.stats().bytesOut()).isZero();
        }
    }

    @Test
    void givenBlocksReadWithoutAsking_whenRoomIsNeeded_thenThePolicyKnowsOfIt() throws IOException {
        try (TieredKvCache store = store().shareMemory(folder.path()).build();
                TcpEndpoint endpoint = serve(store, EndpointOptions.DEFAULTS);
                RemoteKvCache cache = client(address(endpoint)).connect()) {
            cache.register(TestBlocks.SPACE);
            for (int seed = 0; seed < 64; seed++) {
                TestBlocks.stored(cache, seed, 1);
            }
            assertThat(cache.getAll(TestBlocks.chain(0, 1), 0, room(1))).isEqualTo(1);
            TestBlocks.await("the server is told", () -> cache.remoteStats().reported() > 0);
            cache.stats(); // comes after it on the same connection
            for (int seed = 64; seed < 64 + 32; seed++) {
                TestBlocks.stored(cache, seed, 1);
            }
            assertThat(cache.match(TestBlocks.chain(0, 1)).blocks()).as("used").isEqualTo(1);
            assertThat(cache.match(TestBlocks.chain(1, 1)).blocks())
                    .as("not used")
                    .isZero();
        }
    }

    @Test
    void givenAStoreThatKeepsItsMemory_whenSharingIsRequired_thenRefusedAndOtherwiseNot() throws IOException {
        try (TieredKvCache store = store().build();
                TcpEndpoint endpoint = serve(store, EndpointOptions.DEFAULTS)) {
            assertThatThrownBy(() -> client("shm:" + address(endpoint)).connect())
                    .isInstanceOf(UncheckedIOException.class)
                    .hasMessageContaining("keeps its memory to itself");
            works(client(address(endpoint)), TestBlocks.SPACE, false);
        }
    }

    @Test
    void givenAClientThatWantsNone_whenConnected_thenBytesAreSent() throws IOException {
        try (TieredKvCache store = store().shareMemory(folder.path()).build();
                TcpEndpoint endpoint = serve(store, EndpointOptions.DEFAULTS)) {
            works(client(address(endpoint)).sharedMemory(SharedMemoryMode.OFF), TestBlocks.SPACE, false);
        }
    }

    @Test
    void givenFilesThatAreNotHere_whenConnected_thenBytesAreSent() throws IOException {
        try (TieredKvCache store = store().shareMemory(folder.path()).build();
                TcpEndpoint endpoint = serve(store, EndpointOptions.DEFAULTS)) {
            for (String name : folder.files()) {
                Files.move(folder.path().resolve(name), folder.path().resolve(name + ".elsewhere"));
            }
            works(client(address(endpoint)), TestBlocks.SPACE, false);
            assertThatThrownBy(() -> client("shm:" + address(endpoint)).connect())
                    .isInstanceOf(UncheckedIOException.class)
                    .hasMessageContaining("is not a regular file of this user in");
        }
    }

    private static void works(RemoteKvCacheBuilder builder, Namespace space, boolean shared) {
        try (RemoteKvCache cache = builder.connect()) {
            cache.register(space);
            BlockChain chain = BlockChain.of(space, new int[32]);
            assertThat(TestBlocks.put(cache, chain, 0) && TestBlocks.put(cache, chain, 1))
                    .isTrue();
            assertThat(TestBlocks.verified(cache, chain)).isEqualTo(2);
            assertThat(cache.getAll(chain, 0, room(2))).isEqualTo(2);
            assertThat(cache.match(chain).hostBlocks()).isEqualTo(2);
            assertThat(cache.remoteStats().sharedMemory()).isEqualTo(shared);
            assertThat(cache.remoteStats().mapped()).isEqualTo(shared ? 2 : 0);
        }
    }

    @Test
    void givenAClientThatIsKilledWithViews_whenItIsGone_thenNothingIsHeld() throws Exception {
        try (TieredKvCache store = store().shareMemory(folder.path()).build();
                TcpEndpoint endpoint = serve(store, EndpointOptions.DEFAULTS)) {
            store.register(TestBlocks.SPACE);
            TestBlocks.stored(store, 1, 10);
            try (TestProcess client = TestProcess.start("view", "shm:" + address(endpoint))) {
                assertThat(client.line()).isEqualTo("10 true");
                assertThat(store.stats().openTables()).isEqualTo(1);
                client.kill();
                TestBlocks.await("all is back", () -> store.stats().openTables() == 0);
            }
            assertThat(endpoint.stats().leases().expired()).isEqualTo(1);
            store.validate();
        }
    }

    @Test
    @Tag("slow")
    void givenAClientThatIsStoppedWithViews_whenItsBlocksHaveGone_thenItLearnsThatTheyAreNotValid() throws Exception {
        EndpointOptions options = EndpointOptions.DEFAULTS.withMaxLease(TestProcess.SHORT_LEASE);
        try (TieredKvCache store = store().shareMemory(folder.path()).build();
                TcpEndpoint endpoint = serve(store, options)) {
            store.register(TestBlocks.SPACE);
            TestBlocks.stored(store, 1, 10);
            try (TestProcess client = TestProcess.start("view", "shm:" + address(endpoint))) {
                assertThat(client.line()).isEqualTo("10 true");
                client.signal("STOP");
                TestBlocks.await("its lease ends", () -> store.stats().openTables() == 0);
                for (int seed = 2; seed < 2 + 64; seed++) {
                    TestBlocks.stored(store, seed, 1);
                }
                client.signal("CONT");
                client.resume();
                assertThat(client.line()).isEqualTo("right false valid false");
                client.resume();
            }
            store.validate();
        }
    }

    @Test
    @Tag("slow")
    void givenAServerThatIsKilled_whenViewsAreHeld_thenTheyStayRightAndTheNextServerIsFound() throws Exception {
        int port;
        try (TestProcess first = TestProcess.start("serve", "0", folder.path().toString())) {
            port = Integer.parseInt(first.line());
            try (RemoteKvCache cache = client("shm:127.0.0.1:" + port).connect()) {
                cache.register(TestBlocks.SPACE);
                BlockChain chain = TestBlocks.stored(cache, 1, 20);
                BlockTable held = cache.acquire(chain);
                first.kill();
                assertThat(TestBlocks.verify(held, chain))
                        .as("no signal, no other byte")
                        .isEqualTo(20);
                assertThat(held.isValid()).isTrue();
                TestBlocks.await("it is noticed", () -> !cache.remoteStats().connected());
                assertThat(cache.match(chain)).isEqualTo(Match.NOTHING);
                assertThat(cache.getAll(chain, 0, room(20))).isZero();
                assertThat(TestBlocks.verified(cache, chain)).isZero();
                try (TestProcess second = TestProcess.start(
                        "serve", Integer.toString(port), folder.path().toString())) {
                    assertThat(second.line()).isEqualTo(Integer.toString(port));
                    assertThat(folder.files()).as("those of the first are gone").hasSize(3);
                    TestBlocks.await("it is found", () -> cache.remoteStats().sharedMemory());
                    assertThat(cache.match(chain)).isEqualTo(Match.NOTHING);
                    BlockChain other = TestBlocks.stored(cache, 2, 20);
                    assertThat(TestBlocks.verified(cache, other)).isEqualTo(20);
                    assertThat(TestBlocks.verify(held, chain)).isEqualTo(20);
                    held.close();
                    second.kill();
                }
            }
        }
    }
}
