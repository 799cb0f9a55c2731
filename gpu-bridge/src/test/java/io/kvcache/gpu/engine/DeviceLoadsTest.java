package io.kvcache.gpu.engine;

import static io.kvcache.gpu.engine.ConditionWait.awaitTrue;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.NamespaceStats;
import io.kvcache.core.check.BlockContent;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.gpu.cuda.FakeCuda;
import io.kvcache.gpu.driver.DeviceAddress;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.engine.TransferQueue.EngineCopyThreshold;
import io.kvcache.gpu.paging.CopyThreshold;
import io.kvcache.gpu.paging.PagedLayout;
import io.kvcache.gpu.tier.CudaTier;
import io.kvcache.gpu.tier.DeviceBlockMap;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.tiers.TieredKvCacheBuilder;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Engines load blocks that lie on their device from there, and what they store gets there without a detour.
@Tag("slow")
final class DeviceLoadsTest {

    private static final int HOST_BYTES = 32 << 20;
    private static final long TIER_BYTES = 128L << 20;
    private static final int OUT_OF_MEMORY = 2;
    private static final Duration LONG = Duration.ofSeconds(60);

    @TempDir
    private Path folder;

    private final FakeCuda fakeCuda = FakeCuda.reset();
    private final Arena arena = Arena.ofShared();
    private final CudaTier tier = CudaTier.withDriver("GPU", fakeCuda::open, TIER_BYTES);

    @SuppressWarnings("NullAway.Init") // given by JUnit
    DeviceLoadsTest() {}

    @AfterEach
    void close() {
        assertThat(fakeCuda.left()).isEmpty();
        arena.close();
    }

    private TieredKvCache store() {
        return builder().admission(AdmissionKind.ALWAYS).build();
    }

    private TieredKvCacheBuilder builder() {
        return TieredKvCache.builder()
                .hostBytes(HOST_BYTES)
                .policy(PolicyKind.LRU)
                .prefaultInBackground(false)
                .failOnLeak(true)
                .tier(tier);
    }

    private EngineIpcServer door(TieredKvCache cache, int threshold) {
        return EngineIpcServer.open(
                cache,
                tier,
                fakeCuda::open,
                Map.of(TwoLayerPool.NAME, TwoLayerPool.SPACE),
                path(),
                new EngineCopyThreshold(new CopyThreshold(threshold)));
    }

    private Path path() {
        return folder.resolve("door");
    }

    private PooledEngine engine() throws IOException {
        return new PooledEngine(fakeCuda.open(), path(), arena, 7);
    }

    private static PagedLayout layout() {
        DeviceSpan pool = new DeviceSpan(new DeviceAddress(1L << 40), TwoLayerPool.LAYERS * TwoLayerPool.LAYER_BYTES);
        return PagedLayout.blockFirst(
                pool,
                TwoLayerPool.LAYERS,
                TwoLayerPool.SIDES,
                TwoLayerPool.PAGES,
                TwoLayerPool.PIECE,
                TwoLayerPool.PAGES_PER_BLOCK);
    }

    private static BlockChain chain() {
        return BlockChain.of(TwoLayerPool.SPACE, TwoLayerPool.tokens(2));
    }

    /// Stores both blocks, and waits until they are on the device.
    private void store(TieredKvCache cache, PooledEngine engine) throws IOException {
        assertThat(engine.client().seal(engine.store())).isEqualTo(2);
        awaitOnDevice(cache, chain(), 2);
    }

    private void awaitOnDevice(TieredKvCache cache, BlockChain chain, int blocks) {
        cache.flush(LONG);
        awaitTrue(() -> {
            try (DeviceBlockMap there = tier.acquireEach(chain, 0, blocks)) {
                return there.contains(0) && there.contains(blocks - 1);
            }
        });
    }

    /// Puts so many other blocks that host memory has to give the first ones up.
    private void evictFromHost(TieredKvCache cache) {
        for (int prompt = 0; prompt < 2 * HOST_BYTES / TwoLayerPool.BLOCK_BYTES; prompt++) {
            int first = 1_000_000 + TwoLayerPool.BLOCK_TOKENS * prompt;
            int[] tokens =
                    IntStream.range(first, first + TwoLayerPool.BLOCK_TOKENS).toArray();
            try (BlockWriter writer = cache.put(BlockChain.of(TwoLayerPool.SPACE, tokens), 0, 0, LONG)) {
                new BlockContent(prompt).fill(writer.segment());
                writer.seal();
            }
            if (prompt % 256 == 255) {
                cache.flush(LONG);
            }
        }
        assertThat(inHostMemory(cache)).isZero();
    }

