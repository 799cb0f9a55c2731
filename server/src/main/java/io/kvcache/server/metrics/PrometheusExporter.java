package io.kvcache.server.metrics;

import io.kvcache.core.stats.TierTransferStats;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.tiers.metrics.KvCacheMetrics;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.binder.MeterBinder;
import io.micrometer.core.instrument.config.MeterFilter;
import io.micrometer.prometheusmetrics.PrometheusConfig;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import io.prometheus.metrics.model.registry.Collector;
import io.prometheus.metrics.model.snapshots.ClassicHistogramBuckets;
import io.prometheus.metrics.model.snapshots.HistogramSnapshot;
import io.prometheus.metrics.model.snapshots.Labels;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.Supplier;
import java.util.stream.DoubleStream;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// All meters as Prometheus reads them, where [DiskLatencyMetrics] has the disks' times as histograms. Made when first
/// asked for, so that a start does not wait for it.
public final class PrometheusExporter implements Supplier<String> {

    /// Media type of the text.
    public static final String CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8";

    private static final double MICROS = 1e6;
    private static final double[] BOUNDS = DoubleStream.concat(
                    TierTransferStats.Latency.BOUNDS_MICROS.stream().mapToDouble(micros -> micros / MICROS),
                    DoubleStream.of(Double.POSITIVE_INFINITY))
            .toArray();

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
            if (!cache.diskStats().isEmpty()) {
                registerHistogram(
                        registry,
                        "kv_disk_latency_seconds",
                        "Time from the request to its outcome, of reads and writes of the disk.",
                        this::collect);
            }
        }

        private void collect(HistogramPoints points) {
            List<TierTransferStats> disks = cache.diskStats();
            for (int disk = 0; disk < disks.size(); disk++) {
                add(points, disk, "load", disks.get(disk).readLatency());
                add(points, disk, "write", disks.get(disk).writeLatency());
            }
        }

        private void add(HistogramPoints points, int disk, String what, TierTransferStats.Latency latency) {
            points.add(
                    Labels.of("cache", name, "disk", Integer.toString(disk), "what", what),
                    latency.within().stream(),
                    latency.sumMicros() / MICROS);
        }
    }

    /// Takes the series of a histogram.
    interface HistogramPoints {

        /// Adds one series.
        ///
        /// @param counts of durations in each bucket of [TierTransferStats.Latency#BOUNDS_MICROS], and beyond
        void add(Labels labels, Stream<Long> counts, double sumSeconds);
    }

    /// Has a Prometheus registry ask for a histogram of durations; another kind of registry gets nothing.
    ///
    /// @param points gives all series, at each reading
    static void registerHistogram(MeterRegistry registry, String name, String help, Consumer<HistogramPoints> points) {
        if (registry instanceof PrometheusMeterRegistry prometheus) {
            Collector collector = () -> {
                HistogramSnapshot.Builder all =
                        HistogramSnapshot.builder().name(name).help(help);
                points.accept((labels, counts, sumSeconds) ->
                        all.dataPoint(HistogramSnapshot.HistogramDataPointSnapshot.builder()
                                .labels(labels)
                                .classicHistogramBuckets(
                                        ClassicHistogramBuckets.of(BOUNDS, counts.toArray(Number[]::new)))
                                .sum(sumSeconds)
                                .build()));
                return all.build();
            };
            prometheus.getPrometheusRegistry().register(collector);
        }
    }
}
