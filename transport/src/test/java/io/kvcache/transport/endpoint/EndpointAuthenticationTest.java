package io.kvcache.transport.endpoint;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.transport.endpoint.EndpointOptions.NamespaceFilter;
import io.kvcache.transport.net.DisconnectReason;
import io.kvcache.transport.net.RecordingSink;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.Handshake.Welcome;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.NamespaceCodec;
import io.kvcache.transport.wire.ProtocolException;
import io.kvcache.transport.wire.Status;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// Who comes in where secrets change, and which namespaces are kept from clients.
final class EndpointAuthenticationTest {

    private static final String OLD = "the old secret of 24 bytes";
    private static final String NEW = "the new secret of 24 bytes";
    private static final Namespace SPACE = Namespace.of("m", BlockShape.kv(1, 1, 1024, 16, Dtype.BF16));

    private final Logger log = Logger.getLogger(AuthThrottle.class.getName());
    private final TieredKvCache store = TieredKvCache.builder()
            .hostBytes(64 << 20)
            .prefaultInBackground(false)
            .build();

    @AfterEach
    void close() {
        store.close();
        log.setLevel(null);
    }

    private Endpoint open(EndpointAuthentication endpointAuth) {
        return new Endpoint(store, EndpointOptions.DEFAULTS.withAuth(endpointAuth), System::nanoTime);
    }

    private static Status greeted(Endpoint endpoint, String tenant, String secret) throws ProtocolException {
        TestClient testClient = new TestClient(endpoint);
        Status status = testClient.handshake(tenant, secret, null).header().status();
        testClient.end(DisconnectReason.PEER_CLOSED);
        return status;
    }

    private static RecordingSink.ReceivedFrame registered(TestClient testClient, Namespace namespace)
            throws ProtocolException {
        BodyWriter body = new BodyWriter();
        NamespaceCodec.write(namespace, body);
        return testClient.request(MessageType.REGISTER, body);
    }

    @Test
    void givenTwoSecrets_whenShown_thenEachIsGoodAndNoOther() throws ProtocolException {
        try (Endpoint endpoint = open(EndpointAuthentication.secrets(List.of(OLD, NEW)))) {
            assertThat(greeted(endpoint, "", OLD)).isEqualTo(Status.OK);
            assertThat(greeted(endpoint, "", NEW)).isEqualTo(Status.OK);
            assertThat(greeted(endpoint, "", OLD + NEW)).isEqualTo(Status.UNAUTHORIZED);
        }
    }

    @Test
    void givenTenantsWithSecrets_whenShown_thenEachIsGoodForItsTenantOnly() throws ProtocolException {
        try (Endpoint endpoint = open(EndpointAuthentication.tenantSecrets(
                Map.of("a", List.of(OLD, NEW), "b", List.of("secret of tenant b"))))) {
            assertThat(greeted(endpoint, "a", OLD)).isEqualTo(Status.OK);
            assertThat(greeted(endpoint, "a", NEW)).isEqualTo(Status.OK);
            assertThat(greeted(endpoint, "b", NEW)).isEqualTo(Status.UNAUTHORIZED);
            assertThat(greeted(endpoint, "", NEW)).isEqualTo(Status.UNAUTHORIZED);
        }
    }