    private static int inHostMemory(TieredKvCache cache) {
        try (BlockTable table = cache.acquireCopy(chain(), 0, Duration.ZERO)) {
            return table.endBlock();
        }
    }

    private static NamespaceStats stats(TieredKvCache cache) {
        return cache.stats().namespaces().getFirst();
    }

    /// Pieces by copies, and by kernels.
    @ParameterizedTest
    @ValueSource(ints = {0, 1 << 20})
    void givenBlocksOnTheDeviceAlone_whenLoaded_thenHostMemoryDoesNotGetThemAndTheyCountAsFound(int threshold)
            throws IOException {
        try (TieredKvCache cache = store();
                EngineIpcServer door = door(cache, threshold);
                PooledEngine engine = engine()) {
            store(cache, engine);
            evictFromHost(cache);
            NamespaceStats before = stats(cache);
            engine.load();
            assertThat(inHostMemory(cache)).isZero();
            assertThat(stats(cache).blocksRequested() - before.blocksRequested())
                    .isEqualTo(2);
            assertThat(stats(cache).blocksFound() - before.blocksFound()).isEqualTo(2);
            assertThat(stats(cache).blocksFromDevice() - before.blocksFromDevice())
                    .isEqualTo(2);
            assertThat(stats(cache).blocksLoaded()).isEqualTo(before.blocksLoaded());
            engine.requireLoaded(door);
        }
    }

    @Test
    void givenBlocksInHostMemoryToo_whenLoaded_thenNoByteCrossesTheBusAndTheyCountOnce() throws IOException {
        assumeThat(fakeCuda.canHold()).as("a driver whose calls are counted").isTrue();
        try (TieredKvCache cache = store();
                EngineIpcServer door = door(cache, 0);
                PooledEngine engine = engine()) {
            store(cache, engine);
            NamespaceStats before = stats(cache);
            long toDevice = fakeCuda.bytesToDevice();
            long toHost = fakeCuda.bytesToHost();
            engine.load();
            assertThat(fakeCuda.bytesToDevice()).isEqualTo(toDevice);
            assertThat(fakeCuda.bytesToHost()).isEqualTo(toHost);
            assertThat(stats(cache).blocksRequested() - before.blocksRequested())
                    .isEqualTo(2);
            assertThat(stats(cache).blocksFound() - before.blocksFound()).isEqualTo(2);
            assertThat(stats(cache).blocksFromDevice() - before.blocksFromDevice())
                    .isEqualTo(2);
            engine.requireLoaded(door);
        }
    }

    /// Host memory gets its copy, for other readers; the tier takes its own from the device.
    @Test
    void givenBlocksThatAnEngineStores_whenTheTierKeepsThem_thenNoByteGoesToTheDevice() throws IOException {
        assumeThat(fakeCuda.canHold()).as("a driver whose bytes are counted").isTrue();
        try (TieredKvCache cache = store();
                EngineIpcServer door = door(cache, 0);
                PooledEngine engine = engine()) {
            long toDevice = fakeCuda.bytesToDevice();
            long toHost = fakeCuda.bytesToHost();
            store(cache, engine);
            assertThat(fakeCuda.bytesToDevice()).isEqualTo(toDevice);
            assertThat(fakeCuda.bytesToHost() - toHost).isEqualTo(2L * TwoLayerPool.BLOCK_BYTES);
            evictFromHost(cache);
            engine.load();
            engine.requireLoaded(door);
        }
    }

    /// Another client has the key after a drop, with other bytes than those that the engine has staged.
    @Test
    void givenAStagedBlockThatWasDropped_whenItsKeyIsPutWithOtherBytes_thenTheDeviceGetsThese() throws IOException {
        try (TieredKvCache cache = builder().admission(AdmissionKind.SECOND_HIT).build();
                EngineIpcServer door = door(cache, 0);
                PooledEngine engine = engine()) {
            assertThat(engine.client().seal(engine.store())).isEqualTo(2);
            cache.drop(chain(), 0);
            for (int index = 0; index < 2; index++) {
                try (BlockWriter writer = cache.put(chain(), index, 0, LONG)) {
                    new BlockContent(index + 77).fill(writer.segment());
                    writer.seal();
                }
            }
            awaitOnDevice(cache, chain(), 2);
            evictFromHost(cache);
            try (BlockTable table = cache.acquire(chain(), 0, LONG)) {
                assertThat(table.await(2, LONG)).as("with their checksums").isEqualTo(2);
                for (int index = 0; index < 2; index++) {
                    new BlockContent(index + 77).requireEqual(table.segment(index));
                }
            }
            engine.client().close();
            awaitTrue(() -> door.engineCount() == 0);
        }
    }

