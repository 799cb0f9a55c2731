package io.kvcache.spring.actuate;

import io.kvcache.core.KvCache;
import io.kvcache.spring.KvCacheAutoConfiguration;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnSingleCandidate;
import org.springframework.boot.health.autoconfigure.contributor.ConditionalOnEnabledHealthIndicator;
import org.springframework.boot.health.contributor.HealthIndicator;
import org.springframework.context.annotation.Bean;

/// The component `kvcache` of `/actuator/health`; `management.health.kvcache.enabled=false` leaves it out.
@AutoConfiguration(after = KvCacheAutoConfiguration.class)
@ConditionalOnClass({HealthIndicator.class, ConditionalOnEnabledHealthIndicator.class})
@ConditionalOnSingleCandidate(KvCache.class)
public final class KvCacheHealthAutoConfiguration {

    /// For Spring.
    public KvCacheHealthAutoConfiguration() {}

    /// Spring Boot makes the component's name of the bean's.
    @Bean("kvcacheHealthIndicator")
    @ConditionalOnMissingBean(name = "kvcacheHealthIndicator")
    @ConditionalOnEnabledHealthIndicator("kvcache")
    KvCacheHealthIndicator kvCacheHealthIndicator(KvCache cache) {
        return new KvCacheHealthIndicator(cache);
    }
}
