package io.kvcache.transport.endpoint;

import static io.kvcache.transport.endpoint.StagedServing.BYTES;
import static io.kvcache.transport.endpoint.StagedServing.CHECKSUM;
import static io.kvcache.transport.endpoint.StagedServing.PAGE;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.identity.Namespace;
import io.kvcache.transport.link.CloseReason;
import io.kvcache.transport.link.Loopback;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.StagedBytes;
import io.kvcache.transport.wire.Status;
import io.kvcache.transport.wire.Violation;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.StandardOpenOption;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;

/// Clients that lie about what they have written, or change it while it is copied: refused or right, and
/// nobody else notices.
@EnabledOnOs(OS.LINUX)
final class StagedHostilityTest {

    private final StagedServing serving = new StagedServing();

    @AfterEach
    void nothingIsLeft() throws IOException {
        serving.close();
    }

    @Test
    void givenOtherBytesThanTold_whenPut_thenCorruptAndTheRoomIsGivenBack() throws Exception {
        Peer peer = serving.peer();
        StagedServing.Area area = serving.staging(peer);
        area.write(0, BYTES);
        area.write(31, new byte[] {0});
        StagedServing.assertRefused(
                StagedServing.put(peer, new StagedBytes(0, 32, CHECKSUM)), Status.CORRUPT, "checksum 0x");
        assertThat(serving.endpoint().stats().corrupt()).isEqualTo(1);
        assertThat(serving.store().stats().records().live()).isZero();
        area.write(31, new byte[] {31});
        assertThat(StagedServing.put(peer, new StagedBytes(0, 32, CHECKSUM))
                        .header()
                        .status())
                .isEqualTo(Status.OK);
        serving.assertStored();
        peer.end(CloseReason.PEER_CLOSED);
    }

    @Test
    void givenAPlaceOutside_whenPut_thenInvalidAndTheRoomIsGivenBack() throws Exception {
        Peer peer = serving.peer();
        serving.staging(peer);
        for (StagedBytes outside : List.of(
                new StagedBytes(2 * PAGE - 31, 32, CHECKSUM),
                new StagedBytes(2 * PAGE, 32, CHECKSUM),
                new StagedBytes(Long.MAX_VALUE, 32, CHECKSUM),
                new StagedBytes(Long.MAX_VALUE - 31, 32, CHECKSUM))) {
            StagedServing.assertRefused(StagedServing.put(peer, outside), Status.INVALID, "allowed: up to 8192");
        }
        for (long bytes : new long[] {0, 31, 33, Long.MAX_VALUE}) {
            StagedServing.assertRefused(
                    StagedServing.put(peer, new StagedBytes(0, bytes, CHECKSUM)), Status.INVALID, "the room is for 32");
        }
        assertThat(serving.store().stats().records().live()).isZero();
        assertThat(serving.store().stats().puts().abandoned()).isEqualTo(8);
        peer.end(CloseReason.PEER_CLOSED);
    }

    @Test
    void givenAnObjectThatIsOutsideOrNoneOrOther_whenPut_thenRefusedAndTheRoomIsGivenBack() throws Exception {
        Peer peer = serving.peer();
        int objects = peer.register(Namespace.objects("o", ""));
        StagedServing.Area area = serving.staging(peer);
        area.write(0, BYTES);
        StagedServing.assertRefused(
                object(peer, objects, new StagedBytes(0, 32, CHECKSUM)), Status.CORRUPT, "checksum 0x");
        StagedServing.assertRefused(
                object(peer, objects, new StagedBytes(2 * PAGE, 32, CHECKSUM)), Status.INVALID, "allowed: up to 8192");
        StagedServing.assertRefused(
                object(peer, objects, new StagedBytes(0, 3 * PAGE, CHECKSUM)), Status.INVALID, "allowed: up to 8192");
        for (long bytes : new long[] {0, Long.MAX_VALUE}) {
            StagedServing.assertRefused(
                    object(peer, objects, new StagedBytes(0, bytes, CHECKSUM)), Status.INVALID, Long.toString(bytes));
        }
        area.truncate(PAGE + 31);
        StagedServing.assertRefused(object(peer, objects, new StagedBytes(0, 32, CHECKSUM)), Status.GONE, "cut short");
        assertThat(serving.store().stats().records().live()).isZero();
        peer.end(CloseReason.PEER_CLOSED);
    }

