package io.kvcache.server.metrics;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.KvCache;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.tiers.metrics.KvCacheMetrics;
import io.kvcache.tiers.use.LruHitRatioEstimator;
import io.micrometer.prometheusmetrics.PrometheusConfig;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// The meters of a store in an embedder's registry. `MetricsEndpointTest` covers those of a server.
final class MetricLintTest {

    private static final Namespace SPACE = Namespace.of("m", BlockShape.kv(1, 1, 128, 4, Dtype.BF16));

    @Test
    void givenAnEmbeddedStoreWithADisk_whenScraped_thenPrometheusRulesHold(@TempDir Path folder) throws Exception {
        try (TieredKvCache cache = TieredKvCache.builder()
                .hostBytes(32 << 20)
                .disk(folder.resolve("disk"), 16 << 20)
                .build()) {
            cache.register(SPACE);
            PrometheusMeterRegistry registry = new PrometheusMeterRegistry(PrometheusConfig.DEFAULT);
            new KvCacheMetrics(cache, "kv").bindTo(registry);
            KvCacheMetrics.ofOtherSizes(() -> new LruHitRatioEstimator.Report(
                            List.of(new LruHitRatioEstimator.Size(1, 1, 0, 0)), 0, 1, 0))
                    .bindTo(registry);
            try (var writer = cache.put(BlockChain.of(SPACE, new int[] {1, 2, 3, 4}), 0, 0, KvCache.NO_WAIT)) {
                writer.segment().fill((byte) 1);
                writer.seal();
            }
            assertThat(cache.flush(Duration.ofMinutes(1))).isTrue();

            String scrape = registry.scrape();

            assertThat(MetricLint.violations(scrape)).isEmpty();
            assertThat(scrape)
                    .contains(
                            "kv_disk_latency_seconds_count{cache=\"kv\",disk=\"0\",what=\"write\"} 1",
                            "kv_disk_latency_p99_seconds{cache=\"kv\",disk=\"0\",what=\"write\"} ",
                            "kv_disk_alive_bytes{cache=\"kv\",disk=\"0\"} 4096.0");
        }
    }

    @Test
    void givenBrokenRules_whenLookedFor_thenEachIsNamed() throws Exception {
        String scrape = """
                # TYPE kv_a gauge
                kv_a{quantile="0.5"} 1
                # HELP kv_b things
                # TYPE kv_b counter
                kv_b 1
                # HELP kv_wait_ms time
                # TYPE kv_wait_ms gauge
                kv_wait_ms 1
                # HELP kv_c_count things
                # TYPE kv_c_count gauge
                kv_c_count 1
                """;
        assertThat(MetricLint.violations(scrape))
                .contains(
                        "kv_a has no help text",
                        "kv_a is a gauge and has the label quantile",
                        "kv_b is a counter; counters, and they alone, end with _total",
                        "kv_wait_ms has an abbreviated unit",
                        "kv_c_count is a gauge and is called like a part of a histogram");
    }
}
