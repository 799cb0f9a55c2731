package io.kvcache.tiers.movement;

import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.stream.IntStream;
import org.HdrHistogram.AtomicHistogram;

/// How long something took, in microseconds, to two digits.
///
/// **Threads.** One records, any reads.
final class Latencies {

    private static final long LONGEST_MICROS = TimeUnit.HOURS.toMicros(1);
    private static final long[] BOUNDS =
            MoverStats.Latency.BOUNDS_MICROS.stream().mapToLong(Long::longValue).toArray();

    private final AtomicHistogram micros = new AtomicHistogram(LONGEST_MICROS, 2);

    private final AtomicLong sum = new AtomicLong();
    private final AtomicLongArray within = new AtomicLongArray(BOUNDS.length + 1);

    void record(long nanos) {
        long took = Math.clamp(TimeUnit.NANOSECONDS.toMicros(nanos), 0, LONGEST_MICROS);
        micros.recordValue(took);
        sum.addAndGet(took);
        int place = Arrays.binarySearch(BOUNDS, took);
        within.incrementAndGet(place < 0 ? -place - 1 : place);
    }

    MoverStats.Latency summary() {
        return new MoverStats.Latency(
                micros.getTotalCount(),
                sum.get(),
                micros.getValueAtPercentile(50),
                micros.getValueAtPercentile(99),
                micros.getMaxValue(),
                IntStream.range(0, within.length()).mapToObj(within::get).toList());
    }
}
