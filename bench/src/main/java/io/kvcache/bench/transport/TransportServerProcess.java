package io.kvcache.bench.transport;

import com.sun.management.ThreadMXBean;
import io.kvcache.bench.ChildProcess;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.tiers.TieredKvCacheBuilder;
import io.kvcache.transport.aeron.AeronConnector;
import io.kvcache.transport.aeron.AeronEndpoint;
import io.kvcache.transport.endpoint.EndpointOptions;
import io.kvcache.transport.endpoint.TcpEndpoint;
import io.kvcache.transport.ucx.UcxMemory;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/// The server's process: a store of a GiB behind an endpoint. It ends with its input.
public final class TransportServerProcess implements AutoCloseable {

    private static final System.Logger LOG = System.getLogger(TransportServerProcess.class.getName());
    private static final long HOST_BYTES = 1L << 30;
    private static final String UCX_PREFIX = "ucx:";

    private final ChildProcess process;
    private final int port;

    private TransportServerProcess(ChildProcess process, int port) {
        this.process = process;
        this.port = port;
    }

    /// One whose memory clients read over UCX.
    ///
    /// @param folder for its files
    static TransportServerProcess startUcx(Path folder, String transports) throws IOException {
        return start(folder.toString(), UCX_PREFIX + transports);
    }

    /// One that serves over TCP.
    ///
    /// @param arguments nothing, an address of Aeron where it serves too, or a folder for the files of memory that
    ///     clients on this host may map
    static TransportServerProcess start(String... arguments) throws IOException {
        List<String> command = new ArrayList<>(List.of(
                ChildProcess.java(),
                "--enable-native-access=ALL-UNNAMED",
                "--sun-misc-unsafe-memory-access=allow",
                "--add-exports",
                "java.base/jdk.internal.misc=ALL-UNNAMED",
                "-Xmx512m",
                "-cp",
                System.getProperty("java.class.path"),
                TransportServerProcess.class.getName()));
        command.addAll(List.of(arguments));
        ChildProcess process =
                new ChildProcess(new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT));
        return new TransportServerProcess(process, Integer.parseInt(process.awaitFirstLine()));
    }

    int port() {
        return port;
    }

    /// Returns the processor time that it has used, all threads together.
    Duration processorTime() {
        return process.handle().info().totalCpuDuration().orElse(Duration.ZERO);
    }

    /// Returns the heap bytes that it has allocated.
    long allocatedBytes() throws IOException {
        return Long.parseLong(process.ask());
    }

    @Override
    public void close() throws IOException {
        process.closeInput();
    }

    /// Serves until its input ends. For each line of input, prints how many heap bytes it has allocated.
    ///
    /// @param arguments perhaps a folder for memory to be shared, and `ucx:` with transports; or an address of
    ///     Aeron
    @SuppressWarnings("SystemOut") // prints its port for its parent process
    public static void main(String[] arguments) throws IOException {
        TieredKvCacheBuilder builder = TieredKvCache.builder().hostBytes(HOST_BYTES);
        String aeron = null;
        String transports = null;
        for (String argument : arguments) {
            if (argument.startsWith(AeronConnector.SCHEME)) {
                aeron = argument;
            } else if (argument.startsWith(UCX_PREFIX)) {
                transports = argument.substring(UCX_PREFIX.length());
            } else {
                builder = builder.shareMemory(Path.of(argument));
            }
        }
        try (TieredKvCache store = builder.build();
                UcxMemory memory = transports == null
                        ? null
                        : UcxMemory.export(Objects.requireNonNull(store.sharedMemory()), transports);
                TcpEndpoint endpoint = TcpEndpoint.open(
                        store, new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), options(memory));
                AeronEndpoint second =
                        aeron == null ? null : AeronEndpoint.open(store, aeron, EndpointOptions.DEFAULTS)) {
            LOG.log(System.Logger.Level.DEBUG, "over Aeron: {0}", second != null);
            System.out.println(endpoint.address().getPort());
            ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
            while (System.in.read() >= 0) {
                System.out.println(threads.getTotalThreadAllocatedBytes());
            }
        }
    }

    private static EndpointOptions options(@Nullable UcxMemory memory) {
        return memory == null ? EndpointOptions.DEFAULTS : EndpointOptions.DEFAULTS.withFabric(memory.descriptor());
    }
}
