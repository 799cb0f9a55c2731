package io.kvcache.engines.jlama;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.core.KvCache;
import io.kvcache.core.RequestKind;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.identity.Part;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.engines.generator.Generation;
import io.kvcache.engines.generator.GenerationRequest;
import io.kvcache.engines.generator.GeneratorMetrics;
import io.kvcache.engines.generator.GeneratorOptions;
import io.kvcache.engines.generator.GeneratorStats;
import io.kvcache.engines.generator.PrefixCachedGenerator;
import io.kvcache.engines.generator.PrefixCachedGenerator.TokenListener;
import io.kvcache.engines.generator.RandomPrompts;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.transport.client.RemoteKvCache;
import io.kvcache.transport.endpoint.EndpointOptions;
import io.kvcache.transport.endpoint.TcpEndpoint;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(300)
@Tag("slow")
final class PrefixCachedGeneratorTest {

    private static final GeneratorOptions BLOCKS_OF_16 = GeneratorOptions.DEFAULTS.withBlockTokens(16);
    private static final Duration PATIENCE = Duration.ofSeconds(60);
    private static final int[] PROMPT = RandomPrompts.random(5, 50);

    private final JlamaModel model = JlamaTestModels.small();

    private static KvCache store() {
        return TieredKvCache.builder().hostBytes(64L << 20).build();
    }

    private static Generation ask(PrefixCachedGenerator<JlamaModel> generator, int[] prompt)
            throws InterruptedException {
        Generation made = generator.generate(GenerationRequest.greedy(prompt, 4), TokenListener.NONE);
        assertThat(generator.awaitStored(PATIENCE)).isTrue();
        return made;
    }

    @Test
    void givenATenantsBlocks_whenAnotherOneOrAnotherSaltAsks_thenNothingIsFound() throws Exception {
        try (KvCache cache = store();
                PrefixCachedGenerator<JlamaModel> blue =
                        new PrefixCachedGenerator<>(model, cache, BLOCKS_OF_16.withTenant("blue", "a"));
                PrefixCachedGenerator<JlamaModel> red =
                        new PrefixCachedGenerator<>(model, cache, BLOCKS_OF_16.withTenant("red", "a"));
                PrefixCachedGenerator<JlamaModel> salted =
                        new PrefixCachedGenerator<>(model, cache, BLOCKS_OF_16.withTenant("blue", "b"))) {
            ask(blue, PROMPT);
            assertThat(ask(blue, PROMPT).cachedTokens()).isEqualTo(48);
            assertThat(ask(red, PROMPT).cachedTokens()).isZero();
            assertThat(ask(salted, PROMPT).cachedTokens()).isZero();
        }
    }

    @Test
    void givenAnotherModelsBlocks_whenThisOneAsks_thenItComputesAll() throws Exception {
        try (KvCache cache = store();
                JlamaModel other = JlamaTestModels.load(RandomLlama.SMALL.withSeed(8), "other");
                PrefixCachedGenerator<JlamaModel> theirs = new PrefixCachedGenerator<>(other, cache, BLOCKS_OF_16);
                PrefixCachedGenerator<JlamaModel> ours = new PrefixCachedGenerator<>(model, cache, BLOCKS_OF_16)) {
            assertThat(theirs.namespace()).isNotEqualTo(ours.namespace());
            int[] said = ask(theirs, PROMPT).tokens();
            Generation made = ask(ours, PROMPT);
            assertThat(made.cachedTokens()).isZero();
            assertThat(made.tokens())
                    .isNotEqualTo(said)
                    .isEqualTo(
                            JlamaTestModels.generateUncached(model, PROMPT, 4).tokens());
        }
    }

    @Test
    void givenTheNameInTheStoreWithAnotherDtype_whenAGeneratorIsMade_thenTheStoreRefusesAndShowsBoth() {
        JlamaFingerprint here = model.fingerprint();
        Namespace ours = here.namespace(16, "", "");
        BlockShape shape = here.shape(16);
        Namespace clash = Namespace.builder(ours.model())
                .revision(ours.revision())
                .dtype(ours.dtype())
                .layout(ours.layout())
                .part(Part.full(new BlockShape(
                        shape.layers(), 2, shape.kvHeads(), shape.headDim(), 16, Dtype.BF16, shape.order())))
                .build();
        try (KvCache cache = store()) {
            cache.register(clash);
            assertThatThrownBy(() -> new PrefixCachedGenerator<>(model, cache, BLOCKS_OF_16))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("F32")
                    .hasMessageContaining("BF16");
        }
    }

