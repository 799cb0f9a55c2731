package io.kvcache.transport.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.core.BlockTable;
import io.kvcache.core.ObjectView;
import io.kvcache.core.check.BlockContent;
import io.kvcache.core.contract.Repetitions;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.Namespace;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.transport.endpoint.EndpointOptions;
import io.kvcache.transport.endpoint.TcpEndpoint;
import io.kvcache.transport.net.DisconnectReason;
import io.kvcache.transport.net.FaultyProxy;
import io.kvcache.transport.net.TestCertificate;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Supplier;
import javax.net.ssl.SSLEngine;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/// A cache over TLS: the same blocks, and clear words to whoever brings the wrong certificate or no TLS.
@Timeout(180)
@Tag("slow")
final class TlsKvCacheTest {

    @TempDir
    private static Path folder = Path.of("");

    /// Of each chain. By day there is but the compiler that starts fast, which makes encryption slow.
    private static final int READS = Repetitions.usualOrFull(2, 5);

    private static final AtomicReference<TestCertificate> GOOD = new AtomicReference<>();
    private static final AtomicReference<TestCertificate> STRANGER = new AtomicReference<>();

    private final TieredKvCache store = TieredKvCache.builder()
            .hostBytes(128 << 20)
            .prefaultInBackground(false)
            .failOnLeak(true)
            .closeWait(Duration.ofSeconds(10))
            .build();

    @BeforeAll
    static void makeCertificates() {
        GOOD.set(TestCertificate.make(folder, "good", "IP:127.0.0.1"));
        STRANGER.set(TestCertificate.make(folder, "stranger", "IP:127.0.0.1"));
    }

    @AfterEach
    void close() {
        store.close();
    }

    private static TestCertificate good() {
        return GOOD.get();
    }

    private static TestCertificate stranger() {
        return STRANGER.get();
    }

    private TcpEndpoint serve(Supplier<SSLEngine> tls) throws IOException {
        return TcpEndpoint.open(store, loopback(), EndpointOptions.DEFAULTS, tls);
    }

    private static InetSocketAddress loopback() {
        return new InetSocketAddress(InetAddress.getLoopbackAddress(), 0);
    }

    private static String address(TcpEndpoint endpoint) {
        return "127.0.0.1:" + endpoint.address().getPort();
    }

    private static RemoteKvCacheBuilder client(TcpEndpoint endpoint) {
        return RemoteKvCache.builder("tls:" + address(endpoint)).trust(good().pem());
    }

    @Test
    @Tag("slow")
    void givenTls_whenBlocksAndObjectsTravelBothWaysAtOnce_thenTheyAreTheirKeys() throws Exception {
        try (TcpEndpoint endpoint = serve(good().engines());
                RemoteKvCache cache =
                        client(endpoint).requestTimeout(TestBlocks.PATIENCE).connect();
                ExecutorService threads = Executors.newFixedThreadPool(4)) {
            cache.register(TestBlocks.SPACE);
            assertThat(cache.server()).isEqualTo("tls:" + address(endpoint));
            List<Future<Integer>> all = new ArrayList<>();
            for (int seed = 1; seed <= 4; seed++) {
                int own = seed;
                Callable<Integer> work = () -> {
                    BlockChain chain = TestBlocks.stored(cache, own, 10);
                    int verified = 0;
                    for (int i = 0; i < READS; i++) {
                        verified += TestBlocks.verified(cache, chain);
                    }
                    return verified;
                };
                all.add(threads.submit(work));
            }
            for (Future<Integer> each : all) {
                assertThat(each.get()).isEqualTo(10 * READS);
            }
            try (BlockTable arriving = cache.acquire(TestBlocks.chain(1, 10), 3, Duration.ofSeconds(60))) {
                assertThat(arriving.await(10, Duration.ofSeconds(60))).isEqualTo(10);
                assertThat(TestBlocks.verify(arriving, TestBlocks.chain(1, 10))).isEqualTo(7);
            }
            Namespace objects = Namespace.objects("o", "");
            cache.register(objects);
            byte[] key = "key".getBytes(StandardCharsets.UTF_8);
            BlockContent content = BlockContent.of(TestBlocks.chain(9, 1).key(0));
            for (int bytes : new int[] {1, 16_383, 16_384, 16_385, 3_000_001}) {
                MemorySegment value = content.toHeapSegment(bytes);
                TestBlocks.putObject(cache, objects, key, value);
                try (ObjectView view = cache.getObject(objects, key)) {
                    assertThat(view).isNotNull();
                    assertThat(view.bytes()).isEqualTo(bytes);
                    long at = 0;
                    for (MemorySegment piece : view.segments()) {
                        assertThat(piece.mismatch(value.asSlice(at, piece.byteSize())))
                                .isEqualTo(-1);
                        at += piece.byteSize();
                    }
                }
            }
            assertThat(cache.remoteStats().failed()).isZero();
            assertThat(cache.remoteStats().corrupt()).isZero();
        }
    }

