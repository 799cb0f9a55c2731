package io.kvcache.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.core.BlockWriter;
import io.kvcache.core.KvCache;
import io.kvcache.core.ObjectView;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.SealOutcome;
import io.kvcache.core.check.BlockContent;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.Namespace;
import io.kvcache.server.config.AccessConfig;
import io.kvcache.server.config.ConfigReader;
import io.kvcache.server.config.HostResources;
import io.kvcache.server.config.ListenerConfig;
import io.kvcache.server.config.ListenerConfig.ListenerAuthConfig;
import io.kvcache.server.config.ServerConfig;
import io.kvcache.server.config.TenantConfig;
import io.kvcache.server.config.TenantConfig.KeyOwnershipConfig;
import io.kvcache.server.config.TenantConfig.ValueKind;
import io.kvcache.server.config.TransportConfig;
import io.kvcache.server.config.TransportConfig.AeronConfig;
import io.kvcache.transport.client.RemoteKvCache;
import io.kvcache.transport.client.RemoteKvCacheBuilder;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.JsonNode;

/// A real client of the endpoint of a real server, and some that try to break in.
@Timeout(300)
@Tag("slow")
final class RemoteEndpointTest {

    static final String BLUE = "the secret of tenant blue";
    private static final String GREEN = "the secret of tenant green";

    @TempDir
    private Path folder;

    static AccessConfig nobodyInParticular() {
        return TestServer.access(ListenerConfig.onLoopback(0));
    }

    private Path file(String name, String... lines) throws IOException {
        return secrets(folder.resolve(name), lines);
    }

    /// A file for its owner alone.
    static Path secrets(Path file, String... lines) throws IOException {
        Files.write(file, List.of(lines));
        return Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rw-------"));
    }

    private static TenantConfig tenant(String name, long quotaBytes, @Nullable Path secrets) {
        return new TenantConfig(
                name,
                name,
                name,
                null,
                null,
                quotaBytes,
                1,
                secrets == null ? null : secrets.toString(),
                KeyOwnershipConfig.NONE,
                ValueKind.MUTABLE,
                false);
    }

    static AccessConfig tenants(TenantConfig... tenants) {
        return new AccessConfig(List.of(ListenerConfig.onLoopback(0)), List.of(tenants));
    }

    private static TransportConfig guarded(Path secrets) {
        return new TransportConfig(
                "127.0.0.1:0", secrets.toString(), false, 64, Duration.ofSeconds(60), "off", AeronConfig.disabled());
    }

    private static RemoteKvCacheBuilder client(TestServer server) {
        int port = Objects.requireNonNull(server.server().remoteAddress()).getPort();
        return RemoteTestBlocks.clientBuilder("127.0.0.1:" + port);
    }

    @Test
    @EnabledOnOs(OS.LINUX)
    void givenAServerThatSharesItsMemory_whenAClientOnThisHostReads_thenItReadsInPlace() throws Exception {
        TestRequirements.assumeSharedMemory(256L << 20);
        String name = "kvcache-test-" + UUID.randomUUID();
        Path files = Path.of("/dev/shm", name);
        TransportConfig usual = TestServer.listeningOn("127.0.0.1:0");
        TransportConfig sharing = new TransportConfig(
                usual.listen(), null, false, usual.connections(), usual.lease(), name, usual.aeron());
        try (TestServer server = TestServer.start(nobodyInParticular(), sharing);
                RemoteKvCache cache = client(server).connect()) {
            cache.register(RemoteTestBlocks.SPACE);
            BlockChain chain = RemoteTestBlocks.chain(RemoteTestBlocks.SPACE, 5);
            RemoteTestBlocks.put(cache, chain);
            assertThat(RemoteTestBlocks.verifiedBlocks(cache, chain)).isEqualTo(5);
            assertThat(cache.remoteStats().mapped()).isEqualTo(5);
            assertThat(cache.remoteStats().staged()).isEqualTo(5);
            try (Stream<Path> all = Files.list(files)) {
                assertThat(all).as("lock, slots, records, staging").hasSize(4);
            }
        }
        assertThat(files).doesNotExist();
    }

    @Test
    @EnabledOnOs(OS.LINUX)
    void givenTooLittleMemoryForAServerThatMustShareIt_whenStarted_thenItIsRefusedWithBothSizes() throws Exception {
        String name = "kvcache-full-" + UUID.randomUUID();
        Path files = Path.of("/dev/shm", name);
        ServerConfig config = new ConfigReader(new HostResources(1L << 60, 2), Map.of())
                .read(
                        new ConfigReader.Source(
                                "f",
                                "memory: {host_bytes: 2TiB}\ntransport: {listen: '127.0.0.1:0', shared_memory: " + name
                                        + "}\nlisten: {port: 0}"),
                        Map.of());
        assertThatThrownBy(() -> CacheServer.start(config).close())
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("Cannot reserve 2.0 TiB")
                .hasMessageMatching("(?s).* has only [0-9.]+ .iB .*left.*");
        assertThat(files).doesNotExist();
    }

