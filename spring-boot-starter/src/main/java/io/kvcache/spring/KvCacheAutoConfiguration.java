package io.kvcache.spring;

import io.kvcache.core.KvCache;
import io.kvcache.tiers.os.SystemClock;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.ssl.SslAutoConfiguration;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.boot.ssl.SslBundles;
import org.springframework.context.annotation.Bean;

/// The bean [KvCache], unless the application has one of its own. It is closed with the application.
@AutoConfiguration(after = SslAutoConfiguration.class)
@EnableConfigurationProperties(KvCacheProperties.class)
public final class KvCacheAutoConfiguration {

    /// For Spring.
    public KvCacheAutoConfiguration() {}

    @Bean(destroyMethod = "close")
    @ConditionalOnMissingBean(KvCache.class)
    KvCache kvCache(KvCacheProperties properties, ObjectProvider<SslBundles> sslBundles) {
        return new KvCacheFactory(properties, sslBundles.getIfAvailable(), SystemClock.INSTANCE).open();
    }
}
