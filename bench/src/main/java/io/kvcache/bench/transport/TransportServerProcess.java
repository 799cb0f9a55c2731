package io.kvcache.bench.transport;

import com.sun.management.ThreadMXBean;
import io.kvcache.bench.ChildProcess;
import io.kvcache.bench.transport.BaselineAeron.BaselineAeronServer;
import io.kvcache.bench.transport.BaselineTcp.BaselineTcpServer;
import io.kvcache.bench.transport.TransferEndpoint.PeerProcess;
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

/// The server's process: a store of a GiB behind an endpoint, and a bare responder beside it. It ends
/// with its input.
public final class TransportServerProcess implements PeerProcess, AutoCloseable {

    private static final System.Logger LOG = System.getLogger(TransportServerProcess.class.getName());
    private static final long HOST_BYTES = 1L << 30;
    private static final String BASELINE_PREFIX = "bare:";
    private static final String UCX_PREFIX = "ucx:";

    private final ChildProcess process;
    private final int port;
    private final int barePort;

    private TransportServerProcess(ChildProcess process, int port, int barePort) {
        this.process = process;
        this.port = port;
        this.barePort = barePort;
    }

    static TransportServerProcess start() throws IOException {
        return start(List.of());
    }

    /// One whose memory clients on this host may map.
    ///
    /// @param folder for its files
    static TransportServerProcess startShared(Path folder) throws IOException {
        return start(List.of(folder.toString()));
    }

    /// One that serves over Aeron too, and whose media driver a bare server uses beside it.
    ///
    /// @param driver directory of that driver
    /// @param channel of the bare server
    static TransportServerProcess startAeron(String address, String driver, String channel) throws IOException {
        return start(List.of(address, BASELINE_PREFIX + driver, BASELINE_PREFIX + channel));
    }

    /// One that serves over Aeron too.
    static TransportServerProcess startAeron(String address) throws IOException {
        return start(List.of(address));
    }

    /// One whose memory clients read over UCX.
    ///
    /// @param folder for its files
    static TransportServerProcess startUcx(Path folder, String transports) throws IOException {
        return start(List.of(folder.toString(), UCX_PREFIX + transports));
    }

    private static TransportServerProcess start(List<String> arguments) throws IOException {
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
        command.addAll(arguments);
        ChildProcess process =
                new ChildProcess(new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT));
        String[] ports = process.awaitFirstLine().split(" ", 2);
        return new TransportServerProcess(process, Integer.parseInt(ports[0]), Integer.parseInt(ports[1]));
    }

    int port() {
        return port;
    }

    @Override
    public Duration processorTime() {
        return PeerProcess.ofProcess(process.handle()).processorTime();
    }

    @Override
    public long allocatedBytes() throws IOException {
        return Long.parseLong(process.ask());
    }

    int baselinePort() {
        return barePort;
    }

    @Override
    public void close() throws IOException {
        process.closeInput();
    }

    /// Serves until its input ends. For each line of input, prints how many heap bytes it has allocated.
    ///
    /// @param arguments perhaps a folder for memory to be shared, and `ucx:` with transports; or an address of
    ///     Aeron, and `bare:` with a driver's directory and with a channel
    @SuppressWarnings("SystemOut") // prints its ports for its parent process
    public static void main(String[] arguments) throws IOException {
        TieredKvCacheBuilder builder = TieredKvCache.builder().hostBytes(HOST_BYTES);
        String aeron = null;
        String transports = null;
        List<String> bare = new ArrayList<>();
        for (String argument : arguments) {
            if (argument.startsWith(AeronConnector.SCHEME)) {
                aeron = argument;
            } else if (argument.startsWith(BASELINE_PREFIX)) {
                bare.add(argument.substring(BASELINE_PREFIX.length()));
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
                        aeron == null ? null : AeronEndpoint.open(store, aeron, EndpointOptions.DEFAULTS);
                BaselineAeronServer third = bare.isEmpty()
                        ? null
                        : new BaselineAeronServer(bare.getFirst(), bare.getLast(), TransportComparison.CONNECTIONS)) {
            LOG.log(System.Logger.Level.DEBUG, "over Aeron: {0}, bare: {1}", second != null, third != null);
            System.out.println(endpoint.address().getPort() + " " + new BaselineTcpServer().port());
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
