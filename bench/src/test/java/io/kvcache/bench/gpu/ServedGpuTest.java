package io.kvcache.bench.gpu;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import io.kvcache.core.contract.TestJvm;
import io.kvcache.server.cli.Kvcache;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/// `serve --gpu` and engines in Python, each in a process of its own, over the stand-in for NVIDIA's driver that the
/// tests of gpu-bridge build.
@Tag("slow")
@Timeout(600)
final class ServedGpuTest {

    private static final Path STAND_IN = Path.of("..", "gpu-bridge", "target", "stand-in");
    private static final Path PYTHON = Path.of("../python").toAbsolutePath().normalize();
    private static final String INTERPRETER = System.getenv().getOrDefault("KVCACHE_TEST_PYTHON", "python3");
    private static final long TIMEOUT_SECONDS = 540;

    @TempDir
    private Path folder = Path.of("");

    @Test
    void givenAServerWithAGpu_whenEnginesMoveBlocks_thenTheirTestsPass() throws Exception {
        assumeThat(Files.exists(STAND_IN.resolve("libcuda.so.1")) || System.getenv("CI") != null)
                .as("the stand-in that the tests of gpu-bridge build")
                .isTrue();
        assumeThat(hasPython()).as("python3 of 3.9 or later").isTrue();
        Path standIn = STAND_IN.toRealPath();
        Path output = folder.resolve("output");
        ProcessBuilder builder = new ProcessBuilder(INTERPRETER, "-m", "unittest", "-v", "tests.test_gpu")
                .directory(PYTHON.toFile())
                .redirectErrorStream(true)
                .redirectOutput(output.toFile())
                .redirectInput(Path.of("/dev/null").toFile());
        builder.environment().put("KVCACHE_TEST_SERVER", server());
        builder.environment()
                .put("KVCACHE_TEST_CUDA", standIn.resolve("libcuda.so.1").toString());
        builder.environment().put("LD_LIBRARY_PATH", standIn.toString());
        builder.environment().put("PYTHONDONTWRITEBYTECODE", "1");
        Process process = builder.start();
        try {
            assertThat(process.waitFor(TIMEOUT_SECONDS, TimeUnit.SECONDS))
                    .as("the tests ended")
                    .isTrue();
        } finally {
            process.destroyForcibly();
        }
        assertThat(Files.readString(output, UTF_8))
                .containsPattern("Ran [1-9][0-9]* tests in ")
                .doesNotContain("KVCACHE_TEST_CUDA names no")
                .containsPattern("\nOK( \\(skipped=1\\))?\n$"); // the test that needs PyTorch
    }

    private static boolean hasPython() throws InterruptedException {
        try {
            String script = "import sys; sys.exit(sys.version_info < (3, 9))";
            return new ProcessBuilder(INTERPRETER, "-c", script).start().waitFor() == 0;
        } catch (IOException none) {
            return false;
        }
    }

    /// A command of the shell that runs a server of this class path, which has the module for GPUs.
    private static String server() {
        return String.join(
                " ",
                "'" + TestJvm.program() + "'",
                String.join(" ", TestJvm.FLAGS),
                "-Xmx512m --enable-native-access=ALL-UNNAMED",
                "-cp",
                "'" + System.getProperty("java.class.path") + "'",
                Kvcache.class.getName());
    }
}
