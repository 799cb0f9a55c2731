package io.kvcache.tiers.use;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.KvCache;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.tiers.metrics.KvCacheMetrics;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.util.Arrays;
import org.junit.jupiter.api.Test;

/// An embedded store's estimates for other sizes of its memory.
final class LruHitRatioEstimatorTest {

    /// Blocks of 1 MiB: 32 fill the store.
    private static final Namespace SPACE = Namespace.of("m", BlockShape.kv(1, 8, 128, 256, Dtype.BF16));

    private static final int ROUNDS = 20;

    /// Forty-eight blocks in turn never come back in time for 32, and always for 64.
    @Test
    void givenALoopOfHalfAsMuchAgain_whenAsked_thenTwiceTheMemoryWouldFindNearlyAll() {
        try (TieredKvCache cache = TieredKvCache.builder().hostBytes(32 << 20).build()) {
            cache.register(SPACE);
            LruHitRatioEstimator curve = LruHitRatioEstimator.of(cache);
            SimpleMeterRegistry registry = new SimpleMeterRegistry();
            KvCacheMetrics.ofOtherSizes(curve::report).bindTo(registry);
            assertThat(curve.report().uses()).isZero();
            for (int use = 0; use < ROUNDS * 48; use++) {
                use(cache, use % 48);
            }
            LruHitRatioEstimator.Report report = curve.report();
            assertThat(report.uses()).isEqualTo(ROUNDS * 48);
            assertThat(report.dropped()).isZero();
            assertThat(report.sizes())
                    .extracting(LruHitRatioEstimator.Size::factor)
                    .containsExactly(0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0);
            assertThat(report.sizes())
                    .extracting(LruHitRatioEstimator.Size::bytes)
                    .containsExactly(
                            8L << 20, 16L << 20, 24L << 20, 32L << 20, 48L << 20, 64L << 20, 96L << 20, 128L << 20);
            assertThat(report.sizes())
                    .extracting(LruHitRatioEstimator.Size::lruHitRatio)
                    .startsWith(0.0, 0.0, 0.0, 0.0, 1 - 1.0 / ROUNDS);
            assertThat(registry.get("kv.memory.lru.hit.ratio")
                            .tag("factor", "2.0")
                            .gauge()
                            .value())
                    .isEqualTo(1 - 1.0 / ROUNDS);
            assertThat(registry.get("kv.memory.lru.dropped").functionCounter().count())
                    .isZero();
        }
    }

    /// Forty-eight blocks in turn: a disk of as much as the memory holds what that cannot.
    @Test
    void givenADisk_whenAsked_thenItCountsBesideMemory() {
        try (TieredKvCache cache = TieredKvCache.builder().hostBytes(32 << 20).build()) {
            cache.register(SPACE);
            LruHitRatioEstimator curve = new LruHitRatioEstimator(32 << 20, 32 << 20);
            cache.addAccessListener(curve);
            for (int use = 0; use < ROUNDS * 48; use++) {
                use(cache, use % 48);
            }
            assertThat(curve.report().sizes())
                    .extracting(LruHitRatioEstimator.Size::lruHitRatio)
                    .startsWith(0.0, 0.0, 0.0, 0.0, 1 - 1.0 / ROUNDS);
            assertThat(curve.report().sizes())
                    .extracting(LruHitRatioEstimator.Size::lruHitRatioWithDisks)
                    .startsWith(0.0, 1 - 1.0 / ROUNDS, 1 - 1.0 / ROUNDS, 1 - 1.0 / ROUNDS);
        }
    }

    @Test
    void givenWhatFits_whenAsked_thenThisMuchMemoryFindsAsMuchAsAnyMore() {
        try (TieredKvCache cache = TieredKvCache.builder().hostBytes(32 << 20).build()) {
            cache.register(SPACE);
            LruHitRatioEstimator curve = LruHitRatioEstimator.of(cache);
            for (int use = 0; use < ROUNDS * 24; use++) {
                use(cache, use % 24);
            }
            assertThat(curve.report().sizes())
                    .extracting(LruHitRatioEstimator.Size::lruHitRatio)
                    .startsWith(0.0, 0.0, 1 - 1.0 / ROUNDS, 1 - 1.0 / ROUNDS);
        }
    }

    /// A prompt of one block is looked for, and put when it is not here.
    private static void use(TieredKvCache cache, int prompt) {
        int[] tokens = new int[SPACE.blockTokens()];
        Arrays.fill(tokens, 1000 + prompt);
        BlockChain chain = BlockChain.of(SPACE, tokens);
        try (BlockTable table = cache.acquire(chain)) {
            if (table.readyBlocks() == 1) {
                return;
            }
        }
        try (BlockWriter writer = cache.put(chain, 0, 0, KvCache.NO_WAIT)) {
            writer.seal();
        }
    }
}