    @Test
    void givenACertificateThatIsNotTrusted_whenConnected_thenItIsSaid() throws IOException {
        try (TcpEndpoint endpoint = serve(stranger().engines())) {
            assertThatThrownBy(() -> client(endpoint).connect().close())
                    .isInstanceOf(UncheckedIOException.class)
                    .hasMessageContaining("cannot reach tls:" + address(endpoint) + ": TLS handshake failed: ")
                    .hasMessageContaining("unable to find valid certification path");
            assertThatThrownBy(() ->
                            RemoteKvCache.connect("tls:" + address(endpoint)).close())
                    .as("nobody whom the JVM knows has signed it")
                    .isInstanceOf(UncheckedIOException.class)
                    .hasMessageContaining("TLS handshake failed: ");
            try (RemoteKvCache cache = RemoteKvCache.builder("tls:" + address(endpoint))
                    .trust(stranger().pem())
                    .connect()) {
                cache.register(TestBlocks.SPACE);
            }
        }
    }

    @Test
    @Tag("slow")
    void givenACertificateOfAnotherName_whenConnected_thenItIsSaidWhichWasWanted() throws IOException {
        TestCertificate other = TestCertificate.make(folder, "other", "DNS:other.example");
        try (TcpEndpoint endpoint = serve(other.engines())) {
            assertThatThrownBy(() -> RemoteKvCache.builder("tls:" + address(endpoint))
                            .trust(other.pem())
                            .connect()
                            .close())
                    .isInstanceOf(UncheckedIOException.class)
                    .hasMessageContaining("No subject alternative names matching IP address 127.0.0.1");
        }
    }

    @Test
    void givenAServerWithTls_whenAClientComesWithout_thenBothAreToldAndNothingIsServed() throws IOException {
        try (TcpEndpoint endpoint = serve(good().engines())) {
            assertThatThrownBy(() -> RemoteKvCache.connect(address(endpoint)).close())
                    .isInstanceOf(UncheckedIOException.class)
                    .hasMessageContaining(
                            address(endpoint) + " refuses: no TLS; allowed: TLS, which clients speak to tls:host:port");
            TestBlocks.await(
                    "counted", () -> endpoint.stats().closed().getOrDefault(DisconnectReason.MALFORMED, 0L) == 1);
            assertThat(endpoint.stats().sessionsBegun()).isZero();
            client(endpoint).connect().close();
        }
    }

    @Test
    void givenAServerWithoutTls_whenAClientInsistsOnIt_thenItIsRefusedAndNothingIsSentInTheClear() throws IOException {
        try (TcpEndpoint endpoint = TcpEndpoint.open(store, loopback(), EndpointOptions.DEFAULTS)) {
            assertThatThrownBy(() -> client(endpoint).connect().close())
                    .isInstanceOf(UncheckedIOException.class)
                    .hasMessageContaining("cannot reach tls:" + address(endpoint)
                            + ": the server does not use TLS; allowed: " + address(endpoint));
            assertThat(endpoint.stats().sessionsBegun()).isZero();
        }
    }

