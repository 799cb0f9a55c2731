package io.kvcache.core.identity;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.core.identity.PromptTree.Segment;
import io.kvcache.core.identity.PromptTree.TokenCounts;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class PromptTreeTest {

    private static final long SEED = 2025;
    private static final Namespace NAMESPACE = namespace(16);

    private final ConcurrentHashMap<PromptTree.Key, Segment> segments = new ConcurrentHashMap<>();
    private final PromptTree tree = new PromptTree(segments);

    @ParameterizedTest
    @ValueSource(ints = {1, 3, 16, 64, 256, 5000})
    void givenConversationsAndForks_whenAsked_thenEachChainIsAsIfHashedAtOnce(int blockTokens) {
        Random random = seeded("forks");
        List<Namespace> namespaces = List.of(
                namespace(blockTokens),
                namespace(blockTokens).toBuilder().tenant("other").build());
        List<int[]> prompts = new ArrayList<>(List.of(new int[0]));
        for (int step = 0; step < 300; step++) {
            int[] before = prompts.get(random.nextInt(prompts.size()));
            int kept = random.nextInt(3) == 0 ? random.nextInt(before.length + 1) : before.length;
            int[] prompt = concat(Arrays.copyOf(before, kept), fewTokens(random, random.nextInt(3000)));
            prompts.add(prompt);
            if (random.nextInt(5) == 0) {
                segments.keySet().removeIf(_ -> random.nextInt(8) == 0); // evicted
            }
            assertEqual(namespaces.get(random.nextInt(2)), prompt, random);
        }
        assertThat(tree.counts().found()).isPositive();
    }

    @Test
    void givenAConversation_whenItGoesOn_thenOnlyNewBlocksAreHashed() {
        Random random = seeded("turns");
        int[] prompt = tokens(random, 20_000);
        assertThat(counted(prompt)).isEqualTo(new TokenCounts(0, 20_000));
        for (int turn = 0; turn < 40; turn++) {
            int known = prompt.length - prompt.length % 16;
            prompt = concat(prompt, tokens(random, 250));
            assertThat(counted(prompt))
                    .as("turn %d", turn)
                    .isEqualTo(new TokenCounts(known, prompt.length - prompt.length % 16 - known));
        }
        assertThat(counted(prompt)).isEqualTo(new TokenCounts(prompt.length - prompt.length % 16, 0));
        assertThat(segments).hasSize(4); // 30,000 tokens in segments of 8,192, however they came
    }

    @Test
    void givenAFork_whenItComesAgain_thenBothBranchesAreKnown() {
        Random random = seeded("fork");
        int[] trunk = tokens(random, 10_007);
        int[] left = concat(trunk, tokens(random, 6_000));
        int[] right = concat(trunk, tokens(random, 6_000));
        counted(left);
        assertThat(counted(right)).isEqualTo(new TokenCounts(10_000, 6_000));
        assertThat(counted(left)).isEqualTo(new TokenCounts(16_000, 0));
        assertThat(counted(right)).isEqualTo(new TokenCounts(16_000, 0));
    }

    @Test
    void givenPromptsThatDifferInOneToken_whenTheyComeAgain_thenNoneHasReplacedAnother() {
        int[] prompt = tokens(seeded("template"), 9_600);
        for (int round = 0; round < 2; round++) {
            for (int user = 0; user < 100; user++) {
                prompt[40] = user;
                assertThat(counted(prompt).found()).isEqualTo(round == 1 ? 9_600 : user == 0 ? 0 : 32);
            }
        }
    }

    /// A fingerprint is a polynomial in 31, so it is easy to make another block with the same one.
    @Test
    void givenAFingerprintTwice_whenAsked_thenChainsAreRightAndBothAreKept() {
        int[] first = tokens(seeded("collision"), 16_384);
        int[] second = first.clone();
        second[0]++;
        second[1] -= 31;
        int[] third = first.clone();
        third[8_195] -= 7;
        third[8_196] += 7 * 31;
        for (int[] prompt : List.of(first, second, third)) {
            assertThat(keys(tree.chain(NAMESPACE, prompt))).isEqualTo(keys(BlockChain.of(NAMESPACE, prompt)));
        }
        for (int[] prompt : List.of(first, second, third)) {
            assertThat(counted(prompt)).isEqualTo(new TokenCounts(16_384, 0));
        }
    }

    @Test
    void givenASegmentGrownByAnotherPrompt_whenTheLaterOneLoses_thenNothingHangsBelowItsEnd() {
        Random random = seeded("race");
        int[] common = tokens(random, 1_600);
        int[] end = tokens(random, 4_000);
        int[] left = concat(concat(common, tokens(random, 6_592)), end);
        int[] middle = concat(common, tokens(random, 6_592));
        int[] right = concat(middle, end);
        List<Runnable> race = new ArrayList<>();
        PromptTree raced = new PromptTree(new ConcurrentHashMap<>() {
            @Override
            public boolean replace(PromptTree.Key key, Segment before, Segment after) {
                List<Runnable> first = List.copyOf(race);
                race.clear();
                first.forEach(Runnable::run);
                return super.replace(key, before, after);
            }
        });
        var _ = raced.chain(NAMESPACE, common);
        race.add(() -> raced.chain(NAMESPACE, middle)); // fills the segment, while the left prompt wants to
        for (int[] prompt : List.of(left, right, left, right)) {
            assertThat(keys(raced.chain(NAMESPACE, prompt))).isEqualTo(keys(BlockChain.of(NAMESPACE, prompt)));
        }
        assertThat(race).isEmpty();
    }

    @Test
    void givenManyThreads_whenTheyGrowAndForkOneConversation_thenEveryChainIsRight() {
        int[] common = tokens(seeded("threads"), 9_000);
        List<int[]> wrong = IntStream.range(0, 4_000)
                .parallel()
                .mapToObj(i -> {
                    Random random = new Random(i);
                    int[] more = fewTokens(random, random.nextInt(300));
                    int[] prompt = concat(Arrays.copyOf(common, random.nextInt(common.length)), more);
                    BlockChain chain = tree.chain(NAMESPACE, prompt);
                    if (i % 16 == 0) {
                        segments.keySet().removeIf(_ -> random.nextInt(64) == 0);
                    }
                    return keys(chain).equals(keys(BlockChain.of(NAMESPACE, prompt))) ? null : prompt;
                })
                .filter(prompt -> prompt != null)
                .toList();
        assertThat(wrong).isEmpty();
    }

    /// Each prompt leaves the one before it a block later, which makes the deepest tree.
    @Test
    void givenAForkInEveryBlock_whenAsked_thenALookUpTakesABoundedNumberOfSteps() {
        AtomicInteger steps = new AtomicInteger();
        PromptTree deep = new PromptTree(new ConcurrentHashMap<>() {
            @Override
            public @Nullable Segment get(Object key) {
                steps.incrementAndGet();
                return super.get(key);
            }
        });
        int[] prompt = tokens(seeded("steps"), 8_192);
        int most = 0;
        for (int i = 0; i < 400; i++) {
            prompt[100 + 16 * i]++;
            steps.set(0);
            assertThat(keys(deep.chain(NAMESPACE, prompt))).isEqualTo(keys(BlockChain.of(NAMESPACE, prompt)));
            most = Math.max(most, steps.get());
        }
        assertThat(most).isEqualTo(16 + 8_192 / 64);
    }

    @Test
    void givenTokensThatTheCallerChanges_whenAskedAgain_thenTheTreeHasWhatItWasGiven() {
        int[] tokens = tokens(seeded("changed"), 640);
        int[] given = tokens.clone();
        var _ = tree.chain(NAMESPACE, given);
        Arrays.fill(given, 0);
        assertThat(counted(tokens)).isEqualTo(new TokenCounts(640, 0));
        assertThat(counted(given)).isEqualTo(new TokenCounts(0, 640));
    }

    @Test
    void givenLessThanABlock_whenAsked_thenNothingIsKept() {
        assertThat(tree.chain(NAMESPACE, new int[15]).tokens()).isEqualTo(15);
        assertThat(tree.chain(NAMESPACE, new int[0]).tokens()).isZero();
        assertThat(segments).isEmpty();
        assertThatThrownBy(() -> tree.chain(Namespace.objects("o", ""), new int[1]))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("has no parts");
    }

    /// Digests of 64 bytes a block, as a fork copies those beside it.
    @ParameterizedTest
    @ValueSource(ints = {1, 16, 256})
    void givenConversations_whenWeighed_thenEveryTokenAndDigestCountsOnce(int blockTokens) {
        Random random = seeded("weight");
        int[] prompt = tokens(random, 64 * 1024);
        var _ = tree.chain(namespace(blockTokens), prompt);
        long tokenBytes = prompt.length * 4L;
        long digestBytes = prompt.length / blockTokens * 32L;
        assertThat(weight()).isBetween(tokenBytes + digestBytes, (long) (1.15 * (tokenBytes + digestBytes)));
        for (int fork = 0; fork < 20; fork++) {
            long before = weight();
            var _ = tree.chain(namespace(blockTokens), concat(Arrays.copyOf(prompt, 60_000), tokens(random, 256)));
            assertThat(weight() - before).isBetween(1_024L, 1_024 + 384 + 256 * 64 + 8_192L);
        }
    }

    private long weight() {
        return segments.entrySet().stream()
                .mapToLong(each -> PromptTree.weigh(each.getKey(), each.getValue()))
                .sum();
    }

    /// Asks for the chain in the usual namespace, and returns what became of its tokens.
    private TokenCounts counted(int[] prompt) {
        TokenCounts before = tree.counts();
        assertThat(keys(tree.chain(NAMESPACE, prompt))).isEqualTo(keys(BlockChain.of(NAMESPACE, prompt)));
        TokenCounts after = tree.counts();
        return new TokenCounts(after.found() - before.found(), after.hashed() - before.hashed());
    }

    private void assertEqual(Namespace namespace, int[] prompt, Random random) {
        BlockChain chain = tree.chain(namespace, prompt);
        BlockChain expected = BlockChain.of(namespace, prompt);
        assertThat(keys(chain)).isEqualTo(keys(expected));
        assertThat(chain.tokens()).isEqualTo(expected.tokens());
        assertThat(chain.namespace()).isEqualTo(namespace);
        assertThat(chain).hasToString(expected.toString());
        int[] more = tokens(random, random.nextInt(40));
        assertThat(keys(chain.extend(more))).isEqualTo(keys(expected.extend(more)));
    }

    private static List<BlockKey> keys(BlockChain chain) {
        return IntStream.range(0, chain.length()).mapToObj(chain::key).toList();
    }

    private static Random seeded(String what) {
        System.out.println("PromptTreeTest " + what + " seed " + SEED);
        return new Random(SEED);
    }

    private static int[] tokens(Random random, int count) {
        return random.ints(count).toArray();
    }

    /// Of a vocabulary of three, so that prompts meet by chance as well.
    private static int[] fewTokens(Random random, int count) {
        return random.ints(count, 0, 3).toArray();
    }

    private static int[] concat(int[] first, int[] second) {
        return IntStream.concat(Arrays.stream(first), Arrays.stream(second)).toArray();
    }

    private static Namespace namespace(int blockTokens) {
        return Namespace.of("m", BlockShape.kv(2, 2, 8, blockTokens, Dtype.BF16));
    }
}
