package io.kvcache.transport.endpoint;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.ForwardingKvCache;
import io.kvcache.core.NamespaceStats;
import io.kvcache.core.ObjectView;
import io.kvcache.core.ObjectWriter;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.memory.ChunkedCrc;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.transport.endpoint.ClientSession.SessionRegions;
import io.kvcache.transport.net.DisconnectReason;
import io.kvcache.transport.net.RecordingSink;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.CopyRequest.Result;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.ProtocolException;
import io.kvcache.transport.wire.Status;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.SplittableRandom;
import java.util.UUID;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;

/// An engine's own memory as source and destination, and what is refused when it lies about it.
@EnabledOnOs(OS.LINUX)
final class RegionTest {

    private static final Namespace OBJECTS = Namespace.objects("o", "");
    private static final int REGION_BYTES = 1 << 20;

    private final StagedEndpointFixture serving = new StagedEndpointFixture();
    private final SplittableRandom random = new SplittableRandom(7);
    private TestClient client;
    private int namespace;
    private final Path file;

    RegionTest() throws IOException, ProtocolException {
        client = TestClient.connect(serving.endpoint());
        namespace = client.register(OBJECTS);
        file = Files.createTempFile(Path.of("/dev/shm"), "kvcache-region", ".pool");
        byte[] bytes = new byte[REGION_BYTES];
        random.nextBytes(bytes);
        Files.write(file, bytes);
    }

    @AfterEach
    void close() throws IOException {
        client.end(DisconnectReason.PEER_CLOSED);
        Files.deleteIfExists(file);
        serving.close();
    }

    private UUID proof() {
        return Objects.requireNonNull(serving.store().sharedMemory()).proof();
    }

    private RecordingSink.ReceivedFrame register(UUID proof, String path) throws ProtocolException {
        return client.request(
                MessageType.REGION,
                new BodyWriter()
                        .i64(proof.getMostSignificantBits())
                        .i64(proof.getLeastSignificantBits())
                        .i64(0)
                        .text(path));
    }

    private int register() throws ProtocolException {
        BodyReader reply = register(proof(), file.toString()).reader();
        int number = reply.count("region");
        assertThat(reply.skip(4).i64("bytes")).isEqualTo(REGION_BYTES);
        return number;
    }

    /// One object's part of a COPY.
    @SuppressWarnings("ArrayRecordComponent") // never compared
    private record Item(String key, long... spans) {

        void write(BodyWriter to) {
            byte[] name = key.getBytes(StandardCharsets.UTF_8);
            to.i32(name.length).i32(spans.length / 2).bytes(name);
            Arrays.stream(spans).forEach(to::i64);
        }
    }

    private RecordingSink.ReceivedFrame copy(int region, int direction, Item... items) throws ProtocolException {
        return copy(0, region, direction, items);
    }

    private RecordingSink.ReceivedFrame copy(long until, int region, int direction, Item... items)
            throws ProtocolException {
        BodyWriter body = new BodyWriter().i32(region).i32(direction).i32(namespace);
        body.i32(items.length).i64(0).i64(until);
        for (Item item : items) {
            item.write(body);
        }
        return client.request(MessageType.COPY, body);
    }

    private List<Result> load(int region, Item... items) throws ProtocolException {
        return results(copy(region, 0, items));
    }

    private List<Result> store(int region, Item... items) throws ProtocolException {
        return results(copy(region, 1, items));
    }