    @Test
    void givenAServer_whenAnotherJvmsClientStoresBlocks_thenItFindsThemAndThePagesTellOfIt() throws Exception {
        try (TestServer server = TestServer.start(nobodyInParticular(), TestServer.listeningOn("127.0.0.1:0"));
                RemoteKvCache cache = client(server).connect();
                HttpTestClient httpTestClient = new HttpTestClient(server.port())) {
            cache.register(RemoteTestBlocks.SPACE);
            BlockChain chain = RemoteTestBlocks.chain(RemoteTestBlocks.SPACE, 3);
            RemoteTestBlocks.put(cache, chain);
            assertThat(RemoteTestBlocks.verifiedBlocks(cache, chain)).isEqualTo(3);
            assertThat(RemoteTestBlocks.verifiedBlocks(server.server().cache(), chain))
                    .isEqualTo(3);

            JsonNode transport =
                    HttpTestClient.json(httpTestClient.get("/v1/stats")).get("transport");
            long bytes = 3 * RemoteTestBlocks.SPACE.blockBytes();
            assertThat(transport.get("bytesIn").longValue()).isEqualTo(bytes);
            assertThat(transport.get("bytesOut").longValue()).isEqualTo(bytes);
            assertThat(transport.get("sessions").intValue()).isEqualTo(1);
            assertThat(new String(httpTestClient.get("/metrics").body(), java.nio.charset.StandardCharsets.UTF_8))
                    .contains("kv_endpoint_received_bytes_total " + (double) bytes)
                    .contains("kv_endpoint_begun_total{kind=\"reservation\"} 3.0")
                    .contains("kv_endpoint_sessions 1.0")
                    .contains("kv_endpoint_closed_total{reason=\"unauthorized\"} 0.0");
        }
    }

    @Test
    void givenNoEndpoint_whenAskedForThePages_thenThereIsNoneAndNothingIsToldOfIt() throws Exception {
        try (TestServer server = TestServer.start(nobodyInParticular());
                HttpTestClient httpTestClient = new HttpTestClient(server.port())) {
            assertThat(server.server().remoteAddress()).isNull();
            assertThat(HttpTestClient.json(httpTestClient.get("/v1/stats"))
                            .get("transport")
                            .isNull())
                    .isTrue();
            assertThat(new String(httpTestClient.get("/metrics").body(), java.nio.charset.StandardCharsets.UTF_8))
                    .doesNotContain("kv_endpoint");
        }
    }

    @Test
    void givenASecret_whenAStrangerConnects_thenHeIsRefusedAndCounted() throws Exception {
        try (TestServer server = TestServer.start(nobodyInParticular(), guarded(file("secrets", BLUE, "", GREEN)));
                HttpTestClient httpTestClient = new HttpTestClient(server.port())) {
            RemoteTestBlocks.assertRefused(client(server));
            RemoteTestBlocks.assertRefused(client(server).secret("another secret of some length"));
            RemoteTestBlocks.assertRefused(client(server).secret(BLUE + "\n"));
            assertThat(new String(httpTestClient.get("/metrics").body(), java.nio.charset.StandardCharsets.UTF_8))
                    .contains("kv_endpoint_handshakes_refused_total{reason=\"wrong\"} 3.0")
                    .contains("kv_endpoint_handshakes_refused_total{reason=\"unseen\"} 0.0");
            for (String secret : List.of(BLUE, GREEN)) {
                try (RemoteKvCache cache = client(server).secret(secret).connect()) {
                    cache.register(RemoteTestBlocks.SPACE);
                    assertThat(cache.match(RemoteTestBlocks.chain(RemoteTestBlocks.SPACE, 1))
                                    .blocks())
                            .isZero();
                }
            }
        }
    }

