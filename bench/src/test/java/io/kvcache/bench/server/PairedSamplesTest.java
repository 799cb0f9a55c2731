package io.kvcache.bench.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import io.kvcache.bench.server.PairedSamples.MetricSpec;
import io.kvcache.bench.suite.BenchmarkSuite.BenchResult;
import io.kvcache.bench.suite.Threshold;
import java.util.List;
import org.junit.jupiter.api.Test;

class PairedSamplesTest {

    @Test
    void givenRounds_whenAnswered_thenMediansAndTheMedianOfTheRoundsOwnRatios() {
        PairedSamples pairedSamples = new PairedSamples();
        pairedSamples.add(10, 20); // 0.5
        pairedSamples.add(30, 10); // 3
        pairedSamples.add(20, 25); // 0.8
        BenchResult benchResult = pairedSamples.toResult(
                new MetricSpec("name", "text", "GB/s"), "Redis", new Threshold.RatioAtLeast(0.9));
        assertThat(benchResult.value()).isEqualTo(20);
        assertThat(benchResult.referenceValue()).isEqualTo(20);
        assertThat(benchResult.ratio()).isEqualTo(0.8);
        assertThat(benchResult.runs()).isEqualTo(3);
        assertThat(benchResult.isWithinThreshold()).isFalse();
    }

    @Test
    void givenRatios_whenAveraged_thenHalfAndDoubleCancelOut() {
        assertThat(PairedSamples.geometricMean(List.of(0.5, 2.0, 1.0))).isEqualTo(1.0, within(1e-9));
    }
}
