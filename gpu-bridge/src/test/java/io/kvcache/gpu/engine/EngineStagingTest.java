package io.kvcache.gpu.engine;

import static io.kvcache.gpu.engine.ConditionWait.awaitTrue;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.BlockTable;
import io.kvcache.core.check.BlockContent;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.gpu.cuda.FakeCuda;
import io.kvcache.gpu.cuda.FaultInjection;
import io.kvcache.gpu.engine.TransferQueue.EngineCopyThreshold;
import io.kvcache.gpu.paging.CopyThreshold;
import io.kvcache.tiers.TieredKvCache;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/// Small pieces through a door: a kernel moves them, and the bytes are those that copies would have brought.
final class EngineStagingTest {

    private static final int LAYERS = 3;
    private static final int SIDES = 2;
    private static final int PER_BLOCK = 3;
    private static final int PAGES = 60;
    private static final int PAGE_TOKENS = 16;
    private static final String NAME = "m";

    /// The engine's own: its pool there and back.
    private static final int OWN_COPIES = 2;

    @TempDir
    private Path folder;

    private final FakeCuda fakeCuda = FakeCuda.reset();
    private final Arena arena = Arena.ofShared();

    /// That the blocks are stored by, and loaded: none has ended when the next begins.
    private int works = 1;

    @SuppressWarnings("NullAway.Init") // given by JUnit
    EngineStagingTest() {}

    @AfterEach
    void close() {
        assertThat(fakeCuda.left()).isEmpty();
        arena.close();
    }

    /// Pages of `[layer][side][piece]` one behind the other, the first some bytes into the region.
    ///
    /// @param pieceBytes of one page, layer and side: a head has 2 KiB
    /// @param perBlock pages that a block has
    private record Pool(int pieceBytes, int askew, int perBlock, int pages) {

        Pool(int pieceBytes, int askew) {
            this(pieceBytes, askew, PER_BLOCK, PAGES);
        }

        int blockPieces() {
            return LAYERS * SIDES * perBlock;
        }

        int blockTokens() {
            return perBlock * PAGE_TOKENS;
        }

        int[] tokens(int blocks) {
            return IntStream.range(0, blocks * blockTokens())
                    .map(i -> 7 * i + 2)
                    .toArray();
        }

        Namespace space() {
            return Namespace.of(NAME, BlockShape.kv(LAYERS, pieceBytes / 2048, 64, blockTokens(), Dtype.BF16));
        }

        long pageBytes() {
            return (long) LAYERS * SIDES * pieceBytes;
        }

        long bytes() {
            return askew + pages * pageBytes();
        }

        MemorySegment piece(MemorySegment all, int layer, int side, int page) {
            return all.asSlice(askew + page * pageBytes() + (layer * SIDES + side) * (long) pieceBytes, pieceBytes);
        }

        ByteBuffer described(int region) {
            ByteBuffer body =
                    EngineClient.pool(NAME, LAYERS, SIDES, pages, perBlock, pieceBytes, pageBytes(), pieceBytes);
            for (int layer = 0; layer < LAYERS; layer++) {
                long offset = (long) layer * SIDES * pieceBytes;
                body.putLong(region).putLong(askew + offset).putLong(bytes() - askew - offset);
            }
            return body;
        }
    }

    /// Pieces of 4 to 32 KiB, of 1 to 9 blocks, of 72 KiB to 9 MiB.
    @ParameterizedTest
    @CsvSource({
        "4096,1,3",
        "4096,5,3",
        "6144,9,3",
        "8192,9,3",
        "16384,3,3",
        "16384,9,3",
        "32768,1,3",
        "32768,9,3",
        "32768,2,24",
        "32768,1,48"
    })
    void givenSmallPieces_whenStoredAndLoaded_thenByAKernelEachWayAndTheBytesAreRight(
            int pieceBytes, int blocks, int perBlock) throws IOException {
        Pool pool = new Pool(pieceBytes, 0, perBlock, Math.max(PAGES, 2 * perBlock * blocks));
        storedAndLoaded(pool, blocks, new EngineCopyThreshold(new CopyThreshold(1 << 20)));
        if (fakeCuda.canHold()) {
            assertThat(fakeCuda.calls("cuLaunchKernel")).isEqualTo(2);
            assertThat(copies()).as("a list each").isEqualTo(2 + OWN_COPIES);
        }
    }

