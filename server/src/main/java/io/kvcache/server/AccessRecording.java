package io.kvcache.server;

import io.kvcache.core.time.Clock;
import io.kvcache.server.config.ServerConfig;
import io.kvcache.server.trace.TraceCapture;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.tiers.use.LruHitRatioEstimator;
import java.io.IOException;
import org.jspecify.annotations.Nullable;

/// Listeners to all uses of the store: always the miss-ratio curve, and a trace if the settings name one.
///
/// **Threads.** Any; [#tick] one at a time.
final class AccessRecording implements AutoCloseable {

    private final TieredKvCache cache;
    private final LruHitRatioEstimator memory;
    private final @Nullable TraceCapture trace;

    private AccessRecording(TieredKvCache cache, LruHitRatioEstimator memory, @Nullable TraceCapture trace) {
        this.cache = cache;
        this.memory = memory;
        this.trace = trace;
    }

    /// Listens from now on.
    ///
    /// @throws IOException that names the file of the trace when it cannot be written
    static AccessRecording open(TieredKvCache cache, Clock clock, ServerConfig config) throws IOException {
        LruHitRatioEstimator memory = LruHitRatioEstimator.of(cache);
        if (config.trace().file() == null) {
            return new AccessRecording(cache, memory, null);
        }
        StoragePreflight.requireTraceApart(config);
        TraceCapture trace =
                TraceCapture.start(clock, config.trace(), config.memory().hostBytes());
        cache.addAccessListener(trace);
        return new AccessRecording(cache, memory, trace);
    }

    /// The store that is listened to.
    TieredKvCache cache() {
        return cache;
    }

    void tick() {
        memory.drain();
    }

    /// Returns the estimated hit ratio for other memory sizes.
    LruHitRatioEstimator.Report missRatioCurve() {
        return memory.report();
    }

    /// How the trace goes, or null when there is none.
    TraceCapture.@Nullable Stats traceStats() {
        return trace == null ? null : trace.stats();
    }

    @Override
    public void close() {
        if (trace != null) {
            trace.close();
        }
    }
}
