package io.kvcache.server.metrics;

import io.kvcache.tiers.metrics.DiskMetrics;
import io.micrometer.core.instrument.binder.MeterBinder;
import io.micrometer.core.instrument.config.MeterFilter;
import io.micrometer.prometheusmetrics.PrometheusConfig;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import java.util.List;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// All meters as Prometheus reads them, where [DiskLatencyMetrics] has the disks' times as histograms. Made when first
/// asked for, so that a start does not wait for it.
public final class PrometheusExporter implements Supplier<String> {

    /// Media type of the text.
    public static final String CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8";

    private final List<MeterBinder> binders;
    private @Nullable PrometheusMeterRegistry registry;

    public PrometheusExporter(List<MeterBinder> binders) {
        this.binders = List.copyOf(binders);
    }

    @Override
    public synchronized String get() {
        PrometheusMeterRegistry known = registry;
        if (known == null) {
            known = new PrometheusMeterRegistry(PrometheusConfig.DEFAULT);
            known.config().meterFilter(new MeterDescriptions());
            known.config().meterFilter(MeterFilter.deny(id -> id.getName().equals(DiskMetrics.LATENCY)));
            for (MeterBinder binder : binders) {
                binder.bindTo(known);
            }
            registry = known;
        }
        return known.scrape();
    }
}
