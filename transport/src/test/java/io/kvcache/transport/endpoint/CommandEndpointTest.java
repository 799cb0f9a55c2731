package io.kvcache.transport.endpoint;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.core.NamespaceStats;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.transport.client.CommandReply;
import io.kvcache.transport.client.RemoteKvCache;
import io.kvcache.transport.client.RemoteKvCacheBuilder;
import io.kvcache.transport.cluster.ClusterView;
import io.kvcache.transport.cluster.ViewSource;
import io.kvcache.transport.net.RecordingSink;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.Handshake.Challenge;
import io.kvcache.transport.wire.Handshake.Hello;
import io.kvcache.transport.wire.Handshake.Proof;
import io.kvcache.transport.wire.Handshake.Welcome;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.Secret;
import io.kvcache.transport.wire.Status;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// Requests of other protocols that servers of a cluster pass on to each other, and who may send them.
@Timeout(60)
final class CommandEndpointTest {

    private static final String SECRET = "a secret among the servers";
    private static final String CLIENTS = "a secret of the clients";
    private static final Duration PATIENCE = Duration.ofSeconds(30);
    private static final int ECHO = 1;
    private static final int FAIL = 2;

    private final AtomicInteger open = new AtomicInteger();
    private final TieredKvCache store = TieredKvCache.builder()
            .hostBytes(64 << 20)
            .prefaultInBackground(false)
            .build();
    private final TcpEndpoint endpoint = open(EndpointAuthentication.secret(CLIENTS));

