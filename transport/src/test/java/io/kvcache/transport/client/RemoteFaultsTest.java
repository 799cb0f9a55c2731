package io.kvcache.transport.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.KvCache;
import io.kvcache.core.Match;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.SealOutcome;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.tiers.TieredKvCacheBuilder;
import io.kvcache.transport.endpoint.EndpointAuthentication;
import io.kvcache.transport.endpoint.EndpointOptions;
import io.kvcache.transport.endpoint.TcpEndpoint;
import io.kvcache.transport.net.FaultyProxy;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// What becomes of a remote cache when the other side dies, stops, lies or is slow: a shorter prefix,
/// never a wrong byte, and nothing that stays behind.
final class RemoteFaultsTest {

    @TempDir
    private Path folder = Path.of("");

    private static TieredKvCacheBuilder store() {
        return TieredKvCache.builder()
                .hostBytes(128 << 20)
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

    @Test
    void givenAClientThatHoldsATableAndAWriter_whenKilled_thenAllIsBack() throws Exception {
        try (TieredKvCache store = store().build();
                TcpEndpoint endpoint = serve(store, EndpointOptions.DEFAULTS)) {
            store.register(TestBlocks.SPACE);
            TestBlocks.stored(store, 1, 10);
            try (TestProcess client = TestProcess.start("hold", address(endpoint))) {
                assertThat(client.line()).isEqualTo("10 RESERVED");
                assertThat(store.stats().openTables()).isEqualTo(2);
                client.kill();
                TestBlocks.await("all is back", () -> store.stats().openTables() == 0);
            }
            assertThat(endpoint.stats().leases().expired()).isEqualTo(1);
            assertThat(endpoint.stats().reservations().expired()).isEqualTo(1);
            assertThat(store.stats().puts().abandoned()).isEqualTo(1);
            store.validate();
        }
    }

    @Test
    @Tag("slow")
    void givenAClientThatIsStopped_whenItsTimeIsOver_thenItHoldsNothingAndRecovers() throws Exception {
        EndpointOptions options = EndpointOptions.DEFAULTS.withMaxLease(TestProcess.SHORT_LEASE);
        try (TieredKvCache store = store().build();
                TcpEndpoint endpoint = serve(store, options)) {
            store.register(TestBlocks.SPACE);
            TestBlocks.stored(store, 1, 10);
            try (TestProcess client = TestProcess.start("hold", address(endpoint))) {
                assertThat(client.line()).isEqualTo("10 RESERVED");
                client.signal("STOP");
                TestBlocks.await("all is back", () -> store.stats().openTables() == 0);
                client.signal("CONT");
                client.resume();
                assertThat(client.line()).as("what had arrived stays").isEqualTo("verified 10");
                assertThat(client.line()).as("the room is gone").isEqualTo("sealed DROPPED");
                client.resume();
                assertThat(client.line()).isEqualTo("again 10");
            }
            assertThat(endpoint.stats().sessionsExpired()).isPositive();
            TestBlocks.await("all is back", () -> store.stats().openTables() == 0);
            store.validate();
        }
    }

    @Test
    @Tag("slow")
    void givenAServerThatIsKilledInTheMiddle_whenAnotherTakesItsPlace_thenTheClientFindsIt() throws Exception {
        int port;
        try (TestProcess first = TestProcess.start("serve", "0")) {
            port = Integer.parseInt(first.line());
            try (RemoteKvCache cache = RemoteKvCache.builder("127.0.0.1:" + port)
                    .requestTimeout(TestBlocks.PATIENCE)
                    .connect()) {
                cache.register(TestBlocks.SPACE);
                BlockChain chain = TestBlocks.stored(cache, 1, 30);
                BlockTable held = cache.acquire(chain);
                BlockWriter writer = cache.put(TestBlocks.chain(2, 1), 0, 0, KvCache.NO_WAIT);
                AtomicInteger reads = new AtomicInteger();
                Thread killer = Thread.ofPlatform().start(() -> {
                    TestBlocks.await("reads", () -> reads.get() >= 5);
                    kill(first);
                });
                while (killer.isAlive() || TestBlocks.verified(cache, chain) > 0) {
                    TestBlocks.verified(cache, chain);
                    reads.incrementAndGet();
                }
                assertThat(cache.match(chain)).isEqualTo(Match.NOTHING);
                assertThat(TestBlocks.verify(held, chain))
                        .as("what had arrived stays")
                        .isEqualTo(30);
                held.close();
                assertThat(writer.seal()).isEqualTo(SealOutcome.DROPPED);
                writer.close();
                try (BlockWriter refused = cache.put(TestBlocks.chain(3, 1), 0, 0, KvCache.NO_WAIT)) {
                    assertThat(refused.outcome()).isEqualTo(PutOutcome.NO_ROOM);
                }
                assertThatThrownBy(cache::stats).isInstanceOf(UncheckedIOException.class);
                assertThatThrownBy(() -> cache.drop(chain, 0)).isInstanceOf(UncheckedIOException.class);
                assertThat(cache.remoteStats().memoryUsed()).isZero();
                try (TestProcess second = TestProcess.start("serve", Integer.toString(port))) {
                    second.line();
                    TestBlocks.await("connected again", () -> TestBlocks.put(cache, chain, 0));
                    assertThat(TestBlocks.verified(cache, chain)).isEqualTo(1);
                    assertThat(cache.remoteStats().sessions()).isEqualTo(2);
                    TestBlocks.await("all is back", () -> cache.stats().openTables() == 0);
                }
                assertThat(cache.remoteStats().open()).isZero();
            }
        }
    }

    private static void kill(TestProcess testProcess) {
        try {
            testProcess.kill();
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
        }
    }

    @Test
    void givenBytesThatAreTurnedOnTheirWay_whenRead_thenNeverAWrongOne() throws Exception {
        try (TieredKvCache store = store().build();
                TcpEndpoint endpoint = serve(store, EndpointOptions.DEFAULTS);
                FaultyProxy proxy = new FaultyProxy(endpoint.address().getPort());
                RemoteKvCache cache = RemoteKvCache.builder(proxy.address())
                        .requestTimeout(Duration.ofSeconds(10))
                        .connect()) {
            cache.register(TestBlocks.SPACE);
            BlockChain chain = TestBlocks.stored(cache, 1, 20);
            proxy.flip(5_000_000);
            int shorter = 0;
            for (int i = 0; i < 20; i++) {
                shorter += TestBlocks.verified(cache, chain) < 20 ? 1 : 0;
            }
            assertThat(shorter).isPositive();
            assertThat(cache.remoteStats().corrupt()).isPositive();
            proxy.flip(0);
            TestBlocks.await("whole again", () -> TestBlocks.verified(cache, chain) == 20);
            assertThat(cache.remoteStats().memoryUsed()).isZero();
            TestBlocks.await("all is back", () -> store.stats().openTables() == 0);
        }
    }

    @Test
    @Tag("slow")
    void givenAServerThatDoesNotAnswer_whenAsked_thenAMissInTimeAndARecovery() throws Exception {
        try (TieredKvCache store = store().build();
                TcpEndpoint endpoint = serve(store, EndpointOptions.DEFAULTS);
                FaultyProxy proxy = new FaultyProxy(endpoint.address().getPort());
                RemoteKvCache cache = RemoteKvCache.builder(proxy.address())
                        .requestTimeout(Duration.ofSeconds(2))
                        .connect()) {
            cache.register(TestBlocks.SPACE);
            BlockChain chain = TestBlocks.stored(store, 1, 5);
            proxy.stall(true);
            assertThat(TestBlocks.verified(cache, chain)).isZero();
            assertThat(cache.match(chain)).isEqualTo(Match.NOTHING);
            assertThat(TestBlocks.put(cache, TestBlocks.chain(2, 1), 0)).isFalse();
            proxy.stall(false);
            TestBlocks.await("an answer again", () -> TestBlocks.verified(cache, chain) == 5);
            TestBlocks.await("all is back", () -> store.stats().openTables() == 0);
            assertThat(cache.remoteStats().memoryUsed()).isZero();
            assertThat(cache.remoteStats().failed()).isPositive();
        }
    }

    @Test
    void givenASecret_whenConnected_thenOnlyWithItAndOnlyToWhoKnowsIt() throws Exception {
        String secret = "a secret of some length";
        try (TieredKvCache store = store().build();
                TcpEndpoint guarded =
                        serve(store, EndpointOptions.DEFAULTS.withAuth(EndpointAuthentication.secret(secret)));
                TcpEndpoint open = serve(store, EndpointOptions.DEFAULTS)) {
            for (String wrong : new String[] {"another secret of it", secret + "s"}) {
                assertThatThrownBy(() -> RemoteKvCache.builder(address(guarded))
                                .secret(wrong)
                                .connect())
                        .isInstanceOf(UncheckedIOException.class)
                        .hasMessageContaining("the proof is wrong");
            }
            assertThatThrownBy(() -> RemoteKvCache.connect(address(guarded))).isInstanceOf(UncheckedIOException.class);
            assertThatThrownBy(() ->
                            RemoteKvCache.builder(address(open)).secret(secret).connect())
                    .isInstanceOf(UncheckedIOException.class)
                    .hasMessageContaining("does not know the secret");
            try (RemoteKvCache cache =
                    RemoteKvCache.builder(address(guarded)).secret(secret).connect()) {
                cache.register(TestBlocks.SPACE);
                assertThat(TestBlocks.verified(cache, TestBlocks.stored(cache, 1, 3)))
                        .isEqualTo(3);
            }
        }
    }

    @Test
    void givenNobodyThere_whenConnected_thenItSaysWhere() {
        assertThatThrownBy(() -> RemoteKvCache.connect("127.0.0.1:1"))
                .isInstanceOf(UncheckedIOException.class)
                .hasMessageContaining("127.0.0.1:1");
        for (String wrong : new String[] {"", "host", "host:", ":1", "host:0", "host:65536", "host:x"}) {
            assertThatThrownBy(() -> RemoteKvCache.connect(wrong))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("allowed: host:port");
        }
    }

    @Test
    void givenAPortOfAnotherProtocolAndOneThatIsSilent_whenConnected_thenEachIsToldApart() throws Exception {
        try (ServerSocket other = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
                ServerSocket silent = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            Thread.ofVirtual().start(() -> {
                try (Socket client = other.accept()) {
                    client.getOutputStream().write("-ERR unknown command\r\n".getBytes(StandardCharsets.US_ASCII));
                } catch (IOException ended) {
                    throw new UncheckedIOException(ended);
                }
            });
            assertThatThrownBy(() -> RemoteKvCache.connect("127.0.0.1:" + other.getLocalPort()))
                    .isInstanceOf(UncheckedIOException.class)
                    .hasMessageContaining("must be a port of transport.listen");
            assertThatThrownBy(() -> RemoteKvCache.builder("127.0.0.1:" + silent.getLocalPort())
                            .requestTimeout(Duration.ofMillis(300))
                            .connect())
                    .isInstanceOf(UncheckedIOException.class)
                    .hasMessageContaining("was silent for ")
                    .hasMessageNotContaining("transport.listen");
        }
    }

    @Test
    void givenLittleMemoryHere_whenMuchIsThere_thenAShorterPrefix() throws Exception {
        try (TieredKvCache store = store().build();
                TcpEndpoint endpoint = serve(store, EndpointOptions.DEFAULTS);
                RemoteKvCache cache = RemoteKvCache.builder(address(endpoint))
                        .memoryBytes(5 << 20)
                        .connect()) {
            cache.register(TestBlocks.SPACE);
            BlockChain chain = TestBlocks.stored(cache, 1, 12);
            try (BlockTable table = cache.acquire(chain)) {
                assertThat(TestBlocks.verify(table, chain)).isEqualTo(5);
                assertThat(TestBlocks.put(cache, TestBlocks.chain(2, 1), 0))
                        .as("no memory to write in")
                        .isFalse();
            }
            assertThat(TestBlocks.put(cache, TestBlocks.chain(2, 1), 0)).isTrue();
            assertThat(cache.remoteStats().outOfMemory()).isPositive();
        }
    }

    @Test
    @Tag("slow")
    void givenBlocksOnDiskThere_whenAcquiredWithTime_thenTheyArriveInOrder() throws Exception {
        try (TieredKvCache store = store().admission(AdmissionKind.ALWAYS)
                        .disk(folder.resolve("disk"), 600 << 20)
                        .build();
                TcpEndpoint endpoint = serve(store, EndpointOptions.DEFAULTS);
                RemoteKvCache cache =
                        RemoteKvCache.builder(address(endpoint)).checked(true).connect()) {
            cache.register(TestBlocks.SPACE);
            for (int seed = 1; seed <= 4; seed++) {
                TestBlocks.stored(cache, seed, 50);
                assertThat(cache.flush(TestBlocks.PATIENCE)).isTrue();
            }
            BlockChain chain = TestBlocks.chain(1, 60);
            assertThat(cache.match(chain).diskBlocks()).isPositive();
            assertThat(cache.match(chain).blocks()).isEqualTo(50);
            try (BlockTable table = cache.acquire(chain, 10, TestBlocks.PATIENCE)) {
                assertThat(table.endBlock()).isEqualTo(50);
                int first =
                        table.onReady(11, Runnable::run).toCompletableFuture().get(60, TimeUnit.SECONDS);
                assertThat(first).isGreaterThan(10);
                assertThat(table.await(60, TestBlocks.PATIENCE)).isEqualTo(50);
                assertThat(TestBlocks.verify(table, chain)).isEqualTo(40);
                assertThat(table.endBlock()).isEqualTo(50);
            }
            try (BlockTable cancelled = cache.acquire(TestBlocks.chain(2, 50), 0, TestBlocks.PATIENCE)) {
                assertThat(cancelled.blocks()).isPositive();
            }
            TestBlocks.await("all is back", () -> store.stats().openTables() == 0);
            assertThat(cache.remoteStats().memoryUsed()).isZero();
        }
    }
}
