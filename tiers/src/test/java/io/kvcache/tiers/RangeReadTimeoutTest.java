package io.kvcache.tiers;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.KvCache;
import io.kvcache.core.check.BlockContent;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.ByteRange;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// Ranges of blocks on a disk that does not answer.
final class RangeReadTimeoutTest {

    /// 256 KiB: smaller ones have no sums of parts.
    private static final Namespace SPACE = Namespace.of("m", BlockShape.kv(16, 2, 128, 16, Dtype.BF16));

    private static final int BLOCK_BYTES = 256 << 10;
    private static final int BLOCKS = 6;
    private static final BlockChain CHAIN =
            BlockChain.of(SPACE, IntStream.range(0, BLOCKS * 16).toArray());
    private static final ByteRange PART = new ByteRange(1000, 32 << 10);

    /// 32 MiB of parts, as [RangeReads] has it.
    private static final long MAX_PENDING_PARTS = (32 << 20) / PART.bytes();

    private final TickDrivenStore disk = new TickDrivenStore();

    @AfterEach
    void close() {
        disk.close();
    }

    private TieredKvCache openWithBlocksOnDisk() {
        TieredKvCache before = disk.openAndRecover().cache();
        before.register(SPACE);
        List<MemorySegment> blocks = IntStream.range(0, BLOCKS)
                .mapToObj(index -> BlockContent.of(CHAIN.key(index)).toHeapSegment(BLOCK_BYTES))
                .toList();
        assertThat(before.putAll(CHAIN, 0, blocks, KvCache.NO_WAIT).stored()).isEqualTo(BLOCKS);
        assertThat(disk.flush()).isTrue();
        disk.close();
        TieredKvCache cache = disk.openAndRecover().cache();
        cache.register(SPACE);
        return cache; // without a match, which would begin to load the blocks
    }

    @Test
    void givenADiskThatStalls_whenRangesAreReadAgainAndAgain_thenEachEndsInTimeAndMemoryIsLimited() {
        TieredKvCache cache = openWithBlocksOnDisk();
        List<MemorySegment> into = Stream.generate(() -> MemorySegment.ofArray(new byte[(int) PART.bytes()]))
                .limit(BLOCKS)
                .toList();
        disk.setStalled(true);
        for (int i = 0; i < MAX_PENDING_PARTS / BLOCKS + 10; i++) {
            long start = disk.nanos();
            assertThat(cache.getRange(CHAIN, 0, PART, into, Duration.ofMillis(10)))
                    .isZero();
            assertThat(disk.nanos() - start).isEqualTo(Duration.ofMillis(10).toNanos());
        }
        disk.setStalled(false);
        disk.tickUntil(() -> partsRead(cache) == MAX_PENDING_PARTS);
        assertThat(into)
                .as("reads that were given up")
                .allSatisfy(
                        each -> assertThat(each.toArray(ValueLayout.JAVA_BYTE)).containsOnly(0));
        assertThat(cache.getRange(CHAIN, 0, PART, into, Duration.ofSeconds(10))).isEqualTo(BLOCKS);
        assertThat(partsRead(cache)).isEqualTo(MAX_PENDING_PARTS + BLOCKS);
        for (int index = 0; index < BLOCKS; index++) {
            MemorySegment block = BlockContent.of(CHAIN.key(index)).toHeapSegment(BLOCK_BYTES);
            assertThat(into.get(index).mismatch(block.asSlice(PART.offset(), PART.bytes())))
                    .isEqualTo(-1);
        }
        assertThat(cache.stats().openTables()).isZero();
    }

    private static long partsRead(TieredKvCache cache) {
        return cache.diskStats().getFirst().partsRead();
    }
}
