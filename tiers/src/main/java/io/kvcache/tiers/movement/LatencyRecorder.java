package io.kvcache.tiers.movement;

import io.kvcache.core.stats.TierTransferStats;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.stream.IntStream;
import org.HdrHistogram.AtomicHistogram;

/// How long something took, in microseconds, to two digits.
///
/// **Threads.** One records, any reads.
final class LatencyRecorder {

    private static final long MAX_MICROS = TimeUnit.HOURS.toMicros(1);
    private static final long[] BOUNDS = TierTransferStats.Latency.BOUNDS_MICROS.stream()
            .mapToLong(Long::longValue)
            .toArray();

    private final AtomicHistogram micros = new AtomicHistogram(MAX_MICROS, 2);

    private final AtomicLong sum = new AtomicLong();
    private final AtomicLongArray bucketCounts = new AtomicLongArray(BOUNDS.length + 1);

    void record(long nanos) {
        long took = Math.clamp(TimeUnit.NANOSECONDS.toMicros(nanos), 0, MAX_MICROS);
        micros.recordValue(took);
        sum.addAndGet(took);
        int bucket = Arrays.binarySearch(BOUNDS, took);
        bucketCounts.incrementAndGet(bucket < 0 ? -bucket - 1 : bucket);
    }

    TierTransferStats.Latency summary() {
        return new TierTransferStats.Latency(
                micros.getTotalCount(),
                sum.get(),
                micros.getValueAtPercentile(50),
                micros.getValueAtPercentile(99),
                micros.getMaxValue(),
                IntStream.range(0, bucketCounts.length())
                        .mapToObj(bucketCounts::get)
                        .toList());
    }
}
