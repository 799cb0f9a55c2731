package io.kvcache.transport.endpoint;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.KvCache;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.check.BlockContent;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.Namespace;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.transport.client.RemoteKvCache;
import io.kvcache.transport.client.RemoteKvCacheBuilder;
import io.kvcache.transport.net.DisconnectReason;
import io.kvcache.transport.shm.ShmDirectory;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.Handshake.Welcome;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.NamespaceCodec;
import io.kvcache.transport.wire.ProtocolException;
import io.kvcache.transport.wire.SharedMemoryCodec;
import io.kvcache.transport.wire.Status;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.ValueLayout;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;

/// Trust domains in one server: `a` and `a2` may read each other, `b` has one of its own, `c` has none.
/// Each of them tries to see what is not his.
@EnabledOnOs(OS.LINUX)
final class TrustDomainTest {

    private static final Map<String, String> SECRETS =
            Stream.of("a", "a2", "b", "c").collect(Collectors.toMap(name -> name, TrustDomainTest::secret));

    private final ShmDirectory folderOfA = ShmDirectory.make();
    private final ShmDirectory folderOfB = ShmDirectory.make();
    private final TieredKvCache storeOfA = store(folderOfA, Set.of("a", "a2"));
    private final TieredKvCache storeOfB = store(folderOfB, Set.of("b"));
    private final TieredKvCache common = TieredKvCache.builder()
            .hostBytes(32 << 20)
            .prefaultInBackground(false)
            .build();

    private static TieredKvCache store(ShmDirectory folder, Set<String> tenants) {
        return TieredKvCache.builder()
                .hostBytes(32 << 20)
                .prefaultInBackground(false)
                .shareMemory(folder.path(), tenants)
                .build();
    }

    @AfterEach
    void close() {
        common.close();
        storeOfA.close();
        storeOfB.close();
        folderOfA.close();
        folderOfB.close();
    }

    private static String secret(String tenant) {
        return "the secret of tenant " + tenant;
    }

    private EndpointOptions options() {
        return EndpointOptions.DEFAULTS
                .withAuth(EndpointAuthentication.tenants(SECRETS))
                .withDomain(Set.of("a", "a2"), storeOfA)
                .withDomain(Set.of("b"), storeOfB);
    }

    private static Namespace space(String tenant) {
        return EndpointFixture.SPACE.toBuilder().tenant(tenant).build();
    }

    private static BlockChain chain(String tenant) {
        return BlockChain.of(space(tenant), IntStream.range(0, 48).toArray());
    }

    /// Puts three blocks and gets them back.
    private static void use(KvCache cache, String tenant) {
        cache.register(space(tenant));
        BlockChain chain = chain(tenant);
        for (int index = 0; index < chain.length(); index++) {
            try (BlockWriter writer = cache.put(chain, index, 0, KvCache.NO_WAIT)) {
                assertThat(writer.outcome()).isEqualTo(PutOutcome.RESERVED);
                BlockContent.of(chain.key(index)).fill(writer.segment());
                writer.seal();
            }
        }
        try (BlockTable table = cache.acquire(chain)) {
            assertThat(table.readyBlocks()).isEqualTo(3);
            for (int index = 0; index < 3; index++) {
                BlockContent.of(chain.key(index)).requireEqual(table.segment(index));
            }
        }
    }

    /// Whether a folder's files have a block of a tenant in them anywhere.
    private static boolean holds(ShmDirectory folder, String tenant) throws IOException {
        byte[] wanted = BlockContent.of(chain(tenant).key(1)).toHeapSegment(64).toArray(ValueLayout.JAVA_BYTE);
        boolean found = false;
        for (String name : folder.files()) {
            Path file = folder.path().resolve(name);
            byte[] all = Files.readAllBytes(file);
            for (int at = 0; at + wanted.length <= all.length && !found; at += Long.BYTES) {
                found = Arrays.equals(all, at, at + wanted.length, wanted, 0, wanted.length);
            }
        }
        return found;
    }

