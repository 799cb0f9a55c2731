package io.kvcache.bench;

import java.io.BufferedReader;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;

/// A process that this program starts and ends. It is killed if it neither starts nor ends in time.
///
/// [io.kvcache.server.doctor.ProcessRunner] runs programs that end by themselves.
public final class ChildProcess {

    private static final int START_SECONDS = 60;
    private static final int EXIT_SECONDS = 10;

    private final Process process;
    private final BufferedReader output;

    /// Starts what a builder describes.
    public ChildProcess(ProcessBuilder builder) throws IOException {
        process = builder.start();
        output = process.inputReader(StandardCharsets.UTF_8);
    }

    /// Returns the `java` of the JDK that runs this program.
    public static String java() {
        return Path.of(System.getProperty("java.home"), "bin", "java").toString();
    }

    public ProcessHandle handle() {
        return process.toHandle();
    }

    /// Returns `does not answer` or `ended with CODE`, for messages.
    public String state() {
        return process.isAlive() ? "does not answer" : "ended with " + process.exitValue();
    }

    /// Reads the first line of its output, which says that it is ready.
    ///
    /// @throws IOException if it prints none within a minute
    public String awaitFirstLine() throws IOException {
        Executor later = CompletableFuture.delayedExecutor(START_SECONDS, TimeUnit.SECONDS);
        CompletableFuture<Void> limit = CompletableFuture.runAsync(process::destroyForcibly, later);
        try {
            return readLine();
        } finally {
            limit.cancel(false);
        }
    }

    /// Sends a line end and returns the line that answers it.
    public String ask() throws IOException {
        process.getOutputStream().write('\n');
        process.getOutputStream().flush();
        return readLine();
    }

    private String readLine() throws IOException {
        String line = output.readLine();
        if (line == null) {
            throw new IOException(
                    "process " + process.pid() + " has ended, or printed nothing in " + START_SECONDS + " s");
        }
        return line;
    }

    /// Closes the input of a process that ends with it.
    public void closeInput() throws IOException {
        process.getOutputStream().close();
        awaitExit();
    }

    /// Sends SIGTERM.
    public void terminate() {
        process.destroy();
        awaitExit();
    }

    private void awaitExit() {
        try {
            if (!process.waitFor(EXIT_SECONDS, TimeUnit.SECONDS)) {
                process.destroyForcibly();
            }
        } catch (InterruptedException stopped) {
            process.destroyForcibly();
            Thread.currentThread().interrupt();
        }
    }
}
