package io.kvcache.server.cli;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.contract.TestJvm;
import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/// `kvcache serve` in a process of its own, with 64 MiB of host memory at a port of its own.
final class ServeCommandProcess implements AutoCloseable {

    static final long HOST_BYTES = 64L << 20;

    private static final Pattern SERVES = Pattern.compile("KVCache .* serves at 127\\.0\\.0\\.1:(\\d+): 64 MiB .*");
    private static final int KILLED = 137;
    private static final long PATIENCE_SECONDS = 120;

    private final Process process;
    private final BufferedReader said;
    private final int port;

    /// @param errors a file for what it writes to standard error
    ServeCommandProcess(Path errors, String... more) throws IOException {
        this(errors, List.of(), List.of(more));
    }

    /// @param flags more of the JVM
    ServeCommandProcess(Path errors, List<String> flags, List<String> more) throws IOException {
        this(errors, List.of(), flags, more);
    }

    /// @param prefix of the command, for example to enter a network namespace
    ServeCommandProcess(Path errors, List<String> prefix, List<String> flags, List<String> more) throws IOException {
        List<String> command = Stream.of(
                        prefix,
                        List.of(
                                TestJvm.program(),
                                "--enable-native-access=ALL-UNNAMED",
                                "--sun-misc-unsafe-memory-access=allow"),
                        TestJvm.FLAGS,
                        flags,
                        List.of(
                                "-cp",
                                System.getProperty("java.class.path"),
                                Kvcache.class.getName(),
                                "serve",
                                "--port",
                                "0",
                                "--host-bytes",
                                HOST_BYTES + ""),
                        more)
                .flatMap(List::stream)
                .toList();
        ProcessBuilder builder = new ProcessBuilder(command).redirectError(errors.toFile());
        builder.environment().put("KVCACHE__SHUTDOWN__DRAIN", "4m"); // a tenth of it is for closing all
        process = builder.start();
        said = process.inputReader(UTF_8);
        Matcher serves = SERVES.matcher(String.valueOf(said.readLine()));
        assertThat(serves.matches()).isTrue();
        port = Integer.parseInt(serves.group(1));
    }

    long pid() {
        return process.pid();
    }

    int port() {
        return port;
    }

    /// Reads on to a line that begins so, and returns it.
    String readLine(String prefix) throws IOException {
        String line = String.valueOf(said.readLine());
        while (!line.startsWith(prefix)) {
            line = Objects.requireNonNull(said.readLine(), "the server says no line with " + prefix);
        }
        return line;
    }

    /// Sends SIGTERM.
    void terminate() {
        assertThat(process.toHandle().destroy()).isTrue();
    }

    /// Waits until it has ended well after [#terminate]; what it said since the last line that was read.
    String awaitExit() throws IOException, InterruptedException {
        return awaitExit(0);
    }

    /// Waits until it has ended with an exit code after [#terminate]; what it said since the last line that was read.
    String awaitExit(int exitCode) throws IOException, InterruptedException {
        String rest = said.readAllAsString();
        assertThat(process.waitFor(PATIENCE_SECONDS, TimeUnit.SECONDS)).isTrue();
        assertThat(process.exitValue()).isEqualTo(exitCode);
        return rest;
    }

    void kill() throws InterruptedException {
        process.destroyForcibly();
        assertThat(process.waitFor(PATIENCE_SECONDS, TimeUnit.SECONDS)).isTrue();
        assertThat(process.exitValue()).isEqualTo(KILLED);
    }

    @Override
    public void close() throws IOException {
        process.destroyForcibly();
        said.close();
    }
}
