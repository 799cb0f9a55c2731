package io.kvcache.engines.llamacpp;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.KvCache;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.engines.generator.Generation;
import io.kvcache.engines.generator.GenerationRequest;
import io.kvcache.engines.generator.GeneratorOptions;
import io.kvcache.engines.generator.PrefixCachedGenerator;
import io.kvcache.engines.generator.PrefixCachedGenerator.TokenListener;
import io.kvcache.engines.generator.RandomPrompts;
import io.kvcache.tiers.TieredKvCache;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// A model before a store: what tells its blocks from others, and blocks that are none.
@Timeout(300)
final class LlamaModelTest {

    private static final Duration PATIENCE = Duration.ofSeconds(60);
    private static final GeneratorOptions BLOCKS_OF_16 = GeneratorOptions.DEFAULTS.withBlockTokens(16);
    private static final int[] PROMPT = RandomPrompts.random(5, 50);
    private static final LlamaFingerprint ONE = new LlamaFingerprint("a.gguf", "b4916 ab", "cd", "4 layers", "type 0");

    private final LlamaModel model = LlamaTestModels.small();

    private static KvCache store() {
        return TieredKvCache.builder().hostBytes(64L << 20).build();
    }

    private static Generation ask(PrefixCachedGenerator<LlamaModel> generator, int[] prompt)
            throws InterruptedException {
        Generation made = generator.generate(GenerationRequest.greedy(prompt, 4), TokenListener.NONE);
        assertThat(generator.awaitStored(PATIENCE)).isTrue();
        return made;
    }

    @Test
    void givenAModel_whenLoaded_thenItIsWhatWasWritten() {
        assertThat(model.vocabulary()).isEqualTo(RandomGguf.VOCABULARY);
        assertThat(model.contextLength()).isEqualTo(1024);
        assertThat(model.layout().layers()).hasSize(4).allMatch(layer -> layer.keyBytes() == 2 * 64 * 2);
        assertThat(model.fingerprint().model()).isEqualTo("small.gguf");
        assertThat(model.fingerprint().build())
                .isEqualTo(LlamaTestModels.library().build());
        assertThat(model.fingerprint().weights()).hasSize(64);
        assertThat(model.fingerprint().rope()).contains("10000");
    }

    @Test
    void givenFingerprints_whenAnyFieldDiffers_thenSoDoTheNamespaces() {
        BlockShape shape = LlamaFingerprint.shape(model.layout(), 16);
        Set<Object> namespaces = new HashSet<>();
        for (LlamaFingerprint each : List.of(
                ONE,
                new LlamaFingerprint("b.gguf", "b4916 ab", "cd", "4 layers", "type 0"),
                new LlamaFingerprint("a.gguf", "b4916 ac", "cd", "4 layers", "type 0"),
                new LlamaFingerprint("a.gguf", "b4916 ab", "ce", "4 layers", "type 0"),
                new LlamaFingerprint("a.gguf", "b4916 ab", "cd", "5 layers", "type 0"),
                new LlamaFingerprint("a.gguf", "b4916 ab", "cd", "4 layers", "type 2"))) {
            namespaces.add(each.namespace(shape, "", ""));
        }
        namespaces.add(ONE.namespace(shape, "blue", ""));
        namespaces.add(ONE.namespace(shape, "", "salt"));
        namespaces.add(ONE.namespace(LlamaFingerprint.shape(model.layout(), 64), "", ""));
        assertThat(namespaces).hasSize(9);
        assertThat(ONE.namespace(shape, "", "")).isEqualTo(ONE.namespace(shape, "", ""));
    }

    @Test
    void givenABlocksShape_whenComparedWithItsState_thenItHasRoomAndLittleMore() {
        for (int tokens : new int[] {1, 7, 16, 64, 1000}) {
            BlockShape shape = LlamaFingerprint.shape(model.layout(), tokens);
            long state = model.layout().bytes(tokens);
            assertThat(shape.bytes()).isBetween(state, state + 2L * 4 * tokens);
            assertThat(shape.blockTokens()).isEqualTo(tokens);
        }
    }

