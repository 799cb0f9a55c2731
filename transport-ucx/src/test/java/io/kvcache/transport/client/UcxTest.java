package io.kvcache.transport.client;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.BlockTable;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.transport.endpoint.EndpointOptions;
import io.kvcache.transport.endpoint.TcpEndpoint;
import io.kvcache.transport.shm.ShmDirectory;
import io.kvcache.transport.wire.SharedMemoryCodec.FabricDescriptor;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.time.Duration;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledIf;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// What is UCX's own of a remote cache: whether blocks are read one-sided indeed, and what becomes of them where
/// there is no such way.
@Timeout(300)
@Tag("slow")
final class UcxTest {

    private static final String THERE = "io.kvcache.transport.ucx.UcxMemory#possible";
    private static final String MISSING = "libucx0 is not installed";

    private final ShmDirectory folder = ShmDirectory.make();
    private final TieredKvCache store = TieredKvCache.builder()
            .shareMemory(folder.path())
            .hostBytes(128 << 20)
            .prefaultInBackground(false)
            .failOnLeak(true)
            .closeWait(Duration.ofSeconds(10))
            .build();

    @AfterEach
    void nothingIsLeft() {
        assertThat(store.stats().openTables()).isZero();
        store.close();
        folder.close();
    }

    private static RemoteKvCache connect(String address) {
        RemoteKvCache cache = RemoteKvCache.builder(address)
                .requestTimeout(TestBlocks.PATIENCE)
                .connect();
        cache.register(TestBlocks.SPACE);
        return cache;
    }

    @ParameterizedTest
    @ValueSource(strings = {"tcp", "shm"})
    @EnabledIf(value = THERE, disabledReason = MISSING)
    @Tag("slow")
    void givenBlocks_whenRead_thenTheyComeOneSidedWithEveryByteRight(String transports) throws IOException {
        try (UcxServer served = UcxServer.open(store, transports);
                RemoteKvCache cache = connect(served.address())) {
            BlockChain chain = TestBlocks.stored(cache, 1, 20);
            for (int round = 1; round <= 10; round++) {
                assertThat(TestBlocks.verified(cache, chain)).isEqualTo(20);
                assertThat(cache.remoteStats().fetched()).isEqualTo(20L * round);
            }
            assertThat(cache.remoteStats().memoryUsed()).isZero();
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"tcp", "shm"})
    @EnabledIf(value = THERE, disabledReason = MISSING)
    @Tag("slow")
    void givenAClientThatIsKilled_whenOthersRead_thenTheServerGoesOn(String transports) throws Exception {
        try (UcxServer served = UcxServer.open(store, transports)) {
            store.register(TestBlocks.SPACE);
            BlockChain chain = TestBlocks.stored(store, 1, 10);
            try (TestProcess client = TestProcess.start("hold", served.address())) {
                assertThat(client.line()).isEqualTo("10 RESERVED");
                client.kill();
                TestBlocks.await("all is back", () -> store.stats().openTables() == 0);
            }
            try (RemoteKvCache cache = connect(served.address())) {
                assertThat(TestBlocks.verified(cache, chain)).isEqualTo(10);
                assertThat(cache.remoteStats().fetched()).isEqualTo(10);
            }
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"tcp", "shm"})
    @EnabledIf(value = THERE, disabledReason = MISSING)
    @Tag("slow")
    void givenAServerThatIsKilled_whenBlocksAreRead_thenAMissAndWhatHadArrivedStays(String transports)
            throws Exception {
        try (ShmDirectory own = ShmDirectory.make();
                TestProcess server = TestProcess.start(
                        UcxTestProcess.class, transports, own.path().toString());
                RemoteKvCache cache = connect(server.line())) {
            BlockChain chain = TestBlocks.stored(cache, 1, 10);
            BlockTable held = cache.acquire(chain);
            assertThat(cache.remoteStats().fetched()).isEqualTo(10);
            server.kill();
            TestBlocks.await("a miss", () -> TestBlocks.verified(cache, chain) == 0);
            assertThat(TestBlocks.verify(held, chain)).isEqualTo(10);
            held.close();
            assertThat(cache.remoteStats().memoryUsed()).isZero();
        }
    }

    @Test
    @EnabledIf(value = THERE, disabledReason = MISSING)
    void givenAChainThatIsNotStored_whenAcquired_thenTheMissIsNotAFailure() throws IOException {
        try (UcxServer served = UcxServer.open(store, "tcp");
                RemoteKvCache cache = connect(served.address())) {
            BlockChain chain = TestBlocks.stored(cache, 1, 10);
            assertThat(TestBlocks.verified(cache, chain)).isEqualTo(10);
            cache.drop(chain, 0);
            try (BlockTable table = cache.acquire(chain)) {
                assertThat(table.readyBlocks()).isZero();
            }
            assertThat(cache.remoteStats().failed()).isZero();
        }
    }

    @Test
    @EnabledIf(value = THERE, disabledReason = MISSING)
    void givenATableOfBlocksThatWereRead_whenTheyAreEvictedAfterwards_thenItsBytesStay() throws IOException {
        try (UcxServer served = UcxServer.open(store, "tcp");
                RemoteKvCache cache = connect(served.address())) {
            BlockChain chain = TestBlocks.stored(cache, 1, 10);
            try (BlockTable table = cache.acquire(chain)) {
                cache.drop(chain, 0);
                for (int seed = 2; seed < 40; seed++) {
                    TestBlocks.stored(store, seed, 5);
                }
                assertThat(TestBlocks.verify(table, chain)).isEqualTo(10);
            }
        }
    }

    /// As where the library is missing: there is one line in the log, and the blocks come.
    @Test
    void givenAServerWhoseMemoryIsOnNoFabric_whenBlocksAreRead_thenTheyComeByMessage() throws IOException {
        try (TcpEndpoint endpoint = open(EndpointOptions.DEFAULTS);
                RemoteKvCache cache =
                        connect("ucx:127.0.0.1:" + endpoint.address().getPort())) {
            BlockChain chain = TestBlocks.stored(cache, 1, 10);
            assertThat(TestBlocks.verified(cache, chain)).isEqualTo(10);
            assertThat(cache.remoteStats().fetched()).isZero();
        }
    }

    @Test
    void givenAPlaceThatNobodyServes_whenBlocksAreRead_thenTheyComeByMessage() throws IOException {
        FabricDescriptor nowhere = new FabricDescriptor(4096, 1 << 20, new byte[] {0, 1, 2}, new byte[] {3});
        try (TcpEndpoint endpoint = open(EndpointOptions.DEFAULTS.withFabric(nowhere));
                RemoteKvCache cache =
                        connect("ucx:127.0.0.1:" + endpoint.address().getPort() + "?tls=no_such_transport")) {
            BlockChain chain = TestBlocks.stored(cache, 1, 10);
            assertThat(TestBlocks.verified(cache, chain)).isEqualTo(10);
            assertThat(cache.remoteStats().fetched()).isZero();
        }
    }

    private TcpEndpoint open(EndpointOptions options) throws IOException {
        return TcpEndpoint.open(store, new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), options);
    }
}
