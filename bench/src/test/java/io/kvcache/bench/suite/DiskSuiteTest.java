package io.kvcache.bench.suite;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.bench.disk.DiskRun;
import io.kvcache.bench.disk.IoEngine;
import io.kvcache.bench.disk.StorageMedium;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;

final class DiskSuiteTest {

    private final Suite suite = DiskSuite.suite();

    @Test
    void givenSuite_whenItsQuestionsAreNamed_thenNamesDifferAndFitTheirColumn() {
        List<String> names = suite.questions().stream().map(Question::name).toList();
        assertThat(names).doesNotHaveDuplicates().allMatch(name -> name.length() <= 18);
    }

    @Test
    void givenRound_whenItsTrialsAreListed_thenOursComesBetweenTheTwoOfFio() {
        assertThat(suite.filtered("read-1m").within(Set.of(StorageMedium.DISK)).trials())
                .extracting(DiskRun::mover)
                .containsExactly(IoEngine.FIO_URING, IoEngine.DEVICE, IoEngine.FIO_URING);
    }

    @Test
    void givenOnboarding_whenItsTrialsAreListed_thenTheStoreIsHeldAgainstRawReadsOfTheSameRound() {
        assertThat(suite.filtered("onboard-read-1m").trials())
                .extracting(DiskRun::mover)
                .containsExactly(IoEngine.DEVICE_INTO_SLOTS, IoEngine.STORE);
        assertThat(suite.filtered("onboard-disk-1m").trials())
                .allMatch(trial -> trial.place() == StorageMedium.DISK)
                .extracting(DiskRun::mover)
                .containsExactly(IoEngine.DEVICE_INTO_SLOTS, IoEngine.STORE);
    }

    @Test
    void givenNoTmpfs_whenNarrowed_thenWhatNeedsOneIsLeftOut() {
        assertThat(suite.within(Set.of(StorageMedium.DISK)).questions())
                .isNotEmpty()
                .noneMatch(question -> question.name().startsWith("memory-"))
                .noneMatch(question -> question.name().startsWith("denied-"));
        assertThat(suite.within(Set.of(StorageMedium.values()))).isEqualTo(suite);
    }

    @Test
    void givenSuites_whenAsked_thenOnlyThatOfTheDiskMovesBytes() {
        assertThat(suite.movesBytes()).isTrue();
        assertThat(CoreSuite.suite().movesBytes()).isFalse();
    }
}
