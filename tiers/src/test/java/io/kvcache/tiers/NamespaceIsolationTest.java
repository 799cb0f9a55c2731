package io.kvcache.tiers;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.Hint;
import io.kvcache.core.Match;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.PutSummary;
import io.kvcache.core.check.BlockContent;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.core.tier.AdmissionKind;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/// A caller that names blocks by another namespace's keys neither reads, changes nor removes that namespace's
/// blocks. A caller that has put a block or object under such a key reads it back only as what it put.
@Timeout(120)
final class NamespaceIsolationTest {

    private static final Namespace THEIRS = Namespace.of("theirs", BlockShape.kv(1, 1, 64, 16, Dtype.BF16));
    private static final Namespace SAME_SIZE = Namespace.of("ours", BlockShape.kv(1, 1, 64, 16, Dtype.BF16));
    private static final Namespace LARGER = Namespace.of("larger", BlockShape.kv(16, 8, 128, 16, Dtype.BF16));
    private static final Duration PATIENCE = Duration.ofSeconds(60);

    @TempDir
    private Path folder;

    private final TieredKvCache cache = open(TieredKvCache.builder()
            .hostBytes(64L << 20)
            .prefaultInBackground(false)
            .failOnLeak(true));

    private static TieredKvCache open(TieredKvCacheBuilder builder) {
        TieredKvCache opened = builder.build();
        List.of(THEIRS, SAME_SIZE, LARGER).forEach(opened::register);
        return opened;
    }

    @AfterEach
    void close() {
        cache.validate();
        cache.close();
    }

    private static BlockChain chain(int blocks) {
        return BlockChain.of(THEIRS, IntStream.range(0, 16 * blocks).toArray());
    }

    /// A chain of another namespace that names the same keys.
    private static BlockChain as(Namespace other, BlockChain chain) {
        return BlockChain.ofKeys(
                other, IntStream.range(0, chain.length()).mapToObj(chain::key).toList());
    }

    private static PutOutcome put(TieredKvCache into, BlockChain chain, int index) {
        try (BlockWriter writer = into.put(chain, index, 0, PATIENCE)) {
            if (writer.outcome() == PutOutcome.RESERVED) {
                writer.copyFrom(BlockContent.of(chain.key(index))
                        .toHeapSegment((int) writer.segment().byteSize()));
                writer.seal();
            }
            return writer.outcome();
        }
    }

    private static BlockChain stored(TieredKvCache into, BlockChain chain) {
        for (int index = 0; index < chain.length(); index++) {
            assertThat(put(into, chain, index)).isEqualTo(PutOutcome.RESERVED);
        }
        return chain;
    }

    private static void requireThere(TieredKvCache in, BlockChain chain) {
        try (BlockTable table = in.acquire(chain, 0, PATIENCE)) {
            assertThat(table.await(chain.length(), PATIENCE)).isEqualTo(chain.length());
            for (int index = 0; index < chain.length(); index++) {
                BlockContent.of(chain.key(index)).requireEqual(table.segment(index));
            }
        }
    }

    private static void requireNothing(TieredKvCache in, BlockChain chain) {
        assertThat(in.match(chain).blocks()).isZero();
        try (BlockTable table = in.acquire(chain, 0, PATIENCE)) {
            assertThat(table.await(1, PATIENCE)).isZero();
        }
    }

    @Test
    void givenAnothersKeys_whenLookedUp_thenNothingIsFound() {
        BlockChain theirs = stored(cache, chain(3));
        for (Namespace other : List.of(SAME_SIZE, LARGER)) {
            requireNothing(cache, as(other, theirs));
            assertThat(cache.containsBlock(other, theirs.key(0))).isFalse();
        }
        requireThere(cache, theirs);
    }

    @Test
    void givenAnothersKeys_whenPut_thenRefusedAndWhatIsThereStays() {
        BlockChain theirs = stored(cache, chain(3));
        for (Namespace other : List.of(SAME_SIZE, LARGER)) {
            assertThat(put(cache, as(other, theirs), 0)).isEqualTo(PutOutcome.FOREIGN);
        }
        requireThere(cache, theirs);
    }

    @Test
    void givenAnothersKeys_whenPutAtOnce_thenTheRunEndsAtTheFirstAndItIsCounted() {
        BlockChain theirs = stored(cache, chain(3));
        MemorySegment block = MemorySegment.ofArray(new byte[1]);
        assertThat(cache.putAll(as(LARGER, theirs), 0, List.of(block, block, block), PATIENCE))
                .isEqualTo(new PutSummary(0, 0, PutOutcome.FOREIGN));
        assertThat(cache.stats().puts().foreign()).isEqualTo(1);
        assertThat(cache.stats().puts().busy()).isZero();
    }