    private static Loopback.Whole object(Peer peer, int namespace, StagedBytes staged) throws Violation {
        BodyWriter body = staged.write(new BodyWriter().i32(namespace).i32(1));
        return peer.ask(MessageType.PUT_OBJECT_STAGED, body.u8(7));
    }

    @Test
    void givenAPlaceOutside_whenFilled_thenTheReservationIsUsedUp() throws Exception {
        Peer peer = serving.peer();
        serving.staging(peer);
        BodyWriter outside =
                new StagedBytes(2 * PAGE, 32, CHECKSUM).write(new BodyWriter().i64(StagedServing.reserve(peer)));
        StagedServing.assertRefused(peer.ask(MessageType.FILL_STAGED, outside), Status.INVALID, "allowed");
        assertThat(serving.endpoint().stats().reservations().open()).isZero();
        assertThat(serving.store().stats().puts().abandoned()).isEqualTo(1);
        peer.end(CloseReason.PEER_CLOSED);
    }

    @Test
    void givenAFileThatWasCutShort_whenPut_thenRefusedAndTheServerGoesOn() throws Exception {
        Peer hostile = serving.peer();
        StagedServing.Area area = serving.staging(hostile);
        area.write(0, BYTES);
        for (long left : new long[] {PAGE + 31, PAGE, 1, 0}) {
            area.truncate(left);
            StagedServing.assertRefused(
                    StagedServing.put(hostile, new StagedBytes(0, 32, CHECKSUM)), Status.GONE, "cut short");
        }
        assertThat(serving.store().stats().records().live()).isZero();
        Peer other = serving.peer();
        serving.staging(other).write(0, BYTES);
        assertThat(StagedServing.put(other, new StagedBytes(0, 32, CHECKSUM))
                        .header()
                        .status())
                .isEqualTo(Status.OK);
        serving.assertStored();
        hostile.end(CloseReason.PEER_CLOSED);
        other.end(CloseReason.PEER_CLOSED);
    }

    @Test
    void givenAFileInThePlaceOfItsOwn_whenPut_thenItsOwnIsRead() throws Exception {
        Peer peer = serving.peer();
        StagedServing.Area area = serving.staging(peer);
        area.write(0, BYTES);
        Files.delete(area.file());
        Files.write(area.file(), new byte[3 * PAGE]);
        assertThat(StagedServing.put(peer, new StagedBytes(0, 32, CHECKSUM))
                        .header()
                        .status())
                .isEqualTo(Status.OK);
        serving.assertStored();
        peer.end(CloseReason.PEER_CLOSED);
    }

    @Test
    void givenNoStage_whenPut_thenInvalidAndTheRoomIsGivenBack() throws Exception {
        Peer peer = serving.peer();
        StagedServing.assertRefused(
                StagedServing.put(peer, new StagedBytes(0, 32, CHECKSUM)), Status.INVALID, "allowed: after STAGE");
        assertThat(serving.store().stats().puts().abandoned()).isEqualTo(1);
        peer.end(CloseReason.PEER_CLOSED);
    }

    @Test
    void givenBytesThatChangeWhileTheyAreCopied_whenPut_thenTheOnesOfTheChecksumOrNone() throws Exception {
        Peer peer = serving.peer();
        StagedServing.Area area = serving.staging(peer);
        byte[] other = BYTES.clone();
        other[0] ^= 1;
        Thread scribbler = Thread.ofPlatform().daemon().start(() -> {
            try (FileChannel channel = FileChannel.open(area.file(), StandardOpenOption.WRITE)) {
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
            Status status = StagedServing.put(peer, new StagedBytes(0, 32, CHECKSUM))
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
        peer.end(CloseReason.PEER_CLOSED);
    }
}
