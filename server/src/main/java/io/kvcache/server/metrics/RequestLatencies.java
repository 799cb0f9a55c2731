package io.kvcache.server.metrics;

import io.kvcache.core.stats.TierTransferStats;
import io.kvcache.server.http.OperatorResources;
import io.kvcache.server.net.ConnectionRegistry.RequestTimer;
import io.kvcache.server.net.Protocol.ProtocolKind;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.binder.MeterBinder;
import io.prometheus.metrics.model.snapshots.Labels;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAdder;

/// How long requests take, by protocol (that of the transport is one) and verb: a histogram in Prometheus' text,
/// quantiles in the
/// statistics.
///
/// Not a Micrometer timer: a registry takes a tenth of a second to make, which a start does not wait
/// for, and a timer that is made later misses the first requests.
///
/// **Threads.** Any.
public final class RequestLatencies implements RequestTimer, MeterBinder {

    private static final double NANOS = 1e9;
    private final Map<ProtocolKind, ConcurrentMap<String, LatencyHistogram>> histograms =
            new EnumMap<>(ProtocolKind.class);

    private final ConcurrentMap<String, LatencyHistogram> transport = new ConcurrentHashMap<>();

    public RequestLatencies() {
        for (ProtocolKind each : ProtocolKind.values()) {
            histograms.put(each, new ConcurrentHashMap<>());
        }
    }

    /// Leaves nothing on the heap but for the first of its kind.
    @Override
    public void recordRequest(ProtocolKind protocol, String verb, long nanos) {
        record(Objects.requireNonNull(histograms.get(protocol)), verb, nanos);
    }

    /// Records a request of the transport, likewise.
    public void recordTransport(String message, long nanos) {
        record(transport, message, nanos);
    }

    private static void record(ConcurrentMap<String, LatencyHistogram> byVerb, String verb, long nanos) {
        LatencyHistogram known = byVerb.get(verb);
        LatencyHistogram histogram = known == null ? byVerb.computeIfAbsent(verb, _ -> new LatencyHistogram()) : known;
        histogram.record(nanos);
    }

    private interface Visitor {
        void kind(String protocol, String verb, LatencyHistogram histogram);
    }

    private void forEach(Visitor visitor) {
        histograms.forEach((protocol, byVerb) -> {
            String name = protocol.name().toLowerCase(Locale.ROOT);
            byVerb.forEach((verb, histogram) -> visitor.kind(name, verb, histogram));
        });
        transport.forEach((message, histogram) -> visitor.kind("transport", message, histogram));
    }

    /// What the statistics say of one kind of request.
    ///
    /// @param p50Micros that half of them do not exceed, as the upper end of a bucket
    /// @param p99Micros that 99 % do not exceed
    public record Summary(long count, long meanMicros, long p50Micros, long p99Micros) {}

    /// By protocol and verb, `resp get`.
    public Map<String, Summary> summaries() {
        Map<String, Summary> all = new TreeMap<>();
        forEach((protocol, verb, histogram) -> all.put(protocol + " " + verb, summary(histogram)));
        return all;
    }

    /// Counts of requests of all kinds by how long they took, for [#quantileMicros]; those for pages of operators are
    /// left out, as who looks at the server is none of its load.
    public long[] mergedCounts() {
        long[] merged = new LatencyHistogram().counts();
        forEach((_, verb, histogram) -> {
            if (OperatorResources.isRequest(verb)) {
                return;
            }
            long[] counts = histogram.counts();
            Arrays.setAll(merged, i -> merged[i] + counts[i]);
        });
        return merged;
    }

    /// Returns the microseconds that a share of requests does not exceed.
    ///
    /// @param counts as [#mergedCounts] answers them, or the difference of two such answers
    public static long quantileMicros(long[] counts, double share) {
        return LatencyHistogram.quantileNanos(counts, share) / 1000;
    }

    private static Summary summary(LatencyHistogram histogram) {
        long[] counts = histogram.counts();
        long count = Arrays.stream(counts).sum();
        return new Summary(
                count,
                count == 0 ? 0 : histogram.sumNanos() / count / 1000,
                LatencyHistogram.quantileNanos(counts, 0.5) / 1000,
                LatencyHistogram.quantileNanos(counts, 0.99) / 1000);
    }

    /// Adds `kv_request_seconds` to a Prometheus registry; another kind of registry gets nothing.
    @Override
    public void bindTo(MeterRegistry registry) {
        PrometheusExporter.registerHistogram(
                registry,
                "kv_request_seconds",
                "From the first byte of a request until its reply is handed to the network.",
                points -> forEach((protocol, verb, histogram) -> points.add(
                        Labels.of("protocol", protocol, "verb", verb),
                        Arrays.stream(histogram.counts()).boxed(),
                        histogram.sumNanos() / NANOS)));
    }

    /// Counts durations by size, exactly from the first on, without a lock and without garbage.
    ///
    /// The bounds are those of the disks, 1, 2, 5, 10 from 10 µs to 50 s: wide enough for a value of 256 MiB over a
    /// slow network, and few enough for each verb to have all of them in a scrape.
    ///
    /// **Threads.** Any.
    static final class LatencyHistogram {

        /// In nanoseconds; each counts what is no longer.
        static final long[] BOUNDS = TierTransferStats.Latency.BOUNDS_MICROS.stream()
                .mapToLong(TimeUnit.MICROSECONDS::toNanos)
                .toArray();

        private final LongAdder[] counts = new LongAdder[BOUNDS.length + 1];
        private final LongAdder sum = new LongAdder();

        LatencyHistogram() {
            Arrays.setAll(counts, _ -> new LongAdder());
        }

        void record(long nanos) {
            int place = Arrays.binarySearch(BOUNDS, nanos);
            counts[place < 0 ? -place - 1 : place].increment();
            sum.add(nanos);
        }

        /// How many are within each bound and not within the one before; the last are beyond all.
        long[] counts() {
            return Arrays.stream(counts).mapToLong(LongAdder::sum).toArray();
        }

        long sumNanos() {
            return sum.sum();
        }

        /// The bound that a share of all durations does not exceed; of durations beyond all bounds, the
        /// last one.
        ///
        /// @param counts as answered by [#counts]
        static long quantileNanos(long[] counts, double share) {
            long all = Arrays.stream(counts).sum();
            long wanted = (long) Math.ceil(all * share);
            long seen = 0;
            for (int i = 0; i < BOUNDS.length; i++) {
                seen += counts[i];
                if (seen >= wanted) {
                    return BOUNDS[i];
                }
            }
            return BOUNDS[BOUNDS.length - 1];
        }
    }
}
