package io.kvcache.spring.actuate;

import io.kvcache.core.KvCache;
import io.kvcache.spring.KvCacheAutoConfiguration;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.tiers.metrics.DiskMetrics;
import io.kvcache.tiers.metrics.HintMetrics;
import io.kvcache.tiers.metrics.KvCacheMetrics;
import io.kvcache.tiers.metrics.PolicyMetrics;
import io.kvcache.tiers.os.SystemClock;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.binder.MeterBinder;
import java.util.List;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnSingleCandidate;
import org.springframework.context.annotation.Bean;

/// The cache's meters in all registries of the application, with the tag `cache` = `kv`. An embedded cache has meters
/// of its disks, hints and policy, too.
@AutoConfiguration(after = KvCacheAutoConfiguration.class)
@ConditionalOnClass(MeterBinder.class)
@ConditionalOnSingleCandidate(KvCache.class)
public final class KvCacheMetricsAutoConfiguration {

    private static final String NAME = "kv";

    /// For Spring.
    public KvCacheMetricsAutoConfiguration() {}

    @Bean
    @ConditionalOnMissingBean(name = "kvCacheMeterBinder")
    MeterBinder kvCacheMeterBinder(KvCache cache) {
        return switch (cache) {
            case TieredKvCache embedded ->
                new CacheMeters(List.of(
                        new KvCacheMetrics(embedded, NAME),
                        new DiskMetrics(embedded, NAME),
                        new HintMetrics(embedded, NAME),
                        new PolicyMetrics(embedded, NAME)));
            default ->
                new CacheMeters(List.of(new KvCacheMetrics(new LastKnownStats(cache, SystemClock.INSTANCE), NAME)));
        };
    }

    /// Several binders as one bean, which keeps alive what they read.
    private record CacheMeters(List<MeterBinder> binders) implements MeterBinder {

        @Override
        public void bindTo(MeterRegistry registry) {
            binders.forEach(each -> each.bindTo(registry));
        }
    }
}
