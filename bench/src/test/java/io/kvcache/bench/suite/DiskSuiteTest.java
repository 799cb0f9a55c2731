package io.kvcache.bench.suite;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.bench.disk.DiskRun;
import io.kvcache.bench.disk.DiskRun.IoEngine;
import io.kvcache.bench.disk.DiskRun.StorageMedium;
import io.kvcache.bench.suite.BenchmarkSuite.BenchmarkSpec;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;

final class DiskSuiteTest {

    private final BenchmarkSuite suite = DiskSuite.suite();

    @Test
    void givenSuite_whenItsQuestionsAreNamed_thenNamesDifferAndFitTheirColumn() {
        List<String> names = suite.specs().stream().map(BenchmarkSpec::name).toList();
        assertThat(names).doesNotHaveDuplicates().allMatch(name -> name.length() <= 18);
    }

    @Test
    void givenRound_whenItsTrialsAreListed_thenOursComesBetweenTheTwoOfFio() {
        assertThat(suite.filterByName("read-1m")
                        .onMedia(Set.of(StorageMedium.DISK))
                        .diskRuns())
                .extracting(DiskRun::mover)
                .containsExactly(IoEngine.FIO_URING, IoEngine.DEVICE, IoEngine.FIO_URING);
    }

    @Test
    void givenOnboarding_whenItsTrialsAreListed_thenTheStoreIsHeldAgainstRawReadsOfTheSameRound() {
        assertThat(suite.filterByName("onboard-read-1m").diskRuns())
                .extracting(DiskRun::mover)
                .containsExactly(IoEngine.DEVICE_INTO_SLOTS, IoEngine.STORE);
        assertThat(suite.filterByName("onboard-disk-1m").diskRuns())
                .allMatch(diskRun -> diskRun.place() == StorageMedium.DISK)
                .extracting(DiskRun::mover)
                .containsExactly(IoEngine.DEVICE_INTO_SLOTS, IoEngine.STORE);
    }

    @Test
    void givenNoTmpfs_whenNarrowed_thenWhatNeedsOneIsLeftOut() {
        assertThat(suite.onMedia(Set.of(StorageMedium.DISK)).specs())
                .isNotEmpty()
                .noneMatch(benchmarkSpec -> benchmarkSpec.name().startsWith("memory-"))
                .noneMatch(benchmarkSpec -> benchmarkSpec.name().startsWith("denied-"));
        assertThat(suite.onMedia(Set.of(StorageMedium.values()))).isEqualTo(suite);
    }

    @Test
    void givenSuites_whenAsked_thenOnlyThatOfTheDiskMovesBytes() {
        assertThat(suite.needsFiles()).isTrue();
        assertThat(CoreSuite.suite().needsFiles()).isFalse();
    }
}
