package io.kvcache.transport.endpoint;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.core.BlockTable;
import io.kvcache.core.KvCache;
import io.kvcache.core.ObjectView;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.transport.net.DisconnectReason;
import io.kvcache.transport.net.RecordingSink;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.ProtocolException;
import io.kvcache.transport.wire.Status;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// PUT and PUT_OBJECT, byte by byte. The checksums were computed outside Java.
final class PutFramesTest {

    private static final HexFormat HEX = HexFormat.of();

    /// Blocks of 32 bytes.
    private static final Namespace SPACE = Namespace.of("m", BlockShape.kv(1, 1, 8, 1, Dtype.BF16));

    private static final String BYTES = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

    private static final String PUT = """
            4b564331 2300 0000 0700000000000000 18000000 20000000 0000000000000000
            05 000000 02000000  INDEX 00000000  73c2a486 00000000
            """;

    private static final String PUT_OBJECT = """
            4b564331 2c00 0000 0800000000000000 13000000 20000000 0000000000000000
            01000000 03000000 b18cd5a3 00000000 6b6579
            """;

    private static final String ANSWER = """
            4b564331 TYPE 0100 REQUEST 08000000 00000000 0000000000000000
            OUTCOME SEALED 0000 00000000
            """;

    private final TieredKvCache store = TieredKvCache.builder()
            .hostBytes(64 << 20)
            .failOnLeak(true)
            .prefaultInBackground(false)
            .build();
    private final Endpoint endpoint = new Endpoint(store, EndpointOptions.DEFAULTS, System::nanoTime);
    private final BlockChain chain = BlockChain.of(SPACE, new int[] {1, 2});

    @AfterEach
    void nothingIsLeft() {
        endpoint.close();
        assertThat(store.stats().openTables()).isZero();
        store.validate();
        store.close();
    }

    private TestClient testClient() throws ProtocolException {
        TestClient testClient = TestClient.connect(endpoint);
        testClient.send(MessageType.CHAIN, TestClient.chain(5, testClient.register(SPACE), chain));
        return testClient;
    }

    private static byte[] bytes(String hex) {
        return HEX.parseHex(hex.replaceAll("\\s", ""));
    }

    private static byte[] put(int index) {
        return bytes(PUT.replace("INDEX", "0%d000000".formatted(index)) + BYTES);
    }

    private static byte[] all(RecordingSink.ReceivedFrame reply) {
        BodyWriter body = new BodyWriter().bytes(reply.body());
        MessageType type = MessageType.of(reply.header().type());
        assertThat(type).isNotNull();
        return RecordingSink.bytes(body.reply(type, reply.header().request()));
    }

    private static void assertAnswer(
            RecordingSink.ReceivedFrame reply, String type, String request, String outcome, String sealed) {
        assertThat(reply.header().status()).isEqualTo(Status.OK);
        String expected = ANSWER.replace("TYPE", type)
                .replace("REQUEST", request)
                .replace("OUTCOME", outcome)
                .replace("SEALED", sealed);
        assertThat(HEX.formatHex(all(reply))).isEqualTo(HEX.formatHex(bytes(expected)));
    }

    @Test
    void givenABlock_whenPut_thenTheseBytesBothWays() throws ProtocolException {
        TestClient testClient = testClient();
        assertAnswer(testClient.request(put(0)).getFirst(), "2300", "0700000000000000", "00", "00");
        assertAnswer(testClient.request(put(0)).getFirst(), "2300", "0700000000000000", "01", "00");
        try (BlockTable table = store.acquire(chain)) {
            assertThat(table.readyBlocks()).isEqualTo(1);
            assertThat(table.segment(0).toArray(ValueLayout.JAVA_BYTE)).isEqualTo(bytes(BYTES));
        }
        assertThat(endpoint.stats().reservations().granted()).isZero();
        testClient.end(DisconnectReason.PEER_CLOSED);
    }

    @Test
    void givenAnObject_whenPut_thenTheseBytesBothWays() throws ProtocolException {
        TestClient testClient = testClient();
        assertAnswer(testClient.request(bytes(PUT_OBJECT + BYTES)).getFirst(), "2c00", "0800000000000000", "00", "00");
        try (ObjectView view = store.getObject(SPACE, "key".getBytes(StandardCharsets.UTF_8))) {
            assertThat(view).isNotNull();
            assertThat(view.bytes()).isEqualTo(32);
        }
        testClient.end(DisconnectReason.PEER_CLOSED);
    }