    @Test
    void givenBlocksThatAreNoChain_whenTheirKeysAreListed_thenWhatIsFoundIsOne() {
        List<BlockKey> keys =
                IntStream.range(1, 65).mapToObj(i -> new BlockKey(i, i)).toList();
        keys.forEach(key -> assertThat(put(cache, BlockChain.ofKeys(LARGER, List.of(key)), 0))
                .isEqualTo(PutOutcome.RESERVED));
        for (int foreign : new int[] {10, -1}) {
            List<BlockKey> listed = new ArrayList<>(keys);
            if (foreign > 0) {
                listed.set(foreign, new BlockKey(0, 1));
            }
            BlockChain chain = BlockChain.ofKeys(LARGER, listed);
            assertThat(cache.match(chain)).isEqualTo(new Match(0, 1, 0));
            requireThere(cache, chain.prefix(1));
            try (BlockTable table = cache.acquire(chain, 0, PATIENCE)) {
                assertThat(table.await(64, PATIENCE)).isEqualTo(1);
            }
        }
    }

    @Test
    void givenAParentAtAnotherDepth_whenABlockIsPutBelowIt_thenThereIsNoParent() {
        BlockChain mine = stored(cache, chain(3));
        BlockChain shifted = BlockChain.ofKeys(THEIRS, List.of(mine.key(2), new BlockKey(7, 7)));
        assertThat(put(cache, shifted, 1)).isEqualTo(PutOutcome.NO_PARENT);
    }

    @Test
    void givenAnothersKeyAsParent_whenPut_thenThereIsNoParent() {
        BlockChain theirs = stored(cache, chain(2));
        BlockChain below = BlockChain.ofKeys(LARGER, List.of(theirs.key(0), theirs.key(1), new BlockKey(1, 2)));
        assertThat(put(cache, below, 2)).isEqualTo(PutOutcome.NO_PARENT);
    }

    @Test
    void givenAnothersKeys_whenDroppedOrGivenUp_thenTheyStay() {
        BlockChain theirs = stored(cache, chain(3));
        for (Namespace other : List.of(SAME_SIZE, LARGER)) {
            assertThat(cache.drop(as(other, theirs), 0)).isZero();
            assertThat(cache.dropBlock(other, theirs.key(1))).isZero();
            cache.hint(new Hint.Forget(as(other, theirs), 0));
        }
        requireThere(cache, theirs);
    }

    @Test
    void givenAChainOfOwnAndForeignKeys_whenAcquired_thenItEndsBeforeTheForeign() {
        BlockChain theirs = stored(cache, chain(2));
        BlockChain mixed = BlockChain.ofKeys(LARGER, List.of(new BlockKey(3, 4), theirs.key(1)));
        assertThat(put(cache, mixed, 0)).isEqualTo(PutOutcome.RESERVED);
        requireThere(cache, mixed.prefix(1));
        assertThat(cache.match(mixed).blocks()).isEqualTo(1);
        try (BlockTable table = cache.acquire(mixed, 0, PATIENCE)) {
            assertThat(table.await(2, PATIENCE)).isEqualTo(1);
        }
    }

    @Test
    void givenSomethingUnderTheKeyOfAnothersObjectOrEngineKey_whenAskedFor_thenItIsNeither() {
        byte[] name = "a name that a value ends with".getBytes(StandardCharsets.UTF_8);
        BlockChain engine = BlockChain.ofEngineKeys(LARGER, List.of(new byte[] {1, 2, 3, 4, 5, 6, 7, 8}));
        for (BlockKey key : List.of(BlockKey.ofObject(LARGER, name), engine.key(0))) {
            assertThat(put(cache, BlockChain.ofKeys(THEIRS, List.of(key)), 0)).isEqualTo(PutOutcome.RESERVED);
        }
        assertThat(cache.getObject(LARGER, name)).isNull();
        try (BlockTable table = cache.acquire(engine, 0, PATIENCE)) {
            assertThat(table.readyBlocks()).isZero();
        }
    }

    @Test
    void givenAnothersBlockOnDiskAlone_whenPutOrRead_thenItIsStillTheirs() {
        TieredKvCacheBuilder builder = TieredKvCache.builder()
                .hostBytes(32L << 20)
                .prefaultInBackground(false)
                .failOnLeak(true)
                .policy(PolicyKind.LRU)
                .admission(AdmissionKind.ALWAYS)
                .disk(folder.resolve("disk"), 256L << 20);
        try (TieredKvCache withDisk = open(builder)) {
            BlockChain theirs = stored(withDisk, chain(3));
            assertThat(withDisk.flush(PATIENCE)).isTrue();
            for (int seed = 1; withDisk.match(theirs).diskBlocks() < 3; seed++) {
                assertThat(seed).as("blocks put to push them out").isLessThan(10_000);
                put(withDisk, BlockChain.ofKeys(SAME_SIZE, List.of(new BlockKey(seed, seed))), 0);
            }
            assertThat(withDisk.flush(PATIENCE)).isTrue(); // what is being written is pinned, and leaves no room
            BlockChain ours = as(LARGER, theirs);
            requireNothing(withDisk, ours);
            assertThat(put(withDisk, ours, 0)).isEqualTo(PutOutcome.FOREIGN);
            requireThere(withDisk, theirs);
            withDisk.validate();
        }
    }
}
