package io.kvcache.server.metrics;

import java.util.Arrays;
import java.util.concurrent.atomic.LongAdder;

/// Counts durations by size, exactly from the first on, without a lock and without garbage.
///
/// The bounds go 1, 2, 5, 10 from 10 µs to 50 s: wide enough for a value of 256 MiB over a slow
/// network, and so few that each verb can have all of them in a scrape.
///
/// **Threads.** Any.
final class LatencyHistogram {

    private static final long NANOS_PER_MICRO = 1000;
    private static final long[] BOUNDS = bounds();

    private final LongAdder[] counts = new LongAdder[BOUNDS.length + 1];
    private final LongAdder sum = new LongAdder();

    LatencyHistogram() {
        Arrays.setAll(counts, _ -> new LongAdder());
    }

    private static long[] bounds() {
        long[] bounds = new long[21];
        long decade = 10 * NANOS_PER_MICRO;
        for (int i = 0; i < bounds.length; i += 3, decade *= 10) {
            bounds[i] = decade;
            bounds[i + 1] = 2 * decade;
            bounds[i + 2] = 5 * decade;
        }
        return bounds;
    }

    /// The bounds, in nanoseconds; each counts what is no longer.
    static long[] boundNanos() {
        return BOUNDS.clone();
    }

    void record(long nanos) {
        int place = Arrays.binarySearch(BOUNDS, nanos);
        counts[place < 0 ? -place - 1 : place].increment();
        sum.add(nanos);
    }

    /// How many are within each bound and not within the one before; the last are beyond all.
    long[] counts() {
        return Arrays.stream(counts).mapToLong(LongAdder::sum).toArray();
    }

    long sumNanos() {
        return sum.sum();
    }

    /// The bound that a share of all durations does not exceed; of durations beyond all bounds, the
    /// last one.
    ///
    /// @param counts as answered by [#counts]
    static long quantileNanos(long[] counts, double share) {
        long all = Arrays.stream(counts).sum();
        long wanted = (long) Math.ceil(all * share);
        long seen = 0;
        for (int i = 0; i < BOUNDS.length; i++) {
            seen += counts[i];
            if (seen >= wanted) {
                return BOUNDS[i];
            }
        }
        return BOUNDS[BOUNDS.length - 1];
    }
}
