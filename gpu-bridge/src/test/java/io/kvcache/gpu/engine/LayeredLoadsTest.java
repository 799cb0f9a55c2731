package io.kvcache.gpu.engine;

import static io.kvcache.gpu.engine.ConditionWait.awaitTrue;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.ForwardingBlockTable;
import io.kvcache.core.ForwardingKvCache;
import io.kvcache.core.KvCache;
import io.kvcache.core.LocalKvCache;
import io.kvcache.core.check.BlockContent;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.gpu.cuda.FakeCuda;
import io.kvcache.gpu.driver.DeviceIpc;
import io.kvcache.gpu.engine.TransferQueue.EngineCopyThreshold;
import io.kvcache.gpu.paging.CopyThreshold;
import io.kvcache.tiers.TieredKvCache;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Loads of an engine from a store whose layers come when the test says so.
@Tag("slow")
final class LayeredLoadsTest {

    @TempDir
    private Path folder;

    private final FakeCuda fakeCuda = FakeCuda.reset();
    private final Arena arena = Arena.ofShared();
    private final AtomicInteger layersHere = new AtomicInteger();
    private final AtomicInteger blocksThatCome = new AtomicInteger(2);
    private final AtomicInteger openTables = new AtomicInteger();
    private TieredKvCache cache;
    private EngineIpcServer door;

    @SuppressWarnings("NullAway.Init") // opened before each test
    LayeredLoadsTest() {}

    /// A store whose tables have as many layers and blocks as the test says.
    private final class SteppedStore extends ForwardingKvCache {

        SteppedStore(LocalKvCache store) {
            super(store);
        }

        @Override
        public BlockTable acquireByLayers(BlockChain chain, int from, Duration timeout, int layersAStep) {
            openTables.incrementAndGet();
            return new SteppedTable(super.acquire(chain, from, timeout));
        }
    }

    private final class SteppedTable extends ForwardingBlockTable {

        SteppedTable(BlockTable table) {
            super(table);
        }

        @Override
        public int endBlock() {
            return firstBlock() + blocksThatCome.get();
        }

        @Override
        public int readyLayers() {
            return layersHere.get();
        }

        @Override
        public int awaitLayers(int layers, Duration timeout) {
            awaitTrue(() -> layersHere.get() >= layers);
            return layersHere.get();
        }

        @Override
        public void close() {
            openTables.decrementAndGet();
            super.close();
        }
    }

    @BeforeEach
    void open() {
        cache = TieredKvCache.builder()
                .hostBytes(64 << 20)
                .prefaultInBackground(false)
                .failOnLeak(true)
                .build();
        cache.register(TwoLayerPool.SPACE);
        BlockChain chain = BlockChain.of(TwoLayerPool.SPACE, TwoLayerPool.tokens(2));
        for (int index = 0; index < 2; index++) {
            try (BlockWriter writer = cache.put(chain, index, 0, KvCache.NO_WAIT)) {
                new BlockContent(index).fill(writer.segment());
                writer.seal();
            }
        }
        door = EngineIpcServer.open(
                new SteppedStore(cache),
                null,
                fakeCuda::open,
                Map.of(TwoLayerPool.NAME, TwoLayerPool.SPACE),
                path(),
                new EngineCopyThreshold(CopyThreshold.ALWAYS_COPY));
    }

    @AfterEach
    void close() {
        fakeCuda.release();
        door.close();
        assertThat(openTables).hasValue(0);
        cache.validate();
        cache.close();
        assertThat(fakeCuda.left()).isEmpty();
        arena.close();
    }

    private Path path() {
        return folder.resolve("door");
    }

