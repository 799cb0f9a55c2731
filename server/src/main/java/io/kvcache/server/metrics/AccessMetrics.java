package io.kvcache.server.metrics;

import io.kvcache.server.use.TraceCapture;
import io.kvcache.tiers.metrics.LruHitRatioMetrics;
import io.kvcache.tiers.use.LruHitRatioEstimator;
import io.micrometer.core.instrument.FunctionCounter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.binder.MeterBinder;
import java.util.function.Supplier;
import java.util.function.ToLongFunction;
import org.jspecify.annotations.Nullable;

/// Meters of what a store is used for: those of [LruHitRatioMetrics], and of the trace.
///
/// | meter | tags | what |
/// |---|---|---|
/// | `kv.trace.uses` | | uses written to the trace; these where there is one |
/// | `kv.trace.written` | | bytes of the trace |
/// | `kv.trace.dropped` | | uses that came faster than they could be written |
/// | `kv.trace.capturing` | | 1, or 0 when the file is full or cannot be written |
public final class AccessMetrics implements MeterBinder {

    private final Supplier<LruHitRatioEstimator.Report> memory;
    private final Supplier<TraceCapture.@Nullable Stats> trace;

    /// @param trace of null where there is none
    public AccessMetrics(Supplier<LruHitRatioEstimator.Report> memory, Supplier<TraceCapture.@Nullable Stats> trace) {
        this.memory = memory;
        this.trace = trace;
    }

    @Override
    public void bindTo(MeterRegistry registry) {
        new LruHitRatioMetrics(memory).bindTo(registry);
        if (trace.get() == null) {
            return;
        }
        Gauge.builder("kv.trace.capturing", () -> of(stats -> stats.capturing() ? 1 : 0))
                .register(registry);
        counter("kv.trace.uses", TraceCapture.Stats::uses).register(registry);
        counter("kv.trace.written", TraceCapture.Stats::bytes).baseUnit("bytes").register(registry);
        counter("kv.trace.dropped", TraceCapture.Stats::dropped).register(registry);
    }

    private FunctionCounter.Builder<AccessMetrics> counter(String name, ToLongFunction<TraceCapture.Stats> of) {
        return FunctionCounter.builder(name, this, metrics -> metrics.of(of));
    }

    private long of(ToLongFunction<TraceCapture.Stats> of) {
        TraceCapture.Stats stats = trace.get();
        return stats == null ? 0 : of.applyAsLong(stats);
    }
}
