package io.kvcache.bench.transport;

import io.kvcache.tiers.TieredKvCache;
import io.kvcache.transport.endpoint.EndpointOptions;
import io.kvcache.transport.tcp.TcpEndpoint;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;

/// The server's process: a store of a GiB behind an endpoint, and a bare responder beside it. It ends
/// with its input.
public final class TransportServer implements AutoCloseable {

    private static final long HOST_BYTES = 1L << 30;

    private final Process process;
    private final int port;
    private final int barePort;

    private TransportServer(Process process, int port, int barePort) {
        this.process = process;
        this.port = port;
        this.barePort = barePort;
    }

    static TransportServer start() throws IOException {
        Process process = new ProcessBuilder(List.of(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "--enable-native-access=ALL-UNNAMED",
                        "-Xmx512m",
                        "-cp",
                        System.getProperty("java.class.path"),
                        TransportServer.class.getName()))
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
        String line =
                new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8)).readLine();
        if (line == null) {
            throw new IOException("the server's process has ended");
        }
        String[] ports = line.split(" ", 2);
        return new TransportServer(process, Integer.parseInt(ports[0]), Integer.parseInt(ports[1]));
    }

    int port() {
        return port;
    }

    int barePort() {
        return barePort;
    }

    @Override
    public void close() throws IOException {
        process.getOutputStream().close();
        try {
            if (!process.waitFor(10, TimeUnit.SECONDS)) {
                process.destroyForcibly();
            }
        } catch (InterruptedException stopped) {
            process.destroyForcibly();
            Thread.currentThread().interrupt();
        }
    }

    /// Serves until its input ends.
    @SuppressWarnings("SystemOut") // tells its ports to who started it
    public static void main(String[] arguments) throws IOException {
        try (TieredKvCache store = TieredKvCache.builder().hostBytes(HOST_BYTES).build();
                TcpEndpoint endpoint = TcpEndpoint.open(
                        store, new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), EndpointOptions.DEFAULTS)) {
            System.out.println(endpoint.address().getPort() + " " + new BareResponder().port());
            while (System.in.read() >= 0) {
                // Nothing is said.
            }
        }
    }
}
