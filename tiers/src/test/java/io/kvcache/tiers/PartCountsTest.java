package io.kvcache.tiers;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.BlockTable;
import io.kvcache.core.DiskBlock;
import io.kvcache.core.KvCache;
import io.kvcache.core.NamespaceStats;
import io.kvcache.core.check.BlockContent;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.ByteRange;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// Parts that are read from disk, in the counters of their namespace.
final class PartCountsTest {

    /// 256 KiB: smaller ones have no sums of parts.
    private static final Namespace SPACE = Namespace.of("m", BlockShape.kv(16, 2, 128, 16, Dtype.BF16));

    private static final int BLOCK_BYTES = 256 << 10;
    private static final int BLOCKS = 6;
    private static final int PART = 32 << 10;
    private static final Duration PATIENCE = Duration.ofSeconds(10);
    private static final List<byte[]> KEYS = IntStream.range(0, BLOCKS)
            .mapToObj(index -> new byte[] {(byte) index, 1, 2, 3})
            .toList();
    private static final BlockChain CHAIN = BlockChain.ofEngineKeys(SPACE, KEYS);
    private static final byte[] SMALL = {1};
    private static final byte[] LARGE = {2};

    private final TickDrivenStore disk = new TickDrivenStore();
    private final MemorySegment target = MemorySegment.ofArray(new byte[PART]);
    private final AtomicInteger ends = new AtomicInteger();

    @AfterEach
    void close() {
        disk.close();
    }

    /// Counts of blocks or of objects.
    private record Counts(long requested, long found, long loaded) {}

    private static NamespaceStats stats(TieredKvCache cache, Namespace namespace) {
        return cache.stats().namespaces().stream()
                .filter(each -> each.namespace().equals(namespace))
                .findFirst()
                .orElseThrow();
    }

    private static Counts blocks(TieredKvCache cache) {
        NamespaceStats stats = stats(cache, SPACE);
        return new Counts(stats.blocksRequested(), stats.blocksFound(), stats.blocksLoaded());
    }

    private static Counts objects(TieredKvCache cache) {
        NamespaceStats stats = stats(cache, TickDrivenStore.THINGS);
        return new Counts(stats.objectsRequested(), stats.objectsFound(), 0);
    }

    private static void putObject(TieredKvCache cache, byte[] key, int bytes) {
        assertThat(cache.storeObject(
                        TickDrivenStore.THINGS, key, MemorySegment.ofArray(new byte[bytes]), KvCache.NO_WAIT))
                .isTrue();
    }

    private TieredKvCache openWithAllOnDisk() {
        TieredKvCache before = disk.openAndRecover().cache();
        before.register(SPACE);
        List<MemorySegment> blocks = IntStream.range(0, BLOCKS)
                .mapToObj(index -> BlockContent.of(CHAIN.key(index)).toHeapSegment(BLOCK_BYTES))
                .toList();
        assertThat(before.putAll(CHAIN, 0, blocks, KvCache.NO_WAIT).stored()).isEqualTo(BLOCKS);
        putObject(before, SMALL, 10_000);
        putObject(before, LARGE, 300_000);
        assertThat(disk.flush()).isTrue();
        disk.close();
        TieredKvCache cache = disk.openAndRecover().cache();
        cache.register(SPACE);
        return cache;
    }

    private CompletableFuture<Boolean> read(DiskBlock block) {
        return block.read(1000, target, ends::incrementAndGet);
    }

    @Test
    void givenObjectsOnDisk_whenPartsAreRead_thenThoseThatAreThereCount() {
        TieredKvCache cache = openWithAllOnDisk();
        CompletableFuture<Boolean> part = read(Objects.requireNonNull(cache.diskObject(TickDrivenStore.THINGS, LARGE)));
        disk.tickUntil(part::isDone);
        assertThat(part).isCompletedWithValue(true);
        assertThat(objects(cache)).isEqualTo(new Counts(1, 1, 0));
        MemorySegment few = target.asSlice(0, 100);
        CompletableFuture<Boolean> ofSmall = Objects.requireNonNull(cache.diskObject(TickDrivenStore.THINGS, SMALL))
                .read(0, few, ends::incrementAndGet);
        disk.tickUntil(ofSmall::isDone);
        assertThat(ofSmall).as("it has no sums of parts").isCompletedWithValue(false);
        assertThat(ends).hasValue(2);
        assertThat(objects(cache)).isEqualTo(new Counts(1, 1, 0));
    }

    @Test
    void givenABlockThatAnotherLoads_whenARangeIsRead_thenItCountsAsFoundToo() {
        TieredKvCache cache = openWithAllOnDisk();
        ByteRange range = new ByteRange(1000, PART);
        List<MemorySegment> into = Stream.generate(() -> MemorySegment.ofArray(new byte[PART]))
                .limit(BLOCKS)
                .toList();
        // It ends with an unknown block, so that nothing is prefetched behind it.
        BlockChain branch = BlockChain.ofEngineKeys(SPACE, List.of(KEYS.getFirst(), new byte[] {9}));
        try (BlockTable table = cache.acquire(branch, 0, PATIENCE)) {
            assertThat(table.endBlock()).isEqualTo(1);
            assertThat(table.readyBlocks()).isZero();
            // The block comes while the parts of the others are read.
            assertThat(cache.getRange(CHAIN, 0, range, into, PATIENCE)).isEqualTo(BLOCKS);
        }
        assertThat(cache.diskStats().getFirst().partsRead()).isEqualTo(BLOCKS - 1);
        assertThat(blocks(cache)).isEqualTo(new Counts(2 + BLOCKS, 1 + BLOCKS, BLOCKS));
        assertThat(cache.getRange(CHAIN, 0, range, into, PATIENCE)).isEqualTo(BLOCKS);
        assertThat(blocks(cache)).isEqualTo(new Counts(2 + 2 * BLOCKS, 1 + 2 * BLOCKS, 2 * BLOCKS - 1));
    }

    @Test
    void givenBlocksOnDisk_whenAnotherServerTakesCopies_thenNothingCounts() {
        TieredKvCache cache = openWithAllOnDisk();
        List<String> accesses = new ArrayList<>();
        cache.addChainListener((_, from, found, _) -> accesses.add(from + " " + found));
        try (BlockTable table = cache.acquireCopy(CHAIN, 0, Duration.ofMinutes(1))) {
            assertThat(table.blocks()).isEqualTo(BLOCKS);
            disk.tickUntil(() -> table.readyBlocks() == BLOCKS);
        }
        BlockChain longer = CHAIN.prefix(1);
        try (BlockTable table = cache.acquireCopy(longer, 0, KvCache.NO_WAIT)) {
            assertThat(table.readyBlocks()).isEqualTo(1);
        }
        assertThat(blocks(cache)).isEqualTo(new Counts(0, 0, 0));
        assertThat(accesses).isEmpty();
        cache.acquire(longer).close();
        assertThat(blocks(cache)).isEqualTo(new Counts(1, 1, 0));
    }
}