    private static List<Result> results(RecordingSink.ReceivedFrame frame) throws ProtocolException {
        assertThat(frame.header().status()).isEqualTo(Status.OK);
        BodyReader reply = frame.reader();
        int count = reply.count("count");
        reply.skip(4);
        List<Result> results = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            results.add(reply.oneOf("result", List.of(Result.values())));
        }
        return results;
    }

    private byte[] region(long offset, int bytes) throws IOException {
        byte[] all = Files.readAllBytes(file);
        return Arrays.copyOfRange(all, (int) offset, (int) offset + bytes);
    }

    private void truncate(long bytes) throws IOException {
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE)) {
            channel.truncate(bytes);
        }
    }

    @Test
    void givenPiecesOfARegion_whenStoredAndLoaded_thenTheBytesAreRightAndSummed() throws Exception {
        int region = register();
        assertThat(store(region, new Item("a", 0, 5000, 100_000, 3000), new Item("b", 5000, 200_000)))
                .containsExactly(Result.COPIED, Result.COPIED);
        try (ObjectView view =
                Objects.requireNonNull(serving.store().getObject(OBJECTS, "a".getBytes(StandardCharsets.UTF_8)))) {
            ByteBuffer stored = ByteBuffer.allocate(8000);
            view.copyTo(0, 8000, MemorySegment.ofBuffer(stored));
            ByteBuffer expected = ByteBuffer.allocate(8000);
            expected.put(region(0, 5000)).put(region(100_000, 3000)).flip();
            assertThat(stored).isEqualTo(expected);
            ChunkedCrc sum = new ChunkedCrc();
            view.segments().forEach(sum::update);
            sum.update(MemorySegment.ofArray("a".getBytes(StandardCharsets.UTF_8)));
            assertThat(view.checksum()).isEqualTo(sum.value());
        }
        byte[] b = region(5000, 200_000);
        assertThat(load(region, new Item("b", 900_000, 1000, 600_000, 199_000), new Item("none", 0, 1)))
                .containsExactly(Result.COPIED, Result.ABSENT);
        assertThat(region(900_000, 1000)).isEqualTo(Arrays.copyOf(b, 1000));
        assertThat(region(600_000, 199_000)).isEqualTo(Arrays.copyOfRange(b, 1000, 200_000));
        assertThat(serving.endpoint().stats().bytesStaged()).isEqualTo(208_000);
        assertThat(serving.endpoint().stats().bytesOut()).isEqualTo(200_000);
    }

    @Test
    void givenAnObjectThatIsThere_whenStoredAgain_thenItIsKeptUnlessItsSizeDiffers() throws Exception {
        int region = register();
        assertThat(store(region, new Item("a", 0, 5000))).containsExactly(Result.COPIED);
        assertThat(store(region, new Item("a", 9000, 5000))).containsExactly(Result.PRESENT);
        assertThat(load(region, new Item("a", 0, 4999))).containsExactly(Result.OTHER_SIZE);
        assertThat(store(region, new Item("a", 9000, 5001))).containsExactly(Result.COPIED);
        assertThat(load(region, new Item("a", 0, 5001))).containsExactly(Result.COPIED);
        assertThat(region(0, 5001)).isEqualTo(region(9000, 5001));
    }

    @Test
    void givenAFullStore_whenStored_thenNoRoomAndTheOthersAreAnswered() throws Exception {
        int region = register();
        for (int i = 0; i < 100; i++) {
            assertThat(store(region, new Item("k" + i, 0, 500_000)))
                    .containsAnyOf(Result.COPIED, Result.DECLINED, Result.NO_ROOM);
        }
        assertThat(store(region, new Item("huge", spans(100)), new Item("small", 0, 10)))
                .startsWith(Result.NO_ROOM);
    }

    @Test
    void givenANamespaceThatIsDroppedMeanwhile_whenStored_thenNoRoom() throws Exception {
        ForwardingKvCache dropping = new ForwardingKvCache(serving.store()) {
            @Override
            public ObjectWriter putObject(Namespace space, byte[] key, long bytes, Duration timeout) {
                ObjectWriter writer = super.putObject(space, key, bytes, timeout);
                var _ = drop(space);
                return writer;
            }
        };
        Endpoint endpoint = new Endpoint(dropping, EndpointOptions.DEFAULTS, System::nanoTime);
        TestClient before = client;
        client = TestClient.connect(endpoint);
        namespace = client.register(OBJECTS);
        int region = register();
        assertThat(store(region, new Item("a", 0, 5000))).containsExactly(Result.NO_ROOM);
        assertThat(load(region, new Item("a", 0, 5000))).containsExactly(Result.ABSENT);
        client.end(DisconnectReason.PEER_CLOSED);
        endpoint.close();
        client = before;
    }

    /// The whole region, so many times.
    private static long[] spans(int times) {
        long[] spans = new long[2 * times];
        for (int i = 0; i < times; i++) {
            spans[2 * i + 1] = REGION_BYTES;
        }
        return spans;
    }

    @Test
    void givenAWrongProof_whenRegistered_thenForbidden() throws Exception {
        StagedEndpointFixture.assertRefused(
                register(new UUID(1, 2), file.toString()), Status.FORBIDDEN, "the proof is wrong");
    }

    @Test
    void givenWhatIsNoMemory_whenRegistered_thenRefusedWithTheReason() throws Exception {
        StagedEndpointFixture.assertRefused(
                register(proof(), "relative"), Status.INVALID, "path = \"relative\"; allowed: an absolute path");
        StagedEndpointFixture.assertRefused(register(proof(), file + "x"), Status.INVALID, "does not exist");
        StagedEndpointFixture.assertRefused(register(proof(), "/dev/zero"), Status.INVALID, "is not memory");
        StagedEndpointFixture.assertRefused(register(proof(), "/dev/shm"), Status.INVALID, "is not memory");
        StagedEndpointFixture.assertRefused(
                register(proof(), "/proc/self/fd/1"), Status.INVALID, "names a descriptor of the server");
        StagedEndpointFixture.assertRefused(
                register(
                        proof(),
                        "/proc/1/../%d/fd/1".formatted(ProcessHandle.current().pid())),
                Status.INVALID,
                "names a descriptor of the server");
        StagedEndpointFixture.assertRefused(register(proof(), "a\0b"), Status.INVALID, "not valid");
        truncate(0);
        StagedEndpointFixture.assertRefused(
                register(proof(), file.toString()), Status.INVALID, "has 0 bytes; allowed: 1 to");
    }

    @Test
    void givenTooManyRegions_whenRegistered_thenBusyUntilOneIsDropped() throws Exception {
        int first = register();
        for (int i = 1; i < 64; i++) {
            register();
        }
        StagedEndpointFixture.assertRefused(
                register(proof(), file.toString()), Status.BUSY, "64 regions are registered; allowed: 64");
        assertThat(client.request(MessageType.DROP_REGION, new BodyWriter().i32(first))
                        .header()
                        .status())
                .isEqualTo(Status.OK);
        assertThat(register()).isEqualTo(65);
        StagedEndpointFixture.assertRefused(
                copy(first, 1, new Item("a", 0, 1)), Status.GONE, "region 1 is none of this session");
    }

    @Test
    void givenSpansOutside_whenCopied_thenRefusedBeforeAnythingIsDone() throws Exception {
        int region = register();
        for (long[] outside : new long[][] {
            {REGION_BYTES, 1}, {REGION_BYTES - 1, 2}, {0, REGION_BYTES + 1}, {Long.MAX_VALUE, 2}, {1, Long.MAX_VALUE}
        }) {
            for (int direction = 0; direction < 2; direction++) {
                StagedEndpointFixture.assertRefused(
                        copy(region, direction, new Item("a", 0, 10), new Item("b", outside)),
                        Status.INVALID,
                        "object 1 has ");
            }
        }
        StagedEndpointFixture.assertRefused(
                copy(region, 1, new Item("a")), Status.INVALID, "object 0 has 0 bytes; allowed: 1 to");
        assertThat(serving.store().stats().records().live()).isZero();
    }

    @Test
    void givenAFileThatWasCutShort_whenCopied_thenGoneAndTheServerGoesOn() throws Exception {
        int region = register();
        store(region, new Item("a", 0, 900_000));
        truncate(450_000);
        StagedEndpointFixture.assertRefused(
                copy(region, 0, new Item("a", 0, 900_000)), Status.GONE, "its file was cut short");
        StagedEndpointFixture.assertRefused(
                copy(region, 1, new Item("b", 0, 900_000)), Status.GONE, "its file was cut short");
        truncate(0);
        StagedEndpointFixture.assertRefused(
                copy(region, 1, new Item("b", 0, 100)), Status.GONE, "its file was cut short");
        assertThat(serving.store().containsObject(OBJECTS, new byte[] {'b'})).isFalse();
        Files.write(file, new byte[REGION_BYTES]);
        assertThat(load(region, new Item("a", 0, 900_000))).containsExactly(Result.COPIED);
    }

    @Test
    void givenAFileThatShrinksWhileCopied_whenCopied_thenTheServerGoesOn() throws Exception {
        int region = register();
        Thread scribbler = Thread.ofPlatform().daemon().start(() -> {
            try (FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE)) {
                while (!Thread.currentThread().isInterrupted()) {
                    channel.truncate(random.nextInt(REGION_BYTES));
                    channel.write(ByteBuffer.wrap(new byte[] {1}), REGION_BYTES - 1);
                }
            } catch (IOException interrupted) {
                // That is how it ends.
            }
        });
        for (int i = 0; i < 300; i++) {
            Item item = new Item("k" + i, 0, REGION_BYTES);
            Status stored = copy(region, 1, item).header().status();
            Status loaded = copy(region, 0, item).header().status();
            assertThat(List.of(stored, loaded)).isSubsetOf(Status.OK, Status.GONE);
        }
        scribbler.interrupt();
        scribbler.join();
        assertThat(serving.store().stats().puts().reserved()).isPositive();
    }

    @Test
    void givenATimeThatIsOver_whenCopied_thenNothingIsStoredOrWritten() throws Exception {
        int region = register();
        store(region, new Item("a", 0, 5000));
        byte[] before = region(10_000, 5000);
        long over = System.nanoTime() - 1;
        StagedEndpointFixture.assertRefused(
                copy(over, region, 0, new Item("a", 10_000, 5000)), Status.GONE, "the time that the client gave");
        StagedEndpointFixture.assertRefused(
                copy(over, region, 1, new Item("b", 0, 5000)), Status.GONE, "the time that the client gave");
        assertThat(region(10_000, 5000)).isEqualTo(before);
        assertThat(serving.store().containsObject(OBJECTS, new byte[] {'b'})).isFalse();
        long later = System.nanoTime() + 3_600_000_000_000L;
        assertThat(results(copy(later, region, 0, new Item("a", 10_000, 5000)))).containsExactly(Result.COPIED);
    }

    @Test
    void givenFlatKeys_whenMatched_thenTheLeadingOnesAreCountedAndPinned() throws Exception {
        int region = register();
        for (String key : List.of("a", "b", "d")) {
            store(region, new Item(key, 0, 100));
        }
        BodyReader reply = match(3_600_000_000_000L, "a", "b", "c", "d");
        assertThat(reply.count("present")).isEqualTo(2);
        assertThat(reply.count("pinned")).isEqualTo(2);
        assertThat(serving.store().hintStats().pins()).isEqualTo(2);
        assertThat(match(0, "c").count("present")).isZero();
        assertThat(match(0).count("present")).isZero();
    }

    private BodyReader match(long pin, String... keys) throws ProtocolException {
        BodyWriter body = new BodyWriter().i32(namespace).i32(keys.length).i64(pin);
        for (String key : keys) {
            byte[] name = key.getBytes(StandardCharsets.UTF_8);
            body.i32(name.length).bytes(name);
        }
        return client.request(MessageType.MATCH_OBJECTS, body).reader();
    }

    @Test
    void givenObjects_whenListedInPagesAndDroppedByDigest_thenEachOnceAndNoneOfAnotherNamespace() throws Exception {
        int region = register();
        List<String> keys = List.of("a", "bb", "ccc", "dddd", "eeeee");
        Map<BlockKey, Long> expected = new HashMap<>();
        for (String key : keys) {
            store(region, new Item(key, 0, 100));
            expected.put(digest(key), 100L + key.length());
        }
        Map<BlockKey, Long> listed = new LinkedHashMap<>();
        BlockKey last = new BlockKey(0, 0);
        for (int count : List.of(2, 2, 1, 0)) {
            BodyReader page = list(last);
            assertThat(page.count("count")).isEqualTo(count);
            page.skip(4);
            for (int i = 0; i < count; i++) {
                last = BlockKey.ofDigest(page.bytes("digest", BlockKey.BYTES));
                listed.put(last, page.i64("bytes"));
            }
        }
        assertThat(listed).isEqualTo(expected);

        BlockKey foreign = BlockKey.ofDigest(new byte[BlockKey.BYTES]);
        BodyWriter drop = new BodyWriter().i32(namespace).i32(3);
        for (BlockKey key : List.of(digest("a"), foreign, digest("ccc"))) {
            drop.bigEndian(key.hi()).bigEndian(key.lo());
        }
        assertThat(client.request(MessageType.DROP_OBJECTS, drop).reader().count("dropped"))
                .isEqualTo(2);
        assertThat(keys.stream()
                        .filter(key -> serving.store().containsObject(OBJECTS, key.getBytes(StandardCharsets.UTF_8))))
                .containsExactly("bb", "dddd", "eeeee");
    }

    /// The next two objects of the listing.
    private BodyReader list(BlockKey after) throws ProtocolException {
        BodyWriter body = new BodyWriter().i32(namespace).i32(2);
        body.bigEndian(after.hi()).bigEndian(after.lo());
        List<RecordingSink.ReceivedFrame> frames = client.request(body.request(MessageType.LIST_OBJECTS, 99, 0));
        while (frames.isEmpty()) { // another thread reads the records
            Thread.onSpinWait();
            frames = client.receivedFrames();
        }
        return frames.getFirst().reader();
    }

    private static BlockKey digest(String key) {
        return BlockKey.ofObject(OBJECTS, key.getBytes(StandardCharsets.UTF_8));
    }

    @Test
    void givenThatMemoryIsNotShared_whenRegistered_thenUnsupported() throws Exception {
        try (TieredKvCache alone = TieredKvCache.builder()
                .hostBytes(32 << 20)
                .prefaultInBackground(false)
                .build()) {
            Endpoint endpoint = new Endpoint(alone, EndpointOptions.DEFAULTS, System::nanoTime);
            TestClient other = TestClient.connect(endpoint);
            BodyWriter body = new BodyWriter().i64(1).i64(2).i64(0).text(file.toString());
            StagedEndpointFixture.assertRefused(
                    other.request(MessageType.REGION, body), Status.UNSUPPORTED, "keeps its memory to itself");
            other.end(DisconnectReason.PEER_CLOSED);
            endpoint.close();
        }
    }

    @Test
    void givenManyRegions_whenDropped_thenOneThreadUnmapsThem() throws Exception {
        client.request(MessageType.DROP_REGION, new BodyWriter().i32(register())); // starts what the first one starts
        awaitUnmapped();
        long before = ManagementFactory.getThreadMXBean().getTotalStartedThreadCount();
        for (int round = 0; round < 5; round++) {
            List<Integer> numbers = new ArrayList<>();
            for (int i = 0; i < SessionRegions.MAX_REGIONS; i++) {
                numbers.add(register());
            }
            for (int number : numbers) {
                client.request(MessageType.DROP_REGION, new BodyWriter().i32(number));
            }
        }
        awaitUnmapped();
        long started = ManagementFactory.getThreadMXBean().getTotalStartedThreadCount() - before;
        assertThat(started).as("threads started for 320 regions").isLessThan(20);
    }

    private void awaitUnmapped() throws IOException {
        while (Files.readString(Path.of("/proc/self/maps")).contains(file.toString())) {
            LockSupport.parkNanos(1_000_000);
        }
    }

    private NamespaceStats counts() {
        return serving.store().stats().namespaces().stream()
                .filter(each -> each.namespace().equals(OBJECTS))
                .findFirst()
                .orElseThrow();
    }

    @Test
    void givenARegion_whenObjectsAreStoredAndLoaded_thenOnlyLoadsAreLookUps() throws Exception {
        int region = register();
        Item item = new Item("counted", 0, 1000);

        assertThat(store(region, item)).containsExactly(Result.COPIED);
        assertThat(counts().objectsRequested()).as("a store").isZero();

        assertThat(load(region, item, new Item("absent", 0, 1000))).containsExactly(Result.COPIED, Result.ABSENT);
        assertThat(counts().objectsRequested()).isEqualTo(2);
        assertThat(counts().objectsFound()).isEqualTo(1);
    }
}
