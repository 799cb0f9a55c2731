package io.kvcache.bench.crash;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.kvcache.bench.ChildProcess;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;
import java.util.function.Predicate;

/// A process of this program's classes that writes a line before each step, until it is killed.
///
/// It writes them to a file: when a process dies, [Process] may lose the last bytes of a pipe.
///
/// **Ownership.** Closing it kills the process if it still runs.
final class CrashProcess implements AutoCloseable {

    private static final long POLL_NANOS = TimeUnit.MICROSECONDS.toNanos(50);

    private final Process process;
    private final Path file;
    private final InputStream output;
    private final StringBuilder line = new StringBuilder();

    private CrashProcess(Process process, Path file) throws IOException {
        this.process = process;
        this.file = file;
        output = Files.newInputStream(file);
    }

    /// Starts the main method of a class, with the JDK and the class path of this process.
    static CrashProcess start(Class<?> program, List<String> arguments) throws IOException {
        List<String> command = new ArrayList<>();
        command.add(ChildProcess.java());
        command.addAll(List.of("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m"));
        command.addAll(List.of("--enable-native-access=ALL-UNNAMED", "-cp", System.getProperty("java.class.path")));
        command.add(program.getName());
        command.addAll(arguments);
        Path file = Files.createTempFile("kvcache-victim-", ".lines");
        return new CrashProcess(
                new ProcessBuilder(command)
                        .redirectOutput(file.toFile())
                        .redirectError(ProcessBuilder.Redirect.INHERIT)
                        .start(),
                file);
    }

    /// Reads lines up to one that was waited for.
    ///
    /// @param heard is told of each line
    /// @throws IOException when the process ends before that
    void awaitLine(Predicate<String> wanted, Consumer<String> heard) throws IOException {
        while (true) {
            int next = output.read();
            if (next == '\n') {
                String whole = line.toString();
                line.setLength(0);
                heard.accept(whole);
                if (wanted.test(whole)) {
                    return;
                }
            } else if (next >= 0) {
                line.append((char) next);
            } else if (!process.isAlive() && output.available() == 0) {
                throw new IOException(
                        "the process that was to be killed has ended by itself, with " + process.exitValue());
            } else {
                LockSupport.parkNanos(POLL_NANOS);
            }
        }
    }

    /// Kills it as `kill -9` does, and reads what it had still said.
    void kill(Consumer<String> heard) throws IOException {
        process.destroyForcibly().onExit().join();
        line.append(new String(output.readAllBytes(), UTF_8));
        int end = line.lastIndexOf("\n");
        line.substring(0, Math.max(0, end)).lines().forEach(heard);
    }

    @Override
    public void close() throws IOException {
        process.destroyForcibly().onExit().join();
        output.close();
        Files.delete(file);
    }
}
