package io.kvcache.bench.transport;

import io.kvcache.tiers.TieredKvCache;
import io.kvcache.tiers.TieredKvCacheBuilder;
import io.kvcache.transport.aeron.AeronConnector;
import io.kvcache.transport.aeron.AeronEndpoint;
import io.kvcache.transport.endpoint.EndpointOptions;
import io.kvcache.transport.tcp.TcpEndpoint;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/// The server's process: a store of a GiB behind an endpoint, and a bare responder beside it. It ends
/// with its input.
public final class TransportServer implements AutoCloseable {

    private static final System.Logger LOG = System.getLogger(TransportServer.class.getName());
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
        return start(List.of());
    }

    /// One whose memory clients on this host may map.
    ///
    /// @param folder for its files
    static TransportServer sharing(Path folder) throws IOException {
        return start(List.of(folder.toString()));
    }

    /// One that serves over Aeron too.
    static TransportServer aeron(String address) throws IOException {
        return start(List.of(address));
    }

    private static TransportServer start(List<String> arguments) throws IOException {
        List<String> command = new ArrayList<>(List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "--enable-native-access=ALL-UNNAMED",
                "--sun-misc-unsafe-memory-access=allow",
                "--add-exports",
                "java.base/jdk.internal.misc=ALL-UNNAMED",
                "-Xmx512m",
                "-cp",
                System.getProperty("java.class.path"),
                TransportServer.class.getName()));
        command.addAll(arguments);
        Process process = new ProcessBuilder(command)
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

    /// Processor time that the server's process has used, all threads together.
    Duration processorTime() {
        return process.info().totalCpuDuration().orElse(Duration.ZERO);
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
    ///
    /// @param arguments perhaps a folder for memory to be shared, or an address of Aeron
    @SuppressWarnings("SystemOut") // tells its ports to who started it
    public static void main(String[] arguments) throws IOException {
        TieredKvCacheBuilder builder = TieredKvCache.builder().hostBytes(HOST_BYTES);
        String aeron = null;
        for (String argument : arguments) {
            if (argument.startsWith(AeronConnector.SCHEME)) {
                aeron = argument;
            } else {
                builder = builder.shared(Path.of(argument));
            }
        }
        try (TieredKvCache store = builder.build();
                TcpEndpoint endpoint = TcpEndpoint.open(
                        store, new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), EndpointOptions.DEFAULTS);
                AeronEndpoint second =
                        aeron == null ? null : AeronEndpoint.open(store, aeron, EndpointOptions.DEFAULTS)) {
            if (second != null) {
                LOG.log(System.Logger.Level.DEBUG, second.address());
            }
            System.out.println(endpoint.address().getPort() + " " + new BareResponder().port());
            while (System.in.read() >= 0) {
                // Nothing is said.
            }
        }
    }
}