    @Test
    void givenAnotherModelsBlocks_whenThisOneAsks_thenItComputesAll() throws Exception {
        try (KvCache cache = store();
                LlamaModel other =
                        LlamaTestModels.load(RandomGguf.SMALL.withSeed(8), "other.gguf", LlamaTestModels.OPTIONS);
                // In a folder of its own: the other file of this name is mapped, and may not be cut off meanwhile.
                LlamaModel flash = LlamaTestModels.load(
                        RandomGguf.SMALL, "flash/small.gguf", LlamaTestModels.OPTIONS.withFlashAttention(true));
                PrefixCachedGenerator<LlamaModel> theirs = new PrefixCachedGenerator<>(other, cache, BLOCKS_OF_16);
                PrefixCachedGenerator<LlamaModel> rows = new PrefixCachedGenerator<>(flash, cache, BLOCKS_OF_16);
                PrefixCachedGenerator<LlamaModel> ours = new PrefixCachedGenerator<>(model, cache, BLOCKS_OF_16)) {
            int[] said = ask(theirs, PROMPT).tokens();
            assertThat(ask(rows, PROMPT).cachedTokens()).isZero();
            assertThat(ask(rows, PROMPT).cachedTokens()).isEqualTo(48);
            Generation made = ask(ours, PROMPT);
            assertThat(made.cachedTokens()).isZero();
            assertThat(made.tokens())
                    .isNotEqualTo(said)
                    .isEqualTo(
                            LlamaTestModels.generateUncached(model, PROMPT, 4).tokens());
        }
    }

    @Test
    void givenAHitOfAllButOneToken_whenGenerated_thenLogitsAreThoseOfAFullComputation() throws Exception {
        int[] prompt = RandomPrompts.random(6, 49);
        Generation hit;
        try (KvCache cache = store();
                PrefixCachedGenerator<LlamaModel> generator = new PrefixCachedGenerator<>(model, cache, BLOCKS_OF_16)) {
            ask(generator, prompt);
            hit = ask(generator, prompt);
        }
        assertThat(hit.cachedTokens()).isEqualTo(48);
        assertThat(hit.firstLogits())
                .isEqualTo(LlamaTestModels.generateUncached(model, prompt, 4).logits());
    }

    @Test
    void givenAnAnswer_whenTheChatGoesOn_thenItIsComputedOnceMoreAndThenStored() throws Exception {
        try (KvCache cache = store();
                PrefixCachedGenerator<LlamaModel> generator = new PrefixCachedGenerator<>(model, cache, BLOCKS_OF_16)) {
            Generation first = generator.generate(GenerationRequest.greedy(PROMPT, 40), TokenListener.NONE);
            assertThat(generator.awaitStored(PATIENCE)).isTrue();
            int[] next =
                    RandomPrompts.concatenate(RandomPrompts.concatenate(PROMPT, first.tokens()), new int[] {9, 10, 11});
            Generation second = ask(generator, next);
            assertThat(second.cachedTokens()).isEqualTo(48);
            assertThat(second.firstLogits())
                    .isEqualTo(LlamaTestModels.generateUncached(model, next, 4).logits());
            assertThat(ask(generator, next).cachedTokens()).isEqualTo(80);
        }
    }

    @Test
    void givenBlocksOfOneToken_whenAGeneratorIsMade_thenTheyAreRefused() {
        assertThatThrownBy(() -> model.namespace(1, "", ""))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("2 and more");
    }

    /// Blocks of the right size under right checksums, in which something else stands.
    @Test
    void givenBlocksThatAreNoState_whenAsked_thenTheyAreNotTakenAndTheRestIsComputed() throws Exception {
        int[] right = LlamaTestModels.generateUncached(model, PROMPT, 4).tokens();
        List<byte[]> blocks = blocks();
        for (int damage : new int[] {0, 4, 12 + 8 * 16 - 8, 12 + 8 * 16 - 4}) {
            byte[] bad = blocks.get(1).clone();
            bad[damage] ^= 0x55;
            assertThat(cachedTokens(List.of(blocks.get(0), bad, blocks.get(2)), right))
                    .isEqualTo(16);
        }
        byte[] cut = Arrays.copyOf(Arrays.copyOf(blocks.get(0), 100), blocks.get(0).length);
        assertThat(cachedTokens(List.of(cut, blocks.get(1)), right)).isZero();
        assertThat(cachedTokens(List.of(blocks.get(0), new byte[blocks.get(0).length]), right))
                .isEqualTo(16);
        // A block of the same tokens at another place.
        assertThat(cachedTokens(List.of(blocks.get(1), blocks.get(1)), right)).isZero();
        assertThat(cachedTokens(blocks, right)).isEqualTo(48);
    }

