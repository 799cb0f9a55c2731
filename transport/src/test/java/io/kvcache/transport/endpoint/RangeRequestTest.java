package io.kvcache.transport.endpoint;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.ForwardingKvCache;
import io.kvcache.core.check.BlockContent;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.ByteRange;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.transport.net.RecordingSink.ReceivedFrame;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.ProtocolException;
import io.kvcache.transport.wire.Status;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// READ_RANGE: its limits, and that it waits without its connection.
final class RangeRequestTest {

    /// Blocks of 1 MiB.
    private static final Namespace SPACE = Namespace.of("m", BlockShape.kv(16, 1, 1024, 16, Dtype.BF16));
    private static final int BLOCK_BYTES = 1 << 20;
    private static final long PATIENCE_NANOS = TimeUnit.SECONDS.toNanos(60);
    private static final long LOOK_NANOS = TimeUnit.MILLISECONDS.toNanos(1);

    private final BlockChain chain =
            BlockChain.of(SPACE, IntStream.range(0, 16 * 10).toArray());
    private final CountDownLatch arrival = new CountDownLatch(1);
    private final TieredKvCache store = TieredKvCache.builder()
            .hostBytes(64 << 20)
            .failOnLeak(true)
            .prefaultInBackground(false)
            .build();
    private final Endpoint endpoint = new Endpoint(waiting(), EndpointOptions.DEFAULTS, System::nanoTime);

    /// The store, but that what is read with a timeout comes when the test wants it.
    private ForwardingKvCache waiting() {
        return new ForwardingKvCache(store) {
            @Override
            public int getRange(BlockChain of, int from, ByteRange range, List<MemorySegment> into, Duration timeout) {
                try {
                    if (!timeout.isZero() && !arrival.await(timeout.toNanos(), TimeUnit.NANOSECONDS)) {
                        return 0;
                    }
                } catch (InterruptedException ended) {
                    Thread.currentThread().interrupt();
                }
                return delegate().getRange(of, from, range, into, timeout);
            }
        };
    }

    @BeforeEach
    void put() {
        store.register(SPACE);
        List<MemorySegment> blocks = IntStream.range(0, 8)
                .mapToObj(index -> BlockContent.of(chain.key(index)).toHeapSegment(BLOCK_BYTES))
                .toList();
        assertThat(store.putAll(chain, 0, blocks, Duration.ZERO).stored()).isEqualTo(8);
    }

    @AfterEach
    void nothingIsLeft() {
        endpoint.close();
        assertThat(store.stats().openTables()).isZero();
        store.close();
    }

    private TestClient testClient() throws ProtocolException {
        TestClient testClient = TestClient.connect(endpoint);
        testClient.send(MessageType.CHAIN, TestClient.chain(0, testClient.register(SPACE), chain));
        return testClient;
    }

    private BodyWriter body(long from, long count, long offset, long bytes, long timeoutNanos) {
        return TestClient.chainReference(0, chain.length())
                .i32((int) from)
                .i32((int) count)
                .i32((int) offset)
                .i32((int) bytes)
                .i64(timeoutNanos);
    }

    @ParameterizedTest
    @CsvSource({
        "0, 0, 0, 1, 'count = 0; allowed: 1 to 8192'",
        "0, 8193, 0, 1, 'count = 8193; allowed: 1 to 8192'",
        "0, 2, 0, 0, 'bytes = 0 of each of 2 blocks; allowed: 1 to 8388608, and 16777216 of all'",
        "0, 2, 0, 8388609, 'allowed: 1 to 8388608, and 16777216 of all'",
        "8, 3, 0, 1, 'blocks 8 to 11; allowed: 0 to 10'",
        "2147483647, 1, 0, 1, 'blocks 2147483647 to 2147483648; allowed: 0 to 10'",
        "0, 1, 0, 1048577, 'bytes 0 to 1048577 of a block; allowed: 0 to 1048576'",
        "0, 1, 1048576, 1, 'bytes 1048576 to 1048577 of a block; allowed: 0 to 1048576'",
        "0, 1, 2147483647, 1, 'allowed: 0 to 268435456'",
    })
    void givenNumbersOutOfRange_whenRequested_thenInvalidAndTheConnectionGoesOn(
            long from, long count, long offset, long bytes, String text) throws ProtocolException {
        TestClient testClient = testClient();
        ReceivedFrame reply = testClient.request(MessageType.READ_RANGE, body(from, count, offset, bytes, 0));
        assertThat(reply.header().status()).isEqualTo(Status.INVALID);
        assertThat(reply.reader().text("text")).contains(text);
        assertThat(testClient
                        .request(MessageType.READ_RANGE, body(2, 8, 100, 200, 0))
                        .reader()
                        .count("count"))
                .isEqualTo(6);
    }

    @Test
    void givenARangeThatWaits_whenOthersAreRequested_thenTheyAreAnsweredBefore() throws ProtocolException {
        TestClient testClient = testClient();
        assertThat(testClient.request(body(0, 10, 8, 16, PATIENCE_NANOS).request(MessageType.READ_RANGE, 77, 0)))
                .isEmpty();
        assertThat(testClient
                        .request(MessageType.PING, new BodyWriter())
                        .header()
                        .status())
                .isEqualTo(Status.OK);
        assertThat(endpoint.stats().waiting()).isEqualTo(1);
        arrival.countDown();
        long start = System.nanoTime();
        while (endpoint.stats().waiting() > 0) {
            assertThat(System.nanoTime() - start).isLessThan(PATIENCE_NANOS);
            LockSupport.parkNanos(LOOK_NANOS);
        }
        List<ReceivedFrame> frames = testClient.receivedFrames();
        assertThat(frames).hasSize(9);
        assertThat(frames.getFirst().reader().count("count")).isEqualTo(8);
        assertThat(frames)
                .allSatisfy(frame -> assertThat(frame.header().request()).isEqualTo(77));
    }

    /// As many bytes as all requests may have: 16 to 64 MiB, by the heap.
    @Test
    void givenAllMemoryForRangesTaken_whenMoreIsRequested_thenBusy() throws ProtocolException {
        TestClient testClient = testClient();
        int most = RangeRequestHandler.newBuffers().availablePermits() / (8 * BLOCK_BYTES);
        for (int i = 0; i < most; i++) {
            assertThat(testClient.request(
                            body(0, 8, 0, BLOCK_BYTES, PATIENCE_NANOS).request(MessageType.READ_RANGE, 1000 + i, 0)))
                    .isEmpty();
        }
        long start = System.nanoTime();
        ReceivedFrame reply;
        do { // those that wait begin a moment later
            reply = testClient.request(MessageType.READ_RANGE, body(0, 8, 0, BLOCK_BYTES, 0));
            assertThat(System.nanoTime() - start).isLessThan(PATIENCE_NANOS);
        } while (reply.header().status() == Status.OK);
        assertThat(reply.header().status()).isEqualTo(Status.BUSY);
        assertThat(reply.reader().text("text")).contains("memory");
        arrival.countDown();
        while (endpoint.stats().waiting() > 0) {
            LockSupport.parkNanos(LOOK_NANOS);
        }
        testClient.receivedFrames();
        assertThat(testClient
                        .request(MessageType.READ_RANGE, body(0, 8, 0, BLOCK_BYTES, 0))
                        .header()
                        .status())
                .isEqualTo(Status.OK);
    }
}
