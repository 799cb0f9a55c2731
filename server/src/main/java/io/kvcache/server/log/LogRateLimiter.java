package io.kvcache.server.log;

import io.kvcache.core.time.Clock;
import java.time.Duration;

/// Bounds how many lines of one kind the log gets in a time, and counts those it did not get.
///
/// **Threads.** Any.
public final class LogRateLimiter {

    /// What a line that may not be logged is answered.
    public static final long SUPPRESSED = -1;

    private final Clock clock;
    private final int maxLines;
    private final long spanNanos;
    private long windowStart;
    private int lines;
    private long suppressed;

    /// @param maxLines lines in each span
    public LogRateLimiter(Clock clock, int maxLines, Duration span) {
        this.clock = clock;
        this.maxLines = maxLines;
        spanNanos = span.toNanos();
        windowStart = clock.nanos();
    }

    /// Whether one more line may be logged.
    ///
    /// @return how many before it were not, or [#SUPPRESSED]
    public synchronized long tryAcquire() {
        long now = clock.nanos();
        if (now - windowStart >= spanNanos) {
            windowStart = now;
            lines = 0;
        }
        if (lines == maxLines) {
            suppressed++;
            return SUPPRESSED;
        }
        lines++;
        long before = suppressed;
        suppressed = 0;
        return before;
    }

    /// What a line says of those before it that were not logged; nothing when there are none.
    ///
    /// @param before as answered by [#tryAcquire]
    public static String suppressedNote(long before) {
        return before == 0 ? "" : " (" + before + " more before were not logged)";
    }
}
