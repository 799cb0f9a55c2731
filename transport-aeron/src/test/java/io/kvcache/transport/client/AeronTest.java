package io.kvcache.transport.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.core.BlockTable;
import io.kvcache.core.Match;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.transport.aeron.AeronEndpoint;
import io.kvcache.transport.endpoint.EndpointOptions;
import io.kvcache.transport.endpoint.TcpEndpoint;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// What is Aeron's own of a remote cache: its addresses, its driver's folder, UDP, peers that die, and the flag
/// of the JVM that others do without.
@Tag("slow")
final class AeronTest {

    private static final String UDP = "aeron:udp?endpoint=127.0.0.1:0";

    private static final String LOCK = "/lock";

    @TempDir
    private Path folder = Path.of("");

    private static TieredKvCache store() {
        return TieredKvCache.builder()
                .hostBytes(128 << 20)
                .prefaultInBackground(false)
                .failOnLeak(true)
                .closeWait(Duration.ofSeconds(10))
                .build();
    }

    private static AeronEndpoint serve(TieredKvCache store, String address) throws IOException {
        return AeronEndpoint.open(store, address, EndpointOptions.DEFAULTS);
    }

    private String ipc() {
        return "aeron:ipc?dir=" + folder.resolve("server");
    }

    private static RemoteKvCache connect(String address) {
        return connect(address, TestBlocks.PATIENCE);
    }

    private static RemoteKvCache connect(String address, Duration requestTimeout) {
        RemoteKvCache cache =
                RemoteKvCache.builder(address).requestTimeout(requestTimeout).connect();
        cache.register(TestBlocks.SPACE);
        return cache;
    }

    @ParameterizedTest
    @ValueSource(strings = {UDP, UDP + "|mtu=65504|term-length=4194304", UDP + "|idle=dedicated|mtu=1408"})
    @Tag("slow")
    void givenUdp_whenBlocksGoThereAndBack_thenEveryByteIsRight(String address) throws IOException {
        try (TieredKvCache store = store();
                AeronEndpoint endpoint = serve(store, address)) {
            try (RemoteKvCache cache = connect(endpoint.address())) {
                BlockChain chain = TestBlocks.stored(cache, 1, 20);
                assertThat(TestBlocks.verified(store, chain)).isEqualTo(20);
                assertThat(TestBlocks.verified(cache, chain)).isEqualTo(20);
            }
            TestBlocks.await("all connections end", () -> endpoint.stats().connections() == 0);
            assertThat(endpoint.stats().leases().open()).isZero();
        }
    }

    @Test
    @Tag("slow")
    void givenAStreamOfLongTermsThatTheServerDoesNotHave_whenItComes_thenNothingIsTakenForIt() throws IOException {
        try (TieredKvCache store = store();
                AeronEndpoint endpoint = serve(store, UDP)) {
            String longer = endpoint.address() + "|term-length=8388608";
            assertThatThrownBy(() -> connect(longer, Duration.ofSeconds(2)).close())
                    .isInstanceOf(RuntimeException.class);
            assertThat(endpoint.stats().closed().values()).as("none came").allMatch(count -> count == 0);
            try (RemoteKvCache cache = connect(endpoint.address())) {
                BlockChain chain = TestBlocks.stored(cache, 1, 2);
                assertThat(TestBlocks.verified(cache, chain)).isEqualTo(2);
            }
        }
    }

    @Test
    void givenSmallTerms_whenABlockIsLargerThanAll_thenItComesThroughInPieces() throws IOException {
        // An eighth of a term is the most that goes at a time.
        try (TieredKvCache store = store();
                AeronEndpoint endpoint = serve(store, ipc() + "|term-length=65536");
                RemoteKvCache cache = connect(ipc() + "|term-length=65536")) {
            assertThat(endpoint.address()).isEqualTo(ipc());
            BlockChain chain = TestBlocks.stored(cache, 1, 5);
            assertThat(TestBlocks.verified(cache, chain)).isEqualTo(5);
        }
    }

