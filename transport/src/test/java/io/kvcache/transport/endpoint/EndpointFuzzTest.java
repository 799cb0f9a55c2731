package io.kvcache.transport.endpoint;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.BlockWriter;
import io.kvcache.core.KvCache;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.check.BlockContent;
import io.kvcache.core.contract.Repetitions;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.memory.ChunkedCrc;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.transport.net.DisconnectReason;
import io.kvcache.transport.net.RecordingSink;
import io.kvcache.transport.shm.ShmDirectory;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.OutboundFrame.Payload;
import io.kvcache.transport.wire.ProtocolException;
import io.kvcache.transport.wire.SharedMemoryCodec.StagedRange;
import io.kvcache.transport.wire.Status;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/// Frames that are almost right, among others that are: nothing breaks but the connection
/// that sent them, and nothing is left.
///
/// `-Dkvcache.transport.fuzz=N` sends N frames, `-Dkvcache.transport.seed=S` repeats a run.
final class EndpointFuzzTest {

    private static final int FRAMES = Repetitions.of("kvcache.transport.fuzz", 3_000, 50_000);
    private static final long SEED = Long.getLong("kvcache.transport.seed", 20_261_120);
    private static final int FRAMES_A_CONNECTION = 25;
    private static final long PATIENCE_NANOS = TimeUnit.SECONDS.toNanos(60);
    private static final long LOOK_NANOS = TimeUnit.MILLISECONDS.toNanos(1);
    private static final Namespace BLOCKS = Namespace.of("m", BlockShape.kv(1, 1, 64, 16, Dtype.BF16));
    private static final Namespace OBJECTS = Namespace.objects("o", "t");
    private static final int BLOCK_BYTES = 4096;
    private static final int ZEROS = ChunkedCrc.of(Arena.ofAuto().allocate(BLOCK_BYTES));

    /// After any of these the connection is over, or they mean nothing.
    private static final List<MessageType> OUT_OF_PLACE = List.of(
            MessageType.ERROR,
            MessageType.HELLO,
            MessageType.AUTH,
            MessageType.REGISTER,
            MessageType.PROGRESS,
            MessageType.DATA);

    private static final List<MessageType> IN_PLACE = Arrays.stream(MessageType.values())
            .filter(type -> !OUT_OF_PLACE.contains(type))
            .toList();

    private final SplittableRandom random = new SplittableRandom(SEED);
    private final AtomicLong nanos = new AtomicLong(1);
    private final MemorySegment bytes = Arena.ofAuto().allocate(BLOCK_BYTES);

    @Test
    @Tag("slow")
    void givenFramesThatAreAlmostRight_whenSent_thenNothingIsLeft() throws ProtocolException {
        try (ShmDirectory folder = ShmDirectory.make();
                TieredKvCache store = TieredKvCache.builder()
                        .shareMemory(folder.path())
                        .hostBytes(64 << 20)
                        .checkSegments(true)
                        .failOnLeak(true)
                        .prefaultInBackground(false)
                        .build();
                Endpoint endpoint = new Endpoint(store, EndpointOptions.DEFAULTS, nanos::get)) {
            int sent = 0;
            int refused = 0;
            int violations = 0;
            while (sent < FRAMES) {
                TestClient testClient = TestClient.connect(endpoint);
                int space = testClient.register(BLOCKS);
                testClient.register(OBJECTS);
                BlockChain chain = chain();
                store(store, chain);
                testClient.send(MessageType.CHAIN, TestClient.chain(0, space, chain));
                DisconnectReason end = DisconnectReason.PEER_CLOSED;
                try {
                    for (int i = 0; i < FRAMES_A_CONNECTION; i++) {
                        if (random.nextBoolean()) {
                            refused += judge(testClient.request(request()));
                        }
                        sent++;
                        refused += judge(testClient.request(mutated(request())));
                    }
                } catch (ProtocolException expected) {
                    assertThat(expected).as("seed %d", SEED).hasMessageContaining("allowed");
                    violations++;
                    end = DisconnectReason.MALFORMED;
                }
                testClient.end(end);
                nanos.addAndGet(1_000_000);
            }
            awaitQuiet(endpoint);
            EndpointStats stats = endpoint.stats();
            assertThat(stats.leases().open()).as("seed %d", SEED).isZero();
            assertThat(stats.reservations().open()).as("seed %d", SEED).isZero();
            assertThat(stats.connections()).isZero();
            assertThat(stats.closed()).containsEntry(DisconnectReason.MALFORMED, (long) violations);
            assertThat(stats.leases().granted()).as("some are right").isPositive();
            assertThat(stats.reservations().granted()).as("some are right").isPositive();
            assertThat(refused).as("some are refused").isPositive();
            assertThat(store.stats().openTables()).isZero();
            store.validate();
        }
    }

