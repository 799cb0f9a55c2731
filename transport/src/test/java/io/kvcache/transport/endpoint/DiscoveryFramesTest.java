package io.kvcache.transport.endpoint;

import static io.kvcache.transport.endpoint.HexFrames.assertAnswers;

import io.kvcache.transport.wire.ProtocolException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// What goes over the wire when a client looks for the best way, byte by byte.
final class DiscoveryFramesTest {

    private final EndpointFixture endpointFixture = new EndpointFixture();

    @AfterEach
    void nothingIsLeft() {
        endpointFixture.requireNothingLeft();
    }

    @Test
    void givenAnotherWay_whenAskedForOffers_thenItIsTold() throws ProtocolException {
        try (Endpoint endpoint = endpointFixture.open(EndpointFixture.OPTIONS.withAeron("aeron:udp?endpoint=h:1"))) {
            assertAnswers(TestClient.connect(endpoint), """
                    4b564331 0a00 0000 0500000000000000 00000000 00000000 0000000000000000
                    """, """
                    4b564331 0a00 0100 0500000000000000 18000000 00000000 0000000000000000
                    1600 6165726f6e3a7564703f656e64706f696e743d683a31
                    """);
        }
    }

    @Test
    void givenNoOtherWay_whenAskedForOffers_thenTheTextIsEmpty() throws ProtocolException {
        try (Endpoint endpoint = endpointFixture.open(EndpointFixture.OPTIONS)) {
            assertAnswers(TestClient.connect(endpoint), """
                    4b564331 0a00 0000 0500000000000000 00000000 00000000 0000000000000000
                    """, """
                    4b564331 0a00 0100 0500000000000000 02000000 00000000 0000000000000000
                    0000
                    """);
        }
    }

    @Test
    void givenAProbe_whenItsBytesAreThere_thenAsManyZerosAsItWantsComeBack() throws ProtocolException {
        try (Endpoint endpoint = endpointFixture.open(EndpointFixture.OPTIONS)) {
            assertAnswers(TestClient.connect(endpoint), """
                    4b564331 0b00 0000 0600000000000000 08000000 02000000 0000000000000000
                    03000000 00000000
                    aabb
                    """, """
                    4b564331 0b00 0100 0600000000000000 04000000 00000000 0000000000000000
                    01000000
                    4b564331 1500 0100 0600000000000000 08000000 03000000 0000000000000000
                    00000000 00000000
                    000000
                    """);
        }
    }

    @Test
    void givenAProbeOfTooMuchOrNothing_whenSent_thenItIsRefusedAndTheConnectionGoesOn() throws ProtocolException {
        try (Endpoint endpoint = endpointFixture.open(EndpointFixture.OPTIONS)) {
            TestClient testClient = TestClient.connect(endpoint);
            for (String wanted : new String[] {"00000000", "01001000"}) {
                String text = "a probe of 1 bytes there and %d back; allowed: 1 to 1048576"
                        .formatted(wanted.equals("00000000") ? 0 : (1 << 20) + 1);
                assertAnswers(
                        testClient,
                        "4b564331 0b00 0000 0600000000000000 08000000 01000000 0000000000000000 %s 00000000 aa"
                                .formatted(wanted),
                        "4b564331 0b00 0100 0600000000000000 %s 00000000 0200000000000000 %s 00"
                                .formatted(HexFrames.u64(text.length() + 3).substring(0, 8), HexFrames.text(text)));
            }
            assertAnswers(testClient, """
                    4b564331 0300 0000 0700000000000000 00000000 00000000 0000000000000000
                    """, """
                    4b564331 0300 0100 0700000000000000 00000000 00000000 0000000000000000
                    """);
        }
    }
}
