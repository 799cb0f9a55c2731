package io.kvcache.server.metrics;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.server.metrics.RequestLatencies.LatencyHistogram;
import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.Test;

final class LatencyHistogramTest {

    @Test
    void givenDurations_whenRecorded_thenEachIsCountedInTheFirstBucketThatTakesIt() {
        long[] bounds = LatencyHistogram.BOUNDS;
        assertThat(bounds)
                .isSorted()
                .hasSize(21)
                .startsWith(10_000, 20_000, 50_000)
                .endsWith(50_000_000_000L);
        LatencyHistogram histogram = new LatencyHistogram();
        histogram.record(0);
        histogram.record(10_000);
        histogram.record(10_001);
        histogram.record(50_000_000_000L);
        histogram.record(50_000_000_001L);
        long[] expected = new long[22];
        expected[0] = 2;
        expected[1] = 1;
        expected[20] = 1;
        expected[21] = 1;
        assertThat(histogram.counts()).isEqualTo(expected);
        assertThat(histogram.sumNanos()).isEqualTo(100_000_020_002L);
    }

    @Test
    void givenManyDurations_whenAskedForQuantiles_thenTheyAreTheBoundsAboveTheTrueOnes() {
        Random random = new Random(5);
        LatencyHistogram histogram = new LatencyHistogram();
        long[] all = new long[10_000];
        Arrays.setAll(all, _ -> (long) Math.exp(9 + 15 * random.nextDouble()));
        Arrays.stream(all).forEach(histogram::record);
        Arrays.sort(all);
        for (double share : new double[] {0.01, 0.5, 0.9, 0.99, 1}) {
            long exact = all[(int) Math.ceil(share * all.length) - 1];
            long told = LatencyHistogram.quantileNanos(histogram.counts(), share);
            assertThat(told).isEqualTo(boundAbove(exact));
        }
    }

    private static long boundAbove(long nanos) {
        return Arrays.stream(LatencyHistogram.BOUNDS)
                .filter(bound -> bound >= nanos)
                .findFirst()
                .orElseThrow();
    }
}
