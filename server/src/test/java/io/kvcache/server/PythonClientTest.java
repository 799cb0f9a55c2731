package io.kvcache.server;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.kvcache.core.contract.TestJvm;
import io.kvcache.server.cli.Kvcache;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/// The tests of `python/`, with servers of this class path in processes of their own.
@Tag("slow")
@Timeout(600)
final class PythonClientTest {

    private static final Path PYTHON = Path.of("../python").toAbsolutePath().normalize();
    private static final long TIMEOUT_SECONDS = 540;

    /// The interpreter, for one that has other packages; `python3` by default.
    private static final String INTERPRETER = System.getenv().getOrDefault("KVCACHE_TEST_PYTHON", "python3");

    /// Bytes that all servers and pools of the tests take at one time.
    private static final long SHARED_BYTES = 512L << 20;

    @TempDir
    private Path folder = Path.of("");

    @Test
    void givenTheClient_whenItsTestsRun_thenTheyPass() throws Exception {
        assertThatTestsPass("tests.test_client");
    }

    @Test
    void givenTheVectorsOfTheProtocol_whenComputedInPython_thenTheyAreTheSame() throws Exception {
        assertThatTestsPass("tests.test_placement");
    }

    @Test
    void givenTheConnectors_whenTheirTestsRun_thenTheyPass() throws Exception {
        assertThatTestsPass("tests.test_connectors");
    }

    @Test
    void givenTheRunnerOfEngines_whenItsTestsRun_thenTheyPass() throws Exception {
        assertThatTestsPass("tests.test_engine_runner");
    }

    @Test
    void givenEvents_whenFollowersDecodeThem_thenTheyAreWhatWasDone() throws Exception {
        assumePython();
        assumeTrue(
                runs("import msgspec, zmq"),
                "msgspec and pyzmq are not here; name an interpreter that has them by KVCACHE_TEST_PYTHON");
        assertThatTestsPass("tests.test_events");
    }

    @Test
    void givenThePackage_whenBuiltTwice_thenTheWheelIsTheSame() throws Exception {
        assumePython();
        for (String run : List.of("one", "two")) {
            String output = python("build_backend.py", folder.resolve(run).toString());
            assertThat(output).contains("-py3-none-any.whl", ".tar.gz");
        }
        String wheel = "kvcache-0.1.0-py3-none-any.whl";
        assertThat(folder.resolve("one/" + wheel)).hasSameBinaryContentAs(folder.resolve("two/" + wheel));
        String script = "import sys; sys.path.insert(0, sys.argv[1]); import kvcache; print(kvcache.__file__)";
        assertThat(python("-I", "-c", script, folder.resolve("one/" + wheel).toString()))
                .contains(wheel);
    }

    private void assertThatTestsPass(String module) throws Exception {
        assumePython();
        TestRequirements.assumeSharedMemory(SHARED_BYTES);
        String output = python("-m", "unittest", "-v", module);
        assertThat(output)
                .containsPattern("Ran [1-9][0-9]* tests? in ")
                .containsPattern("\nOK( \\(skipped=\\d+\\))?\n$");
    }

    private static void assumePython() throws InterruptedException {
        assumeTrue(
                runs("import sys; sys.exit(sys.version_info < (3, 9))"),
                "python3 of 3.9 or later is not here; apt-get install python3");
    }

    private static boolean runs(String script) throws InterruptedException {
        try {
            return new ProcessBuilder(INTERPRETER, "-c", script).start().waitFor() == 0;
        } catch (IOException none) {
            return false;
        }
    }

    private String python(String... arguments) throws IOException, InterruptedException {
        Path output = folder.resolve("output");
        ProcessBuilder builder = new ProcessBuilder(INTERPRETER)
                .directory(PYTHON.toFile())
                .redirectErrorStream(true)
                .redirectOutput(output.toFile())
                .redirectInput(Path.of("/dev/null").toFile());
        builder.command().addAll(List.of(arguments));
        builder.environment().put("KVCACHE_TEST_SERVER", server());
        builder.environment().put("PYTHONDONTWRITEBYTECODE", "1");
        Process process = builder.start();
        try {
            assertThat(process.waitFor(TIMEOUT_SECONDS, TimeUnit.SECONDS))
                    .as("%s ended", List.of(arguments))
                    .isTrue();
        } finally {
            process.destroyForcibly();
        }
        String said = Files.readString(output, UTF_8);
        // What failed comes first, as reports show the beginning.
        String failures = said.substring(Math.max(0, said.indexOf("\n======")));
        assertThat(process.exitValue()).as(failures).isZero();
        return said;
    }

    /// A command of the shell that runs a server of this class path.
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
