package io.kvcache.bench.cli;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.bench.ChildProcess;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/// A run of `crash` that ends before its last round.
@Timeout(60)
final class CrashCommandTest {

    @TempDir
    private Path folder;

    @Test
    void givenARun_whenItIsInterrupted_thenItSaysHowFarItGotAndLeavesNoFile() throws Exception {
        Process run = new ProcessBuilder(
                        ChildProcess.java(),
                        "--enable-native-access=ALL-UNNAMED",
                        "-Djava.io.tmpdir=" + folder,
                        "-cp",
                        System.getProperty("java.class.path"),
                        Trials.class.getName(),
                        "crash",
                        "--rounds",
                        "1000")
                .redirectErrorStream(true)
                .start();
        while (tiers() == 0 && run.isAlive()) {
            TimeUnit.MILLISECONDS.sleep(10);
        }
        run.toHandle().destroy(); // SIGTERM; destroy() of the process would close its output too
        String said = new String(run.getInputStream().readAllBytes(), UTF_8);
        assertThat(run.waitFor()).as(said).isNotZero();
        assertThat(said).containsPattern("kvcache crash: interrupted after \\d+ of 1000 rounds; 0 failed");
        assertThat(folder).isEmptyDirectory();
    }

    @Test
    void givenAFolderThatIsNotThere_whenProcessesAreToBeKilled_thenRefusedAndNothingIsMade() {
        Path missing = folder.resolve("a").resolve("b");
        CommandRunner.CommandResult commandResult =
                CommandRunner.runTrial("crash", "--rounds", "1", "--dir", missing.toString());
        assertThat(commandResult.exitCode()).isEqualTo(2);
        assertThat(commandResult.err()).contains("--dir is '" + missing + "', must be: an existing directory");
        assertThat(missing.getParent()).doesNotExist();
    }

    private long tiers() throws IOException {
        try (Stream<Path> found = Files.find(folder, 3, (path, _) -> path.endsWith("tier"))) {
            return found.count();
        }
    }
}
