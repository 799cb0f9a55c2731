package io.kvcache.bench.disk;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.util.Map;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;

final class TrialTest {

    private static long[] first(int count, Pattern.Order order) {
        return LongStream.generate(order::next).limit(count).toArray();
    }

    @Test
    void givenRegionWrites_whenOrdered_thenFromTheFrontToTheEndAndOverAgain() {
        assertThat(first(7, Pattern.REGION_WRITE.over(3))).containsExactly(0, 1, 2, 0, 1, 2, 0);
    }

    @Test
    void givenRandomReads_whenOrdered_thenAllOverTheFileAndTheSameEachTime() {
        long[] pieces = first(500, Pattern.RANDOM_READ.over(16));
        assertThat(first(500, Pattern.RANDOM_READ.over(16))).isEqualTo(pieces);
        assertThat(LongStream.of(pieces).distinct().sorted())
                .containsExactlyElementsOf(LongStream.range(0, 16).boxed().toList());
    }

    @Test
    void givenTrial_whenRunAgain_thenItIsAnotherOneOfTheSame() {
        Trial trial = Trial.of(Mover.FIO_URING, Place.DISK, Pattern.RANDOM_READ, 1 << 20);
        assertThat(trial.again()).isNotEqualTo(trial);
        assertThat(trial.again().describe()).isEqualTo("fio_uring random_read of 1 MiB, disk, again");
    }

    @Test
    void givenTraffic_whenRead_thenBytesByTimeAndTimeByBytes() {
        Traffic traffic = new Traffic(4_000_000_000L, 2, 0.1, 0, "");
        assertThat(traffic.gigabytesPerSecond()).isEqualTo(2);
        assertThat(traffic.cpuMillisPerGigabyte()).isCloseTo(25, within(1e-9));
    }

    @Test
    void givenThreadThatStartedAndOneThatEnded_whenCpuIsCompared_thenOnlyWhatWasAddedCounts() {
        ThreadCpu before = new ThreadCpu(Map.of("1", 5_000_000_000L, "2", 7_000_000_000L));
        ThreadCpu after = new ThreadCpu(Map.of("1", 5_500_000_000L, "3", 250_000_000L));
        assertThat(after.secondsSince(before)).isCloseTo(0.75, within(1e-9));
    }
}
