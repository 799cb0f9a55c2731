package io.kvcache.transport.endpoint;

import static io.kvcache.transport.endpoint.HexFrames.assertAnswers;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.transport.net.DisconnectReason;
import io.kvcache.transport.wire.ProtocolException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// What goes over the wire when blocks and objects are put, looked up, got and forgotten, byte by byte in both
/// directions, written out by hand. The checksums were computed outside Java.
final class DataFramesTest {

    /// Blocks of 32 bytes.
    private static final Namespace SPACE = Namespace.of("m", BlockShape.kv(1, 1, 8, 1, Dtype.BF16));

    private static final String BYTES = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

    /// Of the bytes, and of the bytes with the object's key behind them.
    private static final String SUM = "73c2a486";

    private static final String OBJECT_SUM = "b18cd5a3";

    private final TieredKvCache store = TieredKvCache.builder()
            .hostBytes(64 << 20)
            .policy(PolicyKind.LRU)
            .failOnLeak(true)
            .prefaultInBackground(false)
            .build();
    private final Endpoint endpoint = new Endpoint(store, EndpointOptions.DEFAULTS, System::nanoTime);

    @AfterEach
    void nothingIsLeft() {
        endpoint.close();
        assertThat(store.stats().openTables()).isZero();
        store.validate();
        store.close();
    }

    /// A client whose first namespace is number 1, and which has told of a chain of two blocks in slot 5.
    private TestClient testClient() throws ProtocolException {
        TestClient testClient = TestClient.connect(endpoint);
        assertThat(testClient.register(SPACE)).isEqualTo(1);
        assertAnswers(testClient, """
                4b564331 1000 0000 0000000000000000 40000000 00000000 0000000000000000
                05 05 0000 01000000 00000000 02000000
                000102030405060708090a0b0c0d0e0f 0000000000000000
                101112131415161718191a1b1c1d1e1f 00000000000004d2
                """, "");
        return testClient;
    }

    /// Puts the first block by RESERVE and FILL, and the second one by PUT.
    private static void putBoth(TestClient testClient) throws ProtocolException {
        assertAnswers(testClient, """
                4b564331 2000 0000 0100000000000000 18000000 00000000 0000000000000000
                05 000000 02000000 00000000 00000000 0000000000000000
                """, """
                4b564331 2000 0100 0100000000000000 10000000 00000000 0000000000000000
                00 00000000000000 0100000000000000
                """);
        assertAnswers(testClient, """
                4b564331 2100 0000 0200000000000000 10000000 20000000 0000000000000000
                0100000000000000 %s 00000000
                %s
                """.formatted(SUM, BYTES), """
                4b564331 2100 0100 0200000000000000 01000000 00000000 0000000000000000
                00
                """);
        assertAnswers(testClient, """
                4b564331 2300 0000 0300000000000000 18000000 20000000 0000000000000000
                05 000000 02000000 01000000 00000000 %s 00000000
                %s
                """.formatted(SUM, BYTES), """
                4b564331 2300 0100 0300000000000000 08000000 00000000 0000000000000000
                00 00 0000 00000000
                """);
    }

