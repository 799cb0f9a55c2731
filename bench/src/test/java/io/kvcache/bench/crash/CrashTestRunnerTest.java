package io.kvcache.bench.crash;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.bench.crash.CrashTestRunner.CrashRound;
import io.kvcache.bench.crash.StepCrashProcess.CrashStep;
import io.kvcache.core.contract.Repetitions;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Ten rounds; `./kvcache crash` runs two hundred.
@Tag("slow")
final class CrashTestRunnerTest {

    private static final long SEED = 1_000;
    private static final int ROUNDS = Repetitions.usualOrFull(3, 10);

    @TempDir
    private Path folder;

    @Test
    void givenProcessesKilledWhileTheyWrite_whenReopened_thenWhatWasFlushedIsThereAndNothingIsWrong()
            throws IOException {
        List<CrashRound> rounds = new ArrayList<>();
        boolean passed = new CrashTestRunner(folder, SEED, rounds::add).run(ROUNDS);
        assertThat(rounds).hasSize(ROUNDS).as("seed %d", SEED).allMatch(CrashRound::passed);
        assertThat(passed).isTrue();
        assertThat(rounds.stream().mapToLong(CrashRound::promised).sum()).isPositive();
        assertThat(folder).isEmptyDirectory();
    }

    @Test
    void givenASeed_whenItsStepsAreAskedForAgain_thenTheyAreTheSame() {
        assertThat(CrashStep.generate(SEED))
                .isEqualTo(CrashStep.generate(SEED))
                .isNotEqualTo(CrashStep.generate(SEED + 1));
    }
}
