package io.kvcache.gpu.engine;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.BlockWriter;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.check.BlockContent;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.gpu.cuda.FakeCuda;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceDriver.Priority;
import io.kvcache.gpu.driver.DeviceEvent;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.driver.DeviceStream;
import io.kvcache.gpu.engine.TransferQueue.EngineCopyThreshold;
import io.kvcache.gpu.paging.CopyThreshold;
import io.kvcache.gpu.paging.PagedLayout;
import io.kvcache.gpu.tier.CudaTier;
import io.kvcache.tiers.TieredKvCache;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Blocks lie wherever evictions have left them: on the device, in host memory, on a disk, in several of these or
/// nowhere. Loads of random sections bring the right bytes, or end before the first block that is nowhere.
@Tag("slow")
final class RandomLoadsTest {

    private static final Duration LONG = Duration.ofSeconds(60);
    private static final int PROMPTS = 600;
    private static final int PROMPT_BLOCKS = 12;
    private static final int LOADS = 1500;
    private static final int PAGES = 2 * PROMPT_BLOCKS;

    @TempDir
    private Path folder;

    private final FakeCuda fakeCuda = FakeCuda.reset();
    private int onDevice;
    private int loaded;

    @SuppressWarnings("NullAway.Init") // given by JUnit
    RandomLoadsTest() {}

    /// Prompts in groups of five that begin alike.
    private static BlockChain chain(int prompt) {
        int shared = TwoLayerPool.BLOCK_TOKENS * (PROMPT_BLOCKS / 2);
        int[] tokens = IntStream.range(0, TwoLayerPool.BLOCK_TOKENS * PROMPT_BLOCKS)
                .map(i -> i < shared ? prompt / 5 * 10_000 + i : 1_000_000 + prompt * 10_000 + i)
                .toArray();
        return BlockChain.of(TwoLayerPool.SPACE, tokens);
    }

    private static long seed(BlockChain chain, int index) {
        return chain.key(index).hashCode();
    }

    private static void put(TieredKvCache cache, BlockChain chain) {
        for (int index = 0; index < chain.length(); index++) {
            try (BlockWriter writer = cache.put(chain, index, 0, LONG)) {
                if (!writer.outcome().allowsNextBlock()) {
                    return;
                }
                if (writer.outcome() == PutOutcome.RESERVED) {
                    new BlockContent(seed(chain, index)).fill(writer.segment());
                    writer.seal();
                }
            }
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 3})
    void givenRandomPlaces_whenSectionsAreLoaded_thenEveryByteIsRight(int seed) {
        Random random = new Random(seed);
        CudaTier tier = CudaTier.withDriver("GPU", fakeCuda::open, 16L << 20);
        try (TieredKvCache cache = TieredKvCache.builder()
                        .hostBytes(32 << 20)
                        .prefaultInBackground(false)
                        .failOnLeak(true)
                        .admission(AdmissionKind.ALWAYS)
                        .disk(folder.resolve("disk"), 128L << 20)
                        .tier(tier)
                        .build();
                DeviceDriver driver = fakeCuda.open();
                Arena arena = Arena.ofShared()) {
            cache.register(TwoLayerPool.SPACE);
            long poolBytes = (long) PAGES * TwoLayerPool.LAYERS * TwoLayerPool.SIDES * TwoLayerPool.PIECE;
            DeviceSpan pool = driver.allocate(poolBytes);
            PagedLayout layout = PagedLayout.blockFirst(
                    pool,
                    TwoLayerPool.LAYERS,
                    TwoLayerPool.SIDES,
                    PAGES,
                    TwoLayerPool.PIECE,
                    TwoLayerPool.PAGES_PER_BLOCK);
            CopyThreshold threshold = new CopyThreshold(seed % 2 == 0 ? 0 : 1 << 20);
            TransferQueue queue =
                    new TransferQueue(driver, false, new EngineCopyThreshold(threshold), TimeUnit.SECONDS.toNanos(60));
            MemorySegment back = arena.allocate(poolBytes, 4096);
            for (int load = 0; load < LOADS; load++) {
                BlockChain chain = chain(random.nextInt(PROMPTS));
                if (random.nextBoolean()) {
                    put(cache, chain);
                }
                int from = random.nextInt(chain.length());
                int end = from + 1 + random.nextInt(chain.length() - from);
                load(cache, tier, queue, layout, chain.prefix(end), from, random);
                read(driver, pool, back);
                check(layout, back, chain, from);
            }
            queue.close();
            driver.free(pool);
            cache.validate();
        }
        assertThat(fakeCuda.left()).isEmpty();
        assertThat(onDevice).as("blocks from the device of %d loaded", loaded).isBetween(loaded / 20, loaded - 1);
    }

    private final List<int[]> pages = new ArrayList<>();

    private void load(
            TieredKvCache cache,
            CudaTier tier,
            TransferQueue queue,
            PagedLayout layout,
            BlockChain chain,
            int from,
            Random random) {
        Duration wait = random.nextBoolean() ? LONG : Duration.ZERO;
        LoadSources sources = LoadSources.acquire(cache, tier, chain, from, wait, cache::acquire);
        int ready = sources.await(wait);
        pages.clear();
        List<Integer> free = new ArrayList<>(IntStream.range(0, PAGES).boxed().toList());
        Collections.shuffle(free, random);
        for (int block = 0; block < ready; block++) {
            pages.add(new int[] {free.get(2 * block), free.get(2 * block + 1)});
        }
        loaded += ready;
        onDevice += sources.pieces(layout, 0, pages).onDevice().size();
        queue.load(layout, sources, List.copyOf(pages), null);
        assertThat(queue.drain(LONG.toNanos())).isTrue();
        queue.poll();
    }

    private static void read(DeviceDriver driver, DeviceSpan pool, MemorySegment back) {
        try (DeviceStream stream = driver.openStream(Priority.NORMAL);
                DeviceEvent event = driver.openEvent()) {
            stream.copyToHost(pool.address(), back);
            stream.record(event);
            assertThat(event.await(LONG.toNanos())).isTrue();
        }
    }

    private void check(PagedLayout layout, MemorySegment back, BlockChain chain, int from) {
        try (Arena arena = Arena.ofConfined()) {
            for (int block = 0; block < pages.size(); block++) {
                MemorySegment wanted = arena.allocate(TwoLayerPool.BLOCK_BYTES, 8);
                new BlockContent(seed(chain, from + block)).fill(wanted);
                for (int layer = 0; layer < TwoLayerPool.LAYERS; layer++) {
                    for (int side = 0; side < TwoLayerPool.SIDES; side++) {
                        for (int i = 0; i < TwoLayerPool.PAGES_PER_BLOCK; i++) {
                            long at = layout.pieceAddress(layer, side, pages.get(block)[i])
                                            .value()
                                    - layout.pieceAddress(0, 0, 0).value();
                            MemorySegment here = back.asSlice(at, TwoLayerPool.PIECE);
                            MemorySegment expected =
                                    wanted.asSlice(layout.offsetInBlock(layer, side, i), TwoLayerPool.PIECE);
                            assertThat(here.mismatch(expected))
                                    .as("block %d, layer %d, side %d", from + block, layer, side)
                                    .isEqualTo(-1);
                        }
                    }
                }
            }
        }
    }
}
