package io.kvcache.core;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.SharedBlocks.Section;
import io.kvcache.core.contract.Repetitions;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

final class SharedBlocksTest {

    private static final int BLOCK_TOKENS = 4;
    private static final Namespace MODEL = Namespace.of("model", BlockShape.kv(1, 1, 8, BLOCK_TOKENS, Dtype.BF16));

    @Test
    void givenEightSequencesThatShareFiveOfEightBlocks_whenRead_thenTwentyNineAreReadInPlaceOfSixtyFour() {
        List<BlockChain> chains = IntStream.range(0, 8)
                .mapToObj(sequence -> chain(IntStream.range(0, 8)
                        .map(block -> block < 5 ? 0 : sequence + 1)
                        .toArray()))
                .toList();
        SharedBlocks shared = SharedBlocks.of(chains);
        assertThat(shared.blocksRead()).isEqualTo(29);
        assertThat(shared.sections()).hasSize(9).startsWith(new Section(0, 5, 0, 8));
        assertThat(chains.stream().mapToInt(BlockChain::length).sum()).isEqualTo(64);
    }

    @Test
    void givenNoSequenceOrAnEmptyOne_whenAsked_thenNothingIsShared() {
        assertThat(SharedBlocks.of(List.of()).sections()).isEmpty();
        SharedBlocks one = SharedBlocks.of(List.of(chain(), chain(1, 2), chain()));
        assertThat(one.order()).containsExactlyInAnyOrder(0, 1, 2).endsWith(1);
        assertThat(one.sections()).containsExactly(new Section(0, 2, 2, 3));
    }

    @Test
    void givenTheSameSequenceThrice_whenAsked_thenItIsOneSection() {
        SharedBlocks shared = SharedBlocks.of(List.of(chain(3, 1), chain(3, 1), chain(3, 1)));
        assertThat(shared.sections()).containsExactly(new Section(0, 2, 0, 3));
    }

    @Test
    void givenRandomBatches_whenAsked_thenEachBlockOfEachSequenceIsInOneSectionAndEachKeyIsReadOnce() {
        for (int seed = 0; seed < Repetitions.usualOrFull(200, 20_000); seed++) {
            Random random = new Random(seed);
            List<BlockChain> chains = IntStream.range(0, 1 + random.nextInt(20))
                    .mapToObj(_ -> chain(random.ints(random.nextInt(12), 0, 1 + random.nextInt(3))
                            .toArray()))
                    .toList();
            requireWhole(chains, SharedBlocks.of(chains), seed);
        }
    }

    private static void requireWhole(List<BlockChain> chains, SharedBlocks shared, int seed) {
        assertThat(new HashSet<>(shared.order()))
                .as("seed %s", seed)
                .isEqualTo(
                        new HashSet<>(IntStream.range(0, chains.size()).boxed().toList()));
        List<List<Integer>> covered = new ArrayList<>();
        chains.forEach(_ -> covered.add(new ArrayList<>()));
        Set<BlockKey> read = new HashSet<>();
        for (Section section : shared.sections()) {
            for (int block = section.firstBlock(); block < section.endBlock(); block++) {
                Set<BlockKey> keys = new HashSet<>();
                for (int sequence : shared.order().subList(section.from(), section.to())) {
                    covered.get(sequence).add(block);
                    keys.add(chains.get(sequence).key(block));
                }
                assertThat(keys)
                        .as("seed %s, block %s of %s", seed, block, section)
                        .hasSize(1);
                assertThat(read.addAll(keys)).as("seed %s: read once", seed).isTrue();
            }
        }
        for (int sequence = 0; sequence < chains.size(); sequence++) {
            assertThat(covered.get(sequence))
                    .as("seed %s, sequence %s", seed, sequence)
                    .isEqualTo(IntStream.range(0, chains.get(sequence).length())
                            .boxed()
                            .toList());
        }
        assertThat(shared.blocksRead()).isEqualTo(read.size());
    }

    /// A chain of blocks, each of one token repeated.
    private static BlockChain chain(int... blocks) {
        return BlockChain.of(
                MODEL,
                Arrays.stream(blocks)
                        .flatMap(block -> IntStream.generate(() -> block).limit(BLOCK_TOKENS))
                        .toArray());
    }
}
