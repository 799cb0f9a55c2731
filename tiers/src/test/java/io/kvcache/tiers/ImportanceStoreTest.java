package io.kvcache.tiers;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.Hint;
import io.kvcache.core.KvCache;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.tiers.metrics.KvCacheMetrics;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.time.Duration;
import java.util.Arrays;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// The store under the policy that learns: hints, and what it says of itself.
final class ImportanceStoreTest {

    /// Blocks of 1 MiB: 32 fill the store.
    private static final Namespace SPACE = Namespace.of("m", BlockShape.kv(1, 8, 128, 256, Dtype.BF16));

    private static final int FIT = 32;

    private final TieredKvCache cache = TieredKvCache.builder()
            .hostBytes(32 << 20)
            .policy(PolicyKind.IMPORTANCE)
            .build();

    @AfterEach
    void close() {
        cache.validate();
        cache.close();
    }

    @Test
    void givenAnnouncedChain_whenTheStoreIsFilledOver_thenItStaysUntilItsRequestHasCome() {
        cache.register(SPACE);
        BlockChain announced = chain(1);
        put(announced);
        assertThat(cache.hint(new Hint.Expect(announced, Duration.ZERO))).isTrue();
        fill(100, 3 * FIT);
        assertThat(cache.match(announced).blocks()).isEqualTo(1);
        cache.acquire(announced).close();
        fill(500, 3 * FIT);
        assertThat(cache.match(announced).blocks()).isZero();
    }

    @Test
    void givenChainAnnouncedBeforeItIsHere_whenTheStoreIsFilledOver_thenItStays() {
        cache.register(SPACE);
        BlockChain announced = chain(1);
        assertThat(cache.hint(new Hint.Expect(announced, Duration.ZERO)))
                .as("nothing is here")
                .isFalse();
        cache.hint(new Hint.Expect(announced, Duration.ZERO));
        put(announced);
        fill(100, 3 * FIT);
        assertThat(cache.match(announced).blocks())
                .as("one of two uses is to come")
                .isEqualTo(1);
    }

    @Test
    void givenFullStore_whenAsked_thenItSaysWhatLruWouldHaveFound() {
        SimpleMeterRegistry registry = new SimpleMeterRegistry();
        new KvCacheMetrics(cache, "kv").bindTo(registry);
        cache.register(SPACE);
        fill(0, 2 * FIT);
        assertThat(cache.lruFallbackReport().uses()).isEqualTo(2 * FIT);
        assertThat(cache.lruFallbackReport().followsLru()).isFalse();
        assertThat(cache.lruFallbackReport().sampledUses()).isPositive();
        assertThat(registry.get("kv.policy.uses")
                        .tag("order", "own")
                        .functionCounter()
                        .count())
                .isEqualTo(2 * FIT);
        assertThat(registry.get("kv.policy.follows.lru").gauge().value()).isZero();
    }

    private void fill(int first, int blocks) {
        for (int i = 0; i < blocks; i++) {
            put(chain(first + i));
        }
    }

    private void put(BlockChain chain) {
        try (var writer = cache.put(chain, 0, 0, KvCache.NO_WAIT)) {
            assertThat(writer.outcome()).isEqualTo(PutOutcome.RESERVED);
            writer.seal();
        }
    }

    private static BlockChain chain(int seed) {
        int[] tokens = new int[256];
        Arrays.fill(tokens, seed);
        return BlockChain.of(SPACE, tokens);
    }
}
