package io.kvcache.transport.endpoint;

import static io.kvcache.transport.endpoint.StagedEndpointFixture.BYTES;
import static io.kvcache.transport.endpoint.StagedEndpointFixture.CHECKSUM;
import static io.kvcache.transport.endpoint.StagedEndpointFixture.PAGE;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.identity.Namespace;
import io.kvcache.transport.net.DisconnectReason;
import io.kvcache.transport.net.RecordingSink;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.ProtocolException;
import io.kvcache.transport.wire.SharedMemoryCodec.StagedRange;
import io.kvcache.transport.wire.Status;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.StandardOpenOption;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;

/// Clients that lie about what they have written, or change it while it is copied: refused or right, and
/// nobody else notices.
@EnabledOnOs(OS.LINUX)
@Tag("slow")
final class MaliciousStagingTest {

    private final StagedEndpointFixture serving = new StagedEndpointFixture();

    @AfterEach
    void nothingIsLeft() throws IOException {
        serving.close();
    }

    @Test
    void givenOtherBytesThanTold_whenPut_thenCorruptAndTheRoomIsGivenBack() throws Exception {
        TestClient testClient = serving.testClient();
        StagedEndpointFixture.StagingFile stagingFile = serving.staging(testClient);
        stagingFile.write(0, BYTES);
        stagingFile.write(31, new byte[] {0});
        StagedEndpointFixture.assertRefused(
                StagedEndpointFixture.put(testClient, new StagedRange(0, 32, CHECKSUM)), Status.CORRUPT, "checksum 0x");
        assertThat(serving.endpoint().stats().corrupt()).isEqualTo(1);
        assertThat(serving.store().stats().records().live()).isZero();
        stagingFile.write(31, new byte[] {31});
        assertThat(StagedEndpointFixture.put(testClient, new StagedRange(0, 32, CHECKSUM))
                        .header()
                        .status())
                .isEqualTo(Status.OK);
        serving.assertStored();
        testClient.end(DisconnectReason.PEER_CLOSED);
    }

    @Test
    void givenAPlaceOutside_whenPut_thenInvalidAndTheRoomIsGivenBack() throws Exception {
        TestClient testClient = serving.testClient();
        serving.staging(testClient);
        for (StagedRange outside : List.of(
                new StagedRange(2 * PAGE - 31, 32, CHECKSUM),
                new StagedRange(2 * PAGE, 32, CHECKSUM),
                new StagedRange(Long.MAX_VALUE, 32, CHECKSUM),
                new StagedRange(Long.MAX_VALUE - 31, 32, CHECKSUM))) {
            StagedEndpointFixture.assertRefused(
                    StagedEndpointFixture.put(testClient, outside), Status.INVALID, "allowed: up to 8192");
        }
        for (long bytes : new long[] {0, 31, 33, Long.MAX_VALUE}) {
            StagedEndpointFixture.assertRefused(
                    StagedEndpointFixture.put(testClient, new StagedRange(0, bytes, CHECKSUM)),
                    Status.INVALID,
                    "the room is for 32");
        }
        assertThat(serving.store().stats().records().live()).isZero();
        assertThat(serving.store().stats().puts().abandoned()).isEqualTo(8);
        testClient.end(DisconnectReason.PEER_CLOSED);
    }

    @Test
    void givenAnObjectThatIsOutsideOrNoneOrOther_whenPut_thenRefusedAndTheRoomIsGivenBack() throws Exception {
        TestClient testClient = serving.testClient();
        int objects = testClient.register(Namespace.objects("o", ""));
        StagedEndpointFixture.StagingFile stagingFile = serving.staging(testClient);
        stagingFile.write(0, BYTES);
        StagedEndpointFixture.assertRefused(
                object(testClient, objects, new StagedRange(0, 32, CHECKSUM)), Status.CORRUPT, "checksum 0x");
        StagedEndpointFixture.assertRefused(
                object(testClient, objects, new StagedRange(2 * PAGE, 32, CHECKSUM)),
                Status.INVALID,
                "allowed: up to 8192");
        StagedEndpointFixture.assertRefused(
                object(testClient, objects, new StagedRange(0, 3 * PAGE, CHECKSUM)),
                Status.INVALID,
                "allowed: up to 8192");
        for (long bytes : new long[] {0, Long.MAX_VALUE}) {
            StagedEndpointFixture.assertRefused(
                    object(testClient, objects, new StagedRange(0, bytes, CHECKSUM)),
                    Status.INVALID,
                    Long.toString(bytes));
        }
        stagingFile.truncate(PAGE + 31);
        StagedEndpointFixture.assertRefused(
                object(testClient, objects, new StagedRange(0, 32, CHECKSUM)), Status.GONE, "cut short");
        assertThat(serving.store().stats().records().live()).isZero();
        testClient.end(DisconnectReason.PEER_CLOSED);
    }

