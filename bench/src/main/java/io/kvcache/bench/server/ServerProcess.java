package io.kvcache.bench.server;

import io.kvcache.bench.ChildProcess;
import io.kvcache.bench.figure.RunnableBuild;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/// A server in a process of its own, at a port that was free just before its start.
final class ServerProcess implements AutoCloseable {

    private static final Path REDIS = Path.of("/usr/bin/redis-server");

    private final String name;
    private final ChildProcess process;
    private final int port;

    private ServerProcess(String name, ChildProcess process, int port) {
        this.name = name;
        this.process = process;
        this.port = port;
    }

    /// The server of this checkout, as `./kvcache serve` starts it.
    ///
    /// @param hostBytes for values
    static ServerProcess startCurrent(long hostBytes) throws IOException, InterruptedException {
        RunnableBuild build = RunnableBuild.shippedServer();
        List<String> command = build.javaCommand();
        command.addAll(1, build.aotFlags());
        return startServe("KVCache", command, build.mainClass(), hostBytes);
    }

    /// Starts the server of any build, with the flags of this JVM. It does not use the rehearsed AOT cache, which
    /// fits only one build and would favour it.
    ///
    /// @param hostBytes for values
    static ServerProcess startBuild(RunnableBuild build, long hostBytes) throws IOException, InterruptedException {
        return startServe(build.name(), build.javaCommand(), build.mainClass(), hostBytes);
    }

    private static ServerProcess startServe(String name, List<String> java, String mainClass, long hostBytes)
            throws IOException, InterruptedException {
        int port = freePort();
        List<String> command = new ArrayList<>(java);
        command.addAll(List.of(
                mainClass, "serve", "--port", Integer.toString(port), "--host-bytes", Long.toString(hostBytes)));
        ServerProcess started = start(name, port, command);
        started.awaitPong();
        return started;
    }

    /// Returns whether Debian's Redis is installed.
    public static boolean isRedisInstalled() {
        return Files.isExecutable(REDIS);
    }

    /// Debian's Redis, without persistence.
    ///
    /// @param hostBytes for values
    /// @throws IOException when it is not installed
    public static ServerProcess startRedis(long hostBytes) throws IOException, InterruptedException {
        if (!isRedisInstalled()) {
            throw new IOException(REDIS + " is not installed; apt-get install redis-server");
        }
        int port = freePort();
        ServerProcess started = start(
                "Redis",
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
                        Long.toString(hostBytes),
                        "--maxmemory-policy",
                        "allkeys-lru"));
        started.awaitPong();
        return started;
    }

    private static ServerProcess start(String name, int port, List<String> command) throws IOException {
        ProcessBuilder silent = new ProcessBuilder(command)
                .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                .redirectError(ProcessBuilder.Redirect.DISCARD);
        return new ServerProcess(name, new ChildProcess(silent), port);
    }

    private void awaitPong() throws IOException, InterruptedException {
        try {
            RespConnection.awaitPong(port);
        } catch (IOException failed) {
            String state = process.state();
            close();
            throw new IOException(name + " at port " + port + " " + state + ": " + failed.getMessage(), failed);
        } catch (InterruptedException failed) {
            close();
            throw failed;
        }
    }

    private static int freePort() throws IOException {
        try (ServerSocket any = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            return any.getLocalPort();
        }
    }

    String name() {
        return name;
    }

    /// Returns the port, on this host.
    public int port() {
        return port;
    }

    /// Returns the number of its process.
    public long processId() {
        return process.handle().pid();
    }

    /// Returns the processor time that it has used, all threads together.
    ///
    /// @throws IOException when it has ended
    Duration processorTime() throws IOException {
        return process.handle()
                .info()
                .totalCpuDuration()
                .orElseThrow(() -> new IOException(name + " has no processor time: it has ended"));
    }

    @Override
    public void close() {
        process.terminate();
    }
}
