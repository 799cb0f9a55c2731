package io.kvcache.bench.transport;

import io.kvcache.bench.Median;
import io.kvcache.bench.server.ServerProcess;
import io.kvcache.bench.transport.BaselineAeron.BaselineAeronClient;
import io.kvcache.bench.transport.BaselineTcp.BaselineTcpClient;
import io.kvcache.bench.transport.TransferEndpoint.PeerProcess;
import io.kvcache.bench.transport.TransferEndpoint.ResourceUsage;
import io.kvcache.bench.transport.TransferEndpoint.TransferClient;
import io.kvcache.bench.transport.TransferMeter.TransferStats;
import io.kvcache.bench.transport.TransferSpec.TransferOperation;
import io.kvcache.transport.client.SharedMemoryMode;
import java.io.IOException;
import java.net.DatagramSocket;
import java.net.InetAddress;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.Consumer;

/// Moves the same blocks through the remote cache and to a bare responder in turn, round by round, so
/// that what else the machine does meets both.
public final class TransportComparison {

    private static final List<Integer> SIZES = List.of(64 << 10, 1 << 20, 2 << 20, 4 << 20);
    private static final List<Integer> IN_FLIGHT = List.of(1, 4);
    static final int CONNECTIONS = 2;
    private static final int SECOND_PUTS = 1 << 24;
    private static final long REDIS_BYTES = 1L << 30;

    private final int rounds;
    private final Duration time;
    private final Consumer<String> progress;

    /// How long to measure.
    ///
    /// @param rounds times that each cargo is moved by each
    /// @param time of each round
    /// @param progress told what is about to run
    public TransportComparison(int rounds, Duration time, Consumer<String> progress) {
        this.rounds = rounds;
        this.time = time;
        this.progress = progress;
    }

    /// All cells: four operations, four sizes, two numbers in flight.
    public List<TransportResult> run() throws IOException, InterruptedException {
        try (TransportServerProcess server = TransportServerProcess.start();
                RemoteTransferClient ours = new RemoteTransferClient("127.0.0.1:" + server.port(), CONNECTIONS);
                BaselineTcpClient bare = new BaselineTcpClient(server.baselinePort(), CONNECTIONS, SIZES.getLast())) {
            return run(new EndpointPair(server, ours, bare), bytes -> {}, List.of(TransferOperation.values()));
        }
    }

    /// Compares gets and puts of the remote cache with those of a Redis on this machine, with as many connections.
    ///
    /// @throws IOException also when Redis is not installed
    public List<TransportResult> runRedis() throws IOException, InterruptedException {
        try (ServerProcess redis = ServerProcess.startRedis(REDIS_BYTES);
                RedisTransferClient client = new RedisTransferClient(redis.port(), CONNECTIONS, SIZES.getLast());
                TransportServerProcess server = TransportServerProcess.start();
                RemoteTransferClient ours = new RemoteTransferClient("127.0.0.1:" + server.port(), CONNECTIONS)) {
            ProcessHandle process = ProcessHandle.of(redis.processId()).orElseThrow();
            EndpointPair pair = new EndpointPair(
                    ours,
                    new TransferEndpoint(ours, server),
                    new TransferEndpoint(client, PeerProcess.ofProcess(process)));
            return run(pair, client::setBlocks, List.of(TransferOperation.ACQUIRE, TransferOperation.STORE));
        }
    }

    /// Compares gets and puts over Aeron's UDP on this host, in datagrams of the largest size, with those of the
    /// remote cache over TCP.
    ///
    /// @param termBytes of the terms of all streams
    public List<TransportResult> runAeronUdp(int termBytes) throws IOException, InterruptedException {
        String address = "aeron:udp?endpoint=127.0.0.1:" + freePort() + "|mtu=65504|term-length=" + termBytes;
        try (TransportServerProcess server = TransportServerProcess.startAeron(address);
                RemoteTransferClient ours = new RemoteTransferClient(address, CONNECTIONS);
                RemoteTransferClient tcp =
                        new RemoteTransferClient("127.0.0.1:" + server.port(), CONNECTIONS, SECOND_PUTS)) {
            return run(
                    new EndpointPair(server, ours, tcp),
                    tcp::useStored,
                    List.of(TransferOperation.ACQUIRE, TransferOperation.STORE));
        }
    }

