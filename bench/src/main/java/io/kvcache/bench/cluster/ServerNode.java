package io.kvcache.bench.cluster;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/// A server of a cluster, in a process that may be killed, stopped and started again.
///
/// **Threads.** One at a time starts and ends it; any may ask.
final class ServerNode {

    private static final int LINES_OF_LOG = 12;

    private final String name;
    private final int httpPort;
    private final String address;
    private final List<String> command;
    private final Path log;
    private volatile @Nullable Process process;
    private volatile boolean suspended;

    /// @param name in the cluster
    /// @param httpPort where it tells its view
    /// @param address of its transport
    /// @param command starts it
    /// @param log file for what it prints
    ServerNode(String name, int httpPort, String address, List<String> command, Path log) {
        this.name = name;
        this.httpPort = httpPort;
        this.address = address;
        this.command = List.copyOf(command);
        this.log = log;
    }

    String name() {
        return name;
    }

    int httpPort() {
        return httpPort;
    }

    String address() {
        return address;
    }

    void start() throws IOException {
        process = new ProcessBuilder(command)
                .redirectErrorStream(true)
                .redirectOutput(ProcessBuilder.Redirect.appendTo(log.toFile()))
                .start();
    }

    /// Returns whether it runs, and is not stopped by [#suspend].
    boolean isRunning() {
        Process now = process;
        return now != null && now.isAlive() && !suspended;
    }

    /// Sends SIGKILL, and returns when the process is gone. Does nothing when it has not been started.
    void kill() throws InterruptedException {
        Process now = process;
        if (now != null) {
            now.destroyForcibly().waitFor();
            suspended = false;
        }
    }

    /// Sends SIGTERM, and returns when the process has ended.
    ///
    /// @throws IOException when it has not ended after a time
    void terminate(Duration limit) throws IOException, InterruptedException {
        Process now = process;
        if (now != null) {
            now.destroy();
            if (!now.waitFor(limit.toMillis(), TimeUnit.MILLISECONDS)) {
                throw new IOException(name + " runs on " + limit.toSeconds() + " s after SIGTERM" + lastLines());
            }
        }
    }

    /// Sends SIGSTOP.
    void suspend() throws IOException, InterruptedException {
        suspended = true;
        signal("STOP");
    }

    /// Sends SIGCONT.
    void resume() throws IOException, InterruptedException {
        signal("CONT");
        suspended = false;
    }

    private void signal(String signal) throws IOException, InterruptedException {
        Process now = process;
        if (now == null) {
            throw new IOException(name + " has not been started");
        }
        int code = new ProcessBuilder("kill", "-" + signal, Long.toString(now.pid()))
                .inheritIO()
                .start()
                .waitFor();
        if (code != 0) {
            throw new IOException("kill -" + signal + " " + now.pid() + " ended with " + code);
        }
    }

    /// Returns what it has printed last, for messages; begins with a line feed.
    String lastLines() throws IOException {
        if (!Files.exists(log)) {
            return "";
        }
        List<String> lines = Files.readAllLines(log);
        List<String> last = lines.subList(Math.max(0, lines.size() - LINES_OF_LOG), lines.size());
        return "\n" + name + " printed:\n  " + String.join("\n  ", last);
    }
}
