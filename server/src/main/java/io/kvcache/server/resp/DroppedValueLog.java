package io.kvcache.server.resp;

import io.kvcache.core.time.Clock;
import io.kvcache.server.log.LogRateLimiter;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.time.Duration;

/// Logs values that were dropped although their client was answered `+OK`, and no more than some in ten seconds.
///
/// **Threads.** Any.
final class DroppedValueLog {

    private static final Logger LOG = System.getLogger(DroppedValueLog.class.getName());

    private static final int MAX_LINES = 5;
    private static final Duration WINDOW = Duration.ofSeconds(10);

    private final LogRateLimiter limit;

    DroppedValueLog(Clock clock) {
        limit = new LogRateLimiter(clock, MAX_LINES, WINDOW);
    }

    /// Logs one.
    ///
    /// @param refusal what another client would have been answered
    /// @param keyBytes size of its key
    /// @param maxBytes largest value that the keyspace takes
    void log(String refusal, int keyBytes, long maxBytes) {
        long unsaid = limit.tryAcquire();
        if (unsaid == LogRateLimiter.SUPPRESSED) {
            return;
        }
        LOG.log(
                Level.WARNING,
                "A SET was answered +OK and its value dropped, as the client may be LMCache's native one, which cannot"
                        + " read an error: " + refusal.substring(refusal.indexOf(' ') + 1) + "; the key has " + keyBytes
                        + " bytes, and a value may have " + maxBytes
                        + " (limits.value_bytes). kv_dropped_total and values_dropped_after_ok of INFO count these"
                        + LogRateLimiter.suppressedNote(unsaid));
    }
}