    private static int freePort() throws IOException {
        try (DatagramSocket any = new DatagramSocket(0, InetAddress.getLoopbackAddress())) {
            return any.getLocalPort();
        }
    }

    /// Compares the remote cache over Aeron on this host with the remote cache over TCP.
    ///
    /// @param termBytes of the terms of all streams
    public List<TransportResult> runAeron(int termBytes) throws IOException, InterruptedException {
        return runAeron(termBytes, (address, server) -> {
            try (RemoteTransferClient ours = new RemoteTransferClient(address, CONNECTIONS);
                    RemoteTransferClient tcp =
                            new RemoteTransferClient("127.0.0.1:" + server.port(), CONNECTIONS, SECOND_PUTS)) {
                return run(new EndpointPair(server, ours, tcp), tcp::useStored, List.of(TransferOperation.values()));
            }
        });
    }

    /// Compares gets over Aeron on this host with bare Aeron at the same settings.
    ///
    /// @param termBytes of the terms of all streams
    public List<TransportResult> runBareAeron(int termBytes) throws IOException, InterruptedException {
        return runAeron(termBytes, (address, server) -> {
            try (RemoteTransferClient ours = new RemoteTransferClient(address, CONNECTIONS);
                    BaselineAeronClient bare = new BaselineAeronClient(
                            driver(address), channel(termBytes), CONNECTIONS, SIZES.getLast())) {
                return run(new EndpointPair(server, ours, bare), bytes -> {}, List.of(TransferOperation.ACQUIRE));
            }
        });
    }

    /// Runs beside a server over Aeron.
    @FunctionalInterface
    private interface AeronPeer {

        /// Measures.
        List<TransportResult> run(String address, TransportServerProcess server)
                throws IOException, InterruptedException;
    }

    private static List<TransportResult> runAeron(int termBytes, AeronPeer aeronPeer)
            throws IOException, InterruptedException {
        Path folder = SharedMemoryComparison.createFolder();
        String address = "aeron:ipc?dir=" + folder + "|term-length=" + termBytes;
        try (TransportServerProcess server =
                TransportServerProcess.startAeron(address, driver(address), channel(termBytes))) {
            return aeronPeer.run(address, server);
        } finally {
            SharedMemoryComparison.deleteFolder(folder);
        }
    }

    /// The directory of an embedded driver.
    private static String driver(String address) {
        return address.substring(address.indexOf('=') + 1, address.indexOf('|')) + "/driver";
    }

    private static String channel(int termBytes) {
        return "aeron:ipc?term-length=" + termBytes;
    }

    /// Compares gets over UCX on this host with the remote cache over TCP.
    ///
    /// @param transports of UCX
    public List<TransportResult> runUcx(String transports) throws IOException, InterruptedException {
        Path folder = SharedMemoryComparison.createFolder();
        try (TransportServerProcess server = TransportServerProcess.startUcx(folder, transports);
                RemoteTransferClient ours =
                        new RemoteTransferClient("ucx:127.0.0.1:" + server.port() + "?tls=" + transports, CONNECTIONS);
                RemoteTransferClient tcp =
                        new RemoteTransferClient("127.0.0.1:" + server.port(), CONNECTIONS, SECOND_PUTS)) {
            List<TransportResult> cells =
                    run(new EndpointPair(server, ours, tcp), tcp::useStored, List.of(TransferOperation.ACQUIRE));
            ours.requireOneSidedReads();
            return cells;
        } finally {
            SharedMemoryComparison.deleteFolder(folder);
        }
    }

