package io.kvcache.server.log;

import io.kvcache.core.spi.Clock;
import java.time.Duration;

/// Bounds how many lines of one kind the log gets in a time, and counts those it did not get.
///
/// **Threads.** Any.
public final class LogRateLimiter {

    /// The answer of [#tryAcquire] for a line that may not be logged.
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

    /// Takes the place of one more line.
    ///
    /// @return how many lines before it were not logged, or [#SUPPRESSED]
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

    /// Returns a note on the lines that were not logged before this one; empty when there are none.
    ///
    /// @param before as answered by [#tryAcquire]
    public static String suppressedNote(long before) {
        return before == 0 ? "" : " (" + before + " more before were not logged)";
    }
}
