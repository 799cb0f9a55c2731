package io.kvcache.transport.endpoint;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.core.identity.Namespace;
import io.kvcache.transport.link.CloseReason;
import io.kvcache.transport.link.Loopback;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.FrameHeader;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.NamespaceCodec;
import io.kvcache.transport.wire.Secret;
import io.kvcache.transport.wire.Status;
import io.kvcache.transport.wire.Violation;
import io.kvcache.transport.wire.Welcome;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// Who may come in at an endpoint, and what of others they see.
final class EndpointAccessTest {

    private final Serving serving = new Serving();

    @AfterEach
    void nothingIsLeft() {
        serving.requireNothingLeft();
    }

    @Test
    void givenASecret_whenTheProofIsWrong_thenUnauthorized() throws Violation {
        try (Endpoint endpoint = serving.open(Serving.OPTIONS.withAccess(Access.secret("0123456789abcdef")))) {
            Peer right = new Peer(endpoint);
            Welcome welcome = Welcome.read(
                    right.greet("anybody", "0123456789abcdef", null).reader());
            for (String secret : new String[] {null, "x", "0123456789abcdeF"}) {
                Peer wrong = new Peer(endpoint);
                assertThat(wrong.greet("anybody", secret, null).header().status())
                        .isEqualTo(Status.UNAUTHORIZED);
                assertThat(wrong.reason()).isEqualTo(CloseReason.UNAUTHORIZED);
                wrong.end(CloseReason.UNAUTHORIZED);
                Peer joining = new Peer(endpoint);
                assertThat(joining.greet("anybody", secret, welcome).header().status())
                        .as("with a ticket, but no secret")
                        .isEqualTo(Status.UNAUTHORIZED);
                joining.end(CloseReason.UNAUTHORIZED);
            }
            assertThat(endpoint.stats().closed()).containsEntry(CloseReason.UNAUTHORIZED, 6L);
            right.end(CloseReason.PEER_CLOSED);
        }
    }

    @Test
    void givenTenants_whenOneTakesAllConnectionsThatItMay_thenTheOthersStillFindSome() throws Exception {
        Map<String, String> secrets = Map.of("a", "secret of tenant a", "b", "secret of tenant b");
        try (Endpoint endpoint =
                serving.open(Serving.OPTIONS.withAccess(Access.tenants(secrets)).withMaxConnections(8))) {
            List<Peer> in = new ArrayList<>();
            for (int i = 0; i < 4; i++) {
                Peer peer = new Peer(endpoint);
                assertThat(peer.greet("a", "secret of tenant a", null).header().status())
                        .isEqualTo(Status.OK);
                in.add(peer);
            }
            Peer tooMany = new Peer(endpoint);
            Loopback.Whole refused = tooMany.greet("a", "secret of tenant a", null);
            assertThat(refused.header().status()).isEqualTo(Status.BUSY);
            assertThat(refused.reader().text("text")).contains("tenant \"a\"", "of 8");
            tooMany.end(CloseReason.OVER_LIMIT);
            Peer other = new Peer(endpoint);
            assertThat(other.greet("b", "secret of tenant b", null).header().status())
                    .isEqualTo(Status.OK);
            other.end(CloseReason.PEER_CLOSED);
            in.removeFirst().end(CloseReason.PEER_CLOSED);
            Peer again = new Peer(endpoint);
            assertThat(again.greet("a", "secret of tenant a", null).header().status())
                    .isEqualTo(Status.OK);
            in.add(again);
            in.forEach(each -> each.end(CloseReason.PEER_CLOSED));
        }
    }

    @Test
    void givenTenants_whenOneFlushes_thenOnlyTheDefaultTenantMay() throws Exception {
        Map<String, String> secrets = Map.of("a", "secret of tenant a", "default", "secret of the operator");
        try (Endpoint endpoint = serving.open(Serving.OPTIONS.withAccess(Access.tenants(secrets)))) {
            Peer one = new Peer(endpoint);
            one.greet("a", "secret of tenant a", null);
            Loopback.Whole refused = one.ask(MessageType.FLUSH, new BodyWriter().i64(0));
            assertThat(refused.header().status()).isEqualTo(Status.FORBIDDEN);
            assertThat(refused.reader().text("text")).contains("\"a\" may not flush", "allowed: tenant \"default\"");
            one.end(CloseReason.PEER_CLOSED);
            Peer operator = new Peer(endpoint);
            operator.greet("default", "secret of the operator", null);
            List<Loopback.Whole> heard = operator.ask(new BodyWriter().i64(0).request(MessageType.FLUSH, 9, 0));
            for (long start = System.nanoTime(); heard.isEmpty(); heard = operator.heard()) {
                Serving.look("the flush's answer", start);
            }
            assertThat(heard.getFirst().header().status()).isEqualTo(Status.OK);
            operator.end(CloseReason.PEER_CLOSED);
        }
    }