    @Test
    void givenTenants_whenOneTriesToBeAnother_thenHeIsRefusedAndSeesNothing() throws Exception {
        try (TestServer server = TestServer.start(
                        tenants(
                                tenant("blue", 0, file("blue", BLUE)),
                                tenant("green", 0, file("green", GREEN)),
                                TenantConfig.defaultTenant()),
                        TestServer.listeningOn("127.0.0.1:0"));
                RemoteKvCache blue = client(server).tenant("blue").secret(BLUE).connect();
                RemoteKvCache green =
                        client(server).tenant("green").secret(GREEN).connect()) {
            RemoteTestBlocks.assertRefused(client(server).tenant("green").secret(BLUE));
            RemoteTestBlocks.assertRefused(client(server).tenant("default").secret(BLUE));
            RemoteTestBlocks.assertRefused(client(server).tenant("").secret(BLUE));
            RemoteTestBlocks.assertRefused(client(server).tenant("blue"));

            Namespace ofBlue = RemoteTestBlocks.SPACE.toBuilder().tenant("blue").build();
            blue.register(ofBlue);
            RemoteTestBlocks.put(blue, RemoteTestBlocks.chain(ofBlue, 2));
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> green.register(ofBlue))
                    .withMessageContaining("allowed: \"green\"");
            assertThatIllegalArgumentException().isThrownBy(() -> green.register(RemoteTestBlocks.SPACE));
            Namespace ofGreen =
                    RemoteTestBlocks.SPACE.toBuilder().tenant("green").build();
            green.register(ofGreen);
            assertThat(RemoteTestBlocks.verifiedBlocks(green, RemoteTestBlocks.chain(ofGreen, 2)))
                    .isZero();
            assertThat(RemoteTestBlocks.verifiedBlocks(blue, RemoteTestBlocks.chain(ofBlue, 2)))
                    .isEqualTo(2);
            assertThatThrownBy(() -> green.events().since(0, 10)).isInstanceOf(UncheckedIOException.class);
        }
    }

    @Test
    void givenTheServersOwnValues_whenAClientAsksForThem_thenForbidden() throws Exception {
        try (TestServer server = TestServer.start(nobodyInParticular(), TestServer.listeningOn("127.0.0.1:0"));
                RemoteKvCache cache = client(server).connect()) {
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> cache.register(Namespace.objects("objects", "default")))
                    .withMessageContaining("where the server keeps its own values");
            cache.register(Namespace.objects("mine", "default"));
        }
    }

    @Test
    void givenTenantsAndNoSecretOfTheirs_whenAClientNamesOne_thenItIsTheDefaultOneOnly() throws Exception {
        try (TestServer server = TestServer.start(
                        tenants(tenant("blue", 0, null), tenant("small", 32 << 20, null), TenantConfig.defaultTenant()),
                        TestServer.listeningOn("127.0.0.1:0"));
                RemoteKvCache cache = client(server).tenant("blue").connect()) {
            for (String other : List.of("blue", "small")) {
                assertThatIllegalArgumentException()
                        .isThrownBy(() -> cache.register(
                                RemoteTestBlocks.SPACE.toBuilder().tenant(other).build()))
                        .withMessageContaining("allowed: \"default\"");
            }
            cache.register(RemoteTestBlocks.SPACE.toBuilder().tenant("default").build());
            cache.register(RemoteTestBlocks.SPACE);
        }
    }

    @Test
    void givenAClientThatNamesNoTenant_whenItConnects_thenItIsTheDefaultOneWithItsSecretAndQuota() throws Exception {
        TransportConfig transport = TestServer.listeningOn("127.0.0.1:0");
        TenantConfig blue = tenant("blue", 0, file("blue", BLUE));
        try (TestServer server =
                        TestServer.start(tenants(blue, tenant("default", 0, file("green", GREEN))), transport);
                RemoteKvCache unnamed = client(server).secret(GREEN).connect();
                RemoteKvCache other = client(server).tenant("blue").secret(BLUE).connect()) {
            RemoteTestBlocks.assertRefused(client(server).secret(BLUE));
            unnamed.register(RemoteTestBlocks.SPACE);
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> unnamed.register(
                            RemoteTestBlocks.SPACE.toBuilder().tenant("blue").build()))
                    .withMessageContaining("allowed: \"default\"");
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> other.register(RemoteTestBlocks.SPACE))
                    .withMessageContaining("allowed: \"blue\"");
        }
        try (TestServer server =
                        TestServer.start(tenants(blue, tenant("default", 32 << 20, file("green", GREEN))), transport);
                RemoteKvCache unnamed = client(server).secret(GREEN).connect()) {
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> unnamed.register(RemoteTestBlocks.SPACE))
                    .withMessageContaining("tenant default has a quota");
        }
    }

    @Test
    void givenATenantWithAQuota_whenItRegisters_thenItIsSaidWhyNot() throws Exception {
        try (TestServer server = TestServer.start(
                        tenants(tenant("small", 32 << 20, file("small", BLUE)), TenantConfig.defaultTenant()),
                        TestServer.listeningOn("127.0.0.1:0"));
                RemoteKvCache cache =
                        client(server).tenant("small").secret(BLUE).connect()) {
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> cache.register(
                            RemoteTestBlocks.SPACE.toBuilder().tenant("small").build()))
                    .withMessageContaining("tenant small has a quota")
                    .withMessageContaining("allowed: tenants without one");
        }
    }

    @Test
    void givenAFileOfSecretsThatChanges_whenConnected_thenTheNewOneIsGoodAndWhoIsInStaysIn() throws Exception {
        Path secrets = file("secrets", BLUE);
        try (TestServer server = TestServer.start(nobodyInParticular(), guarded(secrets));
                RemoteKvCache before = client(server).secret(BLUE).connect()) {
            before.register(RemoteTestBlocks.SPACE);
            Files.writeString(secrets, "short");
            TimeUnit.MILLISECONDS.sleep(1500); // nothing tells when an unusable file was looked at
            client(server).secret(BLUE).connect().close();

            Files.writeString(secrets, GREEN);

            long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(120);
            boolean in = false;
            while (!in && System.nanoTime() < end) {
                try {
                    client(server).secret(GREEN).connect().close();
                    in = true;
                } catch (UncheckedIOException notYet) {
                    TimeUnit.MILLISECONDS.sleep(50);
                }
            }
            assertThat(in).isTrue();
            RemoteTestBlocks.assertRefused(client(server).secret(BLUE));
            RemoteTestBlocks.put(before, RemoteTestBlocks.chain(RemoteTestBlocks.SPACE, 1));
        }
    }

    @Test
    void givenSecretsThatCannotBeUsed_whenStarted_thenItIsSaidWhichAndNeverWhat() throws Exception {
        Path missing = folder.resolve("missing");
        assertThatThrownBy(() -> TestServer.start(nobodyInParticular(), guarded(missing)))
                .isInstanceOf(UncheckedIOException.class)
                .hasMessageContaining("transport.secret_file " + missing + " cannot be read");
        Path shorter = file("short", "hunter2");
        assertThatThrownBy(() -> TestServer.start(nobodyInParticular(), guarded(shorter)))
                .hasMessageContaining("the secret has 7 bytes; allowed: 16 and up")
                .hasMessageNotContaining("hunter2");
        Path hash = file("hash", "pbkdf2-sha256$600000$AAAA$BBBB");
        assertThatThrownBy(() -> TestServer.start(nobodyInParticular(), guarded(hash)))
                .hasMessageContaining("a proof takes the secret itself");
        Path open = Files.setPosixFilePermissions(file("open", BLUE), PosixFilePermissions.fromString("rw-r--r--"));
        assertThatThrownBy(() -> TestServer.start(nobodyInParticular(), guarded(open)))
                .hasMessageContaining("transport.secret_file " + open + " has mode rw-r--r--; it takes rw-------")
                .hasMessageNotContaining(BLUE);
    }

    @Test
    void givenAnAddressThatIsTaken_whenStarted_thenItIsSaidAndNothingIsLeft() throws Exception {
        try (TestServer first = TestServer.start(nobodyInParticular(), TestServer.listeningOn("127.0.0.1:0"))) {
            int port = Objects.requireNonNull(first.server().remoteAddress()).getPort();
            assertThatThrownBy(
                            () -> TestServer.start(nobodyInParticular(), TestServer.listeningOn("127.0.0.1:" + port)))
                    .isInstanceOf(UncheckedIOException.class)
                    .hasMessageContaining("transport.listen is 127.0.0.1:" + port
                            + ": address already in use; stop what has that port, or set another one");
        }
    }

    @Test
    void givenAPutThatHasBegun_whenDrained_thenItIsStoredBeforeTheServerGoes() throws Exception {
        try (TestServer server = TestServer.start(nobodyInParticular(), TestServer.listeningOn("127.0.0.1:0"));
                RemoteKvCache cache = client(server).connect()) {
            cache.register(RemoteTestBlocks.SPACE);
            BlockChain chain = RemoteTestBlocks.chain(RemoteTestBlocks.SPACE, 1);
            CompletableFuture<Boolean> drained;
            try (BlockWriter writer = cache.put(chain, 0, 0, KvCache.NO_WAIT)) {
                assertThat(writer.outcome()).isEqualTo(PutOutcome.RESERVED);
                drained = CompletableFuture.supplyAsync(() -> server.server().drain(Duration.ofSeconds(60)));
                BlockContent.of(chain.key(0)).fill(writer.segment());
                TimeUnit.MILLISECONDS.sleep(300); // longer than it waits once nothing is under way
                assertThat(drained).isNotDone();
                assertThat(writer.seal()).isEqualTo(SealOutcome.SEALED);
            }
            assertThat(drained.get()).isTrue();
            assertThat(RemoteTestBlocks.verifiedBlocks(server.server().cache(), chain))
                    .isEqualTo(1);
            assertThat(cache.match(chain).blocks()).isZero();
        }
    }

    @Test
    void givenAPutThatNeverEnds_whenDrained_thenItIsCutOffInTimeAndItsRoomGivenBack() throws Exception {
        try (TestServer server = TestServer.start(nobodyInParticular(), TestServer.listeningOn("127.0.0.1:0"));
                RemoteKvCache cache = client(server).connect()) {
            cache.register(RemoteTestBlocks.SPACE);
            try (BlockWriter writer =
                    cache.put(RemoteTestBlocks.chain(RemoteTestBlocks.SPACE, 1), 0, 0, KvCache.NO_WAIT)) {
                assertThat(writer.outcome()).isEqualTo(PutOutcome.RESERVED);
                assertThat(server.server().drain(Duration.ofMillis(50))).isFalse();
                assertThat(server.server().cache().stats().puts().abandoned()).isEqualTo(1);
            }
        }
    }

    @Test
    void givenAListenerForOthers_whenThereIsNoSecret_thenTheConfigurationIsRefused() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> TestServer.start(
                        TestServer.access(new ListenerConfig(
                                "listen",
                                "listen",
                                "127.0.0.1",
                                0,
                                ListenerConfig.onLoopback(0).protocols(),
                                ListenerAuthConfig.UNRESTRICTED)),
                        TestServer.listeningOn("0.0.0.0:0")))
                .withMessageContaining("transport.listen is 0.0.0.0:0, which other machines can reach");
    }

    private static JsonNode json(TestServer server, String path) throws Exception {
        try (HttpTestClient http = new HttpTestClient(server.port())) {
            return HttpTestClient.json(http.get(path));
        }
    }

    @Test
    void givenClientsOfOtherJvms_whenTheyFindAndMiss_thenTheyAreInTheStatisticsOfAllProtocols() throws Exception {
        Namespace objects = Namespace.objects("o", "");
        byte[] here = {1};
        byte[] absent = {2};
        try (TestServer server = TestServer.start(nobodyInParticular(), TestServer.listeningOn("127.0.0.1:0"));
                RemoteKvCache cache = client(server).connect()) {
            cache.register(RemoteTestBlocks.SPACE);
            cache.register(objects);
            cache.acquire(RemoteTestBlocks.chain(RemoteTestBlocks.SPACE, 100)).close();
            assertThat(cache.storeObject(objects, here, MemorySegment.ofArray(new byte[7]), KvCache.NO_WAIT))
                    .isTrue();
            try (ObjectView view = cache.getObject(objects, here)) {
                assertThat(view).isNotNull();
            }
            assertThat(cache.getObject(objects, absent)).isNull();
            assertThat(cache.containsObject(objects, here))
                    .as("counts when it is read")
                    .isTrue();
            assertThat(cache.containsObject(objects, absent)).isFalse();

            JsonNode misses = json(server, "/v1/misses");
            assertThat(misses.at("/reasons/never_seen").intValue())
                    .as("a chain and two values")
                    .isEqualTo(3);
            assertThat(misses.get("recent").findValuesAsString("kind")).containsExactly("object", "object", "blocks");
            JsonNode own = json(server, "/v1/stats").at("/tenants/default");
            assertThat(own.at("/reads/hits").intValue()).isEqualTo(1);
            assertThat(own.at("/reads/missed/never_seen").intValue()).isEqualTo(2);
            assertThat(own.at("/traffic/sentBytes").intValue()).isEqualTo(7);
        }
    }

    @Test
    void givenAValueOfAnotherJvmThatWasDropped_whenAskedFor_thenTheMissSaysSo() throws Exception {
        Namespace objects = Namespace.objects("o", "");
        byte[] key = {1};
        try (TestServer server = TestServer.start(nobodyInParticular(), TestServer.listeningOn("127.0.0.1:0"));
                RemoteKvCache cache = client(server).connect()) {
            cache.register(objects);
            cache.storeObject(objects, key, MemorySegment.ofArray(new byte[7]), KvCache.NO_WAIT);
            assertThat(cache.dropObject(objects, key)).isTrue();
            JsonNode reasons = json(server, "/v1/misses").get("reasons");
            while (reasons.get("deleted").intValue() == 0) { // events are heard of within a moment
                assertThat(cache.getObject(objects, key)).isNull();
                reasons = json(server, "/v1/misses").get("reasons");
            }
        }
    }
}