    @Test
    void givenAChain_whenPutMatchedAndGot_thenTheseBytesBothWays() throws ProtocolException {
        TestClient testClient = testClient();
        putBoth(testClient);
        // MATCH: two blocks in host memory
        assertAnswers(testClient, """
                4b564331 1100 0000 0400000000000000 08000000 00000000 0000000000000000
                05 000000 02000000
                """, """
                4b564331 1100 0100 0400000000000000 10000000 00000000 0000000000000000
                00000000 02000000 00000000 02000000
                """);
        // ACQUIRE: from block 0, at most one sent, no time; lease 1, two ready, end 2, one sent; and its DATA
        assertAnswers(testClient, """
                4b564331 1200 0000 0500000000000000 18000000 00000000 0000000000000000
                05 000000 02000000 00000000 01000000 0000000000000000
                """, """
                4b564331 1200 0100 0500000000000000 14000000 00000000 0000000000000000
                0100000000000000 02000000 02000000 01000000
                4b564331 1500 0100 0500000000000000 08000000 20000000 0000000000000000
                00000000 %s
                %s
                """.formatted(SUM, BYTES));
        // READ: block 1 of lease 1
        assertAnswers(testClient, """
                4b564331 1400 0000 0600000000000000 10000000 00000000 0000000000000000
                0100000000000000 01000000 01000000
                """, """
                4b564331 1400 0100 0600000000000000 04000000 00000000 0000000000000000
                01000000
                4b564331 1500 0100 0600000000000000 08000000 20000000 0000000000000000
                01000000 %s
                %s
                """.formatted(SUM, BYTES));
        // RELEASE: lease 1, no reply; READ finds it GONE
        assertAnswers(testClient, """
                4b564331 1600 0000 0000000000000000 10000000 00000000 0000000000000000
                01000000 00000000 0100000000000000
                """, "");
        assertAnswers(testClient, """
                4b564331 1400 0000 0700000000000000 10000000 00000000 0000000000000000
                0100000000000000 01000000 01000000
                """, """
                4b564331 1400 0100 0700000000000000 11000000 00000000 0500000000000000
                0f00 6c656173652031206973206f766572
                """);
        // READ_RANGE: of two blocks from block 0 on, 8 bytes from byte 4 on, no time; and its DATA
        assertAnswers(testClient, """
                4b564331 1c00 0000 0800000000000000 20000000 00000000 0000000000000000
                05 000000 02000000 00000000 02000000 04000000 08000000 0000000000000000
                """, """
                4b564331 1c00 0100 0800000000000000 04000000 00000000 0000000000000000
                02000000
                4b564331 1500 0100 0800000000000000 08000000 08000000 0000000000000000
                00000000 64cc4f0a
                0405060708090a0b
                4b564331 1500 0100 0800000000000000 08000000 08000000 0000000000000000
                01000000 64cc4f0a
                0405060708090a0b
                """);
        testClient.end(DisconnectReason.PEER_CLOSED);
    }

    @Test
    void givenAChain_whenHintedAboutAbandonedAndDropped_thenTheseBytesBothWays() throws ProtocolException {
        TestClient testClient = testClient();
        putBoth(testClient);
        // HINT: expected in a second
        assertAnswers(testClient, """
                4b564331 1800 0000 0400000000000000 18000000 00000000 0000000000000000
                05 000000 02000000 00 000000 00000000 00ca9a3b00000000
                """, """
                4b564331 1800 0100 0400000000000000 01000000 00000000 0000000000000000
                01
                """);
        // HINT: the second turn of session 7 of an agent, from block 1 on
        assertAnswers(testClient, """
                4b564331 1800 0000 0600000000000000 28000000 00000000 0000000000000000
                05 000000 02000000 03 000000 01000000 0000000000000000 02 00 0000 02000000 0700000000000000
                """, """
                4b564331 1800 0100 0600000000000000 01000000 00000000 0000000000000000
                01
                """);
        // weights 1 and 0.2: LRU does not take them
        assertAnswers(testClient, """
                4b564331 1800 0000 0700000000000000 22000000 00000000 0000000000000000
                05 000000 02000000 04 000000 00000000 0000000000000000 02000000 00000000 ff 33
                """, """
                4b564331 1800 0100 0700000000000000 01000000 00000000 0000000000000000
                00
                """);
        // three weights for two blocks: INVALID
        assertAnswers(testClient, """
                4b564331 1800 0000 0800000000000000 23000000 00000000 0000000000000000
                05 000000 02000000 04 000000 00000000 0000000000000000 03000000 00000000 ffffff
                """, """
                4b564331 1800 0100 0800000000000000 34000000 00000000 0200000000000000
                3100 3320776569676874732066726f6d20626c6f636b2030206f6e3b2074686520636861696e20686173203220626c6f636b73 00
                """);
        // to be let go in a second from block 1 on, and a kind of a later version
        assertAnswers(testClient, """
                4b564331 1800 0000 0900000000000000 18000000 00000000 0000000000000000
                05 000000 02000000 05 000000 01000000 00ca9a3b00000000
                """, """
                4b564331 1800 0100 0900000000000000 01000000 00000000 0000000000000000
                01
                """);
        assertAnswers(testClient, """
                4b564331 1800 0000 0a00000000000000 18000000 00000000 0000000000000000
                05 000000 02000000 06 000000 01000000 00ca9a3b00000000
                """, """
                4b564331 1800 0100 0a00000000000000 01000000 00000000 0000000000000000
                00
                """);
        // DROP_CHAIN: from block 1
        assertAnswers(testClient, """
                4b564331 1700 0000 0500000000000000 0c000000 00000000 0000000000000000
                05 000000 02000000 01000000
                """, """
                4b564331 1700 0100 0500000000000000 04000000 00000000 0000000000000000
                01000000
                """);
        // RESERVE it again: reservation 2. ABANDON has no reply; FILL finds it GONE
        assertAnswers(testClient, """
                4b564331 2000 0000 0600000000000000 18000000 00000000 0000000000000000
                05 000000 02000000 01000000 00000000 0000000000000000
                """, """
                4b564331 2000 0100 0600000000000000 10000000 00000000 0000000000000000
                00 00000000000000 0200000000000000
                """);
        assertAnswers(testClient, """
                4b564331 2200 0000 0000000000000000 08000000 00000000 0000000000000000
                0200000000000000
                """, "");
        assertAnswers(testClient, """
                4b564331 2100 0000 0700000000000000 10000000 20000000 0000000000000000
                0200000000000000 %s 00000000
                %s
                """.formatted(SUM, BYTES), """
                4b564331 2100 0100 0700000000000000 17000000 00000000 0500000000000000
                1500 7265736572766174696f6e2032206973206f766572
                """);
        testClient.end(DisconnectReason.PEER_CLOSED);
    }