    @Test
    void givenTenants_whenOneNamesAnothersNamespace_thenForbidden() throws Violation {
        Map<String, String> secrets = Map.of("a", "secret of tenant a", "b", "secret of tenant b");
        try (Endpoint endpoint = serving.open(Serving.OPTIONS.withAccess(Access.tenants(secrets)))) {
            Peer peer = new Peer(endpoint);
            peer.greet("a", "secret of tenant a", null);
            Namespace mine = Serving.SPACE.toBuilder().tenant("a").build();
            Namespace theirs = Serving.SPACE.toBuilder().tenant("b").build();
            assertThat(peer.register(mine)).isEqualTo(1);
            for (Namespace other : List.of(theirs, Serving.SPACE)) {
                BodyWriter body = new BodyWriter();
                NamespaceCodec.write(other, body);
                Loopback.Whole reply = peer.ask(MessageType.REGISTER, body);
                assertThat(reply.header().status()).isEqualTo(Status.FORBIDDEN);
                assertThat(reply.reader().text("text")).contains("allowed: \"a\"");
            }
            assertThat(peer.ask(MessageType.EVENTS, new BodyWriter().i64(0).i32(1))
                            .header()
                            .status())
                    .isEqualTo(Status.FORBIDDEN);
            assertThatThrownBy(() -> peer.tell(MessageType.CHAIN, Peer.chain(0, 2, Serving.chain(1, 1))))
                    .isInstanceOf(Violation.class);
            peer.end(CloseReason.MALFORMED);
            Peer stranger = new Peer(endpoint);
            assertThat(stranger.greet("a", "secret of tenant b", null).header().status())
                    .isEqualTo(Status.UNAUTHORIZED);
            stranger.end(CloseReason.UNAUTHORIZED);
            Peer unknown = new Peer(endpoint);
            assertThat(unknown.greet("c", "secret of tenant a", null).header().status())
                    .isEqualTo(Status.UNAUTHORIZED);
            unknown.end(CloseReason.UNAUTHORIZED);
        }
    }

    @Test
    void givenManyWhoSayNothing_whenAClientComes_thenTheOldestOfTheirPlaceGivesWay() throws Violation {
        try (Endpoint endpoint = serving.open(Serving.OPTIONS.withMaxConnections(2))) {
            Peer slow = new Peer(endpoint, "10.0.0.1");
            Peer silent = new Peer(endpoint, "10.0.0.2");
            Peer first = new Peer(endpoint, "10.0.0.2");
            assertThat(silent.reason()).isEqualTo(CloseReason.OVER_LIMIT);
            assertThat(first.greet("", null, null).header().status()).isEqualTo(Status.OK);
            Peer another = new Peer(endpoint, "10.0.0.2");
            assertThat(slow.greet("", null, null).header().status())
                    .as("it came first, but from elsewhere")
                    .isEqualTo(Status.OK);
            assertThat(another.reason()).isNull();
            for (Peer each : List.of(slow, silent, first, another)) {
                each.end(CloseReason.PEER_CLOSED);
            }
            assertThat(endpoint.stats().connections()).isZero();
        }
    }

    @Test
    void givenAWrongTicket_whenJoined_thenUnauthorized() throws Violation {
        try (Endpoint endpoint = serving.open(Serving.OPTIONS)) {
            Peer peer = new Peer(endpoint);
            Welcome welcome = Welcome.read(peer.greet("", null, null).reader());
            Welcome guessed = new Welcome(welcome.session(), Secret.random(16), 1, welcome.proof());
            Peer thief = new Peer(endpoint);
            assertThat(thief.greet("", null, guessed).header().status()).isEqualTo(Status.UNAUTHORIZED);
            thief.end(CloseReason.UNAUTHORIZED);
            peer.end(CloseReason.PEER_CLOSED);
        }
    }

    @Test
    void givenAStranger_whenALongBodyIsAnnounced_thenTheConnectionIsOverBeforeItComes() throws Violation {
        try (Endpoint endpoint = serving.open(Serving.OPTIONS)) {
            byte[] half = Arrays.copyOf(
                    Loopback.bytes(new BodyWriter()
                            .bytes(new byte[Conversation.STRANGERS_BODY_BYTES + 1])
                            .request(MessageType.HELLO, 1, 0)),
                    FrameHeader.BYTES + 1);
            Peer stranger = new Peer(endpoint);
            assertThatThrownBy(() -> stranger.ask(half))
                    .isInstanceOf(Violation.class)
                    .hasMessageContaining("131073 bytes; allowed at this moment: 0 to 131072");
            stranger.end(CloseReason.MALFORMED);
            Peer known = Peer.welcomed(endpoint);
            assertThat(known.ask(half)).as("it may say more").isEmpty();
            known.end(CloseReason.BROKEN);
        }
    }

    @ParameterizedTest
    @EnumSource(MessageType.class)
    void givenNobodyKnown_whenAnythingIsAsked_thenTheConnectionIsOver(MessageType type) {
        try (Endpoint endpoint = serving.open(Serving.OPTIONS)) {
            Peer peer = new Peer(endpoint);
            BodyWriter body = new BodyWriter().bytes(new byte[100]);
            if (type == MessageType.ERROR) {
                return;
            }
            assertThatThrownBy(() -> peer.ask(type, body)).isInstanceOf(Violation.class);
            peer.end(CloseReason.MALFORMED);
        }
    }
}