    @Test
    void givenAServerThatIsGone_whenAsked_thenAllIsComputed() throws Exception {
        InetSocketAddress any = new InetSocketAddress(InetAddress.getLoopbackAddress(), 0);
        TieredKvCache served = TieredKvCache.builder().hostBytes(64L << 20).build();
        TcpEndpoint endpoint = TcpEndpoint.open(served, any, EndpointOptions.DEFAULTS);
        try (KvCache cache = RemoteKvCache.builder(
                                "127.0.0.1:" + endpoint.address().getPort())
                        .requestTimeout(PATIENCE)
                        .connect();
                PrefixCachedGenerator<JlamaModel> generator = new PrefixCachedGenerator<>(
                        model, cache, BLOCKS_OF_16.withLoadTimeout(Duration.ofMillis(20)))) {
            int[] said = JlamaTestModels.generateUncached(model, PROMPT, 4).tokens();
            assertThat(ask(generator, PROMPT).tokens()).isEqualTo(said);
            endpoint.close();
            served.close();
            for (int i = 0; i < 2; i++) {
                Generation made = ask(generator, PROMPT);
                assertThat(made.cachedTokens()).isZero();
                assertThat(made.tokens()).isEqualTo(said);
            }
            assertThat(generator.stats().stores().blocks()).isEqualTo(3);
        }
    }

    @Test
    void givenAChat_whenItGoesOn_thenTheAnswerBeforeIsTakenFromTheStoreToo() throws Exception {
        try (KvCache cache = store();
                PrefixCachedGenerator<JlamaModel> generator = new PrefixCachedGenerator<>(model, cache, BLOCKS_OF_16)) {
            Generation first = generator.generate(GenerationRequest.greedy(PROMPT, 40), TokenListener.NONE);
            assertThat(generator.awaitStored(PATIENCE)).isTrue();
            // 89 of the 90 tokens were computed, and 80 of them are in full blocks.
            int[] next =
                    RandomPrompts.concatenate(RandomPrompts.concatenate(PROMPT, first.tokens()), new int[] {9, 10, 11});
            Generation second = ask(generator, next);
            assertThat(second.cachedTokens()).isEqualTo(80);
            assertThat(second.tokens())
                    .isEqualTo(JlamaTestModels.generateUncached(model, next, 4).tokens());
        }
    }

    @Test
    void givenAStopToken_whenTheModelSaysIt_thenTheTextEndsBeforeIt() {
        int[] said = JlamaTestModels.generateUncached(model, PROMPT, 6).tokens();
        int stop = said[4];
        int first = (int) Arrays.stream(said).takeWhile(token -> token != stop).count();
        try (KvCache cache = store();
                PrefixCachedGenerator<JlamaModel> generator = new PrefixCachedGenerator<>(model, cache, BLOCKS_OF_16)) {
            GenerationRequest request = new GenerationRequest(PROMPT, 6, 0, 0, Set.of(stop), true);
            Generation made = generator.generate(request, TokenListener.NONE);
            assertThat(made.endReason()).isEqualTo(Generation.EndReason.STOP);
            assertThat(made.tokens()).isEqualTo(Arrays.copyOf(said, first));
        }
    }

    @Test
    void givenAnAnswerThatEndsItsTurn_whenStored_thenItsBlocksAreLabelledAsAChat() throws Exception {
        assertThat(Generation.EndReason.LENGTH.requestKind()).isEqualTo(RequestKind.OTHER);
        int stop = JlamaTestModels.generateUncached(model, PROMPT, 1).tokens()[0];
        try (TieredKvCache cache = TieredKvCache.builder()
                        .hostBytes(64L << 20)
                        .policy(PolicyKind.IMPORTANCE)
                        .build();
                PrefixCachedGenerator<JlamaModel> generator = new PrefixCachedGenerator<>(model, cache, BLOCKS_OF_16)) {
            generator.generate(new GenerationRequest(PROMPT, 6, 0, 0, Set.of(stop), true), TokenListener.NONE);
            assertThat(generator.awaitStored(PATIENCE)).isTrue();
            assertThat(cache.hintStats().blocksLabelled()).isEqualTo(PROMPT.length / 16);
        }
    }

    @Test
    void givenAListenerWhoHasEnough_whenHeSaysSo_thenNothingMoreIsComputed() {
        List<Integer> heard = new ArrayList<>();
        try (KvCache cache = store();
                PrefixCachedGenerator<JlamaModel> generator = new PrefixCachedGenerator<>(model, cache, BLOCKS_OF_16)) {
            Generation made = generator.generate(GenerationRequest.greedy(PROMPT, 40), token -> {
                heard.add(token);
                return heard.size() < 3;
            });
            assertThat(made.endReason()).isEqualTo(Generation.EndReason.CANCELLED);
            assertThat(made.tokens())
                    .hasSize(3)
                    .containsExactly(heard.stream().mapToInt(each -> each).toArray());
        }
    }

    @Test
    void givenATemperature_whenASeedIsGivenAgain_thenSoIsTheAnswer() {
        try (KvCache cache = store();
                PrefixCachedGenerator<JlamaModel> generator = new PrefixCachedGenerator<>(model, cache, BLOCKS_OF_16)) {
            GenerationRequest one = new GenerationRequest(PROMPT, 20, 1, 1, Set.of(), true);
            GenerationRequest two = new GenerationRequest(PROMPT, 20, 1, 2, Set.of(), true);
            int[] said = generator.generate(one, TokenListener.NONE).tokens();
            assertThat(generator.generate(one, TokenListener.NONE).tokens()).isEqualTo(said);
            assertThat(generator.generate(two, TokenListener.NONE).tokens()).isNotEqualTo(said);
        }
    }

