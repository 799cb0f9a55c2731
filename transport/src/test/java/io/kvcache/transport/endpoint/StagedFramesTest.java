package io.kvcache.transport.endpoint;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.BlockTable;
import io.kvcache.core.StagingHead;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.tiers.memory.StagingLimits;
import io.kvcache.transport.link.CloseReason;
import io.kvcache.transport.link.Loopback;
import io.kvcache.transport.shm.ShmFolder;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.StagedBytes;
import io.kvcache.transport.wire.StagingPlace;
import io.kvcache.transport.wire.Status;
import io.kvcache.transport.wire.Violation;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.HexFormat;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;

/// STAGE, FILL_STAGED and PUT_STAGED, byte by byte, from clients that mean well and from others. The
/// checksums were computed outside Java.
@EnabledOnOs(OS.LINUX)
final class StagedFramesTest {

    private static final HexFormat HEX = HexFormat.of();

    /// Blocks of 32 bytes.
    private static final Namespace SPACE = Namespace.of("m", BlockShape.kv(1, 1, 8, 1, Dtype.BF16));

    private static final byte[] BYTES = bytes("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f");

    private static final int CHECKSUM = 0x86A4_C273;
    private static final int PAGE = 4096;

    private static final String STAGE = """
            4b564331 0700 0000 0600000000000000 08000000 00000000 0000000000000000
            0020000000000000
            """;

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

    private final ShmFolder folder = ShmFolder.make();
    private final TieredKvCache store = store(folder, new StagingLimits(2 * PAGE, 5 * PAGE));
    private final Endpoint endpoint = new Endpoint(store, EndpointOptions.DEFAULTS, System::nanoTime);
    private final BlockChain chain = BlockChain.of(SPACE, new int[] {1, 2});

    private static TieredKvCache store(ShmFolder folder, StagingLimits limits) {
        return TieredKvCache.builder()
                .hostBytes(32 << 20)
                .strict(true)
                .touched(false)
                .shared(folder.path())
                .staging(limits)
                .build();
    }

    @AfterEach
    void nothingIsLeft() throws IOException {
        endpoint.close();
        assertThat(store.stats().openTables()).isZero();
        assertThat(staged()).as("no session, no staging memory").isEmpty();
        store.validate();
        store.close();
        assertThat(folder.files()).isEmpty();
        folder.close();
    }

    private List<String> staged() throws IOException {
        return folder.files().stream().filter(name -> name.startsWith("stage-")).toList();
    }

    private static byte[] bytes(String hex) {
        return HEX.parseHex(hex.replaceAll("\\s", ""));
    }

    private static String hex(Loopback.Whole reply) {
        BodyWriter body = new BodyWriter().bytes(reply.body());
        MessageType type = MessageType.of(reply.header().type());
        assertThat(type).isNotNull();
        return HEX.formatHex(Loopback.bytes(body.reply(type, reply.header().request())));
    }

    private static String hex(String frame) {
        return frame.replaceAll("\\s", "");
    }

    private Peer peer() throws Violation {
        Peer peer = Peer.welcomed(endpoint);
        peer.tell(MessageType.CHAIN, Peer.chain(5, peer.register(SPACE), chain));
        return peer;
    }

    /// A session's staging memory, as its client sees it.
    private record Area(StagingPlace place, Path file) {

        void write(long offset, byte[] bytes) throws IOException {
            try (FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE)) {
                channel.write(ByteBuffer.wrap(bytes), PAGE + offset);
            }
        }