    @Test
    void givenAServer_whenClosed_thenItsDriverIsGoneAndTheFolderMayBeTakenAgain() throws IOException {
        for (int round = 0; round < 2; round++) {
            try (TieredKvCache store = store();
                    AeronEndpoint endpoint = serve(store, ipc())) {
                assertThat(folder.resolve("server/driver")).isDirectory();
                assertThatThrownBy(() -> serve(store, ipc()))
                        .isInstanceOf(IOException.class)
                        .hasMessageContaining("belongs to another server");
                try (RemoteKvCache cache = connect(endpoint.address())) {
                    assertThat(TestBlocks.put(cache, TestBlocks.chain(1, 1), 0)).isTrue();
                }
            }
            assertThat(folder.resolve("server/driver")).doesNotExist();
        }
    }

    @Test
    void givenAUdpClientThatWasKilled_whenTheNextComes_thenItsDriverIsRemoved() throws Exception {
        try (TieredKvCache store = store();
                AeronEndpoint endpoint = serve(store, UDP)) {
            store.register(TestBlocks.SPACE);
            TestBlocks.stored(store, 1, 10);
            Path left;
            try (TestProcess client = TestProcess.start("hold", endpoint.address())) {
                client.line();
                left = locked(client.pid());
                client.kill();
            }
            assertThat(left).isDirectory();
            connect(endpoint.address()).close();
            assertThat(left).doesNotExist();
        }
    }

    /// The folder without a name that a process's driver is in: others on this machine may have some too.
    private static Path locked(long pid) throws IOException {
        Set<Path> folders = new HashSet<>();
        try (Stream<Path> open = Files.list(Path.of("/proc/" + pid + "/fd"))) {
            for (Path each : open.toList()) {
                String file = linked(each);
                if (file.contains("/kvcache-aeron-of-") && file.endsWith(LOCK)) {
                    folders.add(Path.of(file.substring(0, file.length() - LOCK.length())));
                }
            }
        }
        assertThat(folders).hasSize(1);
        return folders.iterator().next();
    }

    private static String linked(Path descriptor) {
        try {
            return Files.readSymbolicLink(descriptor).toString();
        } catch (IOException closedMeanwhile) {
            return "";
        }
    }

    @Test
    void givenNoServer_whenConnecting_thenItSaysWhereThereIsNone() {
        assertThatThrownBy(() -> RemoteKvCache.connect(ipc()))
                .isInstanceOf(UncheckedIOException.class)
                .hasStackTraceContaining("no server has its driver in");
        assertThatThrownBy(() -> RemoteKvCache.builder("aeron:udp?endpoint=127.0.0.1:9")
                        .requestTimeout(Duration.ofMillis(500))
                        .connect())
                .isInstanceOf(UncheckedIOException.class)
                .hasStackTraceContaining("no server replied in time");
    }

