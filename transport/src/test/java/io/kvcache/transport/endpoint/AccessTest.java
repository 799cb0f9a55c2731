package io.kvcache.transport.endpoint;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.transport.link.CloseReason;
import io.kvcache.transport.link.Loopback;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.NamespaceCodec;
import io.kvcache.transport.wire.Status;
import io.kvcache.transport.wire.Violation;
import io.kvcache.transport.wire.Welcome;
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
final class AccessTest {

    private static final String OLD = "the old secret of 24 bytes";
    private static final String NEW = "the new secret of 24 bytes";
    private static final Namespace SPACE = Namespace.of("m", BlockShape.kv(1, 1, 1024, 16, Dtype.BF16));

    private final Logger log = Logger.getLogger(Tries.class.getName());
    private final TieredKvCache store = TieredKvCache.builder()
            .hostBytes(64 << 20)
            .prefaultInBackground(false)
            .build();

    @AfterEach
    void close() {
        store.close();
        log.setLevel(null);
    }

    private Endpoint open(Access access) {
        return new Endpoint(store, EndpointOptions.DEFAULTS.withAccess(access), System::nanoTime);
    }

    private static Status greeted(Endpoint endpoint, String tenant, String secret) throws Violation {
        Peer peer = new Peer(endpoint);
        Status status = peer.greet(tenant, secret, null).header().status();
        peer.end(CloseReason.PEER_CLOSED);
        return status;
    }

    private static Loopback.Whole registered(Peer peer, Namespace namespace) throws Violation {
        BodyWriter body = new BodyWriter();
        NamespaceCodec.write(namespace, body);
        return peer.ask(MessageType.REGISTER, body);
    }

    @Test
    void givenTwoSecrets_whenShown_thenEachIsGoodAndNoOther() throws Violation {
        try (Endpoint endpoint = open(Access.secrets(List.of(OLD, NEW)))) {
            assertThat(greeted(endpoint, "", OLD)).isEqualTo(Status.OK);
            assertThat(greeted(endpoint, "", NEW)).isEqualTo(Status.OK);
            assertThat(greeted(endpoint, "", OLD + NEW)).isEqualTo(Status.UNAUTHORIZED);
        }
    }

    @Test
    void givenTenantsWithSecrets_whenShown_thenEachIsGoodForItsTenantOnly() throws Violation {
        try (Endpoint endpoint =
                open(Access.tenantSecrets(Map.of("a", List.of(OLD, NEW), "b", List.of("secret of tenant b"))))) {
            assertThat(greeted(endpoint, "a", OLD)).isEqualTo(Status.OK);
            assertThat(greeted(endpoint, "a", NEW)).isEqualTo(Status.OK);
            assertThat(greeted(endpoint, "b", NEW)).isEqualTo(Status.UNAUTHORIZED);
            assertThat(greeted(endpoint, "", NEW)).isEqualTo(Status.UNAUTHORIZED);
        }
    }

    @Test
    void givenSecretsThatChange_whenShown_thenThoseOfTheMomentCountAndSessionsGoOn() throws Violation {
        AtomicReference<Access> said = new AtomicReference<>(Access.secret(OLD));
        try (Endpoint endpoint = open(new Access.Current(said::get))) {
            Peer before = new Peer(endpoint);
            Welcome welcome = Welcome.read(before.greet("", OLD, null).reader());

            said.set(Access.secret(NEW));

            assertThat(greeted(endpoint, "", OLD)).isEqualTo(Status.UNAUTHORIZED);
            assertThat(greeted(endpoint, "", NEW)).isEqualTo(Status.OK);
            assertThat(registered(before, SPACE).header().status()).isEqualTo(Status.OK);
            Peer more = new Peer(endpoint);
            assertThat(more.greet("", OLD, welcome).header().status())
                    .as("another connection of who is in")
                    .isEqualTo(Status.OK);
            more.end(CloseReason.PEER_CLOSED);
            Peer thief = new Peer(endpoint);
            assertThat(thief.greet("", OLD + "s", welcome).header().status()).isEqualTo(Status.UNAUTHORIZED);
            thief.end(CloseReason.PEER_CLOSED);
            Peer other = new Peer(endpoint);
            assertThat(other.greet("a", OLD, welcome).header().status()).isEqualTo(Status.UNAUTHORIZED);
            other.end(CloseReason.PEER_CLOSED);
            before.end(CloseReason.PEER_CLOSED);
        }
    }