    private InProcessEngine engine() throws IOException {
        long bytes = TwoLayerPool.OFFSET + 2 * TwoLayerPool.LAYER_BYTES;
        InProcessEngine engine = new InProcessEngine(fakeCuda, path(), arena, bytes);
        engine.client().hello(engine.uuid());
        int region = engine.client().region(engine.descriptor(), engine.pages().bytes());
        ByteBuffer pool = EngineClient.pool(
                TwoLayerPool.NAME,
                TwoLayerPool.LAYERS,
                TwoLayerPool.SIDES,
                TwoLayerPool.PAGES,
                TwoLayerPool.PAGES_PER_BLOCK,
                (long) TwoLayerPool.PAGES * TwoLayerPool.PIECE,
                TwoLayerPool.PIECE,
                TwoLayerPool.PIECE);
        for (int layer = 0; layer < TwoLayerPool.LAYERS; layer++) {
            pool.putLong(region)
                    .putLong(TwoLayerPool.OFFSET + layer * TwoLayerPool.LAYER_BYTES)
                    .putLong(TwoLayerPool.LAYER_BYTES);
        }
        engine.client().ask(EngineCodec.POOL, pool);
        engine.client().ask(EngineCodec.CHAIN, EngineClient.chain(0, 0, 0, TwoLayerPool.tokens(2)));
        return engine;
    }

    private static ByteBuffer steps(InProcessEngine engine, int count) throws IOException {
        return engine.client()
                .ask(EngineCodec.STEPS, EngineClient.body(8).putInt(0).putInt(count));
    }

    private static ByteBuffer load(InProcessEngine engine, int... pages) throws IOException {
        return engine.client().ask(EngineCodec.LOAD_LAYERS, EngineClient.blocks(0, 0, 2, EngineCodec.NO_EVENT, pages));
    }

    private static ByteBuffer awaitLayers(long load, int steps) {
        return EngineClient.body(8).putInt((int) load).putInt(steps);
    }

    private static void requireNumbers(ByteBuffer answer, long... numbers) {
        for (long number : numbers) {
            assertThat(answer.getLong()).isEqualTo(number);
        }
        assertThat(answer.remaining()).isZero();
    }

    /// Waits until pages have a layer of a block of the store.
    private void awaitLayer(InProcessEngine engine, int layer, int block, int... pages) {
        MemorySegment content = arena.allocate(TwoLayerPool.BLOCK_BYTES, 8);
        new BlockContent(block).fill(content);
        awaitTrue(() -> hasLayer(engine, content, layer, pages));
    }

    private static boolean hasLayer(InProcessEngine engine, MemorySegment block, int layer, int... pages) {
        MemorySegment all = engine.read(TwoLayerPool.OFFSET + 2 * TwoLayerPool.LAYER_BYTES);
        long at = (long) layer * TwoLayerPool.SIDES * TwoLayerPool.PAGES_PER_BLOCK * TwoLayerPool.PIECE;
        for (int side = 0; side < TwoLayerPool.SIDES; side++) {
            for (int page : pages) {
                long place = TwoLayerPool.OFFSET
                        + layer * TwoLayerPool.LAYER_BYTES
                        + ((long) side * TwoLayerPool.PAGES + page) * TwoLayerPool.PIECE;
                MemorySegment piece = all.asSlice(place, TwoLayerPool.PIECE);
                if (piece.mismatch(block.asSlice(at, TwoLayerPool.PIECE)) != -1) {
                    return false;
                }
                at += TwoLayerPool.PIECE;
            }
        }
        return true;
    }

    @Test
    void givenLayersThatComeOneByOne_whenAwaited_thenEachStepIsQueuedWhenItsLayerIsHere() throws Exception {
        try (InProcessEngine engine = engine()) {
            ByteBuffer told = steps(engine, 2);
            assertThat(told.getLong()).isEqualTo(1);
            assertThat(told.remaining()).isEqualTo(2 * DeviceIpc.TOKEN_BYTES);
            requireNumbers(load(engine, 3, 17, 0, 39), 2, 0, 0);
            layersHere.set(1);
            requireNumbers(engine.client().ask(EngineCodec.AWAIT_LAYERS, awaitLayers(0, 1)), 2, 1);
            awaitLayer(engine, 0, 0, 3, 17);
            awaitLayer(engine, 0, 1, 0, 39);
            assertThat(openTables).hasValue(1);
            int question = engine.client().send(EngineCodec.AWAIT_LAYERS, awaitLayers(0, 2), -1);
            layersHere.set(BlockTable.ALL_LAYERS);
            requireNumbers(engine.client().answer(question), 2, 2);
            awaitLayer(engine, 1, 0, 3, 17);
            awaitLayer(engine, 1, 1, 0, 39);
            awaitTrue(() -> openTables.get() == 0);
            requireNumbers(engine.client().ask(EngineCodec.AWAIT_LAYERS, awaitLayers(0, 2)), 2, 2);
        }
    }

