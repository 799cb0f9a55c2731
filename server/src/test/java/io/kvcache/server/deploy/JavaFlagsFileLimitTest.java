package io.kvcache.server.deploy;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.server.doctor.ProcessRunner;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;

/// The warning of the image and `./kvcache` for a process that may open few files (`.mvn/java-flags.sh`).
@EnabledOnOs(OS.LINUX)
final class JavaFlagsFileLimitTest {

    private static ProcessRunner.ProcessOutput flagsWith(int files) throws IOException {
        String script = "ulimit -n " + files + "; set -euo pipefail; source " + Path.of("..", ".mvn", "java-flags.sh")
                + "; java_flags serve; echo \"${flags[@]}\"";
        return ProcessRunner.run(
                Duration.ofMinutes(1), new ProcessBuilder(List.of("bash", "-c", script)).redirectErrorStream(true));
    }

    @Test
    void givenTooFewFiles_whenStarted_thenTheLimitTheNeedAndTheRemedyAreNamed() throws IOException {
        ProcessRunner.ProcessOutput refused = flagsWith(64);

        assertThat(refused.exitCode()).isEqualTo(1);
        assertThat(refused.text())
                .contains("may open 64 files (ulimit -Hn)", "takes 256 and up", "LimitNOFILE=65536")
                .hasLineCount(1);
        assertThat(flagsWith(256).text()).startsWith("--enable-native-access");
    }
}
