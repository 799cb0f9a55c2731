package io.kvcache.bench.server;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;

/// A server in a process of its own, with two GiB for values, at a port that nobody else uses.
public final class Contender implements AutoCloseable {

    private static final String HOST_BYTES = "2147483648";
    private static final Path REDIS = Path.of("/usr/bin/redis-server");

    private final Process process;
    private final int port;

    private Contender(Process process, int port) {
        this.process = process;
        this.port = port;
    }

    /// The server of this checkout, as `./kvcache serve` starts it.
    ///
    /// @param mainClass of the command line
    public static Contender ours(String mainClass) throws IOException, InterruptedException {
        int port = freePort();
        return start(
                port,
                List.of(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "--enable-native-access=ALL-UNNAMED",
                        "--sun-misc-unsafe-memory-access=allow",
                        "-Xmx2g",
                        "-XX:MaxDirectMemorySize=2g",
                        "-XX:+UseCompactObjectHeaders",
                        "-cp",
                        System.getProperty("java.class.path"),
                        mainClass,
                        "serve",
                        "--port",
                        Integer.toString(port),
                        "--host-bytes",
                        HOST_BYTES));
    }

    /// Debian's Redis, without persistence.
    ///
    /// @throws IOException when it is not installed
    public static Contender redis() throws IOException, InterruptedException {
        if (!Files.isExecutable(REDIS)) {
            throw new IOException("there is no " + REDIS + " to compare with; apt-get install redis-server");
        }
        int port = freePort();
        return start(
                port,
                List.of(
                        REDIS.toString(),
                        "--port",
                        Integer.toString(port),
                        "--bind",
                        "127.0.0.1",
                        "--save",
                        "",
                        "--appendonly",
                        "no",
                        "--maxmemory",
                        HOST_BYTES,
                        "--maxmemory-policy",
                        "allkeys-lru"));
    }

    private static Contender start(int port, List<String> command) throws IOException, InterruptedException {
        Process process = new ProcessBuilder(command)
                .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                .redirectError(ProcessBuilder.Redirect.DISCARD)
                .start();
        Contender started = new Contender(process, port);
        try {
            ValueClient.awaitServer(port);
            return started;
        } catch (IOException | InterruptedException failed) {
            started.close();
            throw failed;
        }
    }

    private static int freePort() throws IOException {
        try (ServerSocket any = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            return any.getLocalPort();
        }
    }

    int port() {
        return port;
    }

    @Override
    public void close() {
        process.destroy();
        try {
            if (!process.waitFor(10, TimeUnit.SECONDS)) {
                process.destroyForcibly();
            }
        } catch (InterruptedException stopped) {
            process.destroyForcibly();
            Thread.currentThread().interrupt();
        }
    }
}
