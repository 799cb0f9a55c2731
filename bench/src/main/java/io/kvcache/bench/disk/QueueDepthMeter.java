package io.kvcache.bench.disk;

/// How many requests are on their way on average, weighted by time.
///
/// A request counts from when it was queued until its completion was delivered.
final class QueueDepthMeter {

    private final long startNanos;
    private long lastNanos;
    private long requestNanos;
    private int inFlight;

    QueueDepthMeter(long nowNanos) {
        startNanos = nowNanos;
        lastNanos = nowNanos;
    }

    void onQueued(long nowNanos) {
        advance(nowNanos);
        inFlight++;
    }

    void onCompleted(long nowNanos) {
        advance(nowNanos);
        inFlight--;
    }

    private void advance(long nowNanos) {
        requestNanos += (nowNanos - lastNanos) * inFlight;
        lastNanos = nowNanos;
    }

    /// Since the start, up to now.
    double averageDepth(long nowNanos) {
        advance(nowNanos);
        return nowNanos == startNanos ? 0 : (double) requestNanos / (nowNanos - startNanos);
    }
}
