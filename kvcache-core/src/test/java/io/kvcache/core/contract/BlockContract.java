package io.kvcache.core.contract;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.KvCache;
import io.kvcache.core.Match;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.PutSummary;
import io.kvcache.core.SealOutcome;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.ByteRange;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.memory.ChunkedCrc;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;

/// Blocks that are here: prefixes, tables, drops, namespaces.
public abstract class BlockContract extends KvCacheContract {

    protected BlockContract(CacheUnderTest.Factory factory) {
        super(factory);
    }

    @ParameterizedTest
    @CsvSource({"1, 1", "1, 64", "1, 100", "1, 1024", "16, 1024", "320, 1024"})
    @Tag(ESSENTIAL)
    void givenBlocksOfAnySize_whenAcquired_thenExactlyWhatWasPut(int layers, int rowElements) {
        Namespace space = blocksOf("sizes", layers, rowElements);
        cache().register(space);
        BlockChain chain = stored(chain(space, 1, 2));
        assertThat(match(chain)).isEqualTo(2);
        try (BlockTable table = cache().acquire(chain)) {
            assertThat(table.readyBlocks()).isEqualTo(2);
            for (int index = 0; index < 2; index++) {
                assertThat(table.segment(index).byteSize()).isEqualTo(blockBytes(space));
                assertThat(table.segment(index).isReadOnly()).isTrue();
                MemorySegment heap = MemorySegment.ofArray(new byte[(int) blockBytes(space)]);
                table.copyTo(index, heap);
                content(chain, index).requireEqual(heap);
                content(chain, index).requireEqual(table.segment(index));
            }
        }
    }

    @Test
    @Tag(ESSENTIAL)
    void givenNothing_whenLookedUp_thenAMissIsAValue() {
        BlockChain chain = chain(1, 3);
        assertThat(cache().match(chain)).isEqualTo(Match.NOTHING);
        try (BlockTable table = cache().acquire(chain)) {
            assertThat(table.readyBlocks()).isZero();
            assertThat(table.blocks()).isZero();
            assertThat(table.endBlock()).isEqualTo(table.firstBlock());
            assertThat(table.await(3, KvCache.NO_WAIT)).isZero();
            assertThat(table.readyEnd()).isZero();
        }
        assertThat(match(chain.prefix(0))).isZero();
        cache().acquire(chain.prefix(0)).close();
        assertThat(cache().drop(chain, 0)).isZero();
    }

    @Test
    void givenAPromptThatGoesOn_whenItsChainIsAsked_thenItIsThatOfItsTokens() {
        int[] prompt = IntStream.range(0, 20 * BLOCK_TOKENS + 3).toArray();
        for (int tokens : new int[] {0, 1, prompt.length / 2, prompt.length / 2, prompt.length}) {
            int[] turn = Arrays.copyOf(prompt, tokens);
            BlockChain chain = cache().chain(MIB, turn);
            assertThat(chain).hasToString(BlockChain.of(MIB, turn).toString());
            assertThat(match(chain)).isZero();
        }
        stored(cache().chain(MIB, prompt).prefix(2));
        assertThat(match(cache().chain(MIB, prompt))).isEqualTo(2);
    }

    @Test
    void givenAPrefix_whenMatched_thenItsLengthWhateverIsAskedFor() {
        BlockChain chain = chain(1, 20);
        stored(chain.prefix(13));
        for (int asked = 0; asked <= 20; asked++) {
            assertThat(match(chain.prefix(asked))).isEqualTo(Math.min(asked, 13));
        }
        assertThat(verified(chain)).isEqualTo(13);
    }