    /// Compares puts through memory that client and server share with the remote cache over TCP, to the same
    /// server.
    public List<TransportResult> runStaged() throws IOException, InterruptedException {
        Path folder = SharedMemoryComparison.createFolder();
        try (TransportServerProcess server = TransportServerProcess.startShared(folder);
                RemoteTransferClient ours = new RemoteTransferClient(
                        "127.0.0.1:" + server.port(), CONNECTIONS, 0, SharedMemoryMode.REQUIRED);
                RemoteTransferClient tcp =
                        new RemoteTransferClient("127.0.0.1:" + server.port(), CONNECTIONS, SECOND_PUTS)) {
            List<TransferOperation> puts = Arrays.stream(TransferOperation.values())
                    .filter(TransferOperation::isPut)
                    .toList();
            List<TransportResult> cells = run(new EndpointPair(server, ours, tcp), tcp::useStored, puts);
            ours.requireSharedMemoryPuts();
            return cells;
        } finally {
            SharedMemoryComparison.deleteFolder(folder);
        }
    }

    /// Ours and what it is held against.
    ///
    /// @param filling the same as `ours`
    private record EndpointPair(RemoteTransferClient filling, TransferEndpoint ours, TransferEndpoint other) {

        /// At one server.
        EndpointPair(TransportServerProcess server, RemoteTransferClient ours, TransferClient other) {
            this(ours, new TransferEndpoint(ours, server), new TransferEndpoint(other, server));
        }
    }

    /// Makes the other ready for blocks of a size.
    @FunctionalInterface
    private interface Preparation {

        /// Once they are in ours.
        void fill(int bytes) throws IOException, InterruptedException;
    }

    private List<TransportResult> run(EndpointPair pair, Preparation other, List<TransferOperation> operations)
            throws IOException, InterruptedException {
        List<TransportResult> cells = new ArrayList<>();
        for (int bytes : SIZES) {
            pair.filling.putBlocks(bytes);
            other.fill(bytes);
            for (TransferOperation operation : operations) {
                warm(pair, new TransferSpec(operation, bytes, 2));
                for (int inFlight : IN_FLIGHT) {
                    cells.add(cell(pair, new TransferSpec(operation, bytes, inFlight)));
                }
            }
            pair.filling.dropBlocks(bytes);
        }
        return cells;
    }

    private void warm(EndpointPair pair, TransferSpec transferSpec) throws IOException, InterruptedException {
        progress.accept("warming " + transferSpec.operation().label() + " of " + (transferSpec.bytes() >> 10) + " KiB");
        pair.ours.measure(transferSpec, time.multipliedBy(2));
        pair.other.measure(transferSpec, time.multipliedBy(2));
    }

    private TransportResult cell(EndpointPair pair, TransferSpec transferSpec)
            throws IOException, InterruptedException {
        progress.accept(transferSpec.operation().label() + " " + (transferSpec.bytes() >> 10) + " KiB, "
                + transferSpec.inFlight() + " in flight");
        List<TransferEndpoint.RoundResult> own = new ArrayList<>();
        List<TransferEndpoint.RoundResult> other = new ArrayList<>();
        List<Double> ratios = new ArrayList<>();
        for (int round = 0; round < rounds; round++) {
            own.add(pair.ours.measure(transferSpec, time));
            other.add(pair.other.measure(transferSpec, time));
            ratios.add(
                    own.getLast().moves().gigabytes() / other.getLast().moves().gigabytes());
        }
        return new TransportResult(transferSpec, moves(own), moves(other), Median.of(ratios), costs(own), costs(other));
    }

    private static TransferStats moves(List<TransferEndpoint.RoundResult> rounds) {
        return TransferMeter.median(
                rounds.stream().map(TransferEndpoint.RoundResult::moves).toList());
    }

    private static ResourceUsage costs(List<TransferEndpoint.RoundResult> rounds) {
        return ResourceUsage.median(
                rounds.stream().map(TransferEndpoint.RoundResult::cost).toList());
    }

    /// One cargo, moved by both.
    ///
    /// @param ratio median of the rounds' ratios of ours to the other's
    public record TransportResult(
            TransferSpec cargo,
            TransferStats ours,
            TransferStats bare,
            double ratio,
            ResourceUsage cost,
            ResourceUsage bareCost) {}
}
