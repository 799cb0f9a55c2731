package io.kvcache.transport.endpoint;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.core.identity.Namespace;
import io.kvcache.transport.net.DisconnectReason;
import io.kvcache.transport.net.RecordingSink;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.FrameHeader;
import io.kvcache.transport.wire.Handshake.Challenge;
import io.kvcache.transport.wire.Handshake.Hello;
import io.kvcache.transport.wire.Handshake.Proof;
import io.kvcache.transport.wire.Handshake.Welcome;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.NamespaceCodec;
import io.kvcache.transport.wire.ProtocolException;
import io.kvcache.transport.wire.Secret;
import io.kvcache.transport.wire.Status;
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

    private final EndpointFixture endpointFixture = new EndpointFixture();

    @AfterEach
    void nothingIsLeft() {
        endpointFixture.requireNothingLeft();
    }

    @Test
    void givenASecret_whenTheProofIsWrong_thenUnauthorized() throws ProtocolException {
        try (Endpoint endpoint = endpointFixture.open(
                EndpointFixture.OPTIONS.withAuth(EndpointAuthentication.secret("0123456789abcdef")))) {
            TestClient right = new TestClient(endpoint);
            Welcome welcome = Welcome.read(
                    right.handshake("anybody", "0123456789abcdef", null).reader());
            for (String secret : new String[] {null, "x", "0123456789abcdeF"}) {
                TestClient wrong = new TestClient(endpoint);
                assertThat(wrong.handshake("anybody", secret, null).header().status())
                        .isEqualTo(Status.UNAUTHORIZED);
                assertThat(wrong.reason()).isEqualTo(DisconnectReason.UNAUTHORIZED);
                wrong.end(DisconnectReason.UNAUTHORIZED);
                TestClient joining = new TestClient(endpoint);
                assertThat(joining.handshake("anybody", secret, welcome)
                                .header()
                                .status())
                        .as("with a ticket, but no secret")
                        .isEqualTo(Status.UNAUTHORIZED);
                joining.end(DisconnectReason.UNAUTHORIZED);
            }
            assertThat(endpoint.stats().closed()).containsEntry(DisconnectReason.UNAUTHORIZED, 6L);
            right.end(DisconnectReason.PEER_CLOSED);
        }
    }

    @Test
    void givenTenants_whenOneTakesAllConnectionsThatItMay_thenTheOthersStillFindSome() throws Exception {
        Map<String, String> secrets = Map.of("a", "secret of tenant a", "b", "secret of tenant b");
        try (Endpoint endpoint = endpointFixture.open(EndpointFixture.OPTIONS
                .withAuth(EndpointAuthentication.tenants(secrets))
                .withMaxConnections(8))) {
            List<TestClient> in = new ArrayList<>();
            for (int i = 0; i < 4; i++) {
                TestClient testClient = new TestClient(endpoint);
                assertThat(testClient
                                .handshake("a", "secret of tenant a", null)
                                .header()
                                .status())
                        .isEqualTo(Status.OK);
                in.add(testClient);
            }
            TestClient tooMany = new TestClient(endpoint);
            RecordingSink.ReceivedFrame refused = tooMany.handshake("a", "secret of tenant a", null);
            assertThat(refused.header().status()).isEqualTo(Status.BUSY);
            assertThat(refused.reader().text("text")).contains("tenant \"a\"", "of 8");
            tooMany.end(DisconnectReason.OVER_LIMIT);
            TestClient other = new TestClient(endpoint);
            assertThat(other.handshake("b", "secret of tenant b", null).header().status())
                    .isEqualTo(Status.OK);
            other.end(DisconnectReason.PEER_CLOSED);
            in.removeFirst().end(DisconnectReason.PEER_CLOSED);
            TestClient again = new TestClient(endpoint);
            assertThat(again.handshake("a", "secret of tenant a", null).header().status())
                    .isEqualTo(Status.OK);
            in.add(again);
            in.forEach(each -> each.end(DisconnectReason.PEER_CLOSED));
        }
    }

    @Test
    void givenTenants_whenOneFlushes_thenOnlyTheDefaultTenantMay() throws Exception {
        Map<String, String> secrets = Map.of("a", "secret of tenant a", "default", "secret of the operator");
        try (Endpoint endpoint =
                endpointFixture.open(EndpointFixture.OPTIONS.withAuth(EndpointAuthentication.tenants(secrets)))) {
            TestClient one = new TestClient(endpoint);
            one.handshake("a", "secret of tenant a", null);
            RecordingSink.ReceivedFrame refused = one.request(MessageType.FLUSH, new BodyWriter().i64(0));
            assertThat(refused.header().status()).isEqualTo(Status.FORBIDDEN);
            assertThat(refused.reader().text("text")).contains("\"a\" may not flush", "allowed: tenant \"default\"");
            one.end(DisconnectReason.PEER_CLOSED);
            TestClient operator = new TestClient(endpoint);
            operator.handshake("default", "secret of the operator", null);
            List<RecordingSink.ReceivedFrame> heard =
                    operator.request(new BodyWriter().i64(0).request(MessageType.FLUSH, 9, 0));
            for (long start = System.nanoTime(); heard.isEmpty(); heard = operator.receivedFrames()) {
                EndpointFixture.pollOnce("the flush's answer", start);
            }
            assertThat(heard.getFirst().header().status()).isEqualTo(Status.OK);
            operator.end(DisconnectReason.PEER_CLOSED);
        }
    }

    @Test
    void givenTenants_whenOneNamesAnothersNamespace_thenForbidden() throws ProtocolException {
        Map<String, String> secrets = Map.of("a", "secret of tenant a", "b", "secret of tenant b");
        try (Endpoint endpoint =
                endpointFixture.open(EndpointFixture.OPTIONS.withAuth(EndpointAuthentication.tenants(secrets)))) {
            TestClient testClient = new TestClient(endpoint);
            testClient.handshake("a", "secret of tenant a", null);
            Namespace mine = EndpointFixture.SPACE.toBuilder().tenant("a").build();
            Namespace theirs = EndpointFixture.SPACE.toBuilder().tenant("b").build();
            assertThat(testClient.register(mine)).isEqualTo(1);
            for (Namespace other : List.of(theirs, EndpointFixture.SPACE)) {
                BodyWriter body = new BodyWriter();
                NamespaceCodec.write(other, body);
                RecordingSink.ReceivedFrame reply = testClient.request(MessageType.REGISTER, body);
                assertThat(reply.header().status()).isEqualTo(Status.FORBIDDEN);
                assertThat(reply.reader().text("text")).contains("allowed: \"a\"");
            }
            assertThat(testClient
                            .request(MessageType.EVENTS, new BodyWriter().i64(0).i32(1))
                            .header()
                            .status())
                    .isEqualTo(Status.FORBIDDEN);
            assertThatThrownBy(() ->
                            testClient.send(MessageType.CHAIN, TestClient.chain(0, 2, EndpointFixture.chain(1, 1))))
                    .isInstanceOf(ProtocolException.class);
            testClient.end(DisconnectReason.MALFORMED);
            TestClient stranger = new TestClient(endpoint);
            assertThat(stranger.handshake("a", "secret of tenant b", null)
                            .header()
                            .status())
                    .isEqualTo(Status.UNAUTHORIZED);
            stranger.end(DisconnectReason.UNAUTHORIZED);
            TestClient unknown = new TestClient(endpoint);
            assertThat(unknown.handshake("c", "secret of tenant a", null)
                            .header()
                            .status())
                    .isEqualTo(Status.UNAUTHORIZED);
            unknown.end(DisconnectReason.UNAUTHORIZED);
        }
    }

    @Test
    void givenManyWhoSayNothing_whenAClientComes_thenTheOldestOfTheirPlaceGivesWay() throws ProtocolException {
        try (Endpoint endpoint = endpointFixture.open(EndpointFixture.OPTIONS.withMaxConnections(2))) {
            TestClient slow = new TestClient(endpoint, "10.0.0.1");
            TestClient silent = new TestClient(endpoint, "10.0.0.2");
            TestClient first = new TestClient(endpoint, "10.0.0.2");
            assertThat(silent.reason()).isEqualTo(DisconnectReason.OVER_LIMIT);
            assertThat(first.handshake("", null, null).header().status()).isEqualTo(Status.OK);
            TestClient another = new TestClient(endpoint, "10.0.0.2");
            assertThat(slow.handshake("", null, null).header().status())
                    .as("it came first, but from elsewhere")
                    .isEqualTo(Status.OK);
            assertThat(another.reason()).isNull();
            for (TestClient each : List.of(slow, silent, first, another)) {
                each.end(DisconnectReason.PEER_CLOSED);
            }
            assertThat(endpoint.stats().connections()).isZero();
        }
    }

    @Test
    void givenAWrongTicket_whenJoined_thenUnauthorized() throws ProtocolException {
        try (Endpoint endpoint = endpointFixture.open(EndpointFixture.OPTIONS)) {
            TestClient testClient = new TestClient(endpoint);
            Welcome welcome = Welcome.read(testClient.handshake("", null, null).reader());
            Welcome guessed = new Welcome(welcome.session(), Secret.random(16), 1, welcome.proof());
            TestClient thief = new TestClient(endpoint);
            assertThat(thief.handshake("", null, guessed).header().status()).isEqualTo(Status.UNAUTHORIZED);
            thief.end(DisconnectReason.UNAUTHORIZED);
            testClient.end(DisconnectReason.PEER_CLOSED);
        }
    }

    @Test
    void givenAStranger_whenALongBodyIsAnnounced_thenTheConnectionIsOverBeforeItComes() throws ProtocolException {
        try (Endpoint endpoint = endpointFixture.open(EndpointFixture.OPTIONS)) {
            byte[] half = Arrays.copyOf(
                    RecordingSink.bytes(new BodyWriter()
                            .bytes(new byte[ServerConnection.MAX_HANDSHAKE_BODY_BYTES + 1])
                            .request(MessageType.HELLO, 1, 0)),
                    FrameHeader.BYTES + 1);
            TestClient stranger = new TestClient(endpoint);
            assertThatThrownBy(() -> stranger.request(half))
                    .isInstanceOf(ProtocolException.class)
                    .hasMessageContaining("131073 bytes; allowed at this moment: 0 to 131072");
            stranger.end(DisconnectReason.MALFORMED);
            TestClient known = TestClient.connect(endpoint);
            assertThat(known.request(half)).as("it may say more").isEmpty();
            known.end(DisconnectReason.BROKEN);
        }
    }

    @Test
    void givenAClientOfALaterVersion_whenItSaysHello_thenThisVersionIsSpoken() throws ProtocolException {
        try (Endpoint endpoint = endpointFixture.open(EndpointFixture.OPTIONS)) {
            TestClient testClient = new TestClient(endpoint);
            BodyWriter hello = new BodyWriter()
                    .u16(Hello.VERSION + 1)
                    .u16(0)
                    .i32(0)
                    .i64(0)
                    .i64(1L << 40) // a capability that this version does not know
                    .bytes(new byte[Hello.NONCE_BYTES + Hello.TICKET_BYTES])
                    .text("")
                    .text("")
                    .i64(7); // and a field
            Challenge challenge =
                    Challenge.read(testClient.request(MessageType.HELLO, hello).reader());
            assertThat(challenge.version()).isEqualTo(Hello.VERSION);
            Welcome welcome = Welcome.read(testClient
                    .request(MessageType.AUTH, new BodyWriter().bytes(new byte[Proof.BYTES]))
                    .reader());
            assertThat(welcome.session()).isPositive();
            testClient.end(DisconnectReason.PEER_CLOSED);
        }
    }

    @ParameterizedTest
    @EnumSource(MessageType.class)
    void givenNobodyKnown_whenAnythingIsAsked_thenTheConnectionIsOver(MessageType type) {
        try (Endpoint endpoint = endpointFixture.open(EndpointFixture.OPTIONS)) {
            TestClient testClient = new TestClient(endpoint);
            BodyWriter body = new BodyWriter().bytes(new byte[100]);
            if (type == MessageType.ERROR) {
                return;
            }
            assertThatThrownBy(() -> testClient.request(type, body)).isInstanceOf(ProtocolException.class);
            testClient.end(DisconnectReason.MALFORMED);
        }
    }
}
