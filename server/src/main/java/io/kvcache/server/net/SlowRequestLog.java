package io.kvcache.server.net;

import io.kvcache.core.spi.Clock;
import io.kvcache.server.log.LogRateLimiter;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.Locale;

/// Logs requests that take longer than a threshold, a line each, and no more than some in ten seconds.
///
/// **Threads.** Any.
public final class SlowRequestLog {

    private static final Logger LOG = System.getLogger(SlowRequestLog.class.getName());

    private static final int MAX_LINES = 20;
    private static final int KEPT = 200;
    private static final Duration WINDOW = Duration.ofSeconds(10);
    private static final double NANOS_PER_MILLI = 1e6;

    /// The threshold of a server that logs no slow requests.
    static final long NEVER = Long.MAX_VALUE;

    private final Duration threshold;
    private final long thresholdNanos;
    private final LogRateLimiter limit;
    private final InstantSource wall;
    private final Deque<SlowRequest> recent = new ArrayDeque<>();

    /// A request that took longer than the threshold.
    ///
    /// @param request protocol and verb, `resp get`
    /// @param tenant empty before the client has authenticated
    /// @param waitedMillis of its time, in which the server kept it waiting
    /// @param bytes that the client sent with it
    public record SlowRequest(
            Instant at,
            String request,
            String tenant,
            String address,
            double millis,
            double waitedMillis,
            long bytes) {}

    /// @param threshold zero for no log
    public SlowRequestLog(Duration threshold, Clock clock) {
        this(threshold, clock, InstantSource.system());
    }

    /// @param wall for the times of requests that are kept
    SlowRequestLog(Duration threshold, Clock clock, InstantSource wall) {
        this.wall = wall;
        this.threshold = threshold;
        thresholdNanos = threshold.isZero() ? NEVER : threshold.toNanos();
        limit = new LogRateLimiter(clock, MAX_LINES, WINDOW);
    }

    /// From when on a request is slow; [#NEVER] without a log.
    long thresholdNanos() {
        return thresholdNanos;
    }

    /// Returns the threshold; zero without a log.
    public Duration threshold() {
        return threshold;
    }

    /// Returns the last slow requests, newest first.
    public List<SlowRequest> recent() {
        synchronized (recent) {
            return List.copyOf(recent.reversed());
        }
    }

    private void keep(SlowRequest request) {
        synchronized (recent) {
            if (recent.size() == KEPT) {
                recent.removeFirst();
            }
            recent.addLast(request);
        }
    }

    /// Logs one.
    ///
    /// @param what protocol and verb, `resp get`
    /// @param waitedNanos of its time, in which the server kept it waiting
    /// @param bytes that the client sent with it, together with what it sent before it was answered
    void log(Connection connection, String what, long nanos, long waitedNanos, long bytes) {
        long unsaid = limit.tryAcquire();
        if (unsaid == LogRateLimiter.SUPPRESSED) {
            return;
        }
        String tenant = connection.clientInfo().tenant();
        double millis = nanos / NANOS_PER_MILLI;
        double waitedMillis = waitedNanos / NANOS_PER_MILLI;
        keep(new SlowRequest(wall.instant(), what, tenant, connection.address(), millis, waitedMillis, bytes));
        LOG.log(
                Level.WARNING,
                String.format(
                        Locale.ROOT,
                        "Slow request: %s took %.1f ms, %.1f ms of them waiting for a disk, another writer or a"
                                + " log-in; %d bytes came with it%s, from %s; log.slow is %d ms%s",
                        what,
                        millis,
                        waitedMillis,
                        bytes,
                        tenant.isEmpty() ? "" : ", tenant " + tenant,
                        connection.address(),
                        threshold.toMillis(),
                        LogRateLimiter.suppressedNote(unsaid)));
    }
}
