package io.kvcache.transport.endpoint;

import static io.kvcache.transport.endpoint.StagedEndpointFixture.BYTES;
import static io.kvcache.transport.endpoint.StagedEndpointFixture.CHECKSUM;
import static io.kvcache.transport.endpoint.StagedEndpointFixture.PAGE;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.ObjectView;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.shm.StagingArea.StagingHeader;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.tiers.options.StagingLimits;
import io.kvcache.transport.net.DisconnectReason;
import io.kvcache.transport.net.RecordingSink;
import io.kvcache.transport.shm.ShmDirectory;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.Handshake.Hello;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.Secret;
import io.kvcache.transport.wire.SharedMemoryCodec.StagedRange;
import io.kvcache.transport.wire.SharedMemoryCodec.StagingDescriptor;
import io.kvcache.transport.wire.Status;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.HexFormat;
import java.util.Objects;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;

/// STAGE, FILL_STAGED and PUT_STAGED, byte by byte, and the limits of what clients get.
@EnabledOnOs(OS.LINUX)
final class StagedFramesTest {

    private static final HexFormat HEX = HexFormat.of();

    private static final String PUT_STAGED = """
            4b564331 2500 0000 0700000000000000 28000000 00000000 0000000000000000
            05 000000 02000000 00000000 00000000 0010000000000000 2000000000000000 73c2a486 00000000
            """;

    private static final String PUT_ANSWER = """
            4b564331 2500 0100 0700000000000000 08000000 00000000 0000000000000000
            00 00 0000 00000000
            """;

    private static final String FILL_STAGED = """
            4b564331 2400 0000 0900000000000000 20000000 00000000 0000000000000000
            0100000000000000 0010000000000000 2000000000000000 73c2a486 00000000
            """;

    private static final String FILL_ANSWER = """
            4b564331 2400 0100 0900000000000000 01000000 00000000 0000000000000000
            00
            """;

    /// The key is 1, 2, 3; the checksum of bytes and key was computed outside Java.
    private static final String PUT_OBJECT_STAGED = """
            4b564331 2d00 0000 0a00000000000000 23000000 00000000 0000000000000000
            02000000 03000000 0010000000000000 2000000000000000 9d773561 00000000 010203
            """;

    private static final String PUT_OBJECT_ANSWER = """
            4b564331 2d00 0100 0a00000000000000 08000000 00000000 0000000000000000
            00 00 0000 00000000
            """;

    private final StagedEndpointFixture serving = new StagedEndpointFixture();

    @AfterEach
    void nothingIsLeft() throws IOException {
        serving.close();
    }

    private static String hex(RecordingSink.ReceivedFrame reply) {
        BodyWriter body = new BodyWriter().bytes(reply.body());
        MessageType type = MessageType.of(reply.header().type());
        assertThat(type).isNotNull();
        return HEX.formatHex(RecordingSink.bytes(body.reply(type, reply.header().request())));
    }

    private static String hex(String frame) {
        return frame.replaceAll("\\s", "");
    }

