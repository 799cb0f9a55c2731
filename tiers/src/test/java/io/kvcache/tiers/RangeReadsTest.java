package io.kvcache.tiers;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.BlockTable;
import io.kvcache.core.KvCache;
import io.kvcache.core.Match;
import io.kvcache.core.check.BlockContent;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.ByteRange;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.stats.TierTransferStats;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// The same bytes of many blocks, of which some are resident and others on a disk alone.
final class RangeReadsTest {

    /// 16 layers of 16 KiB.
    private static final BlockShape SHAPE = BlockShape.kv(16, 2, 128, 16, Dtype.BF16);

    private static final Namespace SPACE = Namespace.of("m", SHAPE);
    private static final Namespace OTHER = Namespace.of("other", SHAPE);
    private static final int BLOCK_BYTES = 256 << 10;
    private static final ByteRange LAYER = SHAPE.layerSlice(3);
    private static final Duration PATIENCE = Duration.ofSeconds(60);

    /// More than one batch.
    private static final int BLOCKS = 300;

    @TempDir
    private Path folder;

    private TieredKvCache open() {
        TieredKvCache cache = TieredKvCache.builder()
                .hostBytes(128L << 20)
                .prefaultInBackground(false)
                .failOnLeak(true)
                .clock(new SlowClock())
                .disk(DiskOptions.of(folder.resolve("disk"), 256L << 20).withCoding(false))
                .build();
        cache.register(SPACE);
        cache.register(OTHER);
        return cache;
    }

    private static BlockChain chain() {
        return BlockChain.of(SPACE, IntStream.range(0, BLOCKS * 16).toArray());
    }

    private static MemorySegment content(BlockChain chain, int index) {
        return BlockContent.of(chain.keyHi(index), chain.keyLo(index)).toHeapSegment(BLOCK_BYTES);
    }

    /// Opens a store that has all blocks of the chain on disk, and none in memory.
    private TieredKvCache openCold() {
        BlockChain chain = chain();
        try (TieredKvCache cache = open()) {
            List<MemorySegment> blocks = IntStream.range(0, BLOCKS)
                    .mapToObj(index -> content(chain, index))
                    .toList();
            assertThat(cache.putAll(chain, 0, blocks, PATIENCE).accepted()).isEqualTo(BLOCKS);
            assertThat(cache.flush(PATIENCE)).isTrue();
        }
        return open();
    }

    private TieredKvCache openRecovered() {
        TieredKvCache cache = openCold();
        assertThat(cache.awaitRecovered(PATIENCE)).isTrue();
        assertThat(cache.match(chain())).isEqualTo(new Match(0, 0, BLOCKS));
        return cache;
    }

    private static List<MemorySegment> targets(int count, long bytes) {
        return Stream.generate(() -> MemorySegment.ofArray(new byte[(int) bytes]))
                .limit(count)
                .toList();
    }

    private static void requireRange(BlockChain chain, int from, int count, List<MemorySegment> into, ByteRange range) {
        for (int i = 0; i < count; i++) {
            MemorySegment wanted = content(chain, from + i).asSlice(range.offset(), range.bytes());
            assertThat(into.get(i).mismatch(wanted)).as("block %d", from + i).isEqualTo(-1);
        }
    }

    private static TierTransferStats disk(TieredKvCache cache) {
        return cache.diskStats().getFirst();
    }

    @Test
    void givenBlocksInMemoryAndOnDisk_whenARangeIsRead_thenOnlyPartsComeFromTheDisk() {
        BlockChain chain = chain();
        try (TieredKvCache cache = openRecovered()) {
            try (BlockTable table = cache.acquire(chain.prefix(10), 0, PATIENCE)) {
                assertThat(table.await(10, PATIENCE)).isEqualTo(10);
            }
            long loaded = disk(cache).loaded();
            long found = cache.stats().namespaces().getFirst().blocksFound();
            List<String> accesses = new ArrayList<>();
            cache.addChainListener((_, from, blocks, _) -> accesses.add(from + " " + blocks));
            List<MemorySegment> into = targets(BLOCKS + 5, LAYER.bytes());
            assertThat(cache.getRange(chain, 4, LAYER, into, PATIENCE)).isEqualTo(BLOCKS - 4);
            requireRange(chain, 4, BLOCKS - 4, into, LAYER);
            assertThat(disk(cache).partsRead()).isEqualTo(BLOCKS - 10);
            assertThat(disk(cache).loaded()).isEqualTo(loaded);
            assertThat(cache.match(chain)).isEqualTo(new Match(0, 10, BLOCKS - 10));
            assertThat(accesses).containsExactly("4 " + (BLOCKS - 4));
            assertThat(cache.stats().namespaces().getFirst().blocksFound() - found)
                    .isEqualTo(BLOCKS - 4);
            assertThat(cache.stats().openTables()).isZero();
            cache.validate();
        }
    }

