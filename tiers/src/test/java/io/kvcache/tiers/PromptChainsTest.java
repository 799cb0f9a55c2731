package io.kvcache.tiers;

import static org.assertj.core.api.Assertions.assertThat;

import com.github.benmanes.caffeine.cache.Caffeine;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.identity.PromptTree;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ConcurrentMap;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/// Chains of prompts that an embedded store, or a bounded tree, has hashed before.
final class PromptChainsTest {

    private static final Namespace NAMESPACE = Namespace.of("m", BlockShape.kv(2, 2, 8, 16, Dtype.BF16));

    @Test
    void givenAPromptThatGoesOn_whenAskedOfAStore_thenOnlyNewTokensAreHashed() {
        int[] prompt = new Random(1).ints(5_000).toArray();
        try (TieredKvCache cache = TieredKvCache.builder().hostBytes(32L << 20).build()) {
            var _ = cache.chain(NAMESPACE, Arrays.copyOf(prompt, 4_800));
            BlockChain chain = cache.chain(NAMESPACE, prompt);
            assertThat(keys(chain)).isEqualTo(keys(BlockChain.of(NAMESPACE, prompt)));
            assertThat(cache.promptTokens()).isEqualTo(new PromptTree.TokenCounts(4_800, 4_992));
        }
    }

    @Test
    void givenATinyBound_whenMoreConversationsComeThanFit_thenItHoldsAndChainsAreRight() {
        long bound = 200_000;
        ConcurrentMap<PromptTree.Key, PromptTree.Segment> segments = Caffeine.newBuilder()
                .maximumWeight(bound)
                .weigher(PromptTree::weigh)
                .executor(Runnable::run)
                .build()
                .asMap();
        PromptTree tree = new PromptTree(segments);
        Random random = new Random(2);
        int[][] conversations = new int[20][0];
        for (int turn = 0; turn < 400; turn++) {
            int which = random.nextInt(random.nextInt(conversations.length) + 1);
            int[] more = random.ints(random.nextInt(1_200)).toArray();
            conversations[which] = IntStream.concat(Arrays.stream(conversations[which]), Arrays.stream(more))
                    .toArray();
            assertThat(keys(tree.chain(NAMESPACE, conversations[which])))
                    .isEqualTo(keys(BlockChain.of(NAMESPACE, conversations[which])));
            long weight = segments.entrySet().stream()
                    .mapToLong(each -> PromptTree.weigh(each.getKey(), each.getValue()))
                    .sum();
            assertThat(weight).isLessThanOrEqualTo(bound);
        }
        assertThat(tree.counts().found()).isPositive();
    }

    private static List<BlockKey> keys(BlockChain chain) {
        return IntStream.range(0, chain.length()).mapToObj(chain::key).toList();
    }
}
