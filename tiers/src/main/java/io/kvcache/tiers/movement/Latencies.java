package io.kvcache.tiers.movement;

import java.util.concurrent.TimeUnit;
import org.HdrHistogram.AtomicHistogram;

/// How long something took, in microseconds, to two digits.
///
/// **Threads.** One records, any reads.
final class Latencies {

    private static final long LONGEST_MICROS = TimeUnit.HOURS.toMicros(1);

    private final AtomicHistogram micros = new AtomicHistogram(LONGEST_MICROS, 2);

    void record(long nanos) {
        micros.recordValue(Math.clamp(TimeUnit.NANOSECONDS.toMicros(nanos), 0, LONGEST_MICROS));
    }

    MoverStats.Latency summary() {
        return new MoverStats.Latency(
                micros.getTotalCount(),
                micros.getValueAtPercentile(50),
                micros.getValueAtPercentile(99),
                micros.getMaxValue());
    }
}