    private TcpEndpoint open(EndpointAuthentication auth) {
        EndpointOptions options = EndpointOptions.DEFAULTS
                .withAuth(auth)
                .withCluster(new NoView(), store)
                .withServers(SECRET, this::begin);
        try {
            return TcpEndpoint.open(store, new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), options);
        } catch (IOException taken) {
            throw new UncheckedIOException(taken);
        }
    }

    @AfterEach
    void close() throws IOException {
        endpoint.close();
        store.close();
        assertThat(open).as("requests that were not closed").hasValue(0);
    }

    private static final class NoView implements ViewSource {
        @Override
        public ClusterView view() {
            return new ClusterView("test", 1, List.of());
        }

        @Override
        public Runnable listen(Consumer<ClusterView> listener) {
            return () -> {};
        }
    }

    private CommandRunner.@Nullable Command begin(String tenant, int dialect, int bytes) {
        if (dialect > FAIL) {
            throw new IllegalArgumentException("dialect = " + dialect + "; allowed: 1 and 2");
        }
        if (tenant.equals("busy")) {
            return null;
        }
        open.incrementAndGet();
        return new Echo(tenant, dialect, bytes);
    }

    /// Answers the tenant and the request, in two pieces.
    private final class Echo implements CommandRunner.Command {

        private final Arena arena = Arena.ofShared();
        private final String tenant;
        private final int dialect;
        private final MemorySegment request;

        Echo(String tenant, int dialect, int bytes) {
            this.tenant = tenant;
            this.dialect = dialect;
            request = arena.allocate(bytes);
        }

        @Override
        public MemorySegment request() {
            return request;
        }

        @Override
        public List<MemorySegment> run(Duration timeout) throws IOException {
            if (dialect == FAIL) {
                throw new IOException("no reply within " + (timeout.toSeconds() > 0 ? "seconds" : "less"));
            }
            return List.of(
                    arena.allocateFrom(ValueLayout.JAVA_BYTE, (tenant + ":").getBytes(StandardCharsets.UTF_8)),
                    request);
        }

        @Override
        public void close() {
            arena.close();
            open.decrementAndGet();
        }
    }

    private RemoteKvCache connect(String tenant, String secret, boolean server) {
        RemoteKvCacheBuilder builder = RemoteKvCache.builder(
                        "127.0.0.1:" + endpoint.address().getPort())
                .tenant(tenant);
        return (server ? builder.server(() -> secret) : builder.secret(secret)).connect();
    }

    private static byte[] execute(RemoteKvCache cache, int dialect, byte[] request) {
        try (Arena arena = Arena.ofShared();
                CommandReply reply =
                        cache.execute(dialect, List.of(arena.allocateFrom(ValueLayout.JAVA_BYTE, request)), PATIENCE)) {
            return reply.bytes().toArray(ValueLayout.JAVA_BYTE);
        }
    }

    @Test
    void givenAServerOfTheCluster_whenItPassesRequestsOn_thenTheyRunForTheTenantThatItNames() {
        byte[] large = new byte[3 << 20];
        large[large.length - 1] = 7;
        try (RemoteKvCache alice = connect("alice", SECRET, true);
                RemoteKvCache bob = connect("bob", SECRET, true)) {
            assertThat(execute(alice, ECHO, new byte[] {'x'})).asString().isEqualTo("alice:x");
            assertThat(execute(bob, ECHO, new byte[] {'y'})).asString().isEqualTo("bob:y");
            assertThat(execute(bob, ECHO, large)).hasSize(large.length + 4).endsWith(7);
        }
    }

    @Test
    void givenARequestThatIsNotRun_whenAnswered_thenTheServerLearnsWhetherItMayHaveRun() {
        try (RemoteKvCache server = connect("alice", SECRET, true);
                RemoteKvCache busy = connect("busy", SECRET, true)) {
            assertThatThrownBy(() -> execute(server, FAIL, new byte[1]))
                    .isInstanceOf(UncheckedIOException.class)
                    .hasMessageContaining("no reply within seconds");
            assertThatThrownBy(() -> execute(server, 9, new byte[1]))
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageContaining("dialect = 9; allowed: 1 and 2");
            assertThatThrownBy(() -> execute(busy, ECHO, new byte[1]))
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageContaining("as many requests are passed on as there is memory for");
            assertThat(execute(server, ECHO, new byte[] {'z'})).asString().isEqualTo("alice:z");
        }
    }

    @Test
    void givenAClientThatIsNoServer_whenItPassesARequestOn_thenItIsRefused() {
        try (RemoteKvCache client = connect("alice", CLIENTS, false)) {
            assertThatThrownBy(() -> execute(client, ECHO, new byte[1]))
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageContaining("allowed: from a server of the same cluster");
        }
        assertThatThrownBy(() -> connect("alice", CLIENTS, true))
                .as("the clients' secret")
                .isInstanceOf(UncheckedIOException.class)
                .hasMessageContaining("the proof is wrong");
        assertThatThrownBy(() -> connect("alice", SECRET, false))
                .as("the servers' secret")
                .isInstanceOf(UncheckedIOException.class)
                .hasMessageContaining("the proof is wrong");
    }

    @Test
    void givenAnEndpointWithoutSecrets_whenAClientSaysItIsAServer_thenItHasToProveIt() throws Exception {
        EndpointFixture fixture = new EndpointFixture();
        EndpointOptions open = EndpointFixture.OPTIONS
                .withCluster(new NoView(), fixture.store())
                .withServers(SECRET, this::begin);
        for (EndpointOptions options : List.of(open, EndpointFixture.OPTIONS)) {
            try (Endpoint anyone = fixture.open(options)) {
                assertThat(handshake(new TestClient(anyone), null, new byte[0])
                                .header()
                                .status())
                        .isEqualTo(Status.UNAUTHORIZED);
            }
        }
        fixture.requireNothingLeft();
    }

    @Test
    void givenASessionOfAClient_whenItIsJoinedAsAServer_thenThatIsRefused() throws Exception {
        EndpointFixture fixture = new EndpointFixture();
        try (Endpoint served = fixture.open(EndpointFixture.OPTIONS
                .withAuth(EndpointAuthentication.secret(CLIENTS))
                .withCluster(new NoView(), fixture.store())
                .withServers(SECRET, this::begin))) {
            TestClient client = new TestClient(served);
            Welcome welcome =
                    Welcome.read(client.handshake("alice", CLIENTS, null).reader());
            assertThat(handshake(new TestClient(served), welcome, CLIENTS.getBytes(StandardCharsets.UTF_8))
                            .header()
                            .status())
                    .isEqualTo(Status.UNAUTHORIZED);
        }
        fixture.requireNothingLeft();
    }

    /// Says that the client is a server.
    private static RecordingSink.ReceivedFrame handshake(TestClient client, @Nullable Welcome joined, byte[] secret)
            throws Exception {
        Hello hello = new Hello(
                1,
                joined == null ? 0 : joined.session(),
                Hello.SERVER,
                Secret.random(Hello.NONCE_BYTES),
                joined == null ? Secret.zeros(Hello.TICKET_BYTES) : joined.ticket(),
                0,
                "alice",
                "");
        Challenge challenge =
                Challenge.read(client.request(hello.frame(1, 0)).getFirst().reader());
        assertThat(challenge.proofRequired()).isTrue();
        byte[] proof = secret.length == 0
                ? new byte[Proof.BYTES]
                : new Proof(new Secret(secret), hello, challenge).clientProof().bytes();
        return client.request(new BodyWriter().bytes(proof).request(MessageType.AUTH, 2, 0))
                .getFirst();
    }

    @Test
    void givenAnotherServerThatAsksForBlocks_whenTheyAreMissing_thenNoLookUpCounts() {
        Namespace space = Namespace.of("m", BlockShape.kv(1, 1, 8, 4, Dtype.BF16));
        BlockChain chain = BlockChain.of(space, new int[] {1, 2, 3, 4, 5, 6, 7, 8});
        String address = "127.0.0.1:" + endpoint.address().getPort();
        try (RemoteKvCache server =
                RemoteKvCache.builder(address).server(() -> SECRET).connect()) {
            server.register(space);
            server.acquire(chain, 0, Duration.ZERO).close();
            assertThat(requestedBlocks(space)).as("by a server").isZero();
        }
        try (RemoteKvCache client =
                RemoteKvCache.builder(address).secret(CLIENTS).connect()) {
            client.register(space);
            client.acquire(chain, 0, Duration.ZERO).close();
            assertThat(requestedBlocks(space)).as("by a client").isEqualTo(2);
        }
    }

    private long requestedBlocks(Namespace of) {
        return store.stats().namespaces().stream()
                .filter(each -> each.namespace().equals(of))
                .mapToLong(NamespaceStats::blocksRequested)
                .sum();
    }
}
