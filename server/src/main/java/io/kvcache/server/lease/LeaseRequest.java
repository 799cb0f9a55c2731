package io.kvcache.server.lease;

import java.math.BigDecimal;
import java.math.RoundingMode;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/// What a client asks of a lease.
///
/// A client reads as long as it believes to have the lease, which is what it asked for. So what is too long is refused
/// and not cut.
///
/// @param durationNanos how long it holds
/// @param waitNanos how long the value may take to arrive from disk, if others may wait as long
record LeaseRequest(long durationNanos, long waitNanos) {

    private static final Duration DEFAULT_DURATION = Duration.ofSeconds(30);

    /// Longer than any client waits for a reply.
    private static final long MAX_WAIT_MILLIS = TimeUnit.MINUTES.toMillis(10);

    private static final Pattern SECONDS = Pattern.compile("\\d{1,9}(\\.\\d{1,9})?");
    private static final Pattern MILLIS = Pattern.compile("\\d{1,9}");
    private static final int MAX_QUOTED_CHARS = 32;

    /// Reads `ttl_s`, seconds with or without a fraction, and `timeout_ms`, whole milliseconds.
    ///
    /// @param query of the request
    /// @param maxDuration lease
    /// @throws IllegalArgumentException that says what is taken
    static LeaseRequest of(Map<String, List<String>> query, Duration maxDuration) {
        return new LeaseRequest(
                durationNanos(firstParameter(query, "ttl_s"), maxDuration),
                waitNanos(firstParameter(query, "timeout_ms")));
    }

    private static @Nullable String firstParameter(Map<String, List<String>> query, String name) {
        List<String> given = query.get(name);
        return given == null ? null : given.getFirst();
    }

    private static long durationNanos(@Nullable String text, Duration maxDuration) {
        if (text == null) {
            return Math.min(DEFAULT_DURATION.toNanos(), maxDuration.toNanos());
        }
        long nanos = SECONDS.matcher(text).matches()
                ? new BigDecimal(text)
                        .movePointRight(9)
                        .setScale(0, RoundingMode.UNNECESSARY)
                        .longValueExact()
                : 0;
        if (nanos < 1 || nanos > maxDuration.toNanos()) {
            throw new IllegalArgumentException("ttl_s is " + truncate(text)
                    + "; it takes seconds, more than 0 and at most " + seconds(maxDuration) + " (lease.longest)");
        }
        return nanos;
    }

    private static String seconds(Duration time) {
        return BigDecimal.valueOf(time.toMillis(), 3).stripTrailingZeros().toPlainString();
    }

    private static long waitNanos(@Nullable String text) {
        if (text == null) {
            return Long.MAX_VALUE;
        }
        long millis = MILLIS.matcher(text).matches() ? Long.parseLong(text) : -1;
        if (millis < 0 || millis > MAX_WAIT_MILLIS) {
            throw new IllegalArgumentException(
                    "timeout_ms is " + truncate(text) + "; it takes whole milliseconds, 0 to " + MAX_WAIT_MILLIS);
        }
        return TimeUnit.MILLISECONDS.toNanos(millis);
    }

    private static String truncate(String text) {
        return text.length() <= MAX_QUOTED_CHARS ? text : text.substring(0, MAX_QUOTED_CHARS) + "…";
    }
}
