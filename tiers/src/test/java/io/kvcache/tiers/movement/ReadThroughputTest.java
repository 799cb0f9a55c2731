package io.kvcache.tiers.movement;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.withinPercentage;

import io.kvcache.tiers.movement.LoadPump.ReadThroughput;
import org.junit.jupiter.api.Test;

final class ReadThroughputTest {

    private static final int MIB = 1 << 20;

    private final ReadThroughput pace = new ReadThroughput();
    private long now = 1;

    /// Reads of a MiB, all handed over at once and ended one after another.
    private void run(int reads, long fixedNanos, long nanosEach) {
        for (int i = 0; i < reads; i++) {
            pace.onReadStarted(i, now);
        }
        now += fixedNanos;
        for (int i = reads - 1; i >= 0; i--) {
            now += nanosEach;
            pace.onReadEnded(MIB, i, now);
        }
        now += 1_000_000; // a pause that is nobody's
    }

    @Test
    void givenFewRuns_whenAsked_thenNothingIsKnown() {
        run(3, 100, 200);
        run(3, 100, 200);
        assertThat(pace.estimateNanos(MIB)).isZero();
    }

    @Test
    void givenRunsOfSeveralLengths_whenAsked_thenTheFixedTimeCountsOnce() {
        for (int i = 0; i < 20; i++) {
            run(1 + i % 7, 100_000, 200_000);
        }
        assertThat(pace.estimateNanos(MIB)).isCloseTo(300_000, withinPercentage(1));
        assertThat(pace.estimateNanos(10L * MIB)).isCloseTo(2_100_000, withinPercentage(1));
    }

    @Test
    void givenRunsOfOneLength_whenAsked_thenAllTimeCountsByBytes() {
        for (int i = 0; i < 20; i++) {
            run(2, 100_000, 200_000);
        }
        assertThat(pace.estimateNanos(2L * MIB)).isCloseTo(500_000, withinPercentage(1));
        assertThat(pace.estimateNanos(4L * MIB)).isCloseTo(1_000_000, withinPercentage(1));
    }

    @Test
    void givenADiskThatBecomesSlower_whenReadOn_thenTheNewTimeCounts() {
        for (int i = 0; i < 50; i++) {
            run(1 + i % 7, 0, 100_000);
        }
        for (int i = 0; i < 200; i++) {
            run(1 + i % 7, 0, 900_000);
        }
        assertThat(pace.estimateNanos(MIB)).isCloseTo(900_000, withinPercentage(5));
    }

    @Test
    void givenReadsThatNeverPause_whenAsked_thenTheyCountAllTheSame() {
        pace.onReadStarted(0, now);
        for (int i = 0; i < 1000; i++) {
            pace.onReadStarted(1, now);
            now += 50_000;
            pace.onReadEnded(MIB, 1, now);
        }
        assertThat(pace.estimateNanos(MIB)).isCloseTo(50_000, withinPercentage(1));
    }
}