    @Test
    void givenAClient_whenItStages_thenAFileOfItsOwnThatSaysWhatItIs() throws Exception {
        TestClient testClient = serving.testClient();
        StagedEndpointFixture.StagingFile stagingFile = serving.staging(testClient);
        assertThat(stagingFile.place().bytes()).isEqualTo(2 * PAGE);
        assertThat(serving.staged()).containsExactly(stagingFile.place().file());
        assertThat(Files.size(stagingFile.file())).isEqualTo(3 * PAGE);
        assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(stagingFile.file())))
                .isEqualTo("rw-------");
        MemorySegment file = MemorySegment.ofArray(Files.readAllBytes(stagingFile.file()));
        assertThat(stagingFile.place().head().matches(file)).isTrue();
        assertThat(new StagingHeader(stagingFile.place().head().ticket() + 1).matches(file))
                .isFalse();
        assertThat(HEX.formatHex(file.asSlice(0, 16).toArray(ValueLayout.JAVA_BYTE)))
                .isEqualTo("4b56435354414745" + "0100000000000000");
        assertThat(serving.staging(testClient).place()).as("asked again").isEqualTo(stagingFile.place());
        testClient.end(DisconnectReason.PEER_CLOSED);
        assertThat(serving.staged()).isEmpty();
    }

    @Test
    void givenStagedBytes_whenPut_thenTheseBytesBothWays() throws Exception {
        TestClient testClient = serving.testClient();
        serving.staging(testClient).write(PAGE, BYTES);
        assertThat(hex(testClient
                        .request(StagedEndpointFixture.bytes(PUT_STAGED))
                        .getFirst()))
                .isEqualTo(hex(PUT_ANSWER));
        serving.assertStored();
        assertThat(hex(testClient
                        .request(StagedEndpointFixture.bytes(PUT_STAGED))
                        .getFirst()))
                .as("present")
                .isEqualTo(hex(PUT_ANSWER.replace("\n00 00 ", "\n01 00 ")));
        assertThat(serving.endpoint().stats().bytesStaged()).isEqualTo(32);
        assertThat(serving.endpoint().stats().bytesIn()).isZero();
        testClient.end(DisconnectReason.PEER_CLOSED);
    }

    @Test
    void givenAReservation_whenFilledFromThere_thenTheseBytesBothWays() throws Exception {
        TestClient testClient = serving.testClient();
        serving.staging(testClient).write(PAGE, BYTES);
        assertThat(StagedEndpointFixture.reserve(testClient)).isEqualTo(1);
        assertThat(hex(testClient
                        .request(StagedEndpointFixture.bytes(FILL_STAGED))
                        .getFirst()))
                .isEqualTo(hex(FILL_ANSWER));
        serving.assertStored();
        StagedEndpointFixture.assertRefused(
                testClient.request(StagedEndpointFixture.bytes(FILL_STAGED)).getFirst(),
                Status.GONE,
                "reservation 1 is over");
        assertThat(serving.endpoint().stats().reservations().open()).isZero();
        testClient.end(DisconnectReason.PEER_CLOSED);
    }

    /// Shared memory and staging; no fabric.
    @Test
    void givenAServerThatStages_whenItAnswersHello_thenTheseCapabilities() throws Exception {
        Hello hello = new Hello(1, 0, 0, Secret.zeros(32), Secret.zeros(16), 0, "", "");
        TestClient testClient = new TestClient(serving.endpoint());
        String challenge = hex(testClient.request(hello.frame(1, 0)).getFirst());
        assertThat(challenge).startsWith(hex("""
                4b564331 0100 0100 0100000000000000 30000000 00000000 0000000000000000
                0100 0000 00000000 0500000000000000
                """));
        testClient.end(DisconnectReason.PEER_CLOSED);
    }

    @Test
    void givenAnObjectThere_whenPut_thenTheseBytesBothWays() throws Exception {
        Namespace objects = Namespace.objects("o", "");
        TestClient testClient = serving.testClient();
        assertThat(testClient.register(objects)).isEqualTo(2);
        serving.staging(testClient).write(PAGE, BYTES);
        assertThat(hex(testClient
                        .request(StagedEndpointFixture.bytes(PUT_OBJECT_STAGED))
                        .getFirst()))
                .isEqualTo(hex(PUT_OBJECT_ANSWER));
        try (ObjectView view = Objects.requireNonNull(serving.store().getObject(objects, new byte[] {1, 2, 3}))) {
            MemorySegment copy = MemorySegment.ofArray(new byte[BYTES.length]);
            view.copyTo(0, BYTES.length, copy);
            assertThat(copy.toArray(ValueLayout.JAVA_BYTE)).isEqualTo(BYTES);
        }
        assertThat(serving.endpoint().stats().bytesStaged()).isEqualTo(32);
        serving.endpoint().drain();
        StagedEndpointFixture.assertRefused(
                testClient
                        .request(StagedEndpointFixture.bytes(PUT_OBJECT_STAGED))
                        .getFirst(),
                Status.BUSY,
                "going down");
        testClient.end(DisconnectReason.PEER_CLOSED);
    }

    @Test
    void givenABodyThatIsLonger_whenPut_thenWhatIsNotKnownIsIgnored() throws Exception {
        TestClient testClient = serving.testClient();
        serving.staging(testClient).write(0, BYTES);
        BodyWriter longer = new StagedRange(0, 32, CHECKSUM)
                .write(TestClient.chainReference(5, 2).i32(0).i32(0))
                .i64(-1);
        assertThat(testClient.request(MessageType.PUT_STAGED, longer).header().status())
                .isEqualTo(Status.OK);
        serving.assertStored();
        assertThat(testClient
                        .request(MessageType.STAGE, new BodyWriter().i64(1).i64(-1))
                        .header()
                        .status())
                .isEqualTo(Status.OK);
        testClient.end(DisconnectReason.PEER_CLOSED);
    }

    @Test
    void givenManyClients_whenTheyHaveAllThereIs_thenBusyUntilOneGoes() throws Exception {
        TestClient first = serving.testClient();
        TestClient second = serving.testClient();
        TestClient third = serving.testClient();
        serving.staging(first);
        serving.staging(second);
        StagedEndpointFixture.assertRefused(
                third.request(StagedEndpointFixture.bytes(StagedEndpointFixture.STAGE))
                        .getFirst(),
                Status.BUSY,
                "8.0 KiB (8192 bytes)",
                "16.0 KiB",
                "20.0 KiB");
        assertThat(serving.staged()).hasSize(2);
        first.end(DisconnectReason.BROKEN);
        assertThat(serving.staging(third).place().bytes()).isEqualTo(2 * PAGE);
        second.end(DisconnectReason.PEER_CLOSED);
        third.end(DisconnectReason.PEER_CLOSED);
    }

    @Test
    void givenSizes_whenStaged_thenWholePagesWithinTheLimit() throws Exception {
        for (long[] wantedAndGot : new long[][] {{1, PAGE}, {PAGE, PAGE}, {PAGE + 1, 2 * PAGE}, {1L << 40, 2 * PAGE}}) {
            TestClient testClient = serving.testClient();
            BodyWriter wanted = new BodyWriter().i64(wantedAndGot[0]);
            StagingDescriptor place = StagingDescriptor.read(
                    testClient.request(MessageType.STAGE, wanted).reader());
            assertThat(place.bytes()).isEqualTo(wantedAndGot[1]);
            testClient.end(DisconnectReason.PEER_CLOSED);
        }
        TestClient testClient = serving.testClient();
        StagedEndpointFixture.assertRefused(
                testClient.request(MessageType.STAGE, new BodyWriter().i64(0)), Status.INVALID, "allowed: 1 to 8192");
        testClient.end(DisconnectReason.PEER_CLOSED);
    }

    @Test
    void givenAServerThatGoesDown_whenStagedOrPut_thenBusyButWhatHasBegunIsFilled() throws Exception {
        TestClient testClient = serving.testClient();
        serving.staging(testClient).write(PAGE, BYTES);
        StagedEndpointFixture.reserve(testClient);
        serving.endpoint().drain();
        StagedEndpointFixture.assertRefused(
                StagedEndpointFixture.put(testClient, new StagedRange(PAGE, 32, CHECKSUM)), Status.BUSY, "going down");
        StagedEndpointFixture.assertRefused(
                testClient
                        .request(StagedEndpointFixture.bytes(StagedEndpointFixture.STAGE))
                        .getFirst(),
                Status.BUSY,
                "going down");
        assertThat(hex(testClient
                        .request(StagedEndpointFixture.bytes(FILL_STAGED))
                        .getFirst()))
                .isEqualTo(hex(FILL_ANSWER));
        serving.assertStored();
        testClient.end(DisconnectReason.PEER_CLOSED);
    }

    @Test
    void givenAStoreWithoutStaging_whenStaged_thenUnsupported() throws Exception {
        try (ShmDirectory other = ShmDirectory.make();
                TieredKvCache without = StagedEndpointFixture.store(other, StagingLimits.NONE);
                Endpoint serving = new Endpoint(without, EndpointOptions.DEFAULTS, System::nanoTime)) {
            TestClient testClient = TestClient.connect(serving);
            StagedEndpointFixture.assertRefused(
                    testClient
                            .request(StagedEndpointFixture.bytes(StagedEndpointFixture.STAGE))
                            .getFirst(),
                    Status.UNSUPPORTED,
                    "no memory for clients to write");
            testClient.end(DisconnectReason.PEER_CLOSED);
        }
    }
}
