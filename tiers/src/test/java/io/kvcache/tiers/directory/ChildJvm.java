package io.kvcache.tiers.directory;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.kvcache.core.KvCache;
import io.kvcache.core.check.BlockContent;
import io.kvcache.core.contract.TestJvm;
import io.kvcache.tiers.disk.DiskLog;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.net.URISyntaxException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/// A program of a test, in a JVM of its own, that the test talks to by lines.
public final class ChildJvm implements AutoCloseable {

    private final Process process;
    private final BufferedReader out;

    /// Starts the main method of a class.
    ///
    /// @param before what goes before the command, a tracer for example
    public ChildJvm(List<String> before, Class<?> program, String... arguments) throws IOException {
        List<String> command = new ArrayList<>(before);
        command.add(TestJvm.program());
        command.addAll(TestJvm.FLAGS);
        command.addAll(List.of("--enable-native-access=ALL-UNNAMED", "-cp", classes()));
        command.add(program.getName());
        command.addAll(List.of(arguments));
        process = new ProcessBuilder(command)
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
        out = new BufferedReader(new InputStreamReader(process.getInputStream(), UTF_8));
    }

    private static String classes() {
        return Stream.of(KvCache.class, BlockContent.class, DiskLog.class, ChildJvm.class)
                .map(ChildJvm::home)
                .distinct()
                .collect(Collectors.joining(":"));
    }

    private static String home(Class<?> type) {
        try {
            return Path.of(type.getProtectionDomain()
                            .getCodeSource()
                            .getLocation()
                            .toURI())
                    .toString();
        } catch (URISyntaxException impossible) {
            throw new AssertionError(impossible);
        }
    }

    /// The next line that it prints; empty when it has ended.
    public String line() throws IOException {
        String line = out.readLine();
        return line == null ? "" : line;
    }

    public long pid() {
        return process.pid();
    }

    /// Says that it may go on, and waits until it has ended.
    public int finish() throws IOException, InterruptedException {
        try (OutputStream in = process.getOutputStream()) {
            in.write('\n');
        }
        return process.waitFor();
    }

    /// Kills it as `kill -9` does.
    public void kill() {
        process.destroyForcibly().onExit().join();
    }

    @Override
    public void close() {
        kill();
    }
}