    @Test
    void givenSecretsThatChange_whenShown_thenThoseOfTheMomentCountAndSessionsGoOn() throws ProtocolException {
        AtomicReference<EndpointAuthentication> said = new AtomicReference<>(EndpointAuthentication.secret(OLD));
        try (Endpoint endpoint = open(new EndpointAuthentication.Reloadable(said::get))) {
            TestClient before = new TestClient(endpoint);
            Welcome welcome = Welcome.read(before.handshake("", OLD, null).reader());

            said.set(EndpointAuthentication.secret(NEW));

            assertThat(greeted(endpoint, "", OLD)).isEqualTo(Status.UNAUTHORIZED);
            assertThat(greeted(endpoint, "", NEW)).isEqualTo(Status.OK);
            assertThat(registered(before, SPACE).header().status()).isEqualTo(Status.OK);
            TestClient more = new TestClient(endpoint);
            assertThat(more.handshake("", OLD, welcome).header().status())
                    .as("another connection of who is in")
                    .isEqualTo(Status.OK);
            more.end(DisconnectReason.PEER_CLOSED);
            TestClient thief = new TestClient(endpoint);
            assertThat(thief.handshake("", OLD + "s", welcome).header().status())
                    .isEqualTo(Status.UNAUTHORIZED);
            thief.end(DisconnectReason.PEER_CLOSED);
            TestClient other = new TestClient(endpoint);
            assertThat(other.handshake("a", OLD, welcome).header().status()).isEqualTo(Status.UNAUTHORIZED);
            other.end(DisconnectReason.PEER_CLOSED);
            before.end(DisconnectReason.PEER_CLOSED);
        }
    }

    @Test
    void givenAStrangerWhoGuesses_whenTooOften_thenNothingIsLookedAtForAMinute() throws ProtocolException {
        AtomicLong now = new AtomicLong();
        log.setLevel(Level.OFF);
        EndpointOptions options = EndpointOptions.DEFAULTS.withAuth(EndpointAuthentication.secret(OLD));
        try (Endpoint endpoint = new Endpoint(store, options, now::get)) {
            TestClient in = new TestClient(endpoint);
            Welcome welcome = Welcome.read(in.handshake("", OLD, null).reader());
            for (int i = 0; i < AuthThrottle.MAX_FAILURES; i++) {
                assertThat(greeted(endpoint, "", NEW)).isEqualTo(Status.UNAUTHORIZED);
            }
            assertThat(greeted(endpoint, "", NEW)).isEqualTo(Status.BUSY);
            assertThat(greeted(endpoint, "", OLD)).as("a guess that is right").isEqualTo(Status.BUSY);
            TestClient more = new TestClient(endpoint);
            assertThat(more.handshake("", OLD, welcome).header().status())
                    .as("another connection of who is in")
                    .isEqualTo(Status.OK);
            more.end(DisconnectReason.PEER_CLOSED);
            assertThat(endpoint.stats().wrongProofs()).isEqualTo(AuthThrottle.MAX_FAILURES);
            assertThat(endpoint.stats().unseenProofs()).isEqualTo(2);

            now.addAndGet(AuthThrottle.FAILURE_WINDOW.toNanos() + 1);

            assertThat(greeted(endpoint, "", OLD)).isEqualTo(Status.OK);
            in.end(DisconnectReason.PEER_CLOSED);
        }
    }

    @Test
    void givenStrangersWhoGuessAtOnce_whenTheyAreMany_thenTenAreLookedAt() throws Exception {
        log.setLevel(Level.OFF);
        EndpointOptions options = EndpointOptions.DEFAULTS.withAuth(EndpointAuthentication.secret(OLD));
        AtomicLong now = new AtomicLong();
        try (Endpoint endpoint = new Endpoint(store, options, now::get);
                ExecutorService guessers = Executors.newVirtualThreadPerTaskExecutor()) {
            List<Callable<Status>> guesses = new ArrayList<>();
            for (int i = 0; i < 200; i++) {
                guesses.add(() -> greeted(endpoint, "", NEW));
            }
            int looked = 0;
            for (Future<Status> guess : guessers.invokeAll(guesses)) {
                looked += guess.get() == Status.UNAUTHORIZED ? 1 : 0;
            }
            assertThat(looked).isEqualTo(AuthThrottle.MAX_FAILURES);
        }
    }

