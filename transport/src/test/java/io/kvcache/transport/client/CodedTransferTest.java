package io.kvcache.transport.client;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.KvCache;
import io.kvcache.core.SealOutcome;
import io.kvcache.core.check.BlockContent;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.transport.endpoint.Endpoint;
import io.kvcache.transport.endpoint.EndpointOptions;
import io.kvcache.transport.endpoint.TcpEndpoint;
import io.kvcache.transport.net.TcpConnector;
import io.kvcache.transport.wire.FrameHeader;
import io.kvcache.transport.wire.MessageType;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Blocks that come coded over a connection.
final class CodedTransferTest {

    private static final int BLOCKS = 6;

    /// Where DATA has its checksum and its layout.
    private static final int LAYOUT_OFFSET = FrameHeader.BYTES + 2 * Integer.BYTES;

    private final BlockChain chain = TestBlocks.chain(1, BLOCKS);
    private TieredKvCache store;

    @SuppressWarnings("NullAway.Init") // opened before each test
    CodedTransferTest() {}

    @BeforeEach
    void open() {
        store = TieredKvCache.builder()
                .hostBytes(64 << 20)
                .prefaultInBackground(false)
                .failOnLeak(true)
                .build();
        store.register(TestBlocks.SPACE);
    }

    @AfterEach
    void close() {
        store.close();
    }

    /// Its lowest bit decides whether it codes.
    private BlockContent content(int index, boolean codes) {
        return new BlockContent((chain.keyLo(index) & ~1) | (codes ? 1 : 0));
    }

    private void put(boolean codes) {
        for (int index = 0; index < BLOCKS; index++) {
            try (BlockWriter writer = store.put(chain, index, 0, KvCache.NO_WAIT)) {
                content(index, codes).fill(writer.segment());
                assertThat(writer.seal()).isEqualTo(SealOutcome.SEALED);
            }
        }
    }

    private static RemoteKvCache connect(TcpEndpoint endpoint) {
        RemoteKvCache cache = new RemoteKvCacheBuilder(
                        new TcpConnector("127.0.0.1", endpoint.address().getPort()))
                .requestTimeout(TestBlocks.PATIENCE)
                .strict(true)
                .coded(true)
                .connect();
        cache.register(TestBlocks.SPACE);
        return cache;
    }

    private void requireBlocks(KvCache cache, Duration timeout, boolean codes) {
        try (BlockTable table = cache.acquire(chain, 0, timeout)) {
            assertThat(table.await(BLOCKS, TestBlocks.PATIENCE)).isEqualTo(BLOCKS);
            for (int index = 0; index < BLOCKS; index++) {
                content(index, codes).requireEqual(0, table.segment(index));
            }
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void givenBlocksThatCode_whenAcquired_thenAQuarterOfTheirBytesIsSaved(boolean waits) throws IOException {
        put(true);
        try (TcpEndpoint endpoint = LoopbackServers.serve(store);
                RemoteKvCache cache = connect(endpoint)) {
            requireBlocks(cache, waits ? TestBlocks.PATIENCE : KvCache.NO_WAIT, true);
            long plain = BLOCKS * TestBlocks.BLOCK_BYTES;
            assertThat(endpoint.stats().bytesSaved()).isGreaterThan(plain * 24 / 100);
            assertThat(endpoint.stats().bytesOut() + endpoint.stats().bytesSaved())
                    .isEqualTo(plain);
            assertThat(cache.remoteStats().bytesSaved())
                    .isEqualTo(endpoint.stats().bytesSaved());
            assertThat(cache.remoteStats().bytesIn()).isEqualTo(plain);
        }
    }

    @Test
    void givenBlocksThatDoNotCode_whenAcquired_thenTheyComeAsTheyAre() throws IOException {
        put(false);
        try (TcpEndpoint endpoint = LoopbackServers.serve(store);
                RemoteKvCache cache = connect(endpoint)) {
            requireBlocks(cache, KvCache.NO_WAIT, false);
            assertThat(endpoint.stats().bytesSaved()).isZero();
        }
    }

    @Test
    void givenMoreReadersThanCoders_whenTheyAcquire_thenAllGetTheirBlocks() throws Exception {
        put(true);
        try (TcpEndpoint endpoint = LoopbackServers.serve(store);
                RemoteKvCache cache = connect(endpoint);
                ExecutorService readers = Executors.newFixedThreadPool(8)) {
            List<Future<?>> all = new ArrayList<>();
            for (int i = 0; i < 40; i++) {
                Duration timeout = i % 2 == 0 ? KvCache.NO_WAIT : TestBlocks.PATIENCE;
                all.add(readers.submit(() -> requireBlocks(cache, timeout, true)));
            }
            for (Future<?> each : all) {
                each.get();
            }
        }
    }

    @Test
    void givenABitTurnedOnTheWay_whenAcquired_thenTheTableIsShorterAndNeverWrong() {
        put(true);
        SplittableRandom random = new SplittableRandom(5);
        for (int round = 0; round < 60; round++) {
            int broken = random.nextInt(BLOCKS);
            InProcessServer server = server((block, frame) -> {
                if (block == broken) {
                    int at = LAYOUT_OFFSET + 4 + random.nextInt(frame.length - LAYOUT_OFFSET - 4);
                    frame[at] ^= (byte) (1 << random.nextInt(8));
                }
            });
            try (RemoteKvCache cache = connect(server);
                    BlockTable table = cache.acquire(chain, 0, KvCache.NO_WAIT)) {
                // A bit behind the bytes, in the rest of a page, does no harm.
                assertThat(table.readyBlocks()).isIn(broken, BLOCKS);
                for (int index = 0; index < table.readyBlocks(); index++) {
                    content(index, true).requireEqual(0, table.segment(index));
                }
            }
            assertThat(server.bugs()).isEmpty();
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 256, 511, 512, -1, 300})
    void givenALayoutThatThereIsNot_whenAcquired_thenItIsAMiss(int layout) {
        put(true);
        InProcessServer server = server((_, frame) -> littleEndian(frame).putInt(LAYOUT_OFFSET, layout));
        try (RemoteKvCache cache = connect(server);
                BlockTable table = cache.acquire(chain, 0, KvCache.NO_WAIT)) {
            assertThat(table.readyBlocks()).isZero();
        }
        assertThat(server.bugs()).isEmpty();
    }

    /// What becomes of a frame of DATA.
    private interface DataChange {
        void change(int block, byte[] frame);
    }

    private InProcessServer server(DataChange change) {
        Endpoint endpoint = new Endpoint(store, EndpointOptions.DEFAULTS, System::nanoTime);
        return new InProcessServer(endpoint, (_, frame) -> {
            if (littleEndian(frame).getShort(4) == MessageType.DATA.code()) {
                change.change(littleEndian(frame).getInt(FrameHeader.BYTES), frame);
            }
            return new InProcessServer.MutatedFrame(frame, false);
        });
    }

    private static RemoteKvCache connect(InProcessServer server) {
        RemoteKvCache cache = new RemoteKvCacheBuilder(server)
                .requestTimeout(TestBlocks.PATIENCE)
                .coded(true)
                .connect();
        cache.register(TestBlocks.SPACE);
        return cache;
    }

    private static ByteBuffer littleEndian(byte[] frame) {
        return ByteBuffer.wrap(frame).order(ByteOrder.LITTLE_ENDIAN);
    }
}
