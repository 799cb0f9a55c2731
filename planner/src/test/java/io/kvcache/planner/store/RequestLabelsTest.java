package io.kvcache.planner.store;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.Hint;
import io.kvcache.core.KvCache;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.RequestKind;
import io.kvcache.core.RequestLabel;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.tiers.TieredKvCache;
import java.util.Random;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/// What labels of requests are worth to the production store, of 2,048 blocks of 16 KiB.
///
/// Of eight new prompts seven come once and one comes back, with two blocks more, 300 to 900
/// requests later, which is longer than the store can keep everything. All are of eight blocks and
/// look alike.
final class RequestLabelsTest {

    private static final Namespace SPACE = Namespace.of("m", BlockShape.kv(1, 1, 256, 16, Dtype.BF16));
    private static final int REQUESTS = 16_000;
    private static final int BLOCKS = 8;
    private static final int ADDED = 2;
    private static final int MAX_GAP = 900;
    private static final int MIN_GAP = 300;

    /// Whether requests are labelled, and by what.
    private enum Labels {
        NONE,
        TRUE,
        RANDOM
    }

    private static double hitRatio(PolicyKind policy, Labels labels) {
        Random random = new Random(3);
        Random lots = new Random(4);
        int[] due = new int[REQUESTS + MAX_GAP];
        long asked = 0;
        long found = 0;
        try (TieredKvCache cache = TieredKvCache.builder()
                .hostBytes(32L << 20)
                .policy(policy)
                .failOnLeak(true)
                .build()) {
            cache.register(SPACE);
            for (int i = 1; i < REQUESTS; i++) {
                boolean second = due[i] != 0;
                boolean returns = !second && random.nextInt(8) == 0;
                if (returns) {
                    due[i + MIN_GAP + random.nextInt(MAX_GAP - MIN_GAP)] = i;
                }
                BlockChain chain = second ? chain(due[i], BLOCKS + ADDED) : chain(i, BLOCKS);
                asked += chain.length();
                found += serve(cache, chain);
                RequestKind kind = second || returns ? RequestKind.AGENT : RequestKind.BATCH;
                switch (labels) {
                    case NONE -> {}
                    case TRUE -> label(cache, chain, new RequestLabel(kind, 0, second ? 2 : 1, second));
                    case RANDOM -> label(cache, chain, RequestLabel.of(RequestKind.of(lots.nextInt(4))));
                }
            }
            cache.validate();
        }
        return (double) found / asked;
    }

    private static void label(TieredKvCache cache, BlockChain chain, RequestLabel label) {
        cache.hint(new Hint.Label(chain, 0, label));
    }

    /// Blocks found; the others are put.
    private static int serve(TieredKvCache cache, BlockChain chain) {
        try (BlockTable table = cache.acquire(chain)) {
            int found = table.readyBlocks();
            for (int i = found; i < chain.length(); i++) {
                try (BlockWriter writer = cache.put(chain, i, 0, KvCache.NO_WAIT)) {
                    if (writer.outcome() == PutOutcome.DECLINED) {
                        break;
                    }
                    assertThat(writer.outcome()).isEqualTo(PutOutcome.RESERVED);
                    writer.seal();
                }
            }
            return found;
        }
    }

    private static BlockChain chain(int prompt, int blocks) {
        int[] tokens = new int[blocks * 16];
        tokens[0] = prompt;
        return BlockChain.of(SPACE, tokens);
    }

    @Test
    @Tag("nightly")
    void givenPromptsThatReturnAmongOneOffOnes_whenLabelled_thenFarMoreHits() {
        double lru = hitRatio(PolicyKind.LRU, Labels.NONE);
        double alone = hitRatio(PolicyKind.IMPORTANCE, Labels.NONE);
        double labelled = hitRatio(PolicyKind.IMPORTANCE, Labels.TRUE);
        System.out.printf("returning prompts: LRU %.4f, importance %.4f, labelled %.4f%n", lru, alone, labelled);
        assertThat(labelled).isGreaterThan(1.5 * alone).isGreaterThan(lru);
    }

    @Test
    @Tag("nightly")
    void givenLabelsThatSayNothing_whenServed_thenHitsAreAsWithoutThem() {
        double alone = hitRatio(PolicyKind.IMPORTANCE, Labels.NONE);
        double labelled = hitRatio(PolicyKind.IMPORTANCE, Labels.RANDOM);
        System.out.printf("labels at random: %.4f, without %.4f%n", labelled, alone);
        assertThat(labelled).isGreaterThan(alone - 0.005);
    }
}
