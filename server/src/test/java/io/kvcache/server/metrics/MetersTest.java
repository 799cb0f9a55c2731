package io.kvcache.server.metrics;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.tiers.metrics.Meters;
import io.micrometer.core.instrument.Tags;
import io.micrometer.prometheusmetrics.PrometheusConfig;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import java.util.concurrent.atomic.LongAdder;
import org.junit.jupiter.api.Test;

final class MetersTest {

    private final PrometheusMeterRegistry registry = new PrometheusMeterRegistry(PrometheusConfig.DEFAULT);

    @Test
    void givenMetersThatNothingElseRefersTo_whenGarbageWasCollected_thenTheyGoOn() {
        LongAdder number = new LongAdder();
        Meters<LongAdder> meters = new Meters<>(registry, Tags.of("tenant", "blue"), () -> number);
        meters.count("kv.counted", "Help.", LongAdder::sum);
        meters.gauge("kv.measured", "bytes", "Help.", LongAdder::sum);

        number.add(1);
        assertThat(registry.scrape()).contains("kv_counted_total{tenant=\"blue\"} 1.0");
        System.gc();
        number.add(1);

        assertThat(registry.scrape())
                .contains("# HELP kv_counted_total Help.")
                .contains("kv_counted_total{tenant=\"blue\"} 2.0")
                .contains("kv_measured_bytes{tenant=\"blue\"} 2.0");
    }
}