    private long copies() {
        return fakeCuda.calls("cuMemcpyHtoDAsync_v2")
                + fakeCuda.calls("cuMemcpyDtoHAsync_v2")
                + fakeCuda.calls("cuMemcpyBatchAsync_v2");
    }

    /// As doors do that nobody tells anything; the second engine's door knows it from the first's.
    @Test
    void givenNothingKnownOfTheDevice_whenStoredAndLoaded_thenItIsMeasuredOnceAndTheBytesAreRight() throws IOException {
        EngineCopyThreshold measured = new EngineCopyThreshold();
        assertThat(measured.canUseKernel(1)).isTrue();
        storedAndLoaded(new Pool(4096, 0), 5, measured);
        assertThat(measured.canUseKernel(128 << 10)).isFalse();
        if (!fakeCuda.canHold()) {
            return;
        }
        long launches = fakeCuda.calls("cuLaunchKernel");
        assertThat(launches).as("three of each size that was tried").isGreaterThanOrEqualTo(3);
        storedAndLoaded(new Pool(4096, 0), 5, measured);
        assertThat(fakeCuda.calls("cuLaunchKernel")).isLessThanOrEqualTo(launches + 2);
    }

    /// Where pieces are not small, or begin where a kernel does not read them, or are few.
    @ParameterizedTest
    @CsvSource({"4096,5,0,4096", "4096,5,8,1048576", "32768,9,0,0"})
    void givenPiecesThatAKernelIsNotFor_whenStoredAndLoaded_thenTheyAreCopied(
            int pieceBytes, int blocks, int askew, int threshold) throws IOException {
        Pool pool = new Pool(pieceBytes, askew);
        storedAndLoaded(pool, blocks, new EngineCopyThreshold(new CopyThreshold(threshold)));
        if (fakeCuda.canHold()) {
            assertThat(fakeCuda.calls("cuLaunchKernel")).isZero();
            assertThat(fakeCuda.calls("cuMemcpyBatchAsync_v2"))
                    .isEqualTo(2 * FakeCuda.batches((long) blocks * pool.blockPieces()));
        }
    }

    /// Six works at once, each of one block, and four lists: a list that went to the next before
    /// its work had ended would have the wrong places.
    @Test
    void givenMoreWorksThanLists_whenStoredAndLoaded_thenTheRestIsCopiedAndTheBytesAreRight() throws IOException {
        works = 6;
        storedAndLoaded(new Pool(4096, 0), works, new EngineCopyThreshold(new CopyThreshold(1 << 20)));
        if (fakeCuda.canHold()) {
            assertThat(fakeCuda.calls("cuLaunchKernel"))
                    .as("four works each way")
                    .isEqualTo(2 * 4);
        }
    }

    /// Too little for lists, or enough for these and not for a measurement.
    @ParameterizedTest
    @ValueSource(longs = {5 << 19, 8 << 20})
    void givenADeviceThatIsNearlyFull_whenStoredAndLoaded_thenPiecesAreCopied(long deviceBytes) throws IOException {
        FaultInjection.assumePossible(fakeCuda);
        fakeCuda.memory(deviceBytes);
        EngineCopyThreshold unknown = new EngineCopyThreshold();
        storedAndLoaded(new Pool(4096, 0), 5, unknown);
        assertThat(fakeCuda.calls("cuLaunchKernel")).isZero();
        assertThat(unknown.canUseKernel(1 << 20)).as("not known yet").isTrue();
    }

    private void hold() {
        if (fakeCuda.canHold() && works > 1) {
            fakeCuda.hold();
        }
    }