    @Test
    void givenAPrefix_whenMatchedWithATimeout_thenWhatAcquireReturnsWithIt() {
        BlockChain chain = chain(1, 20);
        stored(chain.prefix(13));
        for (Duration timeout : List.of(KvCache.NO_WAIT, Duration.ofMillis(1), Duration.ofDays(365_000))) {
            assertThat(cache().match(chain, timeout).blocks()).isEqualTo(13);
            assertThat(cache().match(chain.prefix(5), timeout).blocks()).isEqualTo(5);
            assertThat(cache().match(chain.prefix(0), timeout)).isEqualTo(Match.NOTHING);
            assertThat(cache().match(chain(2, 3), timeout)).isEqualTo(Match.NOTHING);
            try (BlockTable table = cache().acquire(chain, 0, timeout)) {
                assertThat(table.await(13, Duration.ofMinutes(1))).isEqualTo(13);
            }
        }
        assertThatIllegalArgumentException().isThrownBy(() -> cache().match(chain, Duration.ofNanos(-1)));
    }

    @Test
    void givenTokensOfAPartialLastBlock_whenMatched_thenFullBlocksOnly() {
        int[] tokens = IntStream.range(0, 3 * BLOCK_TOKENS + 5).toArray();
        BlockChain chain = stored(BlockChain.of(MIB, tokens));
        assertThat(chain.length()).isEqualTo(3);
        assertThat(match(chain.extend(IntStream.range(0, 100).toArray()))).isEqualTo(3);
    }

    @Test
    void givenTwoForks_whenStored_thenTheyShareTheirFirstBlocks() {
        BlockChain trunk = stored(chain(1, 4));
        BlockChain left = trunk.extend(IntStream.range(0, 2 * BLOCK_TOKENS).toArray());
        BlockChain right = trunk.extend(IntStream.range(7, 7 + 2 * BLOCK_TOKENS).toArray());
        for (BlockChain fork : List.of(left, right)) {
            assertThat(match(fork)).isEqualTo(4);
            assertThat(outcome(fork, 2)).isEqualTo(PutOutcome.PRESENT);
            put(fork, 4);
            put(fork, 5);
        }
        assertThat(verified(left)).isEqualTo(6);
        assertThat(verified(right)).isEqualTo(6);
        subject().settle();
        assertThat(cache().stats().records().live()).isEqualTo(8);
    }

    @Test
    @Tag(ESSENTIAL)
    void givenATableFromTheMiddle_whenRead_thenIndexesAreOfTheChain() {
        BlockChain chain = stored(chain(1, 6));
        try (BlockTable table = cache().acquire(chain, 4, KvCache.NO_WAIT)) {
            assertThat(table.firstBlock()).isEqualTo(4);
            assertThat(table.endBlock()).isEqualTo(6);
            assertThat(table.blocks()).isEqualTo(2);
            assertThat(table.readyBlocks()).isEqualTo(2);
            assertThat(table.readyEnd()).isEqualTo(6);
            assertThat(table.await(5, KvCache.NO_WAIT)).isBetween(5, 6);
            assertThat(table.await(table.endBlock(), Duration.ofMinutes(1))).isEqualTo(6);
            assertThat(table.onReady(6, Runnable::run).toCompletableFuture())
                    .succeedsWithin(Duration.ofMinutes(1))
                    .isEqualTo(6);
            requireContent(table, chain);
        }
        try (BlockTable table = cache().acquire(chain, 6, KvCache.NO_WAIT)) {
            assertThat(table.readyBlocks()).isZero();
            assertThat(table.await(6, Duration.ofMinutes(1))).isEqualTo(6);
        }
        try (BlockTable table = cache().acquire(chain(2, 6), 3, KvCache.NO_WAIT)) {
            assertThat(table.readyBlocks()).isZero();
        }
    }

    @Test
    @Tag(ESSENTIAL)
    void givenResidentBlocks_whenAwaited_thenReadyAtOnce() throws Exception {
        BlockChain chain = chain(1, 6);
        stored(chain.prefix(4));
        try (BlockTable table = cache().acquire(chain)) {
            assertThat(table.await(4, KvCache.NO_WAIT)).isEqualTo(4);
            assertThat(table.await(1, Duration.ofNanos(Long.MAX_VALUE))).isGreaterThanOrEqualTo(1);
            assertThat(table.await(6, Duration.ofNanos(Long.MAX_VALUE)))
                    .as("no more will come")
                    .isEqualTo(4);
            List<Thread> ranOn = new ArrayList<>();
            int ready = table.onReady(6, command -> {
                        ranOn.add(Thread.currentThread());
                        command.run();
                    })
                    .toCompletableFuture()
                    .get();
            assertThat(ready).isEqualTo(4);
            assertThat(ranOn).hasSize(1);
        }
    }

