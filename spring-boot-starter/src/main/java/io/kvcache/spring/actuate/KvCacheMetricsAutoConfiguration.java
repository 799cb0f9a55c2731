package io.kvcache.spring.actuate;

import io.kvcache.core.KvCache;
import io.kvcache.spring.KvCacheAutoConfiguration;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.tiers.metrics.KvCacheMetrics;
import io.kvcache.tiers.os.SystemClock;
import io.micrometer.core.instrument.binder.MeterBinder;
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
        return new KvCacheMetrics(
                cache instanceof TieredKvCache ? cache : new LastKnownStats(cache, SystemClock.INSTANCE), NAME);
    }
}