    private static RecordingSink.ReceivedFrame object(TestClient testClient, int namespace, StagedRange staged)
            throws ProtocolException {
        BodyWriter body = staged.write(new BodyWriter().i32(namespace).i32(1));
        return testClient.request(MessageType.PUT_OBJECT_STAGED, body.u8(7));
    }

    @Test
    void givenAPlaceOutside_whenFilled_thenTheReservationIsUsedUp() throws Exception {
        TestClient testClient = serving.testClient();
        serving.staging(testClient);
        BodyWriter outside = new StagedRange(2 * PAGE, 32, CHECKSUM)
                .write(new BodyWriter().i64(StagedEndpointFixture.reserve(testClient)));
        StagedEndpointFixture.assertRefused(
                testClient.request(MessageType.FILL_STAGED, outside), Status.INVALID, "allowed");
        assertThat(serving.endpoint().stats().reservations().open()).isZero();
        assertThat(serving.store().stats().puts().abandoned()).isEqualTo(1);
        testClient.end(DisconnectReason.PEER_CLOSED);
    }

    @Test
    void givenAFileThatWasCutShort_whenPut_thenRefusedAndTheServerGoesOn() throws Exception {
        TestClient hostile = serving.testClient();
        StagedEndpointFixture.StagingFile stagingFile = serving.staging(hostile);
        stagingFile.write(0, BYTES);
        for (long left : new long[] {PAGE + 31, PAGE, 1, 0}) {
            stagingFile.truncate(left);
            StagedEndpointFixture.assertRefused(
                    StagedEndpointFixture.put(hostile, new StagedRange(0, 32, CHECKSUM)), Status.GONE, "cut short");
        }
        assertThat(serving.store().stats().records().live()).isZero();
        TestClient other = serving.testClient();
        serving.staging(other).write(0, BYTES);
        assertThat(StagedEndpointFixture.put(other, new StagedRange(0, 32, CHECKSUM))
                        .header()
                        .status())
                .isEqualTo(Status.OK);
        serving.assertStored();
        hostile.end(DisconnectReason.PEER_CLOSED);
        other.end(DisconnectReason.PEER_CLOSED);
    }

    @Test
    void givenAFileInThePlaceOfItsOwn_whenPut_thenItsOwnIsRead() throws Exception {
        TestClient testClient = serving.testClient();
        StagedEndpointFixture.StagingFile stagingFile = serving.staging(testClient);
        stagingFile.write(0, BYTES);
        Files.delete(stagingFile.file());
        Files.write(stagingFile.file(), new byte[3 * PAGE]);
        assertThat(StagedEndpointFixture.put(testClient, new StagedRange(0, 32, CHECKSUM))
                        .header()
                        .status())
                .isEqualTo(Status.OK);
        serving.assertStored();
        testClient.end(DisconnectReason.PEER_CLOSED);
    }

    @Test
    void givenNoStage_whenPut_thenInvalidAndTheRoomIsGivenBack() throws Exception {
        TestClient testClient = serving.testClient();
        StagedEndpointFixture.assertRefused(
                StagedEndpointFixture.put(testClient, new StagedRange(0, 32, CHECKSUM)),
                Status.INVALID,
                "allowed: after STAGE");
        assertThat(serving.store().stats().puts().abandoned()).isEqualTo(1);
        testClient.end(DisconnectReason.PEER_CLOSED);
    }

    @Test
    void givenBytesThatChangeWhileTheyAreCopied_whenPut_thenTheOnesOfTheChecksumOrNone() throws Exception {
        TestClient testClient = serving.testClient();
        StagedEndpointFixture.StagingFile stagingFile = serving.staging(testClient);
        byte[] other = BYTES.clone();
        other[0] ^= 1;
        Thread scribbler = Thread.ofPlatform().daemon().start(() -> {
            try (FileChannel channel = FileChannel.open(stagingFile.file(), StandardOpenOption.WRITE)) {
                while (!Thread.currentThread().isInterrupted()) {
                    channel.write(ByteBuffer.wrap(other), PAGE);
                    channel.write(ByteBuffer.wrap(BYTES), PAGE);
                    channel.truncate(PAGE + 16);
                    channel.write(ByteBuffer.wrap(BYTES), PAGE);
                }
            } catch (IOException interrupted) {
                // That is how it ends.
            }
        });
        for (int i = 0; i < 500; i++) {
            Status status = StagedEndpointFixture.put(testClient, new StagedRange(0, 32, CHECKSUM))
                    .header()
                    .status();
            if (status == Status.OK) {
                serving.assertStored();
                assertThat(serving.store().drop(serving.chain(), 0)).isEqualTo(1);
            } else {
                assertThat(status).isIn(Status.CORRUPT, Status.GONE);
                assertThat(serving.store().stats().records().live()).isZero();
            }
        }
        scribbler.interrupt();
        scribbler.join();
        testClient.end(DisconnectReason.PEER_CLOSED);
    }
}