        void truncate(long bytes) throws IOException {
            try (FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE)) {
                channel.truncate(bytes);
            }
        }
    }

    private Area staging(Peer peer) throws Violation {
        StagingPlace place = StagingPlace.read(peer.ask(bytes(STAGE)).getFirst().reader());
        return new Area(place, folder.path().resolve(place.file()));
    }

    private static Loopback.Whole put(Peer peer, StagedBytes staged) throws Violation {
        return peer.ask(
                MessageType.PUT_STAGED, staged.write(Peer.about(5, 2).i32(0).i32(0)));
    }

    private static void assertRefused(Loopback.Whole reply, Status status, String... words) throws Violation {
        assertThat(reply.header().status()).isEqualTo(status);
        assertThat(reply.reader().text("text")).contains(words);
    }

    private void assertStored() {
        try (BlockTable table = store.acquire(chain)) {
            assertThat(table.readyBlocks()).isEqualTo(1);
            assertThat(table.segment(0).toArray(ValueLayout.JAVA_BYTE)).isEqualTo(BYTES);
        }
    }

    private static long reserve(Peer peer) throws Violation {
        BodyWriter body = Peer.about(5, 2).i32(0).i32(0).i64(0);
        return peer.ask(MessageType.RESERVE, body).reader().skip(8).i64("reservation");
    }

    @Test
    void givenAClient_whenItStages_thenAFileOfItsOwnThatSaysWhatItIs() throws Exception {
        Peer peer = peer();
        Area area = staging(peer);
        assertThat(area.place.bytes()).isEqualTo(2 * PAGE);
        assertThat(staged()).containsExactly(area.place.file());
        assertThat(Files.size(area.file)).isEqualTo(3 * PAGE);
        assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(area.file)))
                .isEqualTo("rw-------");
        MemorySegment file = MemorySegment.ofArray(Files.readAllBytes(area.file));
        assertThat(area.place.head().begins(file)).isTrue();
        assertThat(new StagingHead(area.place.head().ticket() + 1).begins(file)).isFalse();
        assertThat(HEX.formatHex(file.asSlice(0, 16).toArray(ValueLayout.JAVA_BYTE)))
                .isEqualTo("4b56435354414745" + "0100000000000000");
        assertThat(staging(peer).place).as("asked again").isEqualTo(area.place);
        peer.end(CloseReason.PEER_CLOSED);
        assertThat(staged()).isEmpty();
    }

    @Test
    void givenStagedBytes_whenPut_thenTheseBytesBothWays() throws Exception {
        Peer peer = peer();
        staging(peer).write(PAGE, BYTES);
        assertThat(hex(peer.ask(bytes(PUT_STAGED)).getFirst())).isEqualTo(hex(PUT_ANSWER));
        assertStored();
        assertThat(hex(peer.ask(bytes(PUT_STAGED)).getFirst()))
                .as("present")
                .isEqualTo(hex(PUT_ANSWER.replace("\n00 00 ", "\n01 00 ")));
        assertThat(endpoint.stats().bytesStaged()).isEqualTo(32);
        assertThat(endpoint.stats().bytesIn()).isZero();
        peer.end(CloseReason.PEER_CLOSED);
    }

    @Test
    void givenAReservation_whenFilledFromThere_thenTheseBytesBothWays() throws Exception {
        Peer peer = peer();
        staging(peer).write(PAGE, BYTES);
        assertThat(reserve(peer)).isEqualTo(1);
        assertThat(hex(peer.ask(bytes(FILL_STAGED)).getFirst())).isEqualTo(hex(FILL_ANSWER));
        assertStored();
        assertRefused(peer.ask(bytes(FILL_STAGED)).getFirst(), Status.GONE, "reservation 1 is over");
        assertThat(endpoint.stats().reservations().open()).isZero();
        peer.end(CloseReason.PEER_CLOSED);
    }

    @Test
    void givenABodyThatIsLonger_whenPut_thenWhatIsNotKnownIsIgnored() throws Exception {
        Peer peer = peer();
        staging(peer).write(0, BYTES);
        BodyWriter longer = new StagedBytes(0, 32, CHECKSUM)
                .write(Peer.about(5, 2).i32(0).i32(0))
                .i64(-1);
        assertThat(peer.ask(MessageType.PUT_STAGED, longer).header().status()).isEqualTo(Status.OK);
        assertStored();
        assertThat(peer.ask(MessageType.STAGE, new BodyWriter().i64(1).i64(-1))
                        .header()
                        .status())
                .isEqualTo(Status.OK);
        peer.end(CloseReason.PEER_CLOSED);
    }

    @Test
    void givenOtherBytesThanTold_whenPut_thenCorruptAndTheRoomIsGivenBack() throws Exception {
        Peer peer = peer();
        Area area = staging(peer);
        area.write(0, BYTES);
        area.write(31, new byte[] {0});
        assertRefused(put(peer, new StagedBytes(0, 32, CHECKSUM)), Status.CORRUPT, "checksum 0x");
        assertThat(endpoint.stats().corrupt()).isEqualTo(1);
        assertThat(store.stats().records().live()).isZero();
        area.write(31, new byte[] {31});
        assertThat(put(peer, new StagedBytes(0, 32, CHECKSUM)).header().status())
                .isEqualTo(Status.OK);
        assertStored();
        peer.end(CloseReason.PEER_CLOSED);
    }

    @Test
    void givenAPlaceOutside_whenPut_thenInvalidAndTheRoomIsGivenBack() throws Exception {
        Peer peer = peer();
        staging(peer);
        for (StagedBytes outside : List.of(
                new StagedBytes(2 * PAGE - 31, 32, CHECKSUM),
                new StagedBytes(2 * PAGE, 32, CHECKSUM),
                new StagedBytes(Long.MAX_VALUE, 32, CHECKSUM),
                new StagedBytes(Long.MAX_VALUE - 31, 32, CHECKSUM))) {
            assertRefused(put(peer, outside), Status.INVALID, "allowed: up to 8192");
        }
        for (long bytes : new long[] {0, 31, 33, Long.MAX_VALUE}) {
            assertRefused(put(peer, new StagedBytes(0, bytes, CHECKSUM)), Status.INVALID, "the room is for 32");
        }
        assertThat(store.stats().records().live()).isZero();
        assertThat(store.stats().puts().abandoned()).isEqualTo(8);
        peer.end(CloseReason.PEER_CLOSED);
    }

    @Test
    void givenAPlaceOutside_whenFilled_thenTheReservationIsUsedUp() throws Exception {
        Peer peer = peer();
        staging(peer);
        BodyWriter outside = new StagedBytes(2 * PAGE, 32, CHECKSUM).write(new BodyWriter().i64(reserve(peer)));
        assertRefused(peer.ask(MessageType.FILL_STAGED, outside), Status.INVALID, "allowed");
        assertThat(endpoint.stats().reservations().open()).isZero();
        assertThat(store.stats().puts().abandoned()).isEqualTo(1);
        peer.end(CloseReason.PEER_CLOSED);
    }

    @Test
    void givenAFileThatWasCutShort_whenPut_thenRefusedAndTheServerGoesOn() throws Exception {
        Peer hostile = peer();
        Area area = staging(hostile);
        area.write(0, BYTES);
        for (long left : new long[] {PAGE + 31, PAGE, 1, 0}) {
            area.truncate(left);
            assertRefused(put(hostile, new StagedBytes(0, 32, CHECKSUM)), Status.GONE, "cut short");
        }
        assertThat(store.stats().records().live()).isZero();
        Peer other = peer();
        staging(other).write(0, BYTES);
        assertThat(put(other, new StagedBytes(0, 32, CHECKSUM)).header().status())
                .isEqualTo(Status.OK);
        assertStored();
        hostile.end(CloseReason.PEER_CLOSED);
        other.end(CloseReason.PEER_CLOSED);
    }

    @Test
    void givenAFileInThePlaceOfItsOwn_whenPut_thenItsOwnIsRead() throws Exception {
        Peer peer = peer();
        Area area = staging(peer);
        area.write(0, BYTES);
        Files.delete(area.file);
        Files.write(area.file, new byte[3 * PAGE]);
        assertThat(put(peer, new StagedBytes(0, 32, CHECKSUM)).header().status())
                .isEqualTo(Status.OK);
        assertStored();
        peer.end(CloseReason.PEER_CLOSED);
    }

    @Test
    void givenNoStage_whenPut_thenInvalidAndTheRoomIsGivenBack() throws Exception {
        Peer peer = peer();
        assertRefused(put(peer, new StagedBytes(0, 32, CHECKSUM)), Status.INVALID, "allowed: after STAGE");
        assertThat(store.stats().puts().abandoned()).isEqualTo(1);
        peer.end(CloseReason.PEER_CLOSED);
    }

    @Test
    void givenManyClients_whenTheyHaveAllThereIs_thenBusyUntilOneGoes() throws Exception {
        Peer first = peer();
        Peer second = peer();
        Peer third = peer();
        staging(first);
        staging(second);
        assertRefused(third.ask(bytes(STAGE)).getFirst(), Status.BUSY, "8.0 KiB (8192 bytes)", "16.0 KiB", "20.0 KiB");
        assertThat(staged()).hasSize(2);
        first.end(CloseReason.BROKEN);
        assertThat(staging(third).place.bytes()).isEqualTo(2 * PAGE);
        second.end(CloseReason.PEER_CLOSED);
        third.end(CloseReason.PEER_CLOSED);
    }

    @Test
    void givenSizes_whenStaged_thenWholePagesWithinTheLimit() throws Exception {
        for (long[] wantedAndGot : new long[][] {{1, PAGE}, {PAGE, PAGE}, {PAGE + 1, 2 * PAGE}, {1L << 40, 2 * PAGE}}) {
            Peer peer = peer();
            BodyWriter wanted = new BodyWriter().i64(wantedAndGot[0]);
            StagingPlace place =
                    StagingPlace.read(peer.ask(MessageType.STAGE, wanted).reader());
            assertThat(place.bytes()).isEqualTo(wantedAndGot[1]);
            peer.end(CloseReason.PEER_CLOSED);
        }
        Peer peer = peer();
        assertRefused(peer.ask(MessageType.STAGE, new BodyWriter().i64(0)), Status.INVALID, "allowed: 1 to 8192");
        peer.end(CloseReason.PEER_CLOSED);
    }

    @Test
    void givenAServerThatGoesDown_whenStagedOrPut_thenBusyButWhatHasBegunIsFilled() throws Exception {
        Peer peer = peer();
        staging(peer).write(PAGE, BYTES);
        reserve(peer);
        endpoint.drain();
        assertRefused(put(peer, new StagedBytes(PAGE, 32, CHECKSUM)), Status.BUSY, "going down");
        assertRefused(peer.ask(bytes(STAGE)).getFirst(), Status.BUSY, "going down");
        assertThat(hex(peer.ask(bytes(FILL_STAGED)).getFirst())).isEqualTo(hex(FILL_ANSWER));
        assertStored();
        peer.end(CloseReason.PEER_CLOSED);
    }

    @Test
    void givenAStoreWithoutStaging_whenStaged_thenUnsupported() throws Exception {
        try (ShmFolder other = ShmFolder.make();
                TieredKvCache without = store(other, StagingLimits.NONE);
                Endpoint serving = new Endpoint(without, EndpointOptions.DEFAULTS, System::nanoTime)) {
            Peer peer = Peer.welcomed(serving);
            assertRefused(peer.ask(bytes(STAGE)).getFirst(), Status.UNSUPPORTED, "no memory for clients to write");
            peer.end(CloseReason.PEER_CLOSED);
        }
    }

    @Test
    void givenBytesThatChangeWhileTheyAreCopied_whenPut_thenTheOnesOfTheChecksumOrNone() throws Exception {
        Peer peer = peer();
        Area area = staging(peer);
        byte[] other = BYTES.clone();
        other[0] ^= 1;
        Thread scribbler = Thread.ofPlatform().daemon().start(() -> {
            try (FileChannel channel = FileChannel.open(area.file, StandardOpenOption.WRITE)) {
                while (!Thread.currentThread().isInterrupted()) {
                    channel.write(ByteBuffer.wrap(other), PAGE);
                    channel.write(ByteBuffer.wrap(BYTES), PAGE);
                }
            } catch (IOException interrupted) {
                // That is how it ends.
            }
        });
        for (int i = 0; i < 500; i++) {
            Status status = put(peer, new StagedBytes(0, 32, CHECKSUM)).header().status();
            if (status == Status.OK) {
                assertStored();
                assertThat(store.drop(chain, 0)).isEqualTo(1);
            } else {
                assertThat(status).isEqualTo(Status.CORRUPT);
                assertThat(store.stats().records().live()).isZero();
            }
        }
        scribbler.interrupt();
        scribbler.join();
        peer.end(CloseReason.PEER_CLOSED);
    }
}
