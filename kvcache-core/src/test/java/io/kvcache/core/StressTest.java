package io.kvcache.core;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import io.kvcache.core.contract.Repetitions;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.openjdk.jcstress.Main;

/// Runs the classes named `…Stress` under jcstress, each in a JVM of its own, for some seconds.
///
/// All compilation modes, for a minute or two, are what `org.openjdk.jcstress.Main -t io.kvcache` does with the test
/// class path of this module. What must never be seen is an [org.openjdk.jcstress.annotations.Outcome] in each class.
@Tag("slow")
final class StressTest {

    private static final int TESTS = 5;
    private static final long TIMEOUT_SECONDS = 300;

    @TempDir
    private Path folder;

    @Test
    void givenReadersWithoutALock_whenStressed_thenNoForbiddenOutcome() throws IOException, InterruptedException {
        assumeThat(Runtime.getRuntime().availableProcessors())
                .as("cores, of which two threads need one each")
                .isGreaterThan(1);
        File log = folder.resolve("log").toFile();
        Process process = command()
                .directory(folder.toFile())
                .redirectErrorStream(true)
                .redirectOutput(log)
                .start();
        try {
            assertThat(process.waitFor(TIMEOUT_SECONDS, TimeUnit.SECONDS))
                    .as("ended")
                    .isTrue();
        } finally {
            process.destroyForcibly();
        }
        String said = Files.readString(log.toPath());
        assertThat(said)
                .contains(TESTS + " planned; " + TESTS + " passed, 0 failed, 0 soft errs, 0 hard errs")
                .doesNotContain("FAILED");
    }

    private static ProcessBuilder command() {
        return new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-cp",
                System.getProperty("java.class.path"),
                Main.class.getName(),
                "-t",
                "io.kvcache",
                "-f",
                "1",
                "-fsm",
                "1",
                "-iters",
                Integer.toString(Repetitions.usualOrFull(1, 5)),
                "-time",
                Integer.toString(Repetitions.usualOrFull(100, 500)),
                "-sc",
                "false",
                "-af",
                "NONE",
                "-jvmArgs",
                "-XX:+UseSerialGC -Xmx512m",
                "-v");
    }
}
