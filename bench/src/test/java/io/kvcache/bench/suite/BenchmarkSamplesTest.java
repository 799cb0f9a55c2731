package io.kvcache.bench.suite;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import io.kvcache.bench.disk.DiskRun;
import io.kvcache.bench.disk.DiskRun.AccessPattern;
import io.kvcache.bench.disk.DiskRun.IoEngine;
import io.kvcache.bench.disk.DiskRun.StorageMedium;
import io.kvcache.bench.disk.DiskRun.TransferResult;
import io.kvcache.bench.suite.BenchmarkSuite.BenchResult;
import io.kvcache.bench.suite.BenchmarkSuite.BenchmarkSpec;
import io.kvcache.bench.suite.SuiteRunner.BenchmarkSamples;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

final class BenchmarkSamplesTest {

    private static final DiskRun OURS =
            DiskRun.of(IoEngine.DEVICE, StorageMedium.DISK, AccessPattern.RANDOM_READ, 1 << 20);
    private static final DiskRun FIO =
            DiskRun.of(IoEngine.FIO_URING, StorageMedium.DISK, AccessPattern.RANDOM_READ, 1 << 20);

    private final BenchmarkSamples benchmarkSamples = new BenchmarkSamples();

    private static BenchmarkSpec question(MetricSource value, MetricSource against) {
        return new BenchmarkSpec("name", "text", "GB/s", value, against, new Threshold.RatioAtLeast(0.8));
    }

    private static MetricSource speed(DiskRun diskRun) {
        return new MetricSource.TransferMetric("name", diskRun, TransferResult::gigabytesPerSecond);
    }

    private static TransferResult traffic(double gigabytes, String path) {
        return new TransferResult((long) (gigabytes * 1e9), 1, 0, 4, path);
    }

    private void addRound(double ours, double fio) {
        benchmarkSamples.add(FIO, traffic(fio, ""));
        benchmarkSamples.add(OURS, traffic(ours, "io_uring"));
    }

    @Test
    void givenDiskThatSwings_whenAnswered_thenTheRatioIsTheMedianOfTheRoundsOwn() {
        addRound(1, 2);
        addRound(9, 10);
        addRound(3, 3);
        BenchResult benchResult = benchmarkSamples.toResult(question(speed(OURS), speed(FIO)));
        assertThat(benchResult.value()).isEqualTo(3);
        assertThat(benchResult.referenceValue()).isEqualTo(3);
        assertThat(benchResult.ratio()).isCloseTo(0.9, within(1e-9));
        assertThat(benchResult.runs()).isEqualTo(3);
        assertThat(benchResult.isWithinThreshold()).isTrue();
    }

    @Test
    void givenWhatWasCountedOnce_whenAnswered_thenItStandsBesideEveryRound() {
        addRound(1, 2);
        addRound(3, 2);
        MetricSource inFlight = new MetricSource.TransferMetric("on their way", OURS, TransferResult::inFlight);
        BenchResult benchResult =
                benchmarkSamples.toResult(question(inFlight, new MetricSource.ConstantMetric("depth", () -> 8)));
        assertThat(benchResult.ratio()).isEqualTo(0.5);
        assertThat(benchResult.runs()).isEqualTo(2);
        assertThat(benchResult.isWithinThreshold()).isFalse();
    }

    @Test
    void givenPathThatChanged_whenAnswered_thenBothAreNamed() {
        benchmarkSamples.add(OURS, traffic(1, "io_uring"));
        benchmarkSamples.add(OURS, traffic(1, "8 threads"));
        benchmarkSamples.add(FIO, traffic(1, ""));
        benchmarkSamples.add(FIO, traffic(1, ""));
        assertThat(benchmarkSamples.toResult(question(speed(OURS), speed(FIO))).path())
                .isEqualTo("io_uring / 8 threads");
        assertThat(benchmarkSamples.toResult(question(speed(FIO), speed(FIO))).path())
                .isEmpty();
    }

    @ParameterizedTest
    @CsvSource({"1.30,true", "1.31,false", "0,true"})
    void givenRatioAtMost_whenHeldAgainst_thenOnlyWhatIsNotAboveMeetsIt(double ratio, boolean met) {
        Threshold threshold = new Threshold.RatioAtMost(1.3);
        assertThat(threshold.isMet(99, ratio)).isEqualTo(met);
        assertThat(threshold.describe()).isEqualTo("ratio <= 1.30");
    }
}