    @Test
    void givenAnObject_whenPutGotAndDropped_thenTheseBytesBothWays() throws ProtocolException {
        TestClient testClient = testClient();
        // RESERVE_OBJECT: 32 bytes under "key"; FILL with the sum of both
        assertAnswers(testClient, """
                4b564331 2800 0000 0100000000000000 1b000000 00000000 0000000000000000
                01000000 03000000 2000000000000000 0000000000000000 6b6579
                """, """
                4b564331 2800 0100 0100000000000000 10000000 00000000 0000000000000000
                00 00000000000000 0100000000000000
                """);
        assertAnswers(testClient, """
                4b564331 2100 0000 0200000000000000 10000000 20000000 0000000000000000
                0100000000000000 %s 00000000
                %s
                """.formatted(OBJECT_SUM, BYTES), """
                4b564331 2100 0100 0200000000000000 01000000 00000000 0000000000000000
                00
                """);
        // GET_OBJECT, sent: lease 1, 32 bytes, and its DATA
        assertAnswers(testClient, """
                4b564331 2900 0000 0300000000000000 1b000000 00000000 0000000000000000
                01000000 03000000 01 00 000000000000 0000000000000000 6b6579
                """, """
                4b564331 2900 0100 0300000000000000 11000000 00000000 0000000000000000
                0100000000000000 2000000000000000 01
                4b564331 1500 0100 0300000000000000 08000000 20000000 0000000000000000
                00000000 %s
                %s
                """.formatted(OBJECT_SUM, BYTES));
        // RELEASE, CONTAINS_OBJECT, DROP_OBJECT, and GET_OBJECT of what is not here
        assertAnswers(testClient, """
                4b564331 1600 0000 0000000000000000 10000000 00000000 0000000000000000
                01000000 00000000 0100000000000000
                """, "");
        assertAnswers(testClient, """
                4b564331 2a00 0000 0400000000000000 0b000000 00000000 0000000000000000
                01000000 03000000 6b6579
                """, """
                4b564331 2a00 0100 0400000000000000 01000000 00000000 0000000000000000
                01
                """);
        assertAnswers(testClient, """
                4b564331 2b00 0000 0500000000000000 0b000000 00000000 0000000000000000
                01000000 03000000 6b6579
                """, """
                4b564331 2b00 0100 0500000000000000 01000000 00000000 0000000000000000
                01
                """);
        assertAnswers(testClient, """
                4b564331 2900 0000 0600000000000000 1b000000 00000000 0000000000000000
                01000000 03000000 01 00 000000000000 0000000000000000 6b6579
                """, """
                4b564331 2900 0100 0600000000000000 11000000 00000000 0000000000000000
                0000000000000000 0000000000000000 00
                """);
        testClient.end(DisconnectReason.PEER_CLOSED);
    }
}
