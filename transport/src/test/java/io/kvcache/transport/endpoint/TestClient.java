package io.kvcache.transport.endpoint;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.Namespace;
import io.kvcache.transport.net.DisconnectReason;
import io.kvcache.transport.net.FrameHandler;
import io.kvcache.transport.net.FrameReader;
import io.kvcache.transport.net.RecordingSink;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.Handshake.Challenge;
import io.kvcache.transport.wire.Handshake.Hello;
import io.kvcache.transport.wire.Handshake.Proof;
import io.kvcache.transport.wire.Handshake.Welcome;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.NamespaceCodec;
import io.kvcache.transport.wire.OutboundFrame;
import io.kvcache.transport.wire.ProtocolException;
import io.kvcache.transport.wire.Secret;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// A client of an endpoint that says what a test wants it to say, without a network.
final class TestClient {

    private static final int MAX_CHUNK_BYTES = 1 << 20;

    private final RecordingSink recordingSink;
    private final FrameHandler handler;
    private final FrameReader reader;
    private long number;

    TestClient(Endpoint endpoint) {
        this(endpoint, "");
    }

    /// @param place that it comes from
    TestClient(Endpoint endpoint, String place) {
        recordingSink = new RecordingSink(place);
        handler = endpoint.onConnected(recordingSink);
        reader = new FrameReader(handler, 4096);
    }

    /// One that has said who it is.
    static TestClient connect(Endpoint endpoint) throws ProtocolException {
        TestClient testClient = new TestClient(endpoint);
        testClient.handshake("", null, null);
        return testClient;
    }

    /// Says who it is; answers what it was told last.
    RecordingSink.ReceivedFrame handshake(String tenant, @Nullable String secret, @Nullable Welcome joined)
            throws ProtocolException {
        Hello hello = new Hello(
                1,
                joined == null ? 0 : joined.session(),
                0,
                Secret.random(32),
                joined == null ? Secret.zeros(16) : joined.ticket(),
                0,
                tenant,
                "engine 1.0");
        Challenge challenge =
                Challenge.read(request(hello.frame(1, 0)).getFirst().reader());
        Secret known = new Secret((secret == null ? "" : secret).getBytes(StandardCharsets.UTF_8));
        byte[] proof = secret == null
                ? new byte[32]
                : new Proof(known, hello, challenge).clientProof().bytes();
        return request(new BodyWriter().bytes(proof).request(MessageType.AUTH, 2, 0))
                .getFirst();
    }

    List<RecordingSink.ReceivedFrame> request(OutboundFrame frame) throws ProtocolException {
        return request(RecordingSink.bytes(frame));
    }

    List<RecordingSink.ReceivedFrame> request(byte[] bytes) throws ProtocolException {
        RecordingSink.feed(reader, bytes, MAX_CHUNK_BYTES);
        return recordingSink.take();
    }

    /// Asks, and answers what comes first.
    RecordingSink.ReceivedFrame request(MessageType type, BodyWriter body) throws ProtocolException {
        number++;
        return request(body.request(type, number, 0)).getFirst();
    }

    /// Says what has no answer.
    void send(MessageType type, BodyWriter body) throws ProtocolException {
        request(body.request(type, 0, 0));
    }

    int register(Namespace namespace) throws ProtocolException {
        BodyWriter body = new BodyWriter();
        NamespaceCodec.write(namespace, body);
        return request(MessageType.REGISTER, body).reader().count("number");
    }

    /// Tells all of a chain.
    static BodyWriter chain(int slot, int namespace, BlockChain chain) {
        BodyWriter body =
                new BodyWriter().u8(slot).u8(slot).u16(0).i32(namespace).i32(0).i32(chain.length());
        for (int i = 0; i < chain.length(); i++) {
            body.bigEndian(chain.keyHi(i)).bigEndian(chain.keyLo(i)).bigEndian(0);
        }
        return body;
    }

    /// The beginning of a body about a chain.
    static BodyWriter chainReference(int slot, int length) {
        return new BodyWriter().u8(slot).u8(0).u16(0).i32(length);
    }

    @Nullable
    DisconnectReason reason() {
        return recordingSink.reason();
    }

    List<RecordingSink.ReceivedFrame> receivedFrames() throws ProtocolException {
        return recordingSink.take();
    }

    /// The connection ends.
    void end(DisconnectReason reason) {
        recordingSink.close(reason);
        handler.onClosed(reason);
    }
}