    @Test
    void givenBlocksOnDisk_whenReadWithoutATimeout_thenNone() {
        try (TieredKvCache cache = openRecovered()) {
            List<MemorySegment> into = targets(3, LAYER.bytes());
            assertThat(cache.getRange(chain(), 0, LAYER, into, KvCache.NO_WAIT)).isZero();
            assertThat(disk(cache).partsRead()).isZero();
        }
    }

    @Test
    void givenARangeThatIsNoPart_whenRead_thenItsBlocksAreLoaded() {
        BlockChain chain = chain();
        ByteRange most = new ByteRange(1, BLOCK_BYTES - 2);
        try (TieredKvCache cache = openRecovered()) {
            List<MemorySegment> into = targets(20, most.bytes());
            assertThat(cache.getRange(chain, 2, most, into, PATIENCE)).isEqualTo(20);
            requireRange(chain, 2, 20, into, most);
            assertThat(disk(cache).partsRead()).isZero();
            assertThat(cache.match(chain).hostBlocks()).isEqualTo(22);
        }
    }

    @Test
    void givenADiskThatStillRecovers_whenARangeIsRead_thenItWaitsForItsBlocks() {
        BlockChain chain = chain();
        try (TieredKvCache cache = openCold()) {
            List<MemorySegment> into = targets(BLOCKS, LAYER.bytes());
            assertThat(cache.getRange(chain, 0, LAYER, into, PATIENCE)).isEqualTo(BLOCKS);
            requireRange(chain, 0, BLOCKS, into, LAYER);
        }
    }

    /// Keys that another namespace's chain names, and keys in another place of a chain.
    @Test
    void givenKeysOfOtherBlocks_whenARangeIsRead_thenNothing() {
        BlockChain chain = chain();
        List<BlockKey> keys = IntStream.range(0, BLOCKS).mapToObj(chain::key).toList();
        BlockChain stolen = BlockChain.ofKeys(OTHER, keys);
        BlockChain moved = BlockChain.ofKeys(SPACE, keys.subList(1, 5));
        try (TieredKvCache cache = openRecovered()) {
            List<MemorySegment> into = targets(4, LAYER.bytes());
            for (BlockChain wrong : List.of(stolen, moved)) {
                assertThat(cache.getRange(wrong, 0, LAYER, into, Duration.ofMillis(1)))
                        .isZero();
                assertThat(cache.getRange(wrong, 2, LAYER, into, Duration.ofMillis(1)))
                        .isZero();
            }
            assertThat(into)
                    .allSatisfy(each ->
                            assertThat(each.toArray(ValueLayout.JAVA_BYTE)).containsOnly(0));
        }
    }

    @Test
    void givenADamagedByteOnDisk_whenARangeIsRead_thenARunThatEndsBeforeIt() throws IOException {
        BlockChain chain = chain();
        openCold().close();
        damage(content(chain, 7), LAYER.offset() + 5000);
        try (TieredKvCache cache = open()) {
            assertThat(cache.awaitRecovered(PATIENCE)).isTrue();
            List<MemorySegment> into = targets(20, LAYER.bytes());
            assertThat(cache.getRange(chain, 0, LAYER, into, PATIENCE)).isEqualTo(7);
            requireRange(chain, 0, 7, into, LAYER);
            assertThat(into.get(7).toArray(ValueLayout.JAVA_BYTE)).containsOnly(0);
            assertThat(cache.getRange(chain, 0, LAYER, into, PATIENCE)).isEqualTo(7);
            cache.validate();
        }
    }

    /// Changes one byte of a block that lies on disk as it is.
    private void damage(MemorySegment block, long at) throws IOException {
        byte[] begin = block.asSlice(0, 64).toArray(ValueLayout.JAVA_BYTE);
        Path file = folder.resolve("disk").resolve("tier");
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            ByteBuffer page = ByteBuffer.allocate(begin.length);
            for (long place = 0; place + BLOCK_BYTES <= channel.size(); place += 4096) {
                channel.read(page.clear(), place);
                if (Arrays.equals(page.array(), begin)) {
                    ByteBuffer one = ByteBuffer.allocate(1);
                    channel.read(one, place + at);
                    channel.write(ByteBuffer.wrap(new byte[] {(byte) ~one.get(0)}), place + at);
                    return;
                }
            }
        }
        throw new AssertionError("the block is not on disk");
    }
}
