package io.kvcache.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.kvcache.core.check.BlockContent;
import io.kvcache.core.contract.Pause;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.server.config.AccessConfig;
import io.kvcache.server.config.DiskTierConfig;
import io.kvcache.server.config.EventsConfig;
import io.kvcache.server.config.ListenerConfig;
import io.kvcache.server.config.ListenerConfig.ListenProtocol;
import io.kvcache.server.config.ListenerConfig.ListenerAuthConfig;
import io.kvcache.server.config.MemoryConfig;
import io.kvcache.server.config.MemoryConfig.PrefaultMode;
import io.kvcache.server.config.RequestLimits;
import io.kvcache.server.config.ServerConfig;
import io.kvcache.server.config.ServerConfig.ExistsPinConfig;
import io.kvcache.server.config.ServerConfig.LeaseConfig;
import io.kvcache.server.config.ServerConfig.LogConfig;
import io.kvcache.server.config.ServerConfig.NetworkConfig;
import io.kvcache.server.config.ServerConfig.ShutdownConfig;
import io.kvcache.server.config.ServerConfig.TraceConfig;
import io.kvcache.server.config.TenantConfig;
import io.kvcache.server.config.TransportConfig;
import io.kvcache.server.net.NetLimits;
import io.kvcache.server.net.NettyTransport.TransportKind;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.net.http.HttpResponse;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import tools.jackson.databind.JsonNode;

/// A client of SageMaker HyperPod's protocol on the same host, over a real file in memory.
@Timeout(300)
@EnabledOnOs(OS.LINUX)
final class LeaseTest {

    private static final long MIB = 1L << 20;
    private static final String KEY = "model%401%400%40abc";

    private final String name = "kvcache-test-" + ProcessHandle.current().pid() + "-" + System.identityHashCode(this);
    private final Path file = Path.of("/dev/shm", name);

    private CacheServer start(long hostBytes) throws IOException {
        return CacheServer.start(config(hostBytes, AccessConfig.of(ListenerConfig.onLoopback(0))));
    }

    private ServerConfig config(long hostBytes, AccessConfig access) {
        return new ServerConfig(
                access,
                new MemoryConfig(hostBytes, PolicyKind.LRU, PrefaultMode.OFF),
                new NetworkConfig(TransportKind.AUTO, 2),
                NetLimits.defaults(),
                ExistsPinConfig.defaults(),
                DiskTierConfig.defaults(),
                EventsConfig.defaults(),
                new LeaseConfig(name, Duration.ofMinutes(5), 25),
                TraceConfig.defaults(),
                TransportConfig.defaults(),
                RequestLimits.defaults(hostBytes),
                LogConfig.defaults(),
                new ShutdownConfig(Duration.ZERO, Duration.ofSeconds(5)),
                null);
    }

    private static byte[] content(int seed, int bytes) {
        byte[] content = new byte[bytes];
        BlockContent.of(0, seed).fill(MemorySegment.ofArray(content));
        return content;
    }

    private static HttpResponse<byte[]> lease(HttpTestClient httpTestClient, String key) throws Exception {
        return httpTestClient.post("/v1/kv/lmcache/" + key + "/leases?timeout_ms=1000&ttl_s=300", "");
    }

