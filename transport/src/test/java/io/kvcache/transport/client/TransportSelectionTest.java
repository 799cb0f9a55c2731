package io.kvcache.transport.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.transport.aeron.AeronEndpoint;
import io.kvcache.transport.endpoint.EndpointAuthPolicy;
import io.kvcache.transport.endpoint.EndpointOptions;
import io.kvcache.transport.endpoint.TcpEndpoint;
import io.kvcache.transport.net.FaultyProxy;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Which way is taken to a server that may offer two, and what is said of it.
@Timeout(300)
final class TransportSelectionTest {

    private static final String UDP = "aeron:udp?endpoint=127.0.0.1:0";
    private static final String SECRET = "a secret of some length";

    private final TieredKvCache store = TieredKvCache.builder()
            .hostBytes(64 << 20)
            .prefaultInBackground(false)
            .failOnLeak(true)
            .closeWait(Duration.ofSeconds(10))
            .build();

    @AfterEach
    void close() {
        store.close();
    }

    private TcpEndpoint serve(EndpointOptions options) throws IOException {
        return TcpEndpoint.open(store, new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), options);
    }

    private static String auto(TcpEndpoint endpoint) {
        return "auto:127.0.0.1:" + endpoint.address().getPort();
    }

    private void verify(RemoteKvCache cache) {
        cache.register(TestBlocks.SPACE);
        BlockChain chain = TestBlocks.stored(cache, 1, 3);
        assertThat(TestBlocks.verified(cache, chain)).isEqualTo(3);
        assertThat(TestBlocks.verified(store, chain)).isEqualTo(3);
    }

    @Test
    void givenBothWays_whenConnected_thenTheOneThatWasFasterCarriesAndStatsSayWhy() throws IOException {
        EndpointOptions guarded = EndpointOptions.DEFAULTS.withAuth(EndpointAuthPolicy.secret(SECRET));
        try (AeronEndpoint aeron = AeronEndpoint.open(store, UDP, guarded);
                TcpEndpoint tcp = serve(guarded.withAeron(aeron.address()));
                RemoteKvCache cache = RemoteKvCache.builder(auto(tcp))
                        .secret(SECRET)
                        .requestTimeout(TestBlocks.PATIENCE)
                        .connect()) {
            assertThat(cache.server()).isEqualTo(auto(tcp));
            String way = cache.remoteStats().route();
            assertThat(way).matches("(TCP|aeron:udp\\S+): TCP \\d+ MB/s, Aeron \\d+ MB/s");
            verify(cache);
            boolean byTcp = way.startsWith("TCP");
            TestBlocks.await(
                    "what was only measured ends",
                    () -> tcp.stats().sessions() == (byTcp ? 1 : 0)
                            && aeron.stats().sessions() == (byTcp ? 0 : 1));
            assertThat(byTcp ? tcp.stats().bytesIn() : aeron.stats().bytesIn()).isEqualTo(3L * TestBlocks.BLOCK_BYTES);
        }
    }

    @Test
    @Tag("slow")
    void givenTcpThatIsSlow_whenConnected_thenAeronCarries() throws Exception {
        try (AeronEndpoint aeron = AeronEndpoint.open(store, UDP, EndpointOptions.DEFAULTS);
                TcpEndpoint tcp = serve(EndpointOptions.DEFAULTS.withAeron(aeron.address()));
                FaultyProxy proxy = new FaultyProxy(tcp.address().getPort())) {
            proxy.delay(TimeUnit.MILLISECONDS.toNanos(200));
            AtomicReference<RemoteKvCache> taken = new AtomicReference<>();
            // On a busy machine nothing may have come back over either in time.
            TestBlocks.await("Aeron is faster", () -> overAeron("auto:" + proxy.address(), taken));
            try (RemoteKvCache cache = taken.get()) {
                verify(cache);
                assertThat(cache.remoteStats().route()).contains("TCP 0 MB/s");
                assertThat(aeron.stats().bytesIn()).isEqualTo(3L * TestBlocks.BLOCK_BYTES);
            }
        }
    }

    private static boolean overAeron(String address, AtomicReference<RemoteKvCache> taken) {
        RemoteKvCache cache = RemoteKvCache.builder(address)
                .requestTimeout(TestBlocks.PATIENCE)
                .connect();
        if (cache.remoteStats().route().startsWith("aeron:udp")) {
            taken.set(cache);
            return true;
        }
        cache.close();
        return false;
    }

    @Test
    @Tag("slow")
    void givenAJvmWithoutTheFlagThatAeronNeeds_whenConnected_thenTcpCarries() throws Exception {
        store.register(TestBlocks.SPACE);
        TestBlocks.stored(store, 1, 10);
        try (AeronEndpoint aeron = AeronEndpoint.open(store, UDP, EndpointOptions.DEFAULTS);
                TcpEndpoint tcp = serve(EndpointOptions.DEFAULTS.withAeron(aeron.address()));
                TestProcess client = TestProcess.start(List.of(), "plain", auto(tcp), UDP)) {
            assertThat(client.line()).isEqualTo("verified 10");
            assertThat(aeron.stats().sessionsBegun()).isZero();
            assertThat(tcp.stats().sessionsBegun()).isEqualTo(2);
        }
    }

    @Test
    void givenAServerWithoutAnotherWay_whenConnected_thenTcpCarriesAndStatsSaySo() throws IOException {
        try (TcpEndpoint tcp = serve(EndpointOptions.DEFAULTS);
                RemoteKvCache cache = RemoteKvCache.connect(auto(tcp))) {
            assertThat(cache.remoteStats().route()).isEqualTo("TCP: the server offers no other way");
            verify(cache);
        }
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "aeron:udp?endpoint=127.0.0.1:9",
                "aeron:udp?endpoint=no/host:9",
                "aeron:udp?endpoint=no.such.host.invalid:9",
                "aeron:ipc?dir=/",
                "aeron:udp?endpoint=127.0.0.1:9|driver=/",
                "nonsense"
            })
    @Tag("slow")
    void givenAnOfferThatIsDeadOrWrong_whenConnected_thenTcpCarriesAndStatsSayWhy(String offered) throws IOException {
        try (TcpEndpoint tcp = serve(EndpointOptions.DEFAULTS.withAeron(offered));
                RemoteKvCache cache = RemoteKvCache.connect(auto(tcp))) {
            assertThat(cache.remoteStats().route()).startsWith("TCP: ").contains(offered);
            verify(cache);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"aeron:udp?endpoint=h\nWARNING all is lost:9", "\u001b[2J"})
    void givenAnOfferWithWhatBelongsInNoLog_whenConnected_thenStatsShowALineOfLittle(String begin) throws IOException {
        try (TcpEndpoint tcp = serve(EndpointOptions.DEFAULTS.withAeron(begin + "x".repeat(60_000)));
                RemoteKvCache cache = RemoteKvCache.connect(auto(tcp))) {
            assertThat(cache.remoteStats().route())
                    .startsWith("TCP: the server offers ")
                    .hasSizeLessThan(500)
                    .matches("\\P{Cntrl}+");
        }
    }

    @Test
    void givenAWayThatWasTaken_whenTheConnectionBreaks_thenItIsTakenAgain() throws IOException {
        try (TcpEndpoint tcp = serve(EndpointOptions.DEFAULTS);
                FaultyProxy proxy = new FaultyProxy(tcp.address().getPort());
                RemoteKvCache cache = RemoteKvCache.connect("auto:" + proxy.address())) {
            verify(cache);
            proxy.cut();
            TestBlocks.await("another session", () -> cache.remoteStats().sessions() == 2);
            TestBlocks.await("it serves", () -> TestBlocks.verified(cache, TestBlocks.chain(1, 3)) == 3);
            assertThat(tcp.stats().sessionsBegun())
                    .as("one to measure, and two that were used")
                    .isEqualTo(3);
        }
    }

    @Test
    void givenNobodyOrAWrongAddress_whenConnected_thenItSaysSo() {
        assertThatThrownBy(() -> RemoteKvCache.connect("auto:127.0.0.1:1"))
                .isInstanceOf(UncheckedIOException.class)
                .hasMessageContaining("cannot reach auto:127.0.0.1:1");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> RemoteKvCache.connect("auto:127.0.0.1"))
                .withMessageContaining("or auto:host:port, the port");
    }
}
