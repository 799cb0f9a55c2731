package io.kvcache.planner;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/// Runs Python that stands in documents, with an interpreter of this machine.
public final class PythonRunner {

    private static final long TIMEOUT_SECONDS = 300;

    private final String interpreter;

    private PythonRunner(String interpreter) {
        this.interpreter = interpreter;
    }

    /// Returns one that has some modules: that of `KVCACHE_TEST_PYTHON`, the first `python3` of the path or
    /// Debian's.
    ///
    /// @param modules of an import statement
    public static Optional<PythonRunner> withModules(String modules) throws InterruptedException {
        List<String> candidates = Stream.of(
                        System.getenv().getOrDefault("KVCACHE_TEST_PYTHON", "python3"), "python3", "/usr/bin/python3")
                .distinct()
                .toList();
        for (String candidate : candidates) {
            if (imports(candidate, modules)) {
                return Optional.of(new PythonRunner(candidate));
            }
        }
        return Optional.empty();
    }

    private static boolean imports(String interpreter, String modules) throws InterruptedException {
        try {
            Process process = new ProcessBuilder(interpreter, "-c", "import " + modules)
                    .redirectErrorStream(true)
                    .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                    .start();
            return process.waitFor() == 0;
        } catch (IOException absent) {
            return false;
        }
    }

    /// Runs a script and returns what it printed.
    ///
    /// @param folder working directory; the script is written there
    /// @param environment beside that of this process
    public String run(Path folder, String script, Map<String, String> environment, List<String> arguments)
            throws IOException, InterruptedException {
        Path file = Files.writeString(folder.resolve("script.py"), script);
        Path output = folder.resolve("output");
        Path errors = folder.resolve("errors");
        List<String> command = new ArrayList<>(List.of(interpreter, file.toString()));
        command.addAll(arguments);
        ProcessBuilder builder = new ProcessBuilder(command)
                .directory(folder.toFile())
                .redirectInput(Path.of("/dev/null").toFile())
                .redirectOutput(output.toFile())
                .redirectError(errors.toFile());
        builder.environment().putAll(environment);
        Process process = builder.start();
        try {
            assertThat(process.waitFor(TIMEOUT_SECONDS, TimeUnit.SECONDS))
                    .as("the script ended")
                    .isTrue();
        } finally {
            process.destroyForcibly();
        }
        assertThat(process.exitValue()).as(Files.readString(errors, UTF_8)).isZero();
        return Files.readString(output, UTF_8);
    }
}
