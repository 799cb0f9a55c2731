package io.kvcache.bench.suite;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import io.kvcache.bench.disk.AccessPattern;
import io.kvcache.bench.disk.DiskRun;
import io.kvcache.bench.disk.IoEngine;
import io.kvcache.bench.disk.StorageMedium;
import io.kvcache.bench.disk.TransferResult;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

final class ReadingsTest {

    private static final DiskRun OURS =
            DiskRun.of(IoEngine.DEVICE, StorageMedium.DISK, AccessPattern.RANDOM_READ, 1 << 20);
    private static final DiskRun FIO =
            DiskRun.of(IoEngine.FIO_URING, StorageMedium.DISK, AccessPattern.RANDOM_READ, 1 << 20);

    private final Readings readings = new Readings();

    private static Question question(Measure value, Measure against) {
        return new Question("name", "text", "GB/s", value, against, new Budget.RatioAtLeast(0.8));
    }

    private static Measure speed(DiskRun trial) {
        return new Measure.Moved("name", trial, TransferResult::gigabytesPerSecond);
    }

    private static TransferResult traffic(double gigabytes, String path) {
        return new TransferResult((long) (gigabytes * 1e9), 1, 0, 4, path);
    }

    private void addRound(double ours, double fio) {
        readings.add(FIO, traffic(fio, ""));
        readings.add(OURS, traffic(ours, "io_uring"));
    }

    @Test
    void givenDiskThatSwings_whenAnswered_thenTheRatioIsTheMedianOfTheRoundsOwn() {
        addRound(1, 2);
        addRound(9, 10);
        addRound(3, 3);
        Answer answer = readings.answer(question(speed(OURS), speed(FIO)));
        assertThat(answer.value()).isEqualTo(3);
        assertThat(answer.againstValue()).isEqualTo(3);
        assertThat(answer.ratio()).isCloseTo(0.9, within(1e-9));
        assertThat(answer.runs()).isEqualTo(3);
        assertThat(answer.ok()).isTrue();
    }

    @Test
    void givenWhatWasCountedOnce_whenAnswered_thenItStandsBesideEveryRound() {
        addRound(1, 2);
        addRound(3, 2);
        Measure inFlight = new Measure.Moved("on their way", OURS, TransferResult::inFlight);
        Answer answer = readings.answer(question(inFlight, new Measure.Counted("depth", () -> 8)));
        assertThat(answer.ratio()).isEqualTo(0.5);
        assertThat(answer.runs()).isEqualTo(2);
        assertThat(answer.ok()).isFalse();
    }

    @Test
    void givenPathThatChanged_whenAnswered_thenBothAreNamed() {
        readings.add(OURS, traffic(1, "io_uring"));
        readings.add(OURS, traffic(1, "8 threads"));
        readings.add(FIO, traffic(1, ""));
        readings.add(FIO, traffic(1, ""));
        assertThat(readings.answer(question(speed(OURS), speed(FIO))).path()).isEqualTo("io_uring / 8 threads");
        assertThat(readings.answer(question(speed(FIO), speed(FIO))).path()).isEmpty();
    }

    @ParameterizedTest
    @CsvSource({"1.30,true", "1.31,false", "0,true"})
    void givenRatioAtMost_whenHeldAgainst_thenOnlyWhatIsNotAboveMeetsIt(double ratio, boolean met) {
        Budget budget = new Budget.RatioAtMost(1.3);
        assertThat(budget.isMet(99, ratio)).isEqualTo(met);
        assertThat(budget.describe()).isEqualTo("ratio <= 1.30");
    }
}
