package io.kvcache.server.program;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

@EnabledOnOs(OS.LINUX)
@Timeout(120)
final class ProgramTest {

    private static final Duration LONG = Duration.ofSeconds(60);

    @TempDir
    private Path folder = Path.of("");

    private static List<String> shell(String script) {
        return List.of("sh", "-c", script);
    }

    @Test
    void givenAProgram_whenRun_thenItsOutputAndExitCodeAreAnswered() throws IOException {
        assertThat(Program.run(LONG, shell("echo one; echo two >&2; exit 3")))
                .isEqualTo(new Program.Output("one\n", 3));
        assertThat(Program.run(LONG, shell("true")).succeeded()).isTrue();
    }

    @Test
    void givenAProgramThatHangsWithAChildOnItsOutput_whenRun_thenTheLimitEndsBoth() throws IOException {
        Path child = folder.resolve("child");
        Program.Output output = null;
        for (int seconds = 1; !Files.exists(child) && seconds < 100; seconds *= 4) { // a busy machine starts it later
            output = Program.run(
                    Duration.ofSeconds(seconds), shell("sleep 3600 & echo begun; echo $! >" + child + "; sleep 3600"));
        }

        assertThat(output).isEqualTo(new Program.Output("begun\n", Program.Output.UNENDED));
        long pid = Long.parseLong(Files.readString(child).strip());
        ProcessHandle.of(pid).ifPresent(left -> left.onExit().join());
    }

    @Test
    void givenAProgramThatEndsAndLeavesAChildOnItsOutput_whenRun_thenTheChildIsNotWaitedFor() throws IOException {
        Program.Output output = Program.run(LONG, shell("sleep 100 & echo done"));

        assertThat(output).isEqualTo(new Program.Output("done\n", 0));
    }

    @Test
    void givenNoSuchProgram_whenRun_thenItIsNamed() {
        assertThatThrownBy(() -> Program.run(LONG, List.of("/nowhere/program")))
                .isInstanceOf(IOException.class)
                .hasMessageContaining("/nowhere/program");
    }
}