    @Test
    void givenAFolderThatOthersMayEnter_whenServing_thenItIsRefused() throws IOException {
        Path open = Files.createDirectory(folder.resolve("open"));
        Files.setPosixFilePermissions(open, PosixFilePermissions.fromString("rwxr-xr-x"));
        try (TieredKvCache store = store()) {
            assertThatThrownBy(() -> serve(store, "aeron:ipc?dir=" + open))
                    .isInstanceOf(IOException.class)
                    .hasMessageContaining("0700");
        }
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "aeron:",
                "aeron:spy?endpoint=a:1",
                "aeron:udp",
                "aeron:udp?endpoint=a",
                "aeron:udp?endpoint=a:1,b",
                "aeron:ipc?endpoint=a:1",
                "aeron:ipc?term-length=100000",
                "aeron:ipc?mtu=1400",
                "aeron:ipc?idle=never",
                "aeron:ipc?dir=/a|dir=/b",
                "aeron:ipc?dir=/a|driver=/b",
                "aeron:ipc?alias=x"
            })
    void givenAnAddressThatIsNone_whenConnecting_thenItSaysWhatIsAllowed(String address) {
        assertThatThrownBy(() -> RemoteKvCache.builder(address))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("allowed:");
    }

    @Test
    void givenTooManyConnections_whenOneMoreComes_thenItIsRefusedAndTheOthersGoOn() throws IOException {
        EndpointOptions options = EndpointOptions.DEFAULTS.withMaxConnections(2);
        try (TieredKvCache store = store();
                AeronEndpoint endpoint = AeronEndpoint.open(store, ipc(), options);
                RemoteKvCache cache = connect(ipc())) {
            assertThat(TestBlocks.put(cache, TestBlocks.chain(1, 1), 0)).isTrue();
            assertThatThrownBy(() -> RemoteKvCache.builder(ipc())
                            .requestTimeout(Duration.ofSeconds(1))
                            .connect())
                    .isInstanceOf(UncheckedIOException.class);
            assertThat(TestBlocks.verified(cache, TestBlocks.chain(1, 1))).isEqualTo(1);
            TestBlocks.await("the third is gone", () -> endpoint.stats().connections() == 2);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"ipc", "udp"})
    @Tag("slow")
    void givenAClientThatHoldsATableAndAWriter_whenKilled_thenAllIsBack(String media) throws Exception {
        try (TieredKvCache store = store();
                AeronEndpoint endpoint = serve(store, media.equals("ipc") ? ipc() : UDP)) {
            store.register(TestBlocks.SPACE);
            TestBlocks.stored(store, 1, 10);
            try (TestProcess client = TestProcess.start("hold", endpoint.address())) {
                assertThat(client.line()).isEqualTo("10 RESERVED");
                assertThat(store.stats().openTables()).isEqualTo(2);
                client.kill();
                TestBlocks.await("all is back", () -> store.stats().openTables() == 0);
                TestBlocks.await("no connection stays", () -> endpoint.stats().connections() == 0);
            }
            assertThat(endpoint.stats().leases().open()).isZero();
            assertThat(endpoint.stats().reservations().open()).isZero();
            store.validate();
        }
    }

    @Test
    @Tag("nightly")
    void givenAServerThatIsKilled_whenAnotherTakesItsPlace_thenAMissAndThenItIsFound() throws Exception {
        try (TestProcess first = TestProcess.start(AeronTestProcess.class, "serve", ipc())) {
            first.line();
            // So that who writes to a driver that is gone does not wait long.
            try (RemoteKvCache cache = connect(ipc(), Duration.ofSeconds(10))) {
                BlockChain chain = TestBlocks.stored(cache, 1, 10);
                BlockTable held = cache.acquire(chain);
                first.kill();
                TestBlocks.await("a miss", () -> TestBlocks.verified(cache, chain) == 0);
                assertThat(cache.match(chain)).isEqualTo(Match.NOTHING);
                assertThat(TestBlocks.verify(held, chain))
                        .as("what had arrived stays")
                        .isEqualTo(10);
                held.close();
                try (TestProcess second = TestProcess.start(AeronTestProcess.class, "serve", ipc())) {
                    second.line();
                    TestBlocks.await("connected again", () -> TestBlocks.put(cache, chain, 0));
                    assertThat(TestBlocks.verified(cache, chain)).isEqualTo(1);
                }
                assertThat(cache.remoteStats().open()).isZero();
                assertThat(cache.remoteStats().memoryUsed()).isZero();
            }
        }
    }

    @Test
    @Tag("slow")
    void givenAJvmWithoutTheFlag_whenAnAddressIsNotAerons_thenItWorksAndAeronStaysUnloaded() throws Exception {
        Path loaded = folder.resolve("loaded");
        try (TieredKvCache store = store();
                TcpEndpoint endpoint = TcpEndpoint.open(
                        store, new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), EndpointOptions.DEFAULTS)) {
            store.register(TestBlocks.SPACE);
            TestBlocks.stored(store, 1, 10);
            String address = "127.0.0.1:" + endpoint.address().getPort();
            try (TestProcess client = TestProcess.start(
                    AeronTestProcess.class, List.of("-Xlog:class+load:file=" + loaded), "plain", address, ipc())) {
                assertThat(client.line()).isEqualTo("verified 10");
                assertThat(Files.readString(loaded))
                        .contains("io.kvcache.transport.net.TcpConnector")
                        .doesNotContain("io.aeron.", "org.agrona.");
                client.resume();
                String flag = "--add-exports java.base/jdk.internal.misc=ALL-UNNAMED";
                assertThat(client.line()).startsWith("connect: ").contains(flag);
                assertThat(client.line()).startsWith("open: ").contains(flag);
                assertThat(client.line()).isEqualTo("verified 10");
            }
        }
    }
}
