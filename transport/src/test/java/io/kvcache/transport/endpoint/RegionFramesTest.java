package io.kvcache.transport.endpoint;

import static io.kvcache.transport.endpoint.HexFrames.assertAnswers;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.identity.Namespace;
import io.kvcache.transport.net.DisconnectReason;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.Objects;
import java.util.UUID;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;

/// What goes over the wire for regions and flat keys, byte by byte in both directions.
@EnabledOnOs(OS.LINUX)
final class RegionFramesTest {

    private final StagedEndpointFixture serving = new StagedEndpointFixture();

    @AfterEach
    void close() throws IOException {
        serving.close();
    }

    /// `16 bytes proof, u64 0, text path`, in hex.
    private String regionBody(Path file) {
        UUID proof = Objects.requireNonNull(serving.store().sharedMemory()).proof();
        byte[] path = file.toString().getBytes(StandardCharsets.UTF_8);
        ByteBuffer body = ByteBuffer.allocate(26 + path.length).order(ByteOrder.LITTLE_ENDIAN);
        body.putLong(proof.getMostSignificantBits()).putLong(proof.getLeastSignificantBits());
        body.putLong(0).putShort((short) path.length).put(path);
        return HexFormat.of().formatHex(body.array());
    }

    @Test
    void givenARegion_whenCopiedFromAndTo_thenTheseBytesBothWays() throws Exception {
        TestClient client = TestClient.connect(serving.endpoint());
        client.register(Namespace.objects("o", ""));
        Path file = Files.createTempFile(Path.of("/dev/shm"), "kvcache-region", ".pool");
        try {
            Files.write(file, new byte[8192]);
            String body = regionBody(file);
            String length = HexFormat.of().toHexDigits(Integer.reverseBytes(body.length() / 2));
            // REGION: region 1 of 8,192 bytes
            assertAnswers(client, """
                    4b564331 0c00 0000 0500000000000000 %s 00000000 0000000000000000
                    %s
                    """.formatted(length, body), """
                    4b564331 0c00 0100 0500000000000000 10000000 00000000 0000000000000000
                    01000000 00000000 0020000000000000
                    """);
            // COPY, a store: region 1, namespace 1, one object, no times; key "k", one span of 256 bytes from 16 on
            assertAnswers(client, """
                    4b564331 1b00 0000 0600000000000000 39000000 00000000 0000000000000000
                    01000000 01 000000 01000000 01000000 0000000000000000 0000000000000000
                    01000000 01000000 6b 1000000000000000 0001000000000000
                    """, """
                    4b564331 1b00 0100 0600000000000000 09000000 00000000 0000000000000000
                    01000000 00000000 00
                    """);
            // COPY, a load: "k" into two spans, "l" is absent
            assertAnswers(client, """
                    4b564331 1b00 0000 0700000000000000 62000000 00000000 0000000000000000
                    01000000 00 000000 01000000 02000000 0000000000000000 0000000000000000
                    01000000 02000000 6b 0010000000000000 8000000000000000 0000000000000000 8000000000000000
                    01000000 01000000 6c 0000000000000000 0100000000000000
                    """, """
                    4b564331 1b00 0100 0700000000000000 0a000000 00000000 0000000000000000
                    02000000 00000000 00 02
                    """);
            // MATCH_OBJECTS: "k" and "l", pinned for a second; one is there
            assertAnswers(client, """
                    4b564331 2f00 0000 0800000000000000 1a000000 00000000 0000000000000000
                    01000000 02000000 00ca9a3b00000000 01000000 6b 01000000 6c
                    """, """
                    4b564331 2f00 0100 0800000000000000 08000000 00000000 0000000000000000
                    01000000 01000000
                    """);
            // DROP_REGION
            assertAnswers(client, """
                    4b564331 0d00 0000 0900000000000000 04000000 00000000 0000000000000000
                    01000000
                    """, """
                    4b564331 0d00 0100 0900000000000000 00000000 00000000 0000000000000000
                    """);
        } finally {
            Files.delete(file);
        }
        client.end(DisconnectReason.PEER_CLOSED);
    }

    @Test
    void givenBytesWithoutAChecksum_whenPut_thenTheServerComputesIt() throws Exception {
        TestClient client = serving.testClient();
        // PUT_OBJECT: namespace 1, key "k", no checksum, two bytes
        assertAnswers(client, """
                4b564331 2c00 0000 0500000000000000 11000000 02000000 0000000000000000
                01000000 01000000 00000000 01000000 6b 0102
                """, """
                4b564331 2c00 0100 0500000000000000 08000000 00000000 0000000000000000
                00 00 00 00 00000000
                """);
        StagedEndpointFixture.StagingFile staging = serving.staging(client);
        staging.write(0, StagedEndpointFixture.BYTES);
        // PUT_STAGED: block 0 of the chain, 32 bytes from the first on, no checksum
        assertAnswers(client, """
                4b564331 2500 0000 0700000000000000 28000000 00000000 0000000000000000
                05 000000 02000000 00000000 00000000 0000000000000000 2000000000000000 00000000 01000000
                """, """
                4b564331 2500 0100 0700000000000000 08000000 00000000 0000000000000000
                00 00 00 00 00000000
                """);
        serving.assertStored();
        assertThat(serving.endpoint().stats().corrupt()).isZero();
        client.end(DisconnectReason.PEER_CLOSED);
    }
}