    @Test
    void givenADropInTheMiddle_whenMatched_thenThePrefixEndsThere() {
        BlockChain chain = stored(chain(1, 10));
        BlockChain fork =
                chain.prefix(7).extend(IntStream.range(0, 3 * BLOCK_TOKENS).toArray());
        put(fork, 7);
        put(fork, 8);
        assertThat(cache().drop(chain, 6)).isEqualTo(6);
        assertThat(verified(chain)).isEqualTo(6);
        assertThat(match(fork)).isEqualTo(6);
        assertThat(cache().drop(chain, 6)).isZero();
        assertThat(cache().drop(chain, chain.length())).isZero();
        assertThat(outcome(chain, 7)).isEqualTo(PutOutcome.NO_PARENT);
        assertThat(cache().stats().removals().dropped()).isEqualTo(6);
    }

    @Test
    @Tag(ESSENTIAL)
    void givenAPinnedTable_whenItsChainIsDropped_thenTheBytesStayUntilItCloses() {
        BlockChain chain = stored(chain(1, 8));
        long held = cache().stats().host().heldBytes();
        BlockTable table = cache().acquire(chain);
        assertThat(cache().drop(chain, 2)).isEqualTo(6);
        assertThat(match(chain)).isEqualTo(2);
        subject().settle();
        assertThat(cache().stats().host().heldBytes()).isEqualTo(held);
        for (int index = 2; index < 8; index++) {
            put(chain, index);
        }
        stored(chain(2, 30));
        requireContent(table, chain);
        assertThat(verified(chain)).isEqualTo(8);
        table.close();
        subject().settle();
        assertThat(cache().stats().records().live()).isEqualTo(38);
        assertThat(verified(chain)).isEqualTo(8);
    }

    static Stream<Namespace> neighbours() {
        return Stream.of(
                MIB.toBuilder().tenant("other").build(),
                MIB.toBuilder().salt("secret").build(),
                MIB.toBuilder().adapter("lora-1").build(),
                MIB.toBuilder().revision("r2").build(),
                MIB.toBuilder().layout("other").build());
    }

    @ParameterizedTest
    @MethodSource("neighbours")
    void givenTheSameTokensInAnotherNamespace_whenLookedUp_thenTheyNeverMeet(Namespace other) {
        cache().register(other);
        BlockChain mine = stored(chain(MIB, 1, 4));
        BlockChain theirs = chain(other, 1, 4);
        assertThat(match(theirs)).isZero();
        stored(theirs);
        assertThat(verified(mine)).isEqualTo(4);
        assertThat(verified(theirs)).isEqualTo(4);
        assertThat(cache().drop(other)).isEqualTo(4);
        assertThat(match(theirs)).isZero();
        assertThat(verified(mine)).isEqualTo(4);
    }

    @Test
    void givenANamespaceIsDropped_whenUsedAgain_thenItIsStillRegistered() {
        BlockChain chain = stored(chain(1, 5));
        putObject(new byte[] {1}, content(OBJECTS, new byte[] {1}), 10);
        assertThat(cache().drop(MIB)).isEqualTo(5);
        assertThat(cache().drop(MIB)).isZero();
        assertThat(cache().containsObject(OBJECTS, new byte[] {1})).isTrue();
        assertThat(cache().drop(OBJECTS)).isEqualTo(1);
        subject().settle();
        assertThat(cache().stats().host().heldBytes()).isZero();
        assertThat(verified(stored(chain))).isEqualTo(5);
    }

