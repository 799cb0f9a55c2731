package io.kvcache.gpu.engine;

import static io.kvcache.gpu.engine.ConditionWait.awaitTrue;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.BlockTable;
import io.kvcache.core.check.BlockContent;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.gpu.cuda.FakeCuda;
import io.kvcache.gpu.engine.TransferQueue.EngineCopyThreshold;
import io.kvcache.gpu.paging.CopyThreshold;
import io.kvcache.tiers.TieredKvCache;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// Engines whose pools lie in other orders than blocks do, each through a door: what is stored is a
/// block as any other's, and what is loaded lies as the engine has it.
final class EngineLayoutsTest {

    private static final int LAYERS = TwoLayerPool.LAYERS;
    private static final int SIDES = TwoLayerPool.SIDES;
    private static final int PAGES = TwoLayerPool.PAGES;
    private static final int PIECE = TwoLayerPool.PIECE;
    private static final int POOL_BYTES = LAYERS * SIDES * PAGES * PIECE;
    private static final int[] STORED = {3, 17, 1, 38};
    private static final int[] LOADED = {8, 10, 21, 19};
    /// Orders of a pool, outermost first; strides in bytes.
    enum PoolOrder {
        LAYER_SIDE_PAGE(SIDES * PAGES * PIECE, PAGES * PIECE, PIECE),
        LAYER_PAGE_SIDE(SIDES * PAGES * PIECE, PIECE, SIDES * PIECE),
        PAGE_LAYER_SIDE(SIDES * PIECE, PIECE, LAYERS * SIDES * PIECE),
        PAGE_SIDE_LAYER(PIECE, LAYERS * PIECE, LAYERS * SIDES * PIECE),
        SIDE_LAYER_PAGE(PAGES * PIECE, LAYERS * PAGES * PIECE, PIECE);

        private final long layer;
        private final long side;
        private final long page;

        PoolOrder(long layer, long side, long page) {
            this.layer = layer;
            this.side = side;
            this.page = page;
        }

        MemorySegment piece(MemorySegment pool, int atLayer, int atSide, int atPage) {
            return pool.asSlice(atLayer * layer + atSide * side + atPage * page, PIECE);
        }

        ByteBuffer described(int region) {
            ByteBuffer body = EngineClient.pool(
                    TwoLayerPool.NAME, LAYERS, SIDES, PAGES, TwoLayerPool.PAGES_PER_BLOCK, side, page, PIECE);
            for (int at = 0; at < LAYERS; at++) {
                long bytes = (SIDES - 1) * side + (PAGES - 1) * page + PIECE;
                body.putLong(region).putLong(at * layer).putLong(bytes);
            }
            return body;
        }
    }

    @TempDir
    private Path folder;

    private final FakeCuda fakeCuda = FakeCuda.reset();
    private final Arena arena = Arena.ofShared();

    @SuppressWarnings("NullAway.Init") // given by JUnit
    EngineLayoutsTest() {}

    @AfterEach
    void close() {
        assertThat(fakeCuda.left()).isEmpty();
        arena.close();
    }

    @ParameterizedTest
    @EnumSource(PoolOrder.class)
    void givenAPoolInAnyOrder_whenStoredAndLoaded_thenBlocksAreOfOneOrderAndPagesOfTheEngines(PoolOrder order)
            throws IOException {
        storedAndLoaded(order, CopyThreshold.ALWAYS_COPY);
        if (fakeCuda.canHold()) {
            assertThat(fakeCuda.calls("cuLaunchKernel")).isZero();
        }
    }

    @ParameterizedTest
    @EnumSource(PoolOrder.class)
    void givenAPoolInAnyOrder_whenAKernelMovesItsPieces_thenBlocksAndPagesAreTheSame(PoolOrder order)
            throws IOException {
        storedAndLoaded(order, new CopyThreshold(1 << 20));
        if (fakeCuda.canHold()) {
            assertThat(fakeCuda.calls("cuLaunchKernel")).isEqualTo(2);
        }
    }

    private void storedAndLoaded(PoolOrder order, CopyThreshold threshold) throws IOException {
        MemorySegment pool = arena.allocate(POOL_BYTES, 8);
        new BlockContent(order.layer + order.side).fill(pool);
        try (TieredKvCache cache = TieredKvCache.builder()
                        .hostBytes(64 << 20)
                        .prefaultInBackground(false)
                        .failOnLeak(true)
                        .build();
                EngineIpcServer door = EngineIpcServer.open(
                        cache,
                        null,
                        fakeCuda::open,
                        Map.of(TwoLayerPool.NAME, TwoLayerPool.SPACE),
                        folder.resolve("door"),
                        new EngineCopyThreshold(threshold));
                InProcessEngine engine = new InProcessEngine(fakeCuda, folder.resolve("door"), arena)) {
            engine.write(pool);
            EngineClient client = engine.client();
            client.hello(engine.uuid());
            int region = client.region(engine.descriptor(), engine.pages().bytes());
            client.ask(EngineCodec.POOL, order.described(region));
            client.ask(EngineCodec.CHAIN, EngineClient.chain(0, 0, 0, TwoLayerPool.tokens(2)));
            ByteBuffer stored = client.ask(EngineCodec.STORE, EngineClient.blocks(0, 0, 2, -1, STORED));
            assertThat(stored.getLong()).isEqualTo(2);
            assertThat(client.seal(stored.getLong())).isEqualTo(2);
            requireBlocks(cache, order, pool);
            assertThat(client.ask(EngineCodec.LOAD, EngineClient.blocks(0, 0, 2, -1, LOADED))
                            .getLong())
                    .isEqualTo(2);
            client.close(); // the door ends its copies then
            awaitTrue(() -> door.engineCount() == 0);
            requirePages(order, pool, engine.read(POOL_BYTES));
        }
    }

    /// `[layer][side][page]`, whatever the pool's order.
    private static void requireBlocks(TieredKvCache cache, PoolOrder order, MemorySegment pool) {
        try (BlockTable table = cache.acquire(BlockChain.of(TwoLayerPool.SPACE, TwoLayerPool.tokens(2)))) {
            assertThat(table.readyBlocks()).isEqualTo(2);
            for (int block = 0; block < 2; block++) {
                long at = 0;
                for (int layer = 0; layer < LAYERS; layer++) {
                    for (int side = 0; side < SIDES; side++) {
                        for (int page = 0; page < TwoLayerPool.PAGES_PER_BLOCK; page++) {
                            MemorySegment expected = order.piece(pool, layer, side, STORED[2 * block + page]);
                            assertThat(table.segment(block).asSlice(at, PIECE).mismatch(expected))
                                    .isEqualTo(-1);
                            at += PIECE;
                        }
                    }
                }
            }
        }
    }

    /// Those that were loaded have what was stored, all others what they had.
    private static void requirePages(PoolOrder order, MemorySegment before, MemorySegment after) {
        for (int i = 0; i < LOADED.length; i++) {
            for (int layer = 0; layer < LAYERS; layer++) {
                for (int side = 0; side < SIDES; side++) {
                    order.piece(before, layer, side, LOADED[i]).copyFrom(order.piece(before, layer, side, STORED[i]));
                }
            }
        }
        assertThat(after.mismatch(before)).isEqualTo(-1);
    }
}
