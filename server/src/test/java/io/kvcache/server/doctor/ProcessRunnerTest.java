package io.kvcache.server.doctor;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

@EnabledOnOs(OS.LINUX)
@Timeout(120)
@Tag("slow")
final class ProcessRunnerTest {

    private static final Duration LONG = Duration.ofSeconds(60);

    @TempDir
    private Path folder = Path.of("");

    private static List<String> shell(String script) {
        return List.of("sh", "-c", script);
    }

    @Test
    void givenAProgram_whenRun_thenItsOutputAndExitCodeAreAnswered() throws IOException {
        assertThat(ProcessRunner.run(LONG, shell("echo one; echo two >&2; exit 3")))
                .isEqualTo(new ProcessRunner.ProcessOutput("one\n", 3));
        assertThat(ProcessRunner.run(LONG, shell("true")).isSuccessful()).isTrue();
    }

    @Test
    void givenAProgramThatHangsWithAChildOnItsOutput_whenRun_thenTheLimitEndsBoth() throws IOException {
        Path child = folder.resolve("child");
        ProcessRunner.ProcessOutput output = null;
        for (int seconds = 1; !Files.exists(child) && seconds < 100; seconds *= 4) { // a busy machine starts it later
            output = ProcessRunner.run(
                    Duration.ofSeconds(seconds), shell("sleep 3600 & echo begun; echo $! >" + child + "; sleep 3600"));
        }

        assertThat(output)
                .isEqualTo(new ProcessRunner.ProcessOutput("begun\n", ProcessRunner.ProcessOutput.NO_EXIT_CODE));
        long pid = Long.parseLong(Files.readString(child).strip());
        ProcessHandle.of(pid).ifPresent(left -> left.onExit().join());
    }

    @Test
    void givenAProgramThatEndsAndLeavesAChildOnItsOutput_whenRun_thenTheChildIsNotWaitedFor() throws IOException {
        ProcessRunner.ProcessOutput output = ProcessRunner.run(LONG, shell("sleep 100 & echo done"));

        assertThat(output).isEqualTo(new ProcessRunner.ProcessOutput("done\n", 0));
    }

    @Test
    void givenNoSuchProgram_whenRun_thenItIsNamed() {
        assertThatThrownBy(() -> ProcessRunner.run(LONG, List.of("/nowhere/program")))
                .isInstanceOf(IOException.class)
                .hasMessageContaining("/nowhere/program");
    }
}
