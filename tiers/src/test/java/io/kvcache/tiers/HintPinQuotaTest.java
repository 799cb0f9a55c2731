package io.kvcache.tiers;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.Hint;
import io.kvcache.core.KvCache;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import java.time.Duration;
import java.util.Arrays;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// How much of host memory the hints of each namespace may pin.
final class HintPinQuotaTest {

    /// Blocks of 1 MiB.
    private static final BlockShape SHAPE = BlockShape.kv(1, 8, 128, 256, Dtype.BF16);

    private static final int FIT = 160;

    private final TieredKvCache cache = TieredKvCache.builder()
            .hostBytes((long) FIT << 20)
            .prefaultInBackground(false)
            .failOnLeak(true)
            .build();
    private final Namespace heavy = weighed("heavy", 3);
    private final Namespace light = weighed("light", 1);
    private final Namespace common = Namespace.of("common", SHAPE);

    private Namespace weighed(String name, int weight) {
        Namespace namespace = Namespace.of(name, SHAPE);
        cache.register(namespace);
        cache.setWeight(namespace, weight);
        return namespace;
    }

    @AfterEach
    void close() {
        cache.validate();
        cache.close();
    }

    /// First blocks of chains that a hint pinned, of those that were put.
    private int pinned(Namespace namespace, int blocks) {
        int pinned = 0;
        for (int i = 0; i < blocks; i++) {
            pinned += cache.hint(new Hint.Pin(put(namespace, i), Duration.ofNanos(Long.MAX_VALUE))) ? 1 : 0;
        }
        return pinned;
    }

    private BlockChain put(Namespace namespace, int seed) {
        int[] tokens = new int[256];
        Arrays.fill(tokens, seed);
        BlockChain chain = BlockChain.of(namespace, tokens);
        try (var writer = cache.put(chain, 0, 0, KvCache.NO_WAIT)) {
            assertThat(writer.outcome()).isEqualTo(PutOutcome.RESERVED);
            writer.seal();
        }
        return chain;
    }

    @Test
    void givenWeights_whenOnePinsAllItCan_thenAQuarterOfItsShareAndTheOthersTheirs() {
        cache.register(common);
        assertThat(pinned(light, 20)).isEqualTo(FIT / 5 / 4);
        assertThat(pinned(heavy, 40)).isEqualTo(FIT * 3 / 5 / 4);
        assertThat(pinned(common, 20)).isEqualTo(FIT / 5 / 4);
    }

    @Test
    void givenAllIsPinnedThatMayBe_whenANamespaceIsDropped_thenItMayPinAgain() {
        assertThat(pinned(light, 20)).isEqualTo(8);
        cache.drop(light);
        assertThat(cache.stats().host().heldBytes()).isZero();
        assertThat(pinned(light, 20)).isEqualTo(8);
    }
}