    private List<byte[]> blocks() throws InterruptedException {
        try (KvCache cache = store();
                PrefixCachedGenerator<LlamaModel> generator = new PrefixCachedGenerator<>(model, cache, BLOCKS_OF_16)) {
            ask(generator, PROMPT);
            try (BlockTable table = cache.acquire(BlockChain.of(generator.namespace(), PROMPT))) {
                return List.of(
                        table.segment(0).toArray(ValueLayout.JAVA_BYTE),
                        table.segment(1).toArray(ValueLayout.JAVA_BYTE),
                        table.segment(2).toArray(ValueLayout.JAVA_BYTE));
            }
        }
    }

    /// How many tokens are taken from a store that has these blocks, and that the answer is right.
    private int cachedTokens(List<byte[]> blocks, int[] right) throws InterruptedException {
        try (KvCache cache = store();
                PrefixCachedGenerator<LlamaModel> generator = new PrefixCachedGenerator<>(model, cache, BLOCKS_OF_16)) {
            BlockChain chain = BlockChain.of(generator.namespace(), PROMPT);
            for (int i = 0; i < blocks.size(); i++) {
                try (BlockWriter writer = cache.put(chain, i, 0, KvCache.NO_WAIT)) {
                    assertThat(writer.outcome()).isEqualTo(PutOutcome.RESERVED);
                    writer.copyFrom(MemorySegment.ofArray(blocks.get(i)));
                    writer.seal();
                }
            }
            Generation made = ask(generator, PROMPT);
            assertThat(made.tokens()).isEqualTo(right);
            return made.cachedTokens();
        }
    }

    @Test
    void givenATruncatedState_whenPut_thenTheStoreRefusesIt() throws Exception {
        byte[] block = blocks().getFirst();
        try (KvCache cache = store();
                PrefixCachedGenerator<LlamaModel> generator = new PrefixCachedGenerator<>(model, cache, BLOCKS_OF_16)) {
            BlockChain chain = BlockChain.of(generator.namespace(), PROMPT);
            MemorySegment half = MemorySegment.ofArray(Arrays.copyOf(block, block.length / 2));
            assertThatThrownBy(() -> cache.putAll(chain, 0, List.of(half), KvCache.NO_WAIT))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining(String.valueOf(block.length));
            assertThat(ask(generator, PROMPT).cachedTokens()).isZero();
        }
    }

    @Test
    void givenATemperature_whenASeedIsGivenAgain_thenSoIsTheAnswer() {
        try (KvCache cache = store();
                PrefixCachedGenerator<LlamaModel> generator = new PrefixCachedGenerator<>(model, cache, BLOCKS_OF_16)) {
            GenerationRequest one = new GenerationRequest(PROMPT, 20, 1, 1, Set.of(), true);
            GenerationRequest two = new GenerationRequest(PROMPT, 20, 1, 2, Set.of(), true);
            int[] said = generator.generate(one, TokenListener.NONE).tokens();
            assertThat(generator.generate(one, TokenListener.NONE).tokens()).isEqualTo(said);
            assertThat(generator.generate(two, TokenListener.NONE).tokens()).isNotEqualTo(said);
        }
    }

    /// Equal answers prove something only if different prompts have different ones.
    @Test
    void givenARandomModel_whenItSpeaks_thenItsTokensAreMostlyDistinct() {
        int[] prompt = RandomPrompts.random(3, 40);
        int[] said = LlamaTestModels.generateUncached(model, prompt, 32).tokens();
        assertThat(Arrays.stream(said).distinct().count()).isGreaterThan(20);
        prompt[20]++;
        assertThat(LlamaTestModels.generateUncached(model, prompt, 32).tokens()).isNotEqualTo(said);
    }
}