    @Test
    void givenAStrangerWhoGuesses_whenTooOften_thenNothingIsLookedAtForAMinute() throws Violation {
        AtomicLong now = new AtomicLong();
        log.setLevel(Level.OFF);
        EndpointOptions options = EndpointOptions.DEFAULTS.withAccess(Access.secret(OLD));
        try (Endpoint endpoint = new Endpoint(store, options, now::get)) {
            Peer in = new Peer(endpoint);
            Welcome welcome = Welcome.read(in.greet("", OLD, null).reader());
            for (int i = 0; i < Tries.MOST_WRONG; i++) {
                assertThat(greeted(endpoint, "", NEW)).isEqualTo(Status.UNAUTHORIZED);
            }
            assertThat(greeted(endpoint, "", NEW)).isEqualTo(Status.BUSY);
            assertThat(greeted(endpoint, "", OLD)).as("a guess that is right").isEqualTo(Status.BUSY);
            Peer more = new Peer(endpoint);
            assertThat(more.greet("", OLD, welcome).header().status())
                    .as("another connection of who is in")
                    .isEqualTo(Status.OK);
            more.end(CloseReason.PEER_CLOSED);
            assertThat(endpoint.stats().wrongProofs()).isEqualTo(Tries.MOST_WRONG);
            assertThat(endpoint.stats().unseenProofs()).isEqualTo(2);

            now.addAndGet(Tries.WRONG_LASTS.toNanos() + 1);

            assertThat(greeted(endpoint, "", OLD)).isEqualTo(Status.OK);
            in.end(CloseReason.PEER_CLOSED);
        }
    }

    @Test
    void givenStrangersWhoGuessAtOnce_whenTheyAreMany_thenTenAreLookedAt() throws Exception {
        log.setLevel(Level.OFF);
        EndpointOptions options = EndpointOptions.DEFAULTS.withAccess(Access.secret(OLD));
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
            assertThat(looked).isEqualTo(Tries.MOST_WRONG);
        }
    }

    @Test
    void givenAClientWithTheNextSecret_whenItBecomesGood_thenItsEarlierTriesAreForgotten() throws Violation {
        log.setLevel(Level.OFF);
        AtomicReference<Access> said = new AtomicReference<>(Access.secret(OLD));
        try (Endpoint endpoint = open(new Access.Current(said::get))) {
            for (int i = 0; i <= Tries.MOST_WRONG; i++) {
                assertThat(greeted(endpoint, "", NEW)).isNotEqualTo(Status.OK);
            }
            said.set(Access.secret(NEW));
            assertThat(greeted(endpoint, "", NEW)).isEqualTo(Status.OK);
        }
    }

    @Test
    void givenWrongProofs_whenLogged_thenTheFirstAndTheLastOnlyAndNothingThatAStrangerWroteMakesALine()
            throws Violation {
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
        try (Endpoint endpoint = open(Access.secret(OLD))) {
            for (int i = 0; i < Tries.MOST_WRONG + 5; i++) {
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
    void givenTheNameOfOneTenant_whenAnothersNamespaceIsAskedFor_thenForbidden() throws Violation {
        try (Endpoint endpoint = open(new Access.InName("default", Access.secret(OLD)))) {
            Peer peer = new Peer(endpoint);
            assertThat(peer.greet("a", OLD, null).header().status()).isEqualTo(Status.OK);
            assertThat(registered(peer, SPACE.toBuilder().tenant("a").build())
                            .header()
                            .status())
                    .isEqualTo(Status.FORBIDDEN);
            assertThat(registered(peer, SPACE.toBuilder().tenant("default").build())
                            .header()
                            .status())
                    .isEqualTo(Status.OK);
            peer.end(CloseReason.PEER_CLOSED);
        }
    }

    @Test
    void givenANamespaceThatIsKeptBack_whenRegistered_thenItIsSaidWhyAndTheStoreNeverHearsOfIt() throws Violation {
        NamespaceRule rule = namespace -> namespace.model().equals("kept") ? "kept is not for clients" : null;
        EndpointOptions options = EndpointOptions.DEFAULTS.withNamespaces(rule);
        try (Endpoint endpoint = new Endpoint(store, options, System::nanoTime)) {
            Peer peer = Peer.welcomed(endpoint);
            Loopback.Whole reply = registered(peer, Namespace.objects("kept", "x"));
            assertThat(reply.header().status()).isEqualTo(Status.FORBIDDEN);
            assertThat(reply.reader().text("text")).isEqualTo("kept is not for clients");
            assertThat(store.stats().namespaces()).isEmpty();
            assertThat(registered(peer, SPACE).header().status()).isEqualTo(Status.OK);
            peer.end(CloseReason.PEER_CLOSED);
        }
    }

    @Test
    void givenASecretThatIsTooShort_whenMade_thenRefusedWithoutShowingIt() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> Access.tenantSecrets(Map.of("a", List.of(OLD, "short"))))
                .withMessage("the secret of a has 5 bytes; allowed: 16 and up");
    }
}
