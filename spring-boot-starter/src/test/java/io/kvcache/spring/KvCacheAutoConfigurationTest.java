package io.kvcache.spring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.core.KvCache;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.tiers.TieredKvCache;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.context.properties.source.InvalidConfigurationPropertyValueException;
import org.springframework.boot.test.context.FilteredClassLoader;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;

final class KvCacheAutoConfigurationTest {

    @TempDir
    private Path folder;

    private final ApplicationContextRunner runner = new ApplicationContextRunner()
            .withConfiguration(AutoConfigurations.of(KvCacheAutoConfiguration.class))
            .withPropertyValues("kvcache.host-bytes=32MB");

    @Test
    void givenNoAddresses_whenStarted_thenTheBeanIsAnEmbeddedCache() {
        runner.run(context -> {
            KvCache cache = context.getBean(KvCache.class);
            assertThat(cache).isInstanceOf(TieredKvCache.class);
            assertThat(TestBlocks.put(cache)).isEqualTo(4);
            assertThat(TestBlocks.found(cache)).isEqualTo(4);
            assertThat(cache.stats().host().capacityBytes()).isEqualTo(32L << 20);
        });
    }

    @ParameterizedTest
    @CsvSource({"64MiB, 67108864", "64MB, 67108864", "64mib, 67108864", "1GiB, 1073741824", "67108864B, 67108864"})
    void givenASizeWithAUnit_whenStarted_thenTheCacheHasIt(String size, long bytes) {
        runner.withPropertyValues("kvcache.host-bytes=" + size)
                .run(context -> assertThat(
                                context.getBean(KvCache.class).stats().host().capacityBytes())
                        .isEqualTo(bytes));
    }

    @ParameterizedTest
    @ValueSource(strings = {"8", "8 gibs", "8G", "-1MiB", "9999999999999TiB", "1.5GiB"})
    void givenASizeThatIsNone_whenStarted_thenTheErrorNamesItAndTheUnits(String size) {
        runner.withPropertyValues("kvcache.host-bytes=" + size)
                .run(context -> assertThat(context)
                        .hasFailed()
                        .getFailure()
                        .rootCause()
                        .hasMessageContainingAll("'" + size + "'", "KiB, MiB, GiB and TiB", "as in 8GiB"));
    }

    @Test
    void givenAContext_whenClosed_thenTheCacheIsClosedToo() {
        KvCache[] cache = new KvCache[1];
        runner.run(context -> cache[0] = context.getBean(KvCache.class));
        assertThatThrownBy(() -> TestBlocks.put(Objects.requireNonNull(cache[0])))
                .isInstanceOf(IllegalStateException.class);
    }

    @Test
    void givenADisk_whenStartedAgain_thenItsBlocksAreFound() {
        ApplicationContextRunner disk = runner.withPropertyValues(
                "kvcache.disks[0].directory=" + folder.resolve("disk"),
                "kvcache.disks[0].bytes=256MB",
                "kvcache.policy=lru",
                "kvcache.admission=always");
        disk.run(context -> TestBlocks.put(context.getBean(KvCache.class)));
        disk.run(context -> {
            TieredKvCache cache = context.getBean(TieredKvCache.class);
            assertThat(cache.awaitRecovered(Duration.ofSeconds(20))).isTrue();
            assertThat(cache.diskStats()).hasSize(1);
            assertThat(cache.stats().records().live()).isEqualTo(4);
        });
    }

    @Test
    void givenABeanOfTheApplication_whenStarted_thenThereIsNoOther() {
        runner.withUserConfiguration(OwnCache.class).run(context -> {
            assertThat(context).hasSingleBean(KvCache.class).hasBean("own");
            assertThat(context.getBean(KvCache.class).stats().host().capacityBytes())
                    .isEqualTo(64L << 20);
        });
    }

    @Test
    void givenNoActuatorAndNoMicrometer_whenStarted_thenTheCacheIsThere() {
        runner.withConfiguration(AutoConfigurations.of(AllOfTheStarter.CLASSES))
                .withClassLoader(new FilteredClassLoader(
                        "org.springframework.boot.actuate", "org.springframework.boot.health", "io.micrometer"))
                .run(context -> assertThat(context)
                        .hasNotFailed()
                        .hasSingleBean(KvCache.class)
                        .doesNotHaveBean("kvcacheHealthIndicator")
                        .doesNotHaveBean("kvCacheMeterBinder")
                        .doesNotHaveBean("kvCacheEndpoint"));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "kvcache.host-bytes=1MB | kvcache.host-bytes | 33554432 and up",
                "kvcache.policy=guess | kvcache.policy | lru, importance",
                "kvcache.flush-on-close=48h | kvcache.flush-on-close | 0 to 24 hours",
                "kvcache.disks[0].bytes=1GB | kvcache.disks[0].directory | the path of a directory",
                "kvcache.disks[0].directory=/tmp/x | kvcache.disks[0].bytes | as in 100GiB",
                "kvcache.mode=remote | kvcache.addresses | 1 address and up",
                "kvcache.addresses=host | kvcache.addresses | host:port",
                "kvcache.addresses=a:1,host | kvcache.addresses | host:port",
            })
    void givenAWrongValue_whenStarted_thenTheErrorNamesThePropertyAndWhatIsAllowed(
            String property, String name, String allowed) {
        runner.withPropertyValues(property).run(context -> {
            assertThat(context).hasFailed();
            InvalidConfigurationPropertyValueException wrong = wrongValue(context.getStartupFailure());
            assertThat(wrong.getName()).isEqualTo(name);
            assertThat(wrong.getReason()).contains(allowed);
        });
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "kvcache.connections=65 | kvcache.connections | 1 to 64",
                "kvcache.request-timeout=1ms | kvcache.request-timeout | PT10M",
                "kvcache.memory-bytes=1KB | kvcache.memory-bytes | 1048576 and up",
                "kvcache.startup-wait=2h | kvcache.startup-wait | 0s to 1h",
                "kvcache.trust=/nothing/here.pem | kvcache.trust | PEM file",
                "kvcache.ssl-bundle=none | kvcache.ssl-bundle | no SSL bundles",
            })
    void givenAWrongValueOfAClient_whenStarted_thenTheErrorNamesThePropertyAndWhatIsAllowed(
            String property, String name, String allowed) {
        runner.withPropertyValues("kvcache.addresses=tls:127.0.0.1:1", property).run(context -> {
            assertThat(context).hasFailed();
            InvalidConfigurationPropertyValueException wrong = wrongValue(context.getStartupFailure());
            assertThat(wrong.getName()).isEqualTo(name);
            assertThat(wrong.getReason()).contains(allowed);
        });
    }

    private static InvalidConfigurationPropertyValueException wrongValue(@Nullable Throwable failure) {
        for (Throwable each = failure; each != null; each = each.getCause()) {
            if (each instanceof InvalidConfigurationPropertyValueException wrong) {
                return wrong;
            }
        }
        throw new AssertionError("no property is named", failure);
    }

    @Configuration(proxyBeanMethods = false)
    static class OwnCache {
        @Bean
        KvCache own() {
            return TieredKvCache.builder()
                    .hostBytes(64L << 20)
                    .policy(PolicyKind.LRU)
                    .build();
        }
    }
}