    @Test
    void givenKeysOfAnEngine_whenStored_thenFoundByTheSameKeysOnly() {
        List<byte[]> keys = Stream.of("a", "b", "c")
                .map(key -> key.getBytes(StandardCharsets.US_ASCII))
                .toList();
        BlockChain chain = stored(BlockChain.ofEngineKeys(MIB, keys));
        assertThat(verified(BlockChain.ofEngineKeys(MIB, keys))).isEqualTo(3);
        assertThat(verified(BlockChain.ofEngineKeys(MIB, keys.subList(1, 3))))
                .as("a chain that begins in the middle of another")
                .isZero();
        assertThat(match(chain(1, 3))).isZero();
        assertThat(cache().drop(chain, 0)).isEqualTo(3);
    }

    @Test
    @Tag(ESSENTIAL)
    void givenBlocksSealedInAnyWay_whenAcquired_thenTheTableHasTheirChecksums() {
        BlockChain chain = chain(1, 3);
        put(chain, 0);
        try (BlockWriter copied = reserve(chain, 1);
                BlockWriter summed = reserve(chain, 2)) {
            copied.copyFrom(content(chain, 1).toHeapSegment((int) blockBytes(MIB)));
            copied.seal();
            content(chain, 2).fill(summed.segment());
            assertThat(summed.seal(ChunkedCrc.of(summed.segment()))).isEqualTo(SealOutcome.SEALED);
            assertThatIllegalStateException().isThrownBy(() -> summed.seal(1));
        }
        BlockTable table = cache().acquire(chain);
        try (table) {
            for (int index = 0; index < 3; index++) {
                assertThat(table.checksum(index)).isEqualTo(ChunkedCrc.of(table.segment(index)));
            }
            assertThatThrownBy(() -> table.checksum(3)).isInstanceOf(IndexOutOfBoundsException.class);
            requireContent(table, chain);
        }
        assertThatIllegalStateException().isThrownBy(() -> table.checksum(0));
    }

    @Test
    @Tag(ESSENTIAL)
    void givenARun_whenPutAll_thenStoredAndPresentAreTold() {
        BlockChain chain = chain(1, 6);
        List<MemorySegment> blocks = IntStream.range(0, 6)
                .mapToObj(index -> content(chain, index).toHeapSegment((int) blockBytes(MIB)))
                .toList();
        assertThat(cache().putAll(chain, 0, blocks.subList(0, 2), KvCache.NO_WAIT))
                .isEqualTo(new PutSummary(2, 0, PutOutcome.RESERVED));
        assertThat(cache().putAll(chain, 1, blocks.subList(1, 4), KvCache.NO_WAIT))
                .isEqualTo(new PutSummary(2, 1, PutOutcome.RESERVED));
        assertThat(cache().putAll(chain, 5, blocks.subList(5, 6), KvCache.NO_WAIT))
                .isEqualTo(new PutSummary(0, 0, PutOutcome.NO_PARENT));
        assertThat(cache().putAll(chain, 0, blocks, KvCache.NO_WAIT).accepted()).isEqualTo(6);
        assertThat(verified(chain)).isEqualTo(6);
    }

    @Test
    @Tag(ESSENTIAL)
    void givenNativeMemory_whenPutAllAndCopied_thenTheSameBytes() {
        BlockChain chain = chain(1, 1);
        try (Arena arena = Arena.ofConfined();
                BlockWriter writer = reserve(chain, 0)) {
            MemorySegment source = arena.allocate(blockBytes(MIB));
            content(chain, 0).fill(source);
            writer.copyFrom(source);
            writer.seal();
            MemorySegment target = arena.allocate(blockBytes(MIB) + 64);
            try (BlockTable table = cache().acquire(chain)) {
                table.copyTo(0, target);
            }
            content(chain, 0).requireEqual(target.asSlice(0, blockBytes(MIB)));
        }
    }

