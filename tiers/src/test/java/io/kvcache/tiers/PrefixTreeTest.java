package io.kvcache.tiers;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.BlockTable;
import io.kvcache.core.KvCache;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.core.stats.PrefixLevel;
import io.kvcache.core.stats.PrefixLevel.PrefixNode;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Random;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/// The tree of shared prefixes that a store shows.
final class PrefixTreeTest {

    private static final Namespace SPACE = Namespace.of("m", BlockShape.kv(1, 1, 128, 16, Dtype.BF16));
    private static final Namespace OTHER = Namespace.of("n", BlockShape.kv(1, 1, 128, 16, Dtype.BF16));
    private static final int BLOCK_BYTES = 8 << 10;

    private static TieredKvCache open(PolicyKind policy) {
        TieredKvCache cache = TieredKvCache.builder()
                .hostBytes(64 << 20)
                .policy(policy)
                .prefaultInBackground(false)
                .build();
        cache.register(SPACE);
        cache.register(OTHER);
        return cache;
    }

    /// The chain whose blocks have these contents.
    private static BlockChain chain(Namespace space, int... blocks) {
        return BlockChain.of(
                space,
                IntStream.of(blocks)
                        .flatMap(block -> IntStream.range(0, 16).map(_ -> block))
                        .toArray());
    }

    private static void put(TieredKvCache cache, BlockChain chain) {
        MemorySegment block = MemorySegment.ofArray(new byte[BLOCK_BYTES]);
        assertThat(cache.putAll(chain, 0, Collections.nCopies(chain.length(), block), KvCache.NO_WAIT)
                        .accepted())
                .isEqualTo(chain.length());
    }

    private static void use(TieredKvCache cache, BlockChain chain) {
        try (BlockTable table = cache.acquire(chain)) {
            assertThat(table.readyBlocks()).isEqualTo(chain.length());
        }
    }

    @Test
    void givenChainsThatShareABeginning_whenShown_thenARunIsANodeAndItsBranchesAreBelowIt() {
        try (TieredKvCache cache = open(PolicyKind.IMPORTANCE)) {
            BlockChain first = chain(SPACE, 1, 2, 3, 4);
            put(cache, first);
            put(cache, chain(SPACE, 1, 2, 5));
            put(cache, chain(SPACE, 9));
            use(cache, first);

            PrefixLevel top = cache.prefixes(_ -> true, null, 10);
            assertThat(top.blocks()).isEqualTo(6);
            assertThat(top.bytes()).isEqualTo(6 * BLOCK_BYTES);
            assertThat(top.more()).isZero();
            PrefixNode shared = top.nodes().getFirst();
            assertThat(shared.key()).isEqualTo(first.key(0));
            assertThat(shared.run()).isEqualTo(2);
            assertThat(shared.blocks()).isEqualTo(5);
            assertThat(shared.memoryBlocks()).isEqualTo(5);
            assertThat(shared.diskBlocks()).isZero();
            assertThat(shared.branches()).isEqualTo(2);
            assertThat(shared.uses()).isGreaterThan(top.nodes().get(1).uses());
            assertThat(shared.lastUse()).isEqualTo(cache.policyClock());

            PrefixLevel below = cache.prefixes(_ -> true, shared.key(), 10);
            assertThat(below.nodes()).extracting(PrefixNode::depth).containsExactly(2, 2);
            assertThat(below.nodes()).extracting(PrefixNode::run).containsExactly(2, 1);
            assertThat(below.nodes().getFirst().key()).isEqualTo(first.key(2));
            assertThat(cache.prefixes(_ -> true, first.key(2), 10).nodes()).isEmpty();
        }
    }

    @Test
    void givenSeveralNamespaces_whenOneIsWanted_thenOnlyItsBlocksAreShown() {
        try (TieredKvCache cache = open(PolicyKind.LRU)) {
            put(cache, chain(SPACE, 1, 2));
            put(cache, chain(OTHER, 1, 2, 3));
            assertThat(cache.prefixes(id -> id == 0, null, 10).nodes())
                    .extracting(PrefixNode::blocks)
                    .containsExactly(2L);
            assertThat(cache.prefixes(id -> id == 1, null, 10).blocks()).isEqualTo(3);
            assertThat(cache.prefixes(id -> id == 0, chain(OTHER, 1).key(0), 10).nodes())
                    .isEmpty();
            PrefixLevel one = cache.prefixes(_ -> true, null, 1);
            assertThat(one.nodes()).hasSize(1);
            assertThat(one.nodes().getFirst().uses()).as("LRU counts none").isEqualTo(-1);
            assertThat(one.more()).isEqualTo(1);
            assertThat(one.blocks()).isEqualTo(5);
        }
    }

    @Test
    void givenAKeyThatIsNotHere_whenShown_thenThereIsNothingBelowIt() {
        try (TieredKvCache cache = open(PolicyKind.LRU)) {
            put(cache, chain(SPACE, 1, 2));
            cache.drop(chain(SPACE, 1), 0);
            assertThat(cache.prefixes(_ -> true, chain(SPACE, 1).key(0), 10))
                    .isEqualTo(new PrefixLevel(List.of(), 0, 0, 0));
        }
    }

    /// Random chains beside a naive tree of their contents.
    @Test
    void givenRandomChains_whenEveryLevelIsShown_thenItIsThatOfANaiveTree() {
        for (int seed = 0; seed < 20; seed++) {
            Random random = new Random(seed);
            Naive root = new Naive();
            try (TieredKvCache cache = open(PolicyKind.IMPORTANCE)) {
                for (int i = 0; i < 60; i++) {
                    int[] blocks = random.ints(1 + random.nextInt(8), 0, 3).toArray();
                    put(cache, chain(SPACE, blocks));
                    root.add(blocks, 0);
                }
                assertSame(cache, root, new ArrayList<>(), seed);
            }
        }
    }

    private static void assertSame(TieredKvCache cache, Naive tree, List<Integer> path, int seed) {
        PrefixLevel level = cache.prefixes(
                _ -> true,
                // Any block of a run stands for it.
                path.isEmpty() ? null : chain(SPACE, toArray(path)).key(path.size() - 1),
                1000);
        assertThat(level.nodes()).as("seed %d below %s", seed, path).hasSize(tree.children.size());
        tree.children.forEach((content, child) -> {
            List<Integer> run = new ArrayList<>(path);
            run.add(content);
            int depth = path.size();
            Naive end = child;
            while (end.children.size() == 1) {
                int only = end.children.keySet().iterator().next();
                run.add(only);
                end = Objects.requireNonNull(end.children.get(only));
            }
            PrefixNode node = level.nodes().stream()
                    .filter(each -> each.key().equals(chain(SPACE, toArray(run)).key(depth)))
                    .findFirst()
                    .orElseThrow();
            assertThat(node.depth()).isEqualTo(depth);
            assertThat(node.run()).as("seed %d at %s", seed, run).isEqualTo(run.size() - depth);
            assertThat(node.blocks()).isEqualTo(child.size());
            assertThat(node.branches()).isEqualTo(end.children.size());
            assertSame(cache, end, run, seed);
        });
    }

    private static int[] toArray(List<Integer> path) {
        return path.stream().mapToInt(Integer::intValue).toArray();
    }

    private static final class Naive {
        private final Map<Integer, Naive> children = new HashMap<>();

        void add(int[] blocks, int from) {
            if (from < blocks.length) {
                children.computeIfAbsent(blocks[from], _ -> new Naive()).add(blocks, from + 1);
            }
        }

        int size() {
            return 1 + children.values().stream().mapToInt(Naive::size).sum();
        }
    }
}
