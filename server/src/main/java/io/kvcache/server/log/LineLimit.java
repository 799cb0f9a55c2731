package io.kvcache.server.log;

import io.kvcache.core.Clock;
import java.time.Duration;

/// Bounds how many lines of one kind the log gets in a time, and counts those it did not get.
///
/// **Threads.** Any.
public final class LineLimit {

    /// What a line that may not be logged is answered.
    public static final long TOO_MANY = -1;

    private final Clock clock;
    private final int most;
    private final long spanNanos;
    private long began;
    private int lines;
    private long left;

    /// @param most lines in each span
    public LineLimit(Clock clock, int most, Duration span) {
        this.clock = clock;
        this.most = most;
        spanNanos = span.toNanos();
        began = clock.nanos();
    }

    /// Whether one more line may be logged.
    ///
    /// @return how many before it were not, or [#TOO_MANY]
    public synchronized long take() {
        long now = clock.nanos();
        if (now - began >= spanNanos) {
            began = now;
            lines = 0;
        }
        if (lines == most) {
            left++;
            return TOO_MANY;
        }
        lines++;
        long before = left;
        left = 0;
        return before;
    }

    /// What a line says of those before it that were not logged; nothing when there are none.
    ///
    /// @param before as answered by [#take]
    public static String unsaid(long before) {
        return before == 0 ? "" : " (" + before + " more before were not logged)";
    }
}
