package io.kvcache.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.core.check.BlockContent;
import io.kvcache.core.identity.Namespace;
import io.kvcache.server.config.ConfigReader;
import io.kvcache.server.config.HostResources;
import io.kvcache.server.config.ServerConfig;
import io.kvcache.transport.client.RemoteKvCache;
import io.kvcache.transport.client.RemoteKvCacheBuilder;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

/// Trust domains of a server that its settings name: `blue` and `navy` may read each other, `green` has one of his
/// own, `red` is in none.
@EnabledOnOs(OS.LINUX)
@Timeout(120)
@Tag("slow")
final class TrustDomainServerTest {

    private static final List<String> TENANTS = List.of("blue", "navy", "green", "red");
    private static final String BLUES =
            "kvcache-test-blues-" + ProcessHandle.current().pid();
    private static final String GREENS =
            "kvcache-test-greens-" + ProcessHandle.current().pid();

    @TempDir
    private Path folder;

    private static String secret(String tenant) {
        return "the secret of tenant " + tenant;
    }

    private static Path files(String name) {
        return Path.of("/dev/shm", name);
    }

    private CacheServer start(String nameOfGreens, String bytesOfGreens) throws Exception {
        List<String> tenants = new ArrayList<>();
        for (String tenant : TENANTS) {
            Path file = RemoteEndpointTest.secrets(folder.resolve(tenant), secret(tenant));
            tenants.add("{ name: " + tenant + ", secret_file: " + file + " }");
        }
        String yaml = """
                listen: { port: 0 }
                memory: { host_bytes: 64MiB, prefault: off }
                transport: { listen: "127.0.0.1:0" }
                tenants: [%s]
                domains:
                  - { name: blues, tenants: [blue, navy], host_bytes: 32MiB, shared_memory: %s }
                  - { name: greens, tenants: [green], host_bytes: %s, shared_memory: %s }
                """.formatted(String.join(", ", tenants), BLUES, bytesOfGreens, nameOfGreens);
        ServerConfig config = new ConfigReader(new HostResources(1L << 60, 2), Map.of())
                .read(new ConfigReader.Source("f", yaml), Map.of());
        return CacheServer.start(config);
    }

    private static RemoteKvCacheBuilder client(CacheServer server, String scheme, String tenant) {
        int port = Objects.requireNonNull(server.remoteAddress()).getPort();
        return RemoteKvCache.builder(scheme + "127.0.0.1:" + port)
                .tenant(tenant)
                .secret(secret(tenant));
    }

    private static Namespace space(String tenant) {
        return RemoteTestBlocks.SPACE.toBuilder().tenant(tenant).build();
    }

    private static void use(RemoteKvCache cache, String tenant) {
        cache.register(space(tenant));
        RemoteTestBlocks.put(cache, RemoteTestBlocks.chain(space(tenant), 3));
        assertThat(RemoteTestBlocks.verifiedBlocks(cache, RemoteTestBlocks.chain(space(tenant), 3)))
                .isEqualTo(3);
    }

    /// The tenants with a block in any file of a directory.
    private static List<String> seen(String name) throws IOException {
        StringBuilder all = new StringBuilder();
        try (Stream<Path> files = Files.list(files(name))) {
            for (Path file : files.toList()) {
                all.append(Files.readString(file, StandardCharsets.ISO_8859_1));
            }
        }
        return TENANTS.stream()
                .filter(each -> all.indexOf(beginning(each)) >= 0)
                .toList();
    }

    /// The first bytes of a tenant's second block.
    private static String beginning(String tenant) {
        byte[] bytes = BlockContent.of(RemoteTestBlocks.chain(space(tenant), 3).key(1))
                .toHeapSegment(64)
                .toArray(ValueLayout.JAVA_BYTE);
        return new String(bytes, StandardCharsets.ISO_8859_1);
    }

    @Test
    void givenDomainsInTheSettings_whenTheirTenantsWork_thenEachMapsWhatIsItsOwnAndNothingElse() throws Exception {
        try (CacheServer server = start(GREENS, "32MiB");
                HttpTestClient httpTestClient =
                        new HttpTestClient(server.address().getPort())) {
            for (String tenant : TENANTS) {
                boolean maps = !tenant.equals("red");
                try (RemoteKvCache cache = client(server, "", tenant).connect()) {
                    use(cache, tenant);
                    assertThat(cache.remoteStats().sharedMemory()).as(tenant).isEqualTo(maps);
                    assertThat(cache.remoteStats().mapped()).as(tenant).isEqualTo(maps ? 3 : 0);
                }
            }
            assertThat(seen(BLUES)).containsExactly("blue", "navy");
            assertThat(seen(GREENS)).containsExactly("green");
            assertThat(RemoteTestBlocks.verifiedBlocks(server.cache(), RemoteTestBlocks.chain(space("red"), 3)))
                    .isEqualTo(3);
            assertThat(new String(httpTestClient.get("/metrics").body(), StandardCharsets.UTF_8))
                    .contains("kv_memory_capacity_bytes{cache=\"domain blues\",tier=\"host\"}")
                    .contains("kv_memory_capacity_bytes{cache=\"domain greens\",tier=\"host\"}");
        }
        assertThat(files(BLUES)).doesNotExist();
        assertThat(files(GREENS)).doesNotExist();
    }

    @Test
    void givenDomains_whenOneTriesToGetAtAnothers_thenHeIsRefused() throws Exception {
        try (CacheServer server = start(GREENS, "32MiB");
                RemoteKvCache blue = client(server, "shm:", "blue").connect();
                RemoteKvCache green = client(server, "shm:", "green").connect()) {
            use(blue, "blue");
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> green.register(space("blue")))
                    .withMessageContaining("allowed: \"green\"");
            assertThatThrownBy(() -> client(server, "shm:", "red").connect().close())
                    .isInstanceOf(UncheckedIOException.class)
                    .hasMessageContaining("keeps its memory to itself");
            RemoteTestBlocks.assertRefused(client(server, "", "blue").secret(secret("green")));
            assertThat(seen(GREENS)).isEmpty();
        }
    }

    @Test
    void givenADomainWithoutAMapping_whenItsTenantWorks_thenItsMemoryIsItsOwnAllTheSame() throws Exception {
        try (CacheServer server = start("off", "32MiB");
                RemoteKvCache green = client(server, "", "green").connect()) {
            use(green, "green");
            assertThat(green.remoteStats().sharedMemory()).isFalse();
            assertThat(green.stats().host().capacityBytes()).isEqualTo(32 << 20);
            server.cache().register(space("green"));
            assertThat(server.cache()
                            .match(RemoteTestBlocks.chain(space("green"), 3))
                            .blocks())
                    .isZero();
        }
    }

    @Test
    void givenADomainThatFindsNoRoom_whenStarted_thenItIsRefusedWithBothSizesAndNothingStays() {
        assertThatThrownBy(() -> start(GREENS, "2TiB").close())
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("Cannot reserve 2.0 TiB")
                .hasMessageMatching("(?s).* has only [0-9.]+ .iB .*left.*");
        assertThat(files(BLUES)).doesNotExist();
        assertThat(files(GREENS)).doesNotExist();
    }
}
