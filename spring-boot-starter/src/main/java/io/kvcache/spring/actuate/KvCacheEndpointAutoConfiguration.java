package io.kvcache.spring.actuate;

import io.kvcache.core.KvCache;
import io.kvcache.spring.KvCacheAutoConfiguration;
import org.springframework.boot.actuate.autoconfigure.endpoint.condition.ConditionalOnAvailableEndpoint;
import org.springframework.boot.actuate.endpoint.annotation.Endpoint;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnSingleCandidate;
import org.springframework.context.annotation.Bean;

/// The endpoint `kvcache`, which `management.endpoints.web.exposure.include` exposes.
@AutoConfiguration(after = KvCacheAutoConfiguration.class)
@ConditionalOnClass({Endpoint.class, ConditionalOnAvailableEndpoint.class})
@ConditionalOnSingleCandidate(KvCache.class)
public final class KvCacheEndpointAutoConfiguration {

    /// For Spring.
    public KvCacheEndpointAutoConfiguration() {}

    @Bean
    @ConditionalOnMissingBean
    @ConditionalOnAvailableEndpoint(endpoint = KvCacheEndpoint.class)
    KvCacheEndpoint kvCacheEndpoint(KvCache cache) {
        return new KvCacheEndpoint(cache);
    }
}