    @Test
    @Tag(ESSENTIAL)
    void givenBlocksThatAreHere_whenAllAreAskedFor_thenTheyAreCopiedUpToTheFirstThatIsNot() {
        BlockChain chain =
                stored(chain(1, 3)).extend(IntStream.range(0, BLOCK_TOKENS).toArray());
        List<MemorySegment> into = Stream.generate(() -> MemorySegment.ofArray(new byte[(int) blockBytes(MIB)]))
                .limit(4)
                .toList();
        assertThat(cache().getAll(chain, 1, into)).isEqualTo(2);
        content(chain, 1).requireEqual(into.get(0));
        content(chain, 2).requireEqual(into.get(1));
        assertThat(cache().getAll(chain, 0, into.subList(0, 1))).isEqualTo(1);
        content(chain, 0).requireEqual(into.get(0));
        assertThat(cache().getAll(chain, chain.length(), into)).isZero();
        assertThat(cache().getAll(chain(2, 3), 0, into)).isZero();
        assertThatThrownBy(() -> cache().getAll(chain, 0, List.of(MemorySegment.ofArray(new byte[4096]))))
                .isInstanceOf(IndexOutOfBoundsException.class);
    }

    @Test
    @Tag(ESSENTIAL)
    void givenBlocksThatAreHere_whenTheSameRangeOfThemIsRead_thenItsBytesUpToTheFirstBlockThatIsNot() {
        BlockChain chain =
                stored(chain(1, 3)).extend(IntStream.range(0, BLOCK_TOKENS).toArray());
        ByteRange layer = MIB.parts().getFirst().shape().layerSlice(3);
        List<MemorySegment> into = rangeTargets(4, layer.bytes());
        for (Duration timeout : List.of(KvCache.NO_WAIT, Duration.ofSeconds(10))) {
            into.forEach(each -> each.fill((byte) 0));
            assertThat(cache().getRange(chain, 1, layer, into, timeout)).isEqualTo(2);
            for (int index = 1; index < 3; index++) {
                assertThat(into.get(index - 1).mismatch(rangeOf(chain, index, layer)))
                        .as("block %d", index)
                        .isEqualTo(-1);
            }
            assertThat(cache().getRange(chain.prefix(1), 0, layer, into, timeout))
                    .isEqualTo(1);
            assertThat(into.getFirst().mismatch(rangeOf(chain, 0, layer))).isEqualTo(-1);
            assertThat(cache().getRange(chain, chain.length(), layer, into, timeout))
                    .isZero();
            assertThat(cache().getRange(chain, 0, layer, List.of(), timeout)).isZero();
            assertThat(cache().getRange(chain(2, 3), 0, layer, into, timeout)).isZero();
        }
        subject().settle();
        assertThat(cache().stats().openTables()).isZero();
    }

    @Test
    void givenRangesOfAnySize_whenRead_thenTheirBytes() {
        BlockChain chain = stored(chain(1, 2));
        int whole = (int) blockBytes(MIB);
        for (ByteRange range : List.of(
                new ByteRange(0, 1),
                new ByteRange(whole - 1, 1),
                new ByteRange(0, whole),
                new ByteRange(4095, 4098),
                new ByteRange(65_535, 3),
                new ByteRange(1, whole - 2))) {
            List<MemorySegment> into = rangeTargets(2, range.bytes() + 8);
            assertThat(cache().getRange(chain, 0, range, into, Duration.ofSeconds(10)))
                    .as("%s", range)
                    .isEqualTo(2);
            for (int index = 0; index < 2; index++) {
                assertThat(into.get(index).asSlice(0, range.bytes()).mismatch(rangeOf(chain, index, range)))
                        .as("%s of block %d", range, index)
                        .isEqualTo(-1);
            }
        }
    }

    private static List<MemorySegment> rangeTargets(int count, long bytes) {
        return Stream.generate(() -> MemorySegment.ofArray(new byte[(int) bytes]))
                .limit(count)
                .toList();
    }

    private MemorySegment rangeOf(BlockChain chain, int index, ByteRange range) {
        return content(chain, index).toHeapSegment((int) blockBytes(MIB)).asSlice(range.offset(), range.bytes());
    }
}