    @Test
    void givenARequestThatShallNotBeCached_whenAskedTwice_thenTheStoreHearsOfNeither() throws Exception {
        try (KvCache cache = store();
                PrefixCachedGenerator<JlamaModel> generator = new PrefixCachedGenerator<>(model, cache, BLOCKS_OF_16)) {
            GenerationRequest secret = GenerationRequest.greedy(PROMPT, 4).uncached();
            Generation made = generator.generate(secret, TokenListener.NONE);
            assertThat(generator.awaitStored(PATIENCE)).isTrue();
            assertThat(cache.match(BlockChain.of(generator.namespace(), PROMPT)).blocks())
                    .isZero();
            ask(generator, PROMPT);
            assertThat(generator.generate(secret, TokenListener.NONE).cachedTokens())
                    .isZero();
            assertThat(made.tokens())
                    .isEqualTo(
                            JlamaTestModels.generateUncached(model, PROMPT, 4).tokens());
        }
    }

    @Test
    void givenManyThreads_whenTheyAskAtOnce_thenEachHasItsAnswer() throws Exception {
        try (KvCache cache = store();
                PrefixCachedGenerator<JlamaModel> generator = new PrefixCachedGenerator<>(model, cache, BLOCKS_OF_16);
                ExecutorService threads = Executors.newFixedThreadPool(4)) {
            List<Future<Generation>> answers = new ArrayList<>();
            for (int i = 0; i < 12; i++) {
                int[] prompt = RandomPrompts.diverging(PROMPT, 33, i % 3, 50);
                answers.add(threads.submit(
                        () -> generator.generate(GenerationRequest.greedy(prompt, 4), TokenListener.NONE)));
            }
            List<int[]> said = new ArrayList<>();
            for (Future<Generation> answer : answers) {
                said.add(answer.get(120, TimeUnit.SECONDS).tokens());
            }
            for (int i = 0; i < 12; i++) {
                int[] prompt = RandomPrompts.diverging(PROMPT, 33, i % 3, 50);
                assertThat(said.get(i))
                        .isEqualTo(JlamaTestModels.generateUncached(model, prompt, 4)
                                .tokens());
            }
        }
    }

    @Test
    void givenTokensThatAreNone_whenAsked_thenTheMessageSaysWhichAreAllowed() throws Exception {
        try (KvCache cache = store();
                PrefixCachedGenerator<JlamaModel> generator = new PrefixCachedGenerator<>(model, cache, BLOCKS_OF_16)) {
            assertThatThrownBy(() -> ask(generator, new int[] {1, 512})).hasMessageContaining("512", "0 to 511");
            assertThatThrownBy(() -> ask(generator, new int[] {-1})).hasMessageContaining("0 to 511");
            assertThatThrownBy(() -> ask(generator, new int[1022])).hasMessageContaining("1 to 1021");
            assertThatThrownBy(() -> GenerationRequest.greedy(new int[0], 1)).hasMessageContaining("at least 1");
            assertThat(ask(generator, RandomPrompts.random(2, 1021)).endReason())
                    .isEqualTo(Generation.EndReason.LENGTH);
        }
    }

    @Test
    void givenHitsAndMisses_whenCounted_thenStatsAndMetersSayHowManyTokensWereSaved() throws Exception {
        try (KvCache cache = store();
                PrefixCachedGenerator<JlamaModel> generator = new PrefixCachedGenerator<>(model, cache, BLOCKS_OF_16)) {
            SimpleMeterRegistry registry = new SimpleMeterRegistry();
            new GeneratorMetrics(generator, "small").bindTo(registry);
            ask(generator, PROMPT);
            ask(generator, PROMPT);
            ask(generator, PROMPT);
            GeneratorStats stats = generator.stats();
            assertThat(stats.hits().count()).isEqualTo(2);
            assertThat(stats.misses().count()).isEqualTo(1);
            assertThat(stats.tokens()).isEqualTo(new GeneratorStats.Tokens(150, 96, 12));
            BlockChain chain = BlockChain.of(generator.namespace(), PROMPT);
            assertThat(stats.stores().blocks()).isEqualTo(chain.length());
            assertThat(registry.get("kv.engine.tokens")
                            .tag("kind", "saved")
                            .functionCounter()
                            .count())
                    .isEqualTo(96);
            assertThat(registry.get("kv.engine.ttft")
                            .tag("result", "hit")
                            .functionTimer()
                            .count())
                    .isEqualTo(2);
            assertThat(registry.get("kv.engine.ttft")
                            .tag("result", "miss")
                            .functionTimer()
                            .totalTime(TimeUnit.NANOSECONDS))
                    .isPositive();
        }
    }
}