    /// There is something to be had, unless it is there or another one holds its place.
    private void store(TieredKvCache store, BlockChain chain) {
        for (int index = 0; index < 2; index++) {
            try (BlockWriter writer = store.put(chain, index, 0, KvCache.NO_WAIT)) {
                if (writer.outcome() == PutOutcome.RESERVED) {
                    writer.copyFrom(bytes);
                    writer.seal();
                }
            }
        }
    }

    private static void awaitQuiet(Endpoint endpoint) {
        long start = System.nanoTime();
        while (endpoint.stats().waiting() > 0 || endpoint.stats().leases().open() > 0) {
            assertThat(System.nanoTime() - start)
                    .as("seed %d, until all is quiet", SEED)
                    .isLessThan(PATIENCE_NANOS);
            LockSupport.parkNanos(LOOK_NANOS);
        }
    }

    /// Answers how many refusals there are; none may be a failure.
    private static int judge(List<RecordingSink.ReceivedFrame> replies) {
        int refused = 0;
        for (RecordingSink.ReceivedFrame reply : replies) {
            Status status = reply.header().isReply() ? reply.header().status() : Status.OK;
            assertThat(status).as("a bug, seed %d", SEED).isNotEqualTo(Status.FAILED);
            refused += status == Status.OK ? 0 : 1;
        }
        return refused;
    }

    private BlockChain chain() {
        int seed = random.nextInt(20);
        return BlockChain.of(
                BLOCKS, IntStream.range(0, 16 * 4).map(i -> seed * 1000 + i).toArray());
    }

    /// A request with fields that mostly make sense.
    private byte[] request() {
        List<MessageType> types = random.nextInt(40) == 0 ? OUT_OF_PLACE : IN_PLACE;
        MessageType type = types.get(random.nextInt(types.size()));
        BodyWriter body = new BodyWriter();
        switch (type) {
            case MATCH -> about(body);
            case ACQUIRE -> about(body).i32(small()).i32(small()).i64(timeout()).u8(random.nextInt(3));
            case TOUCH -> body.i32(2).i32(0).i64(small()).i64(random.nextLong());
            case READ -> body.i64(small()).i32(small()).i32(small());
            case READ_RANGE ->
                about(body).i32(small()).i32(small()).i32(small()).i32(small()).i64(timeout());
            case VIEW -> body.i64(random.nextLong()).i64(timeout());
            case PLACES -> body.i64(small()).i32(small()).i32(small()).u8(random.nextInt(3));
            case RELEASE -> body.i32(2).i32(0).i64(small()).i64(small());
            case ABANDON -> body.i64(small());
            case DROP_CHAIN -> about(body).i32(small());
            case HINT ->
                about(body)
                        .i32(random.nextInt(7))
                        .i32(small())
                        .i64(timeout())
                        .i32(random.nextInt(6))
                        .i32(small())
                        .i64(small());
            case RESERVE -> about(body).i32(small()).i32(0).i64(timeout());
            case FILL -> body.i64(1 + small());
            case PUT -> about(body).i32(small()).i32(0);
            case PUT_OBJECT -> body.i32(2).i32(3);
            case STAGE -> body.i64(small() * 3000L);
            case FILL_STAGED -> staged(body.i64(1 + small()));
            case PUT_STAGED -> staged(about(body).i32(small()).i32(0));
            case PUT_OBJECT_STAGED -> {
                staged(body.i32(2).i32(3));
                body.bytes(key());
            }
            case CHAIN -> body.bytes(chainBody());
            case RESERVE_OBJECT ->
                body.i32(2).i32(3).i64(1 + random.nextInt(5000)).i64(timeout()).bytes(key());
            case GET_OBJECT ->
                body.i32(2).i32(3).i64(random.nextInt(2)).i64(timeout()).bytes(key());
            case HINT_OBJECTS ->
                body.i32(2)
                        .i32(1)
                        .i32(random.nextInt(7))
                        .i32(0)
                        .i64(timeout())
                        .bytes(new byte[8 * random.nextInt(3)])
                        .i32(3)
                        .bytes(key());
            case REGION -> body.i64(1).i64(2).i64(0).text("/dev/shm/none");
            case DROP_REGION -> body.i32(small());
            case COPY ->
                body.i32(small())
                        .i32(random.nextInt(2))
                        .i32(2)
                        .i32(1)
                        .i64(timeout())
                        .i64(0)
                        .i32(3)
                        .i32(1)
                        .bytes(key())
                        .i64(small())
                        .i64(small());
            case MATCH_OBJECTS -> body.i32(2).i32(1).i64(timeout()).i32(3).bytes(key());
            case LIST_OBJECTS, DROP_OBJECTS ->
                body.i32(2).i32(1).i64(random.nextLong()).i64(random.nextLong());
            case CONTAINS_OBJECT, DROP_OBJECT -> body.i32(2).i32(3).bytes(key());
            case EVENTS -> body.i64(small()).i32(1 + small());
            case SNAPSHOT -> body.i64(0).i32(small()).i32(0);
            case FLUSH -> body.i64(timeout());
            case DROP_NAMESPACE -> body.i32(random.nextInt(20) == 0 ? small() : 2);
            case EXECUTE -> body.u8(random.nextInt(20));
            case ERROR, HELLO, AUTH, PING, RENEW, SHARE, FABRIC, REGISTER, PROGRESS, DATA, STATS -> body.bytes(key());
        }
        int number = random.nextInt(10);
        return switch (type) {
            case FILL, PUT, PUT_OBJECT, EXECUTE -> withPayload(type, body, number);
            default -> RecordingSink.bytes(body.request(type, number, 0));
        };
    }

