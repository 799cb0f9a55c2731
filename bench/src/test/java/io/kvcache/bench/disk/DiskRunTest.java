package io.kvcache.bench.disk;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import io.kvcache.bench.disk.DeviceIoRunner.ThreadCpuTimes;
import io.kvcache.bench.disk.DiskRun.AccessPattern;
import io.kvcache.bench.disk.DiskRun.IoEngine;
import io.kvcache.bench.disk.DiskRun.StorageMedium;
import io.kvcache.bench.disk.DiskRun.TransferResult;
import java.util.Map;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;

final class DiskRunTest {

    private static long[] first(int count, AccessPattern.OffsetSequence offsetSequence) {
        return LongStream.generate(offsetSequence::next).limit(count).toArray();
    }

    @Test
    void givenRegionWrites_whenOrdered_thenFromTheFrontToTheEndAndOverAgain() {
        assertThat(first(7, AccessPattern.REGION_WRITE.offsets(3))).containsExactly(0, 1, 2, 0, 1, 2, 0);
    }

    @Test
    void givenRandomReads_whenOrdered_thenAllOverTheFileAndTheSameEachTime() {
        long[] pieces = first(500, AccessPattern.RANDOM_READ.offsets(16));
        assertThat(first(500, AccessPattern.RANDOM_READ.offsets(16))).isEqualTo(pieces);
        assertThat(LongStream.of(pieces).distinct().sorted())
                .containsExactlyElementsOf(LongStream.range(0, 16).boxed().toList());
    }

    @Test
    void givenTrial_whenRunAgain_thenItIsAnotherOneOfTheSame() {
        DiskRun diskRun = DiskRun.of(IoEngine.FIO_URING, StorageMedium.DISK, AccessPattern.RANDOM_READ, 1 << 20);
        assertThat(diskRun.repeated()).isNotEqualTo(diskRun);
        assertThat(diskRun.repeated().describe()).isEqualTo("fio_uring random_read of 1 MiB, disk, again");
    }

    @Test
    void givenTraffic_whenRead_thenBytesByTimeAndTimeByBytes() {
        TransferResult transferResult = new TransferResult(4_000_000_000L, 2, 0.1, 0, "");
        assertThat(transferResult.gigabytesPerSecond()).isEqualTo(2);
        assertThat(transferResult.cpuMillisPerGigabyte()).isCloseTo(25, within(1e-9));
    }

    @Test
    void givenThreadThatStartedAndOneThatEnded_whenCpuIsCompared_thenOnlyWhatWasAddedCounts() {
        ThreadCpuTimes before = new ThreadCpuTimes(Map.of("1", 5_000_000_000L, "2", 7_000_000_000L));
        ThreadCpuTimes after = new ThreadCpuTimes(Map.of("1", 5_500_000_000L, "3", 250_000_000L));
        assertThat(after.secondsSince(before)).isCloseTo(0.75, within(1e-9));
    }
}
