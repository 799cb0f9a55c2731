package io.kvcache.server.metrics;

import io.kvcache.tiers.TieredKvCache;
import io.kvcache.tiers.metrics.KvCacheMetrics;
import io.kvcache.tiers.movement.TierTransferStats;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.binder.MeterBinder;
import io.micrometer.core.instrument.config.MeterFilter;
import io.micrometer.prometheusmetrics.PrometheusConfig;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import io.prometheus.metrics.model.registry.Collector;
import io.prometheus.metrics.model.snapshots.ClassicHistogramBuckets;
import io.prometheus.metrics.model.snapshots.HistogramSnapshot;
import io.prometheus.metrics.model.snapshots.Labels;
import io.prometheus.metrics.model.snapshots.MetricSnapshot;
import java.util.List;
import java.util.function.Supplier;
import java.util.stream.DoubleStream;
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
            known.config().meterFilter(MeterFilter.deny(id -> id.getName().equals(KvCacheMetrics.DISK_LATENCY)));
            for (MeterBinder binder : binders) {
                binder.bindTo(known);
            }
            registry = known;
        }
        return known.scrape();
    }

    /// How long reads and writes of the disks take, as a histogram in Prometheus' text, of which any quantile of any
    /// time can be made. It is in place of the meter [io.kvcache.tiers.metrics.KvCacheMetrics#DISK_LATENCY].
    ///
    /// | meter | tags | what |
    /// |---|---|---|
    /// | `kv_disk_latency_seconds` | `disk`, `what` load or write | from the request to its outcome |
    public static final class DiskLatencyMetrics implements MeterBinder {

        private static final double MICROS = 1e6;
        private static final double[] BOUNDS = DoubleStream.concat(
                        TierTransferStats.Latency.BOUNDS_MICROS.stream().mapToDouble(micros -> micros / MICROS),
                        DoubleStream.of(Double.POSITIVE_INFINITY))
                .toArray();

        private final TieredKvCache cache;
        private final String name;

        /// @param name value of the tag `cache`
        public DiskLatencyMetrics(TieredKvCache cache, String name) {
            this.cache = cache;
            this.name = name;
        }

        /// Adds the histogram to a Prometheus registry; another kind of registry gets nothing.
        @Override
        public void bindTo(MeterRegistry registry) {
            if (registry instanceof PrometheusMeterRegistry prometheus
                    && !cache.diskStats().isEmpty()) {
                Collector collector = this::collect;
                prometheus.getPrometheusRegistry().register(collector);
            }
        }

        private MetricSnapshot collect() {
            HistogramSnapshot.Builder all = HistogramSnapshot.builder()
                    .name("kv_disk_latency_seconds")
                    .help("Time from the request to its outcome, of reads and writes of the disk.");
            List<TierTransferStats> disks = cache.diskStats();
            for (int disk = 0; disk < disks.size(); disk++) {
                all.dataPoint(point(disk, "load", disks.get(disk).readLatency()));
                all.dataPoint(point(disk, "write", disks.get(disk).writeLatency()));
            }
            return all.build();
        }

        private HistogramSnapshot.HistogramDataPointSnapshot point(
                int disk, String what, TierTransferStats.Latency latency) {
            return HistogramSnapshot.HistogramDataPointSnapshot.builder()
                    .labels(Labels.of("cache", name, "disk", Integer.toString(disk), "what", what))
                    .classicHistogramBuckets(
                            ClassicHistogramBuckets.of(BOUNDS, latency.within().toArray(Number[]::new)))
                    .sum(latency.sumMicros() / MICROS)
                    .build();
        }
    }
}