    @Test
    void givenAnEngineThatDoesNotAsk_whenLayersCome_thenTheyAreCopiedAndTheTableIsClosed() throws Exception {
        try (InProcessEngine engine = engine()) {
            steps(engine, 2);
            layersHere.set(1);
            requireNumbers(load(engine, 3, 17, 0, 39), 2, 0, 1);
            layersHere.set(BlockTable.ALL_LAYERS);
            awaitLayer(engine, 1, 1, 0, 39);
            awaitTrue(() -> openTables.get() == 0);
        }
    }

    @Test
    void givenABlockThatDoesNotComeAfterAll_whenAwaited_thenTheEngineIsToldAndItsPagesStay() throws Exception {
        try (InProcessEngine engine = engine()) {
            steps(engine, 2);
            layersHere.set(1);
            requireNumbers(load(engine, 3, 17, 0, 39), 2, 0, 1);
            blocksThatCome.set(1);
            layersHere.set(BlockTable.ALL_LAYERS);
            requireNumbers(engine.client().ask(EngineCodec.AWAIT_LAYERS, awaitLayers(0, 2)), 1, 2);
            awaitLayer(engine, 1, 0, 3, 17);
            MemorySegment second = arena.allocate(TwoLayerPool.BLOCK_BYTES, 8);
            new BlockContent(1).fill(second);
            assertThat(hasLayer(engine, second, 1, 0, 39)).isFalse();
        }
    }

    @Test
    void givenOneStep_whenLoaded_thenItIsAsAnyLoad() throws Exception {
        try (InProcessEngine engine = engine()) {
            steps(engine, 1);
            layersHere.set(BlockTable.ALL_LAYERS);
            requireNumbers(load(engine, 3, 17, 0, 39), 2, 0, 1);
            awaitLayer(engine, 1, 1, 0, 39);
        }
    }

    @Test
    void givenAnEngineThatGoesMidway_whenItIsGone_thenTheTableIsClosed() throws Exception {
        try (InProcessEngine engine = engine()) {
            steps(engine, 2);
            layersHere.set(1);
            requireNumbers(load(engine, 3, 17, 0, 39), 2, 0, 1);
            assertThat(openTables).hasValue(1);
        }
        awaitTrue(() -> openTables.get() == 0);
    }

    @Test
    void givenWrongRequests_whenMade_thenTheyAreRefusedAndTheSessionGoesOn() throws Exception {
        try (InProcessEngine engine = engine()) {
            engine.expectRefused(
                    EngineCodec.LOAD_LAYERS, EngineClient.blocks(0, 0, 2, EngineCodec.NO_EVENT, 3, 17, 0, 39), "STEPS");
            engine.expectRefused(
                    EngineCodec.STEPS, EngineClient.body(8).putInt(1).putInt(1), "pool");
            engine.expectRefused(
                    EngineCodec.STEPS, EngineClient.body(8).putInt(0).putInt(3), "steps of a pool: 3");
            engine.expectRefused(
                    EngineCodec.STEPS, EngineClient.body(8).putInt(0).putInt(0), "steps of a pool: 0");
            engine.expectRefused(EngineCodec.AWAIT_LAYERS, awaitLayers(0, 1), "load 0");
            steps(engine, 2);
            engine.expectRefused(
                    EngineCodec.STEPS, EngineClient.body(8).putInt(0).putInt(2), "told before");
            layersHere.set(1);
            requireNumbers(load(engine, 3, 17, 0, 39), 2, 0, 1);
            engine.expectRefused(EngineCodec.AWAIT_LAYERS, awaitLayers(0, 3), "steps of load 0");
            blocksThatCome.set(0);
            requireNumbers(load(engine, 4, 18, 1, 38), 0, -1, 2);
        }
    }
}