    /// Copies what a lease names out of the mapped file, as a client does.
    private byte[] read(JsonNode lease) throws IOException {
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ)) {
            for (JsonNode piece : lease.get("offsets")) {
                ByteBuffer map = channel.map(
                        FileChannel.MapMode.READ_ONLY,
                        piece.get("offset").longValue(),
                        piece.get("len").longValue());
                byte[] bytes = new byte[map.remaining()];
                map.get(bytes);
                all.writeBytes(bytes);
            }
        }
        return all.toByteArray();
    }

    @Test
    @Tag("slow")
    void givenAValue_whenLeased_thenItIsReadInPlaceAndStaysUntilItIsReleased() throws Exception {
        TestRequirements.assumeSharedMemory(100 * MIB);
        byte[] content = content(1, 5_000_123);
        try (CacheServer server = start(96 * MIB);
                HttpTestClient httpTestClient =
                        new HttpTestClient(server.address().getPort())) {
            assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(file)))
                    .isEqualTo("rw-------");
            assertThat(lease(httpTestClient, KEY).statusCode()).isEqualTo(504);
            assertThat(httpTestClient.put("/v1/kv/lmcache/" + KEY, content).statusCode())
                    .isEqualTo(200);
            assertThat(httpTestClient
                            .put("/v1/kv/lmcache/" + KEY, content(2, 77))
                            .statusCode())
                    .isEqualTo(409);
            assertThat(httpTestClient.get("/v1/objects/lmcache/" + KEY).body()).isEqualTo(content);

            JsonNode lease = HttpTestClient.json(lease(httpTestClient, KEY));
            assertThat(read(lease)).isEqualTo(content);
            fill(httpTestClient, 1);
            assertThat(read(lease)).isEqualTo(content);
            String release = "/v1/leases/" + lease.get("id").stringValue() + "/release";
            assertThat(httpTestClient.post(release, "").statusCode()).isEqualTo(200);
            assertThat(httpTestClient.post(release, "").statusCode()).isEqualTo(404);
            fill(httpTestClient, 2);
            fill(httpTestClient, 3);
            assertThat(lease(httpTestClient, KEY).statusCode()).isEqualTo(504);
        }
        assertThat(file).doesNotExist();
    }

    /// Puts more than the store holds.
    private static void fill(HttpTestClient httpTestClient, int round) throws Exception {
        for (int number = 0; number < 30; number++) {
            int status = httpTestClient
                    .put("/v1/objects/" + round + "/" + number, content(number, 4 << 20))
                    .statusCode();
            assertThat(status).isEqualTo(204);
        }
    }

    @Test
    @Tag("slow")
    void givenAClientThatDies_whenItsTimeIsOver_thenNothingIsHeldAnyMore() throws Exception {
        TestRequirements.assumeSharedMemory(100 * MIB);
        try (CacheServer server = start(96 * MIB);
                HttpTestClient httpTestClient =
                        new HttpTestClient(server.address().getPort())) {
            httpTestClient.put("/v1/kv/b/k", content(1, 1000));
            JsonNode lease = HttpTestClient.json(httpTestClient.post("/v1/kv/b/k/leases?ttl_s=1", ""));
            String release = "/v1/leases/" + lease.get("id").stringValue() + "/release";
            while (server.cache().stats().openTables() > 0) {
                Pause.briefly();
            }
            assertThat(httpTestClient.post(release, "").statusCode()).isEqualTo(404);
            assertThat(httpTestClient.get("/v1/objects/b/k").body()).hasSize(1000);
        }
    }

    @Test
    void givenMoreThanMayBeLeased_whenAsked_thenItIsRefused() throws Exception {
        TestRequirements.assumeSharedMemory(100 * MIB);
        try (CacheServer server = start(96 * MIB);
                HttpTestClient httpTestClient =
                        new HttpTestClient(server.address().getPort())) {
            for (int number = 0; number < 4; number++) {
                httpTestClient.put("/v1/kv/b/" + number, content(number, (int) (7 * MIB)));
            }
            for (int number = 0; number < 3; number++) {
                assertThat(httpTestClient
                                .post("/v1/kv/b/" + number + "/leases", "")
                                .statusCode())
                        .isEqualTo(200);
            }
            assertThat(httpTestClient.post("/v1/kv/b/3/leases", "").statusCode())
                    .isEqualTo(503);
        }
    }

    @Test
    void givenMistakes_whenMade_thenProblemsAreDescribed() throws Exception {
        TestRequirements.assumeSharedMemory(100 * MIB);
        try (CacheServer server = start(96 * MIB);
                HttpTestClient httpTestClient =
                        new HttpTestClient(server.address().getPort())) {
            assertThat(httpTestClient.put("/v1/kv/b", "x").statusCode()).isEqualTo(400);
            assertThat(httpTestClient.put("/v1/kv//k", "x").statusCode()).isEqualTo(400);
            assertThat(httpTestClient.get("/v1/kv/b/k").statusCode()).isEqualTo(405);
            assertThat(httpTestClient.get("/v1/leases/1/release").statusCode()).isEqualTo(405);
            assertThat(httpTestClient.post("/v1/kv/b/k/leases?ttl_s=soon", "").statusCode())
                    .isEqualTo(400);
        }
    }

    @Test
    void givenTheFileOfAStoreThatRuns_whenAnotherStarts_thenItIsRefusedAndOneThatStayedBehindIsNot() throws Exception {
        TestRequirements.assumeSharedMemory(200 * MIB);
        Files.write(file, new byte[10]);
        try (CacheServer server = start(96 * MIB)) {
            assertThat(Files.size(file)).isEqualTo(96 * MIB);
            assertThatIllegalStateException()
                    .isThrownBy(() -> start(96 * MIB))
                    .withMessageContaining(file + " belongs to another store that runs");
            assertThat(server.address().getPort()).isPositive();
            assertThat(file).exists();
        }
        assertThat(file).doesNotExist();
    }

    @Test
    void givenTooLittleSharedMemory_whenStarted_thenBothSizesAreSaid() {
        assertThatIllegalStateException()
                .isThrownBy(() -> start(1L << 50))
                .withMessageContaining("1.0 PiB")
                .withMessageContaining("/dev/shm has only")
                .withMessageContaining("left");
        assertThat(file).doesNotExist();
    }

    @Test
    void givenTenants_whenLeasesAreConfigured_thenTheyAreRefused() {
        TenantConfig other = new TenantConfig("tenants.0", "a", "a", null, null, 0);
        AccessConfig access = new AccessConfig(
                List.of(new ListenerConfig(
                        "l", "l", "127.0.0.1", 0, Set.of(ListenProtocol.HTTP), ListenerAuthConfig.UNRESTRICTED)),
                List.of(other, TenantConfig.defaultTenant()));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> config(96 * MIB, access))
                .withMessageContaining("there are 2 tenants");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> new LeaseConfig("../x", Duration.ofMinutes(1), 25))
                .withMessageContaining("lease.shared_memory");
    }
}