    @Test
    @Tag("slow")
    void givenTrustDomains_whenTheirTenantsWork_thenEachMapsFilesWithNothingOfOthersInThem() throws IOException {
        try (TcpEndpoint endpoint =
                TcpEndpoint.open(common, new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), options())) {
            for (String tenant : SECRETS.keySet()) {
                try (RemoteKvCache cache = client(endpoint, "", tenant).connect()) {
                    use(cache, tenant);
                    assertThat(cache.remoteStats().sharedMemory()).as(tenant).isEqualTo(!tenant.equals("c"));
                    assertThat(cache.remoteStats().mapped()).as(tenant).isEqualTo(tenant.equals("c") ? 0 : 3);
                }
            }
            assertThat(holds(folderOfA, "a")).isTrue();
            assertThat(holds(folderOfA, "a2")).isTrue();
            assertThat(holds(folderOfB, "b")).isTrue();
            assertThat(holds(folderOfA, "b") || holds(folderOfA, "c")).isFalse();
            assertThat(holds(folderOfB, "a") || holds(folderOfB, "a2") || holds(folderOfB, "c"))
                    .isFalse();
            assertThatThrownBy(() -> client(endpoint, "shm:", "c").connect())
                    .as("who insists on the mapping")
                    .isInstanceOf(UncheckedIOException.class)
                    .hasMessageContaining("keeps its memory to itself");
        }
    }

    private static RemoteKvCacheBuilder client(TcpEndpoint endpoint, String scheme, String tenant) {
        return RemoteKvCache.builder(scheme + "127.0.0.1:" + endpoint.address().getPort())
                .requestTimeout(Duration.ofMinutes(1))
                .tenant(tenant)
                .secret(secret(tenant));
    }

    @Test
    void givenSomebodyOfNoDomain_whenHeTriesAllWaysToTheFilesOfOne_thenHeGetsNone() throws ProtocolException {
        try (Endpoint endpoint = new Endpoint(common, options(), System::nanoTime)) {
            TestClient a = new TestClient(endpoint);
            Welcome welcomeOfA =
                    Welcome.read(a.handshake("a", secret("a"), null).reader());
            assertThat(SharedMemoryCodec.read(a.request(MessageType.SHARE, new BodyWriter())
                                    .reader())
                            .directory())
                    .isEqualTo(folderOfA.path().toString());
            TestClient b = new TestClient(endpoint);
            b.handshake("b", secret("b"), null);
            assertThat(SharedMemoryCodec.read(b.request(MessageType.SHARE, new BodyWriter())
                                    .reader())
                            .directory())
                    .isEqualTo(folderOfB.path().toString());

            TestClient c = new TestClient(endpoint);
            c.handshake("c", secret("c"), null);
            assertThat(status(c, MessageType.SHARE, new BodyWriter())).isEqualTo(Status.UNSUPPORTED);
            assertThat(status(c, MessageType.FABRIC, new BodyWriter())).isEqualTo(Status.UNSUPPORTED);
            assertThat(status(c, MessageType.STAGE, new BodyWriter().i64(1))).isEqualTo(Status.UNSUPPORTED);
            BodyWriter ofA = new BodyWriter();
            NamespaceCodec.write(space("a"), ofA);
            assertThat(status(c, MessageType.REGISTER, ofA)).isEqualTo(Status.FORBIDDEN);
            assertThat(greeted(endpoint, "a", "c", null)).as("another's name").isEqualTo(Status.UNAUTHORIZED);
            assertThat(greeted(endpoint, "c", "c", welcomeOfA))
                    .as("another's session")
                    .isEqualTo(Status.UNAUTHORIZED);
            assertThat(greeted(endpoint, "a", "c", welcomeOfA)).as("both").isEqualTo(Status.UNAUTHORIZED);
            Stream.of(a, b, c).forEach(testClient -> testClient.end(DisconnectReason.PEER_CLOSED));
        }
    }

    private static Status status(TestClient testClient, MessageType type, BodyWriter body) throws ProtocolException {
        return testClient.request(type, body).header().status();
    }

    private static Status greeted(Endpoint endpoint, String name, String who, @Nullable Welcome joined)
            throws ProtocolException {
        TestClient testClient = new TestClient(endpoint);
        Status status = testClient.handshake(name, secret(who), joined).header().status();
        testClient.end(DisconnectReason.UNAUTHORIZED);
        return status;
    }

    @Test
    void givenAStoreThatADomainMaps_whenServedToOthersToo_thenNothingOfTheirsGetsInAndTheyGetNoMapping()
            throws ProtocolException {
        EndpointOptions alone = EndpointOptions.DEFAULTS.withAuth(EndpointAuthentication.tenants(SECRETS));
        try (Endpoint endpoint = new Endpoint(storeOfA, alone, System::nanoTime)) {
            TestClient c = new TestClient(endpoint);
            c.handshake("c", secret("c"), null);
            assertThat(status(c, MessageType.SHARE, new BodyWriter())).isEqualTo(Status.FORBIDDEN);
            assertThat(status(c, MessageType.STAGE, new BodyWriter().i64(1))).isEqualTo(Status.FORBIDDEN);
            BodyWriter ofC = new BodyWriter();
            NamespaceCodec.write(space("c"), ofC);
            assertThat(status(c, MessageType.REGISTER, ofC)).isEqualTo(Status.INVALID);
            c.end(DisconnectReason.PEER_CLOSED);
        }
        assertThatIllegalArgumentException()
                .isThrownBy(() -> storeOfA.register(space("c")))
                .withMessageContaining(
                        "is not of the trust domain whose tenants map this memory; allowed: \"a\", \"a2\"");
        storeOfA.register(space("a2"));
    }

    @Test
    void givenATenantOfOneDomain_whenPutInAnother_thenRefused() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> options().withDomain(Set.of("a2"), storeOfB))
                .withMessageContaining("tenant \"a2\" is in a trust domain already");
    }
}