    private byte[] withPayload(MessageType type, BodyWriter body, int number) {
        BlockContent.of(random.nextInt(), 0).fill(bytes);
        long size = random.nextInt(4) == 0 ? 1 + random.nextInt(BLOCK_BYTES) : BLOCK_BYTES;
        MemorySegment payload = bytes.asSlice(0, size);
        byte[] key = type == MessageType.PUT_OBJECT ? key() : new byte[0];
        ChunkedCrc sum = new ChunkedCrc();
        sum.update(payload);
        sum.update(MemorySegment.ofArray(key));
        body.i32(random.nextInt(4) == 0 ? random.nextInt() : sum.value()).i32(0).bytes(key);
        return RecordingSink.bytes(body.request(type, number, 0, Payload.of(List.of(payload))));
    }

    /// Mostly what lies in memory that was never written to.
    private void staged(BodyWriter body) {
        long size = random.nextInt(4) == 0 ? random.nextInt(2 * BLOCK_BYTES) : BLOCK_BYTES;
        int checksum = random.nextInt(4) == 0 ? random.nextInt() : ZEROS;
        new StagedRange(random.nextInt(4) * 2000L, size, checksum).write(body);
    }

    private BodyWriter about(BodyWriter body) {
        return body.u8(0).u8(0).u16(0).i32(random.nextInt(3) == 0 ? random.nextInt(5) : 4);
    }

    private byte[] chainBody() {
        byte[] whole = RecordingSink.bytes(
                TestClient.chain(random.nextInt(3), 1, chain()).request(MessageType.CHAIN, 0, 0));
        return Arrays.copyOfRange(whole, 32, whole.length);
    }

    private int small() {
        return random.nextInt(6);
    }

    private long timeout() {
        return random.nextInt(3) == 0 ? random.nextInt(1_000_000) : 0;
    }

    private byte[] key() {
        return new byte[] {1, 2, (byte) random.nextInt(4)};
    }

    /// Never as it was: bits are turned, bytes are lost, or others than they were.
    private byte[] mutated(byte[] frame) {
        byte[] changed = frame.clone();
        switch (random.nextInt(5)) {
            case 0 -> changed[random.nextInt(changed.length)] ^= (byte) (1 << random.nextInt(8));
            case 1 -> changed[random.nextInt(Math.min(changed.length, 80))] += (byte) (1 + random.nextInt(255));
            case 2 -> changed[4] = (byte) ((changed[4] + 1 + random.nextInt(59)) % 60);
            case 3 -> changed = Arrays.copyOf(changed, 1 + random.nextInt(changed.length - 1));
            default -> {
                for (int i = 32; i < Math.min(changed.length, 64); i++) {
                    changed[i] = (byte) random.nextInt();
                }
            }
        }
        if (Arrays.equals(changed, frame)) {
            changed[random.nextInt(changed.length)]++;
        }
        return changed;
    }
}
