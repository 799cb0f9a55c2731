package io.kvcache.server.doctor;

import java.io.IOException;
import java.lang.ProcessBuilder.Redirect;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;

/// Runs a program to its end, or to a limit of time.
///
/// The program prints into a file and not into a pipe: a pipe stays open while any descendant holds it, so reading
/// it to its end has no limit of time.
public final class ProcessRunner {

    private ProcessRunner() {}

    /// A program's output and exit code.
    ///
    /// @param text standard output, and standard error where that was asked for
    /// @param exitCode its exit code, or [#NO_EXIT_CODE] when it ran past its limit and was killed
    public record ProcessOutput(String text, int exitCode) {

        /// No program ends with this code.
        public static final int NO_EXIT_CODE = -1;

        /// Returns whether the program ended within its limit.
        public boolean isFinished() {
            return exitCode != NO_EXIT_CODE;
        }

        /// Returns whether it ended within its limit with exit code 0.
        public boolean isSuccessful() {
            return exitCode == 0;
        }

        /// Returns `failed` or that it did not end within its limit, with its output, for messages.
        public String describeFailure(Duration limit) {
            return (isFinished() ? "failed" : "did not end within " + limit.toMinutes() + " min") + ":\n"
                    + text.strip();
        }
    }

    /// Runs a command.
    ///
    /// @throws IOException when it cannot be started, or the thread is interrupted
    public static ProcessOutput run(Duration limit, List<String> command) throws IOException {
        return run(limit, new ProcessBuilder(command).redirectError(Redirect.DISCARD));
    }

    /// Runs what a builder describes, whose standard input and output are set here.
    ///
    /// @throws IOException when it cannot be started, or the thread is interrupted
    public static ProcessOutput run(Duration limit, ProcessBuilder builder) throws IOException {
        Path printed = Files.createTempFile("kvcache-program", ".out");
        try {
            Process process = builder.redirectInput(Path.of("/dev/null").toFile())
                    .redirectOutput(printed.toFile())
                    .start();
            try {
                boolean ended = process.waitFor(limit.toNanos(), TimeUnit.NANOSECONDS);
                String text = new String(Files.readAllBytes(printed), StandardCharsets.UTF_8);
                return new ProcessOutput(text, ended ? process.exitValue() : ProcessOutput.NO_EXIT_CODE);
            } catch (InterruptedException stopped) {
                Thread.currentThread().interrupt();
                throw new IOException("interrupted while " + builder.command().getFirst() + " ran", stopped);
            } finally {
                process.descendants().forEach(ProcessHandle::destroyForcibly);
                process.destroyForcibly();
            }
        } finally {
            Files.deleteIfExists(printed);
        }
    }
}