    @Test
    void givenAnEngineThatIsGoneBeforeItSeals_whenTheTierCloses_thenItsRoomOnTheDeviceIsFree() throws IOException {
        try (TieredKvCache cache = store();
                EngineIpcServer door = door(cache, 0);
                PooledEngine engine = engine()) {
            engine.store();
            assertThat(cache.match(chain()).blocks()).isZero();
            engine.client().close();
            awaitTrue(() -> door.engineCount() == 0);
        }
    }

    /// The first block is on the device, the second in host memory alone.
    @Test
    void givenOneBlockOnTheDeviceAndOneInHostMemory_whenLoaded_thenEachComesFromWhereItLies() throws IOException {
        try (TieredKvCache cache = store();
                EngineIpcServer door = door(cache, 0);
                PooledEngine engine = engine()) {
            store(cache, engine);
            try (DeviceBlockMap there = tier.acquireEach(chain(), 0, 1);
                    BlockTable table = cache.acquire(chain())) {
                LoadSources mixed = new LoadSources(chain(), 0, there, table);
                LoadSources.Pieces pieces = mixed.pieces(layout(), 0, List.of(new int[] {8, 10}, new int[] {21, 19}));
                assertThat(pieces.onDevice()).hasSize(1);
                assertThat(pieces.blocks()).hasSize(1);
                assertThat(pieces.pages().getFirst()).containsExactly(21, 19);
            }
            engine.load();
            engine.requireLoaded(door);
        }
    }

    @Test
    void givenBlocksOnTheDeviceAlone_whenLoadedByLayers_thenAllStepsAreThereAtOnce() throws IOException {
        try (TieredKvCache cache = store();
                EngineIpcServer door = door(cache, 0);
                PooledEngine engine = engine()) {
            store(cache, engine);
            evictFromHost(cache);
            engine.client()
                    .ask(EngineCodec.STEPS, EngineClient.body(8).putInt(0).putInt(2));
            ByteBuffer begun =
                    engine.client().ask(EngineCodec.LOAD_LAYERS, EngineClient.blocks(0, 0, 2, -1, PooledEngine.LOADED));
            assertThat(begun.getLong()).as("blocks").isEqualTo(2);
            begun.getLong();
            assertThat(begun.getLong()).as("steps queued").isEqualTo(2);
            assertThat(inHostMemory(cache)).isZero();
            engine.expectLoaded();
            engine.requireLoaded(door);
        }
    }

    @Test
    void givenAnEngineThatIsGoneDuringALoad_whenTheTierCloses_thenItsBlocksAreFree() throws IOException {
        assumeThat(fakeCuda.canHold())
                .as("a driver whose copies can be held back")
                .isTrue();
        try (TieredKvCache cache = store();
                EngineIpcServer door = door(cache, 0);
                PooledEngine engine = engine()) {
            store(cache, engine);
            fakeCuda.hold();
            engine.load();
            engine.client().close();
            fakeCuda.release();
            awaitTrue(() -> door.engineCount() == 0);
            engine.requireLoaded(door);
            assertThat(cache.match(chain()).blocks()).isEqualTo(2);
        }
    }

    /// As beside an engine that has taken all of it: the measurement of the kernel finds no memory.
    @Test
    void givenADeviceWithoutMemoryLeft_whenStoredAndLoaded_thenPiecesAreCopiedAndTheEngineGoesOn() throws IOException {
        assumeThat(fakeCuda.canHold()).as("a driver that can be made to fail").isTrue();
        try (TieredKvCache cache = store();
                EngineIpcServer door = EngineIpcServer.open(
                        cache, tier, fakeCuda::open, Map.of(TwoLayerPool.NAME, TwoLayerPool.SPACE), path());
                PooledEngine engine = engine()) {
            fakeCuda.failCall("cuMemAlloc_v2", 1, OUT_OF_MEMORY);
            store(cache, engine);
            engine.load();
            assertThat(fakeCuda.injected()).isEqualTo(1);
            engine.requireLoaded(door);
        }
    }

    @Test
    void givenNothingStored_whenLoaded_thenNoBlockComes() throws IOException {
        try (TieredKvCache cache = store();
                EngineIpcServer _ = door(cache, 0);
                PooledEngine engine = engine()) {
            assertThat(engine.client()
                            .ask(EngineCodec.LOAD, EngineClient.blocks(0, 0, 2, -1, PooledEngine.LOADED))
                            .getLong())
                    .isZero();
        }
    }
}