    @Test
    void givenNoise_whenSentToAServerWithTls_thenItIsClosedAndTheNextIsServed() throws Exception {
        EndpointOptions options = EndpointOptions.DEFAULTS.withHandshakeTimeout(Duration.ofSeconds(1));
        try (TcpEndpoint endpoint = TcpEndpoint.open(store, loopback(), options, good().engines());
                Socket silent = new Socket(
                        InetAddress.getLoopbackAddress(), endpoint.address().getPort());
                Socket noisy = new Socket(
                        InetAddress.getLoopbackAddress(), endpoint.address().getPort());
                Socket half = new Socket(
                        InetAddress.getLoopbackAddress(), endpoint.address().getPort())) {
            noisy.getOutputStream().write(new byte[100]);
            half.getOutputStream().write(new byte[] {22, 3, 1});
            for (Socket each : List.of(silent, noisy, half)) {
                byte[] said = readAll(each);
                assertThat(said.length).as("an alert at most").isLessThan(8);
            }
            TestBlocks.await("all are gone", () -> endpoint.stats().connections() == 0);
            TestBlocks.await("the next is served", () -> connects(endpoint)); // a slow machine may take several
        }
    }

    private static boolean connects(TcpEndpoint endpoint) {
        try {
            client(endpoint).connect().close();
            return true;
        } catch (UncheckedIOException late) {
            return false;
        }
    }

    /// Until the other side closes, or resets.
    private static byte[] readAll(Socket socket) {
        try {
            return socket.getInputStream().readAllBytes();
        } catch (IOException reset) {
            return new byte[0];
        }
    }

    @Test
    @Tag("slow")
    void givenBytesThatAreTurnedOnTheirWay_whenRead_thenNeverAWrongOneAndARecovery() throws Exception {
        try (TcpEndpoint endpoint = serve(good().engines());
                FaultyProxy proxy = new FaultyProxy(endpoint.address().getPort());
                RemoteKvCache cache = RemoteKvCache.builder("tls:" + proxy.address())
                        .trust(good().pem())
                        .requestTimeout(Duration.ofSeconds(5))
                        .connect()) {
            cache.register(TestBlocks.SPACE);
            BlockChain chain = TestBlocks.stored(cache, 1, 10);
            proxy.flip(3_000_000);
            assertThat(TestBlocks.verified(cache, chain)).isLessThan(10);
            proxy.flip(0);
            TestBlocks.await("whole again", () -> TestBlocks.verified(cache, chain) == 10);
            assertThat(cache.remoteStats().corrupt()).as("TLS saw it before").isZero();
            TestBlocks.await("all is back", () -> store.stats().openTables() == 0);
        }
    }

    @Test
    void givenACertificateThatChanges_whenConnectedBefore_thenThatGoesOnAndTheNextSeesTheNewOne() throws IOException {
        AtomicReference<Supplier<SSLEngine>> now = new AtomicReference<>(good().engines());
        try (TcpEndpoint endpoint = serve(() -> now.get().get());
                RemoteKvCache before = client(endpoint).connect()) {
            before.register(TestBlocks.SPACE);
            BlockChain chain = TestBlocks.stored(before, 1, 2); // its data connections are open from here on
            now.set(stranger().engines());
            assertThat(TestBlocks.verified(before, chain)).isEqualTo(2);
            assertThatThrownBy(() -> client(endpoint).connect().close()).isInstanceOf(UncheckedIOException.class);
            RemoteKvCache.builder("tls:" + address(endpoint))
                    .trust(stranger().pem())
                    .connect()
                    .close();
        }
    }

    @Test
    void givenWhatCannotBeTrusted_whenSet_thenItIsSaidWhy() throws IOException {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> RemoteKvCache.builder("127.0.0.1:1").trust(good().pem()))
                .withMessageContaining("the address has no TLS; allowed: with tls:host:port");
        Path empty = Files.writeString(folder.resolve("empty.pem"), "");
        Path wrong = Files.writeString(folder.resolve("wrong.pem"), "-----BEGIN CERTIFICATE-----\nno\n");
        for (Path file : List.of(empty, wrong, folder.resolve("missing.pem"))) {
            assertThatThrownBy(() -> RemoteKvCache.builder("tls:host:1").trust(file))
                    .isInstanceOf(UncheckedIOException.class)
                    .hasMessageContaining(file.toString());
        }
        assertThatIllegalArgumentException()
                .isThrownBy(() -> RemoteKvCache.builder("tls:host"))
                .withMessageContaining("allowed: host:port, tls:host:port");
    }
}
