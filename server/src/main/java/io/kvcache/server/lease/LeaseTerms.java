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
/// @param forNanos how long it holds
/// @param waitNanos how long the value may take to arrive from disk, if others may wait as long
record LeaseTerms(long forNanos, long waitNanos) {

    private static final Duration USUAL = Duration.ofSeconds(30);

    /// Longer than any client waits for a reply.
    private static final long MOST_WAIT_MILLIS = TimeUnit.MINUTES.toMillis(10);

    private static final Pattern SECONDS = Pattern.compile("\\d{1,9}(\\.\\d{1,9})?");
    private static final Pattern MILLIS = Pattern.compile("\\d{1,9}");
    private static final int QUOTED = 32;

    /// Reads `ttl_s`, seconds with or without a fraction, and `timeout_ms`, whole milliseconds.
    ///
    /// @param query of the request
    /// @param longest lease
    /// @throws IllegalArgumentException that says what is taken
    static LeaseTerms of(Map<String, List<String>> query, Duration longest) {
        return new LeaseTerms(forNanos(first(query, "ttl_s"), longest), waitNanos(first(query, "timeout_ms")));
    }

    private static @Nullable String first(Map<String, List<String>> query, String name) {
        List<String> given = query.get(name);
        return given == null ? null : given.getFirst();
    }

    private static long forNanos(@Nullable String text, Duration longest) {
        if (text == null) {
            return Math.min(USUAL.toNanos(), longest.toNanos());
        }
        long nanos = SECONDS.matcher(text).matches()
                ? new BigDecimal(text)
                        .movePointRight(9)
                        .setScale(0, RoundingMode.UNNECESSARY)
                        .longValueExact()
                : 0;
        if (nanos < 1 || nanos > longest.toNanos()) {
            throw new IllegalArgumentException("ttl_s is " + cut(text) + "; it takes seconds, more than 0 and at most "
                    + seconds(longest) + " (lease.longest)");
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
        if (millis < 0 || millis > MOST_WAIT_MILLIS) {
            throw new IllegalArgumentException(
                    "timeout_ms is " + cut(text) + "; it takes whole milliseconds, 0 to " + MOST_WAIT_MILLIS);
        }
        return TimeUnit.MILLISECONDS.toNanos(millis);
    }

    private static String cut(String text) {
        return text.length() <= QUOTED ? text : text.substring(0, QUOTED) + "…";
    }
}