    /// @param each pages of a work
    private static int[] ofWork(int[] pages, int work, int each) {
        return Arrays.copyOfRange(pages, work * each, (work + 1) * each);
    }

    private void storedAndLoaded(Pool pool, int blocks, EngineCopyThreshold threshold) throws IOException {
        int each = blocks / works;
        Namespace space = pool.space();
        MemorySegment content = arena.allocate(pool.bytes(), 8);
        new BlockContent(pool.pieceBytes + blocks).fill(content);
        List<Integer> places =
                new ArrayList<>(IntStream.range(0, pool.pages).boxed().toList());
        Collections.shuffle(places, new Random(blocks));
        int[] from = places.subList(0, blocks * pool.perBlock).stream()
                .mapToInt(Integer::intValue)
                .toArray();
        int[] to = places.subList(pool.pages - blocks * pool.perBlock, pool.pages).stream()
                .mapToInt(Integer::intValue)
                .toArray();
        try (TieredKvCache cache = TieredKvCache.builder()
                        .hostBytes(64 << 20)
                        .prefaultInBackground(false)
                        .failOnLeak(true)
                        .build();
                EngineIpcServer door = EngineIpcServer.open(
                        cache, null, fakeCuda::open, Map.of(NAME, space), folder.resolve("door"), threshold);
                InProcessEngine engine = new InProcessEngine(fakeCuda, folder.resolve("door"), arena, pool.bytes())) {
            engine.write(content);
            EngineClient client = engine.client();
            client.hello(engine.uuid());
            int region = client.region(engine.descriptor(), engine.pages().bytes());
            client.ask(EngineCodec.POOL, pool.described(region));
            client.ask(EngineCodec.CHAIN, EngineClient.chain(0, 0, 0, pool.tokens(blocks)));
            hold();
            long[] stores = new long[works];
            for (int work = 0; work < works; work++) {
                ByteBuffer stored = client.ask(
                        EngineCodec.STORE,
                        EngineClient.blocks(0, work * each, each, -1, ofWork(from, work, each * pool.perBlock)));
                assertThat(stored.getLong()).isEqualTo(each);
                stores[work] = stored.getLong();
            }
            fakeCuda.release();
            for (long store : stores) {
                assertThat(client.seal(store)).isEqualTo(each);
            }
            requireBlocks(cache, pool, BlockChain.of(space, pool.tokens(blocks)), content, from);
            hold();
            for (int work = 0; work < works; work++) {
                assertThat(client.ask(
                                        EngineCodec.LOAD,
                                        EngineClient.blocks(
                                                0, work * each, each, -1, ofWork(to, work, each * pool.perBlock)))
                                .getLong())
                        .isEqualTo(each);
            }
            fakeCuda.release();
            client.close(); // the door ends its copies then
            awaitTrue(() -> door.engineCount() == 0);
            for (int i = 0; i < to.length; i++) {
                for (int run = 0; run < LAYERS * SIDES; run++) {
                    pool.piece(content, run / SIDES, run % SIDES, to[i])
                            .copyFrom(pool.piece(content, run / SIDES, run % SIDES, from[i]));
                }
            }
            assertThat(engine.read(pool.bytes()).mismatch(content)).isEqualTo(-1);
        }
    }

    /// `[layer][side][page]`, as any engine's.
    private static void requireBlocks(
            TieredKvCache cache, Pool pool, BlockChain chain, MemorySegment content, int[] from) {
        try (BlockTable table = cache.acquire(chain)) {
            assertThat(table.readyBlocks()).isEqualTo(chain.length());
            int each = pool.blockPieces();
            for (int i = 0; i < chain.length() * each; i++) {
                int run = i % each / pool.perBlock;
                int page = from[i / each * pool.perBlock + i % pool.perBlock];
                MemorySegment found =
                        table.segment(i / each).asSlice((long) i % each * pool.pieceBytes, pool.pieceBytes);
                assertThat(found.mismatch(pool.piece(content, run / SIDES, run % SIDES, page)))
                        .as("piece %d", i)
                        .isEqualTo(-1);
            }
        }
    }
}