    @Test
    void givenAClientWithTheNextSecret_whenItBecomesGood_thenItsEarlierTriesAreForgotten() throws ProtocolException {
        log.setLevel(Level.OFF);
        AtomicReference<EndpointAuthentication> said = new AtomicReference<>(EndpointAuthentication.secret(OLD));
        try (Endpoint endpoint = open(new EndpointAuthentication.Reloadable(said::get))) {
            for (int i = 0; i <= AuthThrottle.MAX_FAILURES; i++) {
                assertThat(greeted(endpoint, "", NEW)).isNotEqualTo(Status.OK);
            }
            said.set(EndpointAuthentication.secret(NEW));
            assertThat(greeted(endpoint, "", NEW)).isEqualTo(Status.OK);
        }
    }

    @Test
    void givenWrongProofs_whenLogged_thenTheFirstAndTheLastOnlyAndNothingThatAStrangerWroteMakesALine()
            throws ProtocolException {
        List<String> lines = new ArrayList<>();
        Handler handler = new Handler() {
            @Override
            public void publish(LogRecord told) {
                lines.add(told.getMessage());
            }

            @Override
            public void flush() {}

            @Override
            public void close() {}
        };
        log.setUseParentHandlers(false);
        log.addHandler(handler);
        try (Endpoint endpoint = open(EndpointAuthentication.secret(OLD))) {
            for (int i = 0; i < AuthThrottle.MAX_FAILURES + 5; i++) {
                greeted(endpoint, "a\nb'" + "c".repeat(100), NEW);
            }
        } finally {
            log.removeHandler(handler);
            log.setUseParentHandlers(true);
        }
        assertThat(lines)
                .hasSize(2)
                .allSatisfy(line -> assertThat(line)
                        .startsWith("a client showed a wrong proof as tenant 'a?b?" + "c".repeat(60) + "...'")
                        .doesNotContain(NEW));
    }

    @Test
    void givenTheNameOfOneTenant_whenAnothersNamespaceIsAskedFor_thenForbidden() throws ProtocolException {
        try (Endpoint endpoint =
                open(new EndpointAuthentication.SingleTenant("default", EndpointAuthentication.secret(OLD)))) {
            TestClient testClient = new TestClient(endpoint);
            assertThat(testClient.handshake("a", OLD, null).header().status()).isEqualTo(Status.OK);
            assertThat(registered(testClient, SPACE.toBuilder().tenant("a").build())
                            .header()
                            .status())
                    .isEqualTo(Status.FORBIDDEN);
            assertThat(registered(
                                    testClient,
                                    SPACE.toBuilder().tenant("default").build())
                            .header()
                            .status())
                    .isEqualTo(Status.OK);
            testClient.end(DisconnectReason.PEER_CLOSED);
        }
    }

    @Test
    void givenANamespaceThatIsKeptBack_whenRegistered_thenItIsSaidWhyAndTheStoreNeverHearsOfIt()
            throws ProtocolException {
        NamespaceFilter rule = namespace -> namespace.model().equals("kept") ? "kept is not for clients" : null;
        EndpointOptions options = EndpointOptions.DEFAULTS.withNamespaces(rule);
        try (Endpoint endpoint = new Endpoint(store, options, System::nanoTime)) {
            TestClient testClient = TestClient.connect(endpoint);
            RecordingSink.ReceivedFrame reply = registered(testClient, Namespace.objects("kept", "x"));
            assertThat(reply.header().status()).isEqualTo(Status.FORBIDDEN);
            assertThat(reply.reader().text("text")).isEqualTo("kept is not for clients");
            assertThat(store.stats().namespaces()).isEmpty();
            assertThat(registered(testClient, SPACE).header().status()).isEqualTo(Status.OK);
            testClient.end(DisconnectReason.PEER_CLOSED);
        }
    }

    @Test
    void givenASecretThatIsTooShort_whenMade_thenRefusedWithoutShowingIt() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> EndpointAuthentication.tenantSecrets(Map.of("a", List.of(OLD, "short"))))
                .withMessage("the secret of a has 5 bytes; allowed: 16 and up");
    }
}