    @Test
    void givenABlockOfAnotherNamespaceUnderTheKey_whenPut_thenBusyWithTheCauseBehindIt() throws ProtocolException {
        Namespace other = Namespace.of("other", BlockShape.kv(1, 1, 8, 1, Dtype.BF16));
        store.register(other);
        BlockChain same = BlockChain.ofKeys(other, List.of(chain.key(0)));
        assertThat(store.putAll(same, 0, List.of(MemorySegment.ofArray(bytes(BYTES))), KvCache.NO_WAIT)
                        .stored())
                .isEqualTo(1);
        TestClient testClient = testClient();
        String told = HEX.formatHex(all(testClient.request(put(0)).getFirst()));
        assertThat(told).endsWith("02" + "00" + "01" + "0000000000");
        assertThat(told)
                .hasSameSizeAs(ANSWER.replace("TYPE", "2300")
                        .replace("REQUEST", "0700000000000000")
                        .replace("OUTCOME", "02")
                        .replace("SEALED", "00")
                        .replaceAll("\\s", ""));
        testClient.end(DisconnectReason.PEER_CLOSED);
    }

    @Test
    void givenTheBlockBeforeIsMissing_whenPut_thenNoParentAndTheConnectionGoesOn() throws ProtocolException {
        TestClient testClient = testClient();
        assertAnswer(testClient.request(put(1)).getFirst(), "2300", "0700000000000000", "03", "00");
        assertAnswer(testClient.request(put(0)).getFirst(), "2300", "0700000000000000", "00", "00");
        assertAnswer(testClient.request(put(1)).getFirst(), "2300", "0700000000000000", "00", "00");
        testClient.end(DisconnectReason.PEER_CLOSED);
    }

    @Test
    void givenAChangedByte_whenPut_thenCorruptAndTheRoomIsGivenBack() throws ProtocolException {
        TestClient testClient = testClient();
        for (byte[] frame : List.of(put(0), bytes(PUT_OBJECT + BYTES))) {
            frame[frame.length - 1] ^= 1;
            assertThat(testClient.request(frame).getFirst().header().status()).isEqualTo(Status.CORRUPT);
        }
        assertThat(store.stats().records().live()).isZero();
        assertThat(endpoint.stats().corrupt()).isEqualTo(2);
        assertThat(testClient.request(put(0)).getFirst().header().status()).isEqualTo(Status.OK);
        testClient.end(DisconnectReason.PEER_CLOSED);
    }

    @Test
    void givenAnotherSizeOrPlace_whenPut_thenInvalidAndTheConnectionGoesOn() throws ProtocolException {
        TestClient testClient = testClient();
        byte[] shorter = Arrays.copyOf(put(0), put(0).length - 1);
        shorter[20] = 31;
        assertThat(testClient.request(shorter).getFirst().header().status()).isEqualTo(Status.INVALID);
        assertThat(testClient.request(put(7)).getFirst().header().status()).isEqualTo(Status.INVALID);
        assertThat(store.stats().records().live()).isZero();
        assertThat(testClient.request(put(0)).getFirst().header().status()).isEqualTo(Status.OK);
        testClient.end(DisconnectReason.PEER_CLOSED);
    }

    @Test
    void givenAConnectionThatBreaksWithinTheBytes_whenPut_thenTheRoomIsGivenBack() throws ProtocolException {
        TestClient testClient = testClient();
        byte[] whole = put(0);
        assertThat(testClient.request(Arrays.copyOf(whole, whole.length - 5))).isEmpty();
        testClient.end(DisconnectReason.BROKEN);
        assertThat(store.stats().records().live()).isZero();
        assertThat(store.stats().puts().abandoned()).isEqualTo(1);
    }

    @Test
    void givenAServerThatGoesDown_whenPut_thenBusyAndNothingIsStored() throws ProtocolException {
        TestClient testClient = testClient();
        endpoint.drain();
        assertThat(testClient.request(put(0)).getFirst().header().status()).isEqualTo(Status.BUSY);
        assertThat(testClient
                        .request(bytes(PUT_OBJECT + BYTES))
                        .getFirst()
                        .header()
                        .status())
                .isEqualTo(Status.BUSY);
        assertThat(store.stats().records().live()).isZero();
        testClient.end(DisconnectReason.PEER_CLOSED);
    }

    @Test
    void givenNoBytes_whenPut_thenTheConnectionIsOver() throws ProtocolException {
        TestClient testClient = testClient();
        assertThatThrownBy(() -> testClient.request(MessageType.PUT, TestClient.chainReference(5, 1)))
                .isInstanceOf(ProtocolException.class)
                .hasMessageContaining("PUT without a payload");
        testClient.end(DisconnectReason.MALFORMED);
    }
}
