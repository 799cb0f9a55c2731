package io.kvcache.engines.jlama;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.KvCache;
import io.kvcache.engines.generator.Generation;
import io.kvcache.engines.generator.GenerationRequest;
import io.kvcache.engines.generator.GeneratorOptions;
import io.kvcache.engines.generator.PrefixCachedGenerator;
import io.kvcache.engines.generator.PrefixCachedGenerator.TokenListener;
import io.kvcache.tiers.TieredKvCache;
import java.time.Duration;
import java.util.concurrent.FutureTask;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// A request that follows before the sequence it goes on from is in the store.
@Timeout(300)
final class PendingStoreTest {

    private static final GeneratorOptions OPTIONS =
            GeneratorOptions.DEFAULTS.withBlockTokens(16).withLoadTimeout(Duration.ofSeconds(100));
    private static final int[] PROMPT = JlamaPrompts.random(5, 50);

    private final JlamaModel model = JlamaTestModels.small();

    private static Generation ask(PrefixCachedGenerator<JlamaModel> generator, int[] prompt, int tokens) {
        return generator.generate(GenerationRequest.greedy(prompt, tokens), TokenListener.NONE);
    }

    @Test
    void givenASequenceUnderWayToTheStore_whenARequestGoesOnFromIt_thenAllItsFullBlocksAreFound() throws Exception {
        try (KvCache below = TieredKvCache.builder().hostBytes(64L << 20).build()) {
            GatedStore store = GatedStore.over(below);
            try (PrefixCachedGenerator<JlamaModel> generator =
                    new PrefixCachedGenerator<>(model, store.cache(), OPTIONS)) {
                Generation first = ask(generator, PROMPT, 40);
                // 89 of the 90 tokens were computed, and 80 of them are in full blocks.
                int[] next = JlamaPrompts.concatenate(
                        JlamaPrompts.concatenate(PROMPT, first.tokens()), new int[] {9, 10, 11});
                FutureTask<Generation> second = new FutureTask<>(() -> ask(generator, next, 4));
                Thread asking = Thread.ofPlatform().start(second);
                while (asking.getState() != Thread.State.TIMED_WAITING && !second.isDone()) {
                    LockSupport.parkNanos(1_000_000);
                }
                store.gate().countDown();
                assertThat(second.get().cachedTokens()).isEqualTo(80);
                assertThat(second.get().tokens())
                        .isEqualTo(
                                JlamaTestModels.generateUncached(model, next, 4).tokens());
            }
        }
    }

    @Test
    void givenASequenceUnderWayToTheStore_whenAnotherPromptIsAsked_thenItDoesNotWait() {
        try (KvCache below = TieredKvCache.builder().hostBytes(64L << 20).build()) {
            GatedStore store = GatedStore.over(below);
            try (PrefixCachedGenerator<JlamaModel> generator =
                    new PrefixCachedGenerator<>(model, store.cache(), OPTIONS.withLoadTimeout(Duration.ofDays(1)))) {
                ask(generator, PROMPT, 4);
                assertThat(ask(generator, JlamaPrompts.random(6, 50), 4).cachedTokens())
                        .isZero();
                store.gate().countDown();
            }
        }
    }

    @Test
    void givenAStoreThatTakesTooLong_whenARequestGoesOn_thenItIsComputedAfterTheArrivalTime() {
        try (KvCache below = TieredKvCache.builder().hostBytes(64L << 20).build()) {
            GatedStore store = GatedStore.over(below);
            try (PrefixCachedGenerator<JlamaModel> generator =
                    new PrefixCachedGenerator<>(model, store.cache(), OPTIONS.withLoadTimeout(Duration.ofMillis(20)))) {
                Generation first = ask(generator, PROMPT, 4);
                Generation second = ask(generator, PROMPT, 4);
                store.gate().countDown();
                assertThat(second.cachedTokens()).isZero();
                assertThat(second.tokens()).isEqualTo(first.tokens());
            }
        }
    }
}
